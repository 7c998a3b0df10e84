//! Calls of one answer that run at once: what the model learns must not depend on which of them returns first, because
//! whoever wrote their results may decide about it.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};
use tympan::turn::{FlowOptions, InputEvent, Next, ToolPolicy, ToolResult, Turn, TurnOptions};
use tympan::wire::response::{Answer, ToolCall};

use super::{Conversation, feed, responded};

/// An answer with several calls.
fn calls(calls: &[(&str, Json)]) -> InputEvent {
    let call = |(index, (name, arguments)): (usize, &(&str, Json))| ToolCall {
        id: format!("call_{index}"),
        name: (*name).to_owned(),
        arguments: arguments.to_string(),
    };
    responded(Answer { tool_calls: calls.iter().enumerate().map(call).collect(), ..Answer::default() })
}

fn turn(policy: ToolPolicy) -> Turn {
    let flow = FlowOptions { policy: Some(policy), ..FlowOptions::default() };
    Conversation::asked().turn(TurnOptions { parallel_tool_calls: true, flow, ..TurnOptions::default() })
}

/// Returns results in this order, and what the model then sees.
fn seen(turn: &mut Turn, results: &[ToolResult], order: &[usize]) -> String {
    let Next::Run(runs) = turn.next() else { panic!("they run") };
    assert_eq!(runs.len(), results.len(), "they run at once");
    let before = turn.messages().len();
    for index in order {
        assert_eq!(turn.messages().len(), before, "results are added together");
        feed(turn, InputEvent::Returned { index: *index, result: results[*index].clone() });
    }
    let messages: Vec<_> = turn.messages()[before..].iter().map(tympan::Message::to_text).collect();
    json!([messages, turn.context(), turn.labels()]).to_string()
}

/// Returns all orders of some indices.
fn orders(count: usize) -> Vec<Vec<usize>> {
    let Some(last) = count.checked_sub(1) else { return vec![Vec::new()] };
    let with_last = |order: Vec<usize>| {
        (0..=order.len()).map(move |at| {
            let mut order = order.clone();
            order.insert(at, last);
            order
        })
    };
    orders(last).into_iter().flat_map(with_last).collect()
}

#[test]
fn handles_are_named_in_the_order_of_the_calls() {
    let asked = [("hidden", json!({})), ("page", json!({})), ("secret", json!({})), ("hidden", json!({}))];
    let results = ["first", "page", "second", "a third one that is longer"].map(ToolResult::text);
    let found: BTreeSet<_> = orders(4)
        .iter()
        .map(|order| {
            let mut turn = turn(ToolPolicy::default());
            feed(&mut turn, calls(&asked));
            seen(&mut turn, &results, order)
        })
        .collect();
    assert_eq!(found.len(), 1, "{found:?}");
    let found = found.first().expect("there is one");
    assert!(found.contains("$hidden_1: text, 5 B") && found.contains("$hidden_2: text, 26 B"), "{found}");
}

/// With four bits, only some of the answers are shown. Which ones they are must not say anything about the content.
#[test]
fn extractions_use_the_budget_in_the_order_of_the_calls() {
    let extract =
        |kind: &str| ("extract_value", json!({ "value": "$hidden_1", "question": "?", "schema": { "type": kind } }));
    let failed = || ToolResult::error("tool_failed", "EVIL");
    let mut shown = BTreeSet::new();
    for (kind, results) in [
        ("boolean", ["true", "false", "true", "false"].map(ToolResult::text)),
        // A failure costs more after successes, in whichever order they return.
        ("string", [ToolResult::text("\"a\""), failed(), ToolResult::text("\"b\""), failed()]),
        ("string", [failed(), ToolResult::text("\"a\""), ToolResult::text("\"b\""), failed()]),
    ] {
        let found: BTreeSet<_> = orders(4)
            .iter()
            .map(|order| {
                let mut turn = turn(ToolPolicy { extraction_bits: 4, ..ToolPolicy::default() });
                feed(&mut turn, calls(&[("hidden", json!({}))]));
                feed(&mut turn, InputEvent::Returned { index: 0, result: ToolResult::text("EVIL") });
                feed(&mut turn, calls(&[extract(kind), extract(kind), extract(kind), extract(kind)]));
                seen(&mut turn, &results, order)
            })
            .collect();
        assert_eq!(found.len(), 1, "{found:?}");
        shown.extend(found);
    }
    assert_eq!(shown.len(), 3);
    let first = shown.iter().find(|found| found.contains("boolean")).expect("two are hidden");
    assert!(first.contains(r#""true","false","$hidden_2: boolean"#), "{first}");
}

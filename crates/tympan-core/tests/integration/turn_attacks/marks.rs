//! What prompts say about the parameters of tools: it can lead to more questions, and never to fewer.

use std::collections::HashMap;

use serde_json::json;
use tympan::spec::flow::{Effect, ToolFlow};
use tympan::turn::{Decision, Exception, FlowOptions, Label, Source, ToolPolicy, Turn, TurnOptions};
use tympan::{Inputs, Message, Prompt, Role};

use super::{Conversation, calls, feed, is_run, returns};

/// A prompt that marks everything about `send` that could spare a question.
const MARKED: &str = "\
---
tools:
  - {name: page, kind: function, effect: read, parameters: []}
  - name: send
    kind: function
    effect: external
    parameters: [{name: to, kind: string, trusted_only: true, destination: true}]
---
user:
go";

/// A turn in which the user has said `bob@example.com`, and after which the model has read this page.
fn turn(policy: ToolPolicy, host: Option<ToolFlow>, secret: bool, page: bool) -> Turn {
    let prompt = Prompt::from_prompty(MARKED).expect("it is a prompt");
    let mut asked = Conversation { messages: Vec::new(), labels: Vec::new() };
    asked = asked.then(Role::User, "Mail bob@example.com", &Label::user());
    if secret {
        let label = Label::new(Source::Input { name: "x".into() }, true, true);
        asked = asked.then(Role::User, "secret", &label);
    }
    let tools = HashMap::from_iter(host.map(|flow| ("send".to_owned(), flow)));
    let flow = FlowOptions { policy: Some(policy), tools, labels: Some(asked.labels), ..FlowOptions::default() };
    let messages: Vec<Message> = asked.messages;
    let options = TurnOptions { flow, ..TurnOptions::default() };
    let mut turn = Turn::new(&prompt, &Inputs::new(), messages, options).expect("it is a turn");
    turn.next();
    if page {
        feed(&mut turn, calls("page", json!({})));
        returns(&mut turn, "EVIL");
    }
    turn
}

fn sends(mut turn: Turn, to: &str) -> bool {
    feed(&mut turn, calls("send", json!({ "to": to })));
    is_run(&mut turn)
}

/// If the host says what a tool does, a prompt cannot spare the questions that follow from it. Otherwise, the prompt's
/// declaration is the only one, and it counts as a whole.
#[test]
fn marks_of_a_prompt_do_not_loosen_what_the_host_declares() {
    let (bob, default) = ("bob@example.com", ToolPolicy::default);
    let declared = || ToolFlow::new(Effect::External);
    for (policy, host, runs) in [
        (default(), None, true),
        (default(), Some(declared()), false),
        (default(), Some(declared().trusted_only("to")), true),
        (ToolPolicy::strict(), None, false),
        (ToolPolicy::strict(), Some(ToolFlow::default().trusted_only("to")), true),
    ] {
        let names = format!("{policy:?}, {host:?}");
        assert_eq!(sends(turn(policy, host, false, true), bob), runs, "{names}");
    }
    let listed = || ToolPolicy { destinations: vec!["*@example.com".into()], ..default() };
    for (policy, host, runs) in [
        (listed(), None, true),
        (listed(), Some(declared()), false),
        (listed(), Some(declared().destination("to")), true),
        (ToolPolicy { destinations: listed().destinations, ..ToolPolicy::strict() }, None, false),
    ] {
        let names = format!("{policy:?}, {host:?}");
        assert_eq!(sends(turn(policy, host, true, false), bob), runs, "{names}");
    }
    // That the value must be the user's still counts, also for what a prompt marks.
    assert!(!sends(turn(listed(), Some(declared().destination("to")), true, false), "eve@evil.com"));
}

/// Whoever names a tool decides about it, also if its destinations are on the list.
#[test]
fn the_list_does_not_spare_what_an_exception_names() {
    let exception = |decision| vec![Exception { tool: "send".into(), parameter: None, decision }];
    let listed = ToolPolicy { destinations: vec!["*@example.com".into()], ..ToolPolicy::default() };
    let project = ToolPolicy { exceptions: exception(Decision::Ask), ..ToolPolicy::default() };
    for (policy, runs) in [
        (listed.clone(), true),
        (listed.tightened(&project), false),
        (ToolPolicy { exceptions: exception(Decision::Ask), ..listed.clone() }, false),
        (ToolPolicy { exceptions: exception(Decision::Allow), ..listed }, true),
    ] {
        assert_eq!(sends(turn(policy, None, true, false), "bob@example.com"), runs);
    }
}

//! Invariants of turns, tested with every sequence of input events up to some length, on turns of several kinds.

use std::time::Duration;

use tympan::spec::schema::{Property, PropertyKind};
use tympan::spec::{PromptSpec, Tool, ToolKind};
use tympan::turn::{
    ContextBudget, Failure, Guardrails, InputEvent, Next, ToolResult, Turn, TurnEvent, TurnOptions, Verdict,
};
use tympan::wire::response::{Answer, Output, ToolCall};
use tympan::{Error, Inputs, Kind, Message, Prompt, Response, Role};

/// The maximum number of events in a sequence.
const DEPTH: usize = 7;

const MAX_ITERATIONS: u32 = 3;

fn prompt() -> Prompt {
    let parameters = vec![Property::new("n", PropertyKind::Integer)];
    let kind = ToolKind::Function { parameters, strict: None };
    let (description, bindings, flow, extra, span) = Default::default();
    let tool = Tool { name: "t".into(), description, kind, bindings, flow, extra, span };
    Prompt::from_spec(PromptSpec { tools: vec![tool], ..PromptSpec::default() })
}

fn answer(text: &str, calls: &[&str]) -> InputEvent {
    let call = |(index, arguments): (usize, &&str)| ToolCall {
        id: format!("call_{index}"),
        name: "t".into(),
        arguments: (*arguments).to_owned(),
    };
    let tool_calls = calls.iter().enumerate().map(call).collect();
    let answer = Answer { text: text.into(), tool_calls, ..Answer::default() };
    InputEvent::Responded { response: Box::new(Response { output: Output::Answer(answer), ..Response::default() }) }
}

/// Returns all input events.
fn alphabet() -> Vec<InputEvent> {
    let failure = Failure::from(&Error::new(Kind::Unreachable, "x"));
    vec![
        answer("done", &[]),
        answer("", &["{}"]),
        answer("", &["{\"n\": 1}", "no JSON"]),
        answer("", &["{}", "{}"]),
        InputEvent::Failed { failure, jitter: 0.5 },
        InputEvent::Waited,
        InputEvent::Returned { index: 0, result: ToolResult::text("ok") },
        InputEvent::Returned { index: 1, result: ToolResult::failed("t", "tool_failed", "x") },
        InputEvent::Judged { verdict: Verdict::Allow },
        InputEvent::Judged { verdict: Verdict::Deny("no".into()) },
        InputEvent::Summarized { summary: None },
        InputEvent::Cancelled,
        InputEvent::Steered { text: "and".into() },
        InputEvent::Ticked { elapsed: Duration::from_secs(1) },
    ]
}

/// The state of the exploration.
struct Walk<'a> {
    prompt: &'a Prompt,
    options: &'a TurnOptions,
    alphabet: &'a [InputEvent],
    orders: usize,
    ends: [usize; 2],
}

impl Walk<'_> {
    fn turn(&self, order: &[&InputEvent]) -> (Turn, Vec<TurnEvent>) {
        let messages = vec![Message::text(Role::User, "go")];
        let mut turn = Turn::new(self.prompt, &Inputs::new(), messages, self.options.clone()).expect("it is sound");
        turn.next();
        for event in order {
            turn.feed((*event).clone()).expect("it was taken the last time, too");
        }
        let events = turn.take_events();
        (turn, events)
    }

    /// Continues with every event that the turn accepts. A rejected event must not change the turn.
    fn go_on<'f>(&mut self, order: &mut Vec<&'f InputEvent>, alphabet: &'f [InputEvent]) {
        self.orders += 1;
        let (mut turn, events) = self.turn(order);
        let before = state(&mut turn);
        check(&mut turn, &events, order);
        if turn.is_over() {
            self.ends[usize::from(matches!(turn.next(), Next::Done(_)))] += 1;
        }
        if order.len() == DEPTH {
            return;
        }
        for event in alphabet {
            // Repeating these events changes nothing that matters, so a limited number is sufficient.
            let is_idle = matches!(event, InputEvent::Steered { .. } | InputEvent::Ticked { .. });
            if is_idle && order.iter().filter(|told| **told == event).count() > 1 {
                continue;
            }
            let (mut turn, _) = self.turn(order);
            match turn.feed(event.clone()) {
                Ok(()) if before.0 && !is_idle && *event != InputEvent::Cancelled => {
                    panic!("{order:?} is over and takes {event:?}")
                }
                Ok(()) if before.0 => assert_eq!(state(&mut turn), before, "{order:?}, {event:?}"),
                Ok(()) => {
                    order.push(event);
                    self.go_on(order, alphabet);
                    order.pop();
                }
                Err(error) => {
                    assert_eq!(error.kind(), Kind::NotAsked, "{order:?}, {event:?}");
                    assert_eq!(state(&mut turn), before, "{order:?}, {event:?}");
                    assert_eq!(turn.take_events(), [], "{order:?}, {event:?}");
                }
            }
        }
    }
}

/// Formats everything visible about a turn.
fn state(turn: &mut Turn) -> (bool, String) {
    (
        turn.is_over(),
        format!("{:?} {:?} {} {:?}", turn.next(), turn.messages(), turn.iterations(), turn.unused_steering()),
    )
}

fn check(turn: &mut Turn, events: &[TurnEvent], order: &[&InputEvent]) {
    let next = turn.next();
    assert_eq!(format!("{next:?}"), format!("{:?}", turn.next()), "{order:?}");
    assert!(turn.iterations() <= MAX_ITERATIONS, "{order:?}");
    assert_eq!(turn.is_over(), matches!(next, Next::Done(_) | Next::Failed(_)), "{order:?}");
    if let Next::Run(runs) = &next {
        assert!(!runs.is_empty(), "{order:?}");
    }
    let is_done = matches!(next, Next::Done(_));
    let done = events.iter().filter(|event| matches!(event, TurnEvent::Done { .. })).count();
    assert_eq!(
        (done, matches!(events.last(), Some(TurnEvent::Done { .. }))),
        (usize::from(is_done), is_done),
        "{order:?}"
    );
    if order.contains(&&InputEvent::Cancelled) {
        let Next::Failed(error) = &next else { panic!("{order:?}: {next:?}") };
        assert_eq!(error.kind(), Kind::Cancelled, "{order:?}");
        assert_eq!(events.last(), Some(&TurnEvent::Cancelled), "{order:?}");
    }
    if let Next::Failed(error) = &next {
        assert_eq!(error.conversation(), turn.messages(), "{order:?}");
    }
    well_formed(turn.messages(), order);
}

/// Checks that each call has exactly one result, directly after it and in order.
fn well_formed(messages: &[Message], order: &[&InputEvent]) {
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        let metadata = message.metadata.clone().unwrap_or_default();
        if message.role == Role::Tool {
            assert!(!open.is_empty(), "{order:?}: a result without a call");
            assert_eq!(metadata["tool_call_id"], open.remove(0), "{order:?}");
        } else {
            assert_eq!(open, [""; 0], "{order:?}: calls without results");
        }
        for call in metadata.get("tool_calls").and_then(|calls| calls.as_array()).into_iter().flatten() {
            open.push(call["id"].as_str().unwrap_or_default().to_owned());
        }
    }
    assert_eq!(open, [""; 0], "{order:?}: calls without results");
}

fn explore(options: TurnOptions, at_least: usize) {
    let options = TurnOptions { max_iterations: MAX_ITERATIONS, max_llm_retries: 2, ..options };
    let (prompt, alphabet) = (prompt(), alphabet());
    let mut walk = Walk { prompt: &prompt, options: &options, alphabet: &alphabet, orders: 0, ends: [0, 0] };
    walk.go_on(&mut Vec::new(), walk.alphabet);
    // Guard against an exploration that gets nowhere and therefore finds nothing.
    assert!(walk.orders > at_least, "{} orders", walk.orders);
    assert!(walk.ends.iter().all(|ends| *ends > at_least / 100), "{:?} ends", walk.ends);
}

#[test]
fn one_after_the_other() {
    explore(TurnOptions { max_time: Some(Duration::from_secs(9)), ..TurnOptions::default() }, 2000);
}

#[test]
fn at_once() {
    explore(TurnOptions { parallel_tool_calls: true, ..TurnOptions::default() }, 2000);
}

#[test]
fn with_every_guardrail() {
    let guardrails = Guardrails { input: true, output: true, tool: true };
    explore(TurnOptions { guardrails, parallel_tool_calls: true, ..TurnOptions::default() }, 2000);
}

#[test]
fn with_too_little_time() {
    explore(TurnOptions { max_time: Some(Duration::from_secs(1)), ..TurnOptions::default() }, 2000);
}

#[test]
fn with_a_small_budget() {
    let context_budget = Some(ContextBudget::Chars(40));
    explore(TurnOptions { context_budget, compaction: true, ..TurnOptions::default() }, 2000);
}

//! The policy for tools: compared with a model of it on random turns, and tested with every short sequence of events.
//! The cells of its table are the cases in `fixtures/turn/policy.json`, and those of handles in `handles.json`.

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use tympan::spec::flow::{Effect, ToolFlow};
use tympan::turn::flow::policy::EffectDecisions;
use tympan::turn::{
    Decision, Exception, FlowOptions, InputEvent, Label, MessageLabel, Next, PolicyMode, Source, ToolPolicy,
    ToolResult, Turn, TurnOptions, Verdict,
};
use tympan::wire::response::{Answer, Output, ToolCall};
use tympan::{Inputs, Kind, Message, Prompt, Response, Role};

fn answer(calls: &[(&str, Json)]) -> InputEvent {
    let call = |(index, (name, arguments)): (usize, &(&str, Json))| ToolCall {
        id: format!("call_{index}"),
        name: (*name).to_owned(),
        arguments: arguments.to_string(),
    };
    let tool_calls: Vec<_> = calls.iter().enumerate().map(call).collect();
    let text = if tool_calls.is_empty() { "done" } else { "" };
    let answer = Answer { text: text.into(), tool_calls, ..Answer::default() };
    InputEvent::Responded { response: Box::new(Response { output: Output::Answer(answer), ..Response::default() }) }
}

/// A prompt with one tool that has the parameters `a` and `b`.
fn prompt(strict: bool) -> Prompt {
    let policy = if strict { "policy: strict\n" } else { "" };
    let text = format!(
        "---\n{policy}tools:\n  - name: t\n    kind: function\n    parameters: [{{name: a, kind: string}}, {{name: b, kind: \
         string}}]\n---\nuser:\ngo"
    );
    Prompt::from_prompty(&text).expect("it is a prompt")
}

/// One random turn: what the model has read, what is declared, what is called, and the policy.
#[derive(Clone, Debug)]
struct Scene {
    policy: ToolPolicy,
    is_prompt_strict: bool,
    is_trusted: bool,
    is_confidential: bool,
    is_extracted: bool,
    effect: Option<Effect>,
    /// For `a` and `b`: whether it is `trusted_only`, whether it is a destination, and its value.
    parameters: [(bool, bool, Value); 2],
}

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    Absent,
    /// The user wrote it.
    User,
    /// It is on the host's list of destinations.
    Listed,
    /// Nobody wrote it.
    Own,
}

impl Value {
    fn text(self) -> Option<&'static str> {
        match self {
            Self::Absent => None,
            Self::User => Some("user-value"),
            Self::Listed => Some("listed-value"),
            Self::Own => Some("own-value"),
        }
    }
}

fn decision() -> impl Strategy<Value = Decision> {
    prop_oneof![Just(Decision::Allow), Just(Decision::Ask), Just(Decision::Deny)]
}

fn decisions() -> impl Strategy<Value = EffectDecisions> {
    (decision(), decision(), decision()).prop_map(|(read, write, external)| EffectDecisions { read, write, external })
}

prop_compose! {
    fn policies()(
        mode in prop_oneof![Just(PolicyMode::Off), Just(PolicyMode::Default), Just(PolicyMode::Strict)],
        untrusted in decisions(),
        confidential in decisions(),
        values in decision(),
        of_tool in proptest::option::of(decision()),
        of_a in proptest::option::of(decision()),
    ) -> ToolPolicy {
        let exception = |parameter: Option<&str>, decision| {
            Exception { tool: "t".into(), parameter: parameter.map(str::to_owned), decision }
        };
        let exceptions = of_tool.map(|decision| exception(None, decision)).into_iter()
            .chain(of_a.map(|decision| exception(Some("a"), decision))).collect();
        let destinations = vec!["listed-value".to_owned()];
        ToolPolicy { mode, untrusted, confidential, values, exceptions, destinations, ..ToolPolicy::default() }
    }
}

prop_compose! {
    fn scenes()(
        policy in policies(),
        is_prompt_strict: bool,
        is_trusted: bool,
        is_confidential: bool,
        is_extracted: bool,
        effect in prop_oneof![
            Just(None), Just(Some(Effect::Read)), Just(Some(Effect::Write)), Just(Some(Effect::External)),
        ],
        parameters in [parameter(), parameter()],
    ) -> Scene {
        Scene { policy, is_prompt_strict, is_trusted, is_confidential, is_extracted, effect, parameters }
    }
}

fn parameter() -> impl Strategy<Value = (bool, bool, Value)> {
    let value = prop_oneof![Just(Value::Absent), Just(Value::User), Just(Value::Listed), Just(Value::Own)];
    (any::<bool>(), any::<bool>(), value)
}

impl Scene {
    /// Returns what the table says.
    fn expected(&self) -> Decision {
        let mode = match self.policy.mode {
            PolicyMode::Default if self.is_prompt_strict => PolicyMode::Strict,
            mode => mode,
        };
        let is_plain = self.is_trusted && !self.is_confidential && !self.is_extracted;
        if mode == PolicyMode::Off || is_plain {
            return Decision::Allow;
        }
        let given = || self.parameters.iter().filter(|(_, _, value)| *value != Value::Absent);
        let is_good = |value: Value| matches!(value, Value::User | Value::Listed);
        let mut found = vec![Decision::Allow];
        for ((trusted_only, destination, value), name) in self.parameters.iter().zip(["a", "b"]) {
            if *value != Value::Absent && (*trusted_only || *destination) && !is_good(*value) {
                let mut exceptions = self.policy.exceptions.iter();
                let exception = exceptions.find(|exception| exception.parameter.as_deref() == Some(name));
                found.push(exception.map_or(self.policy.values, |exception| exception.decision));
            }
        }
        let is_named = self.policy.exceptions.iter().any(|exception| exception.parameter.is_none());
        let is_assumed = mode == PolicyMode::Strict || is_named;
        let effect = if is_assumed { self.effect.or(Some(Effect::External)) } else { self.effect };
        if let Some(effect) = effect {
            let of = |decisions: &EffectDecisions| match effect {
                Effect::Read => decisions.read,
                Effect::Write => decisions.write.max(decisions.read),
                Effect::External => decisions.external.max(decisions.write).max(decisions.read),
            };
            let exception = self.policy.exceptions.iter().find(|exception| exception.parameter.is_none());
            let exception = exception.map(|exception| exception.decision);
            let all_trusted_only = self.parameters.iter().all(|(trusted_only, ..)| *trusted_only);
            let all_good = given().all(|(.., value)| is_good(*value));
            let is_exempt = all_trusted_only && all_good && given().count() > 0 && exception.is_none();
            if !self.is_trusted && !is_exempt {
                found.push(exception.unwrap_or_else(|| of(&self.policy.untrusted)));
            }
            let mut destinations = given().filter(|(_, destination, _)| *destination).peekable();
            let are_listed = destinations.peek().is_some() && destinations.all(|(.., value)| *value == Value::Listed);
            if self.is_confidential && (!are_listed || exception.is_some()) {
                found.push(exception.unwrap_or_else(|| of(&self.policy.confidential)));
            }
        }
        found.into_iter().max().unwrap_or_default()
    }

    fn turn(&self) -> Turn {
        let mut flow = ToolFlow { effect: self.effect, ..ToolFlow::default() };
        for ((trusted_only, destination, _), name) in self.parameters.iter().zip(["a", "b"]) {
            let parameter = flow.parameters.entry(name.to_owned()).or_default();
            (parameter.trusted_only, parameter.destination) = (Some(*trusted_only), Some(*destination));
        }
        let other = Label {
            extracted: self.is_extracted,
            ..Label::new(Source::Input { name: "x".into() }, self.is_trusted, self.is_confidential)
        };
        // Extracted values are never values of the user, and here nothing else has this label.
        let messages = vec![Message::text(Role::User, "take user-value"), Message::text(Role::User, "own")];
        let labels = [Label::user(), other].map(|label| MessageLabel { parts: vec![label.into()] });
        let flow = FlowOptions {
            policy: Some(self.policy.clone()),
            tools: HashMap::from([("t".to_owned(), flow)]),
            labels: Some(labels.into()),
            ..FlowOptions::default()
        };
        let options = TurnOptions { flow, ..TurnOptions::default() };
        Turn::new(&prompt(self.is_prompt_strict), &Inputs::new(), messages, options).expect("it is a turn")
    }

    /// Returns what a turn does.
    fn found(&self) -> Decision {
        let mut turn = self.turn();
        let given = self.parameters.iter().zip(["a", "b"]);
        let given = given.filter_map(|((.., value), name)| Some((name.to_owned(), json!(value.text()?))));
        turn.next();
        turn.feed(answer(&[("t", Json::Object(given.collect()))])).expect("it waits for an answer");
        match turn.next() {
            Next::Run(_) => Decision::Allow,
            Next::Approve(approval) => {
                assert!(!approval.reasons.is_empty());
                turn.feed(InputEvent::Approved { verdict: Verdict::Allow }).expect("it waits for an approval");
                assert!(matches!(turn.next(), Next::Run(_)), "an approved call runs");
                Decision::Ask
            }
            // The model is told why, and called again.
            Next::Call => Decision::Deny,
            other => panic!("{other:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(5000) })]

    #[test]
    fn a_turn_does_what_the_table_says(scene in scenes()) {
        prop_assert_eq!(scene.found(), scene.expected());
    }

    /// A project or a prompt can only tighten a policy: whatever it says, no call is treated less strictly.
    #[test]
    fn tightening_never_loosens(scene in scenes(), other in policies()) {
        let before = scene.found();
        let tightened = Scene { policy: scene.policy.tightened(&other), ..scene.clone() };
        prop_assert!(tightened.found() >= before, "{:?} became {:?}", before, tightened.found());
    }
}

/// Everything that a project or a prompt can tighten applies.
#[test]
fn what_tightens_applies() {
    let scene = Scene {
        policy: ToolPolicy::default(),
        is_prompt_strict: false,
        is_trusted: false,
        is_confidential: true,
        is_extracted: false,
        effect: None,
        parameters: [(true, false, Value::User), (false, false, Value::Absent)],
    };
    let found =
        |scene: &Scene, other: ToolPolicy| Scene { policy: scene.policy.tightened(&other), ..scene.clone() }.found();
    let default = ToolPolicy::default;
    let exception = |parameter: Option<&str>| {
        vec![Exception { tool: "t".into(), parameter: parameter.map(str::to_owned), decision: Decision::Deny }]
    };
    assert_eq!(found(&scene, default()), Decision::Allow);
    assert_eq!(found(&scene, ToolPolicy::strict()), Decision::Ask);
    assert_eq!(found(&scene, ToolPolicy { exceptions: exception(None), ..default() }), Decision::Deny);
    assert_eq!(found(&scene, ToolPolicy { restrictions: exception(None), ..default() }), Decision::Deny);
    let mut own = scene.clone();
    own.parameters[0].2 = Value::Own;
    assert_eq!(found(&own, default()), Decision::Ask);
    assert_eq!(found(&own, ToolPolicy { values: Decision::Deny, ..default() }), Decision::Deny);
    assert_eq!(found(&own, ToolPolicy { exceptions: exception(Some("a")), ..default() }), Decision::Deny);
    let writes = Scene { effect: Some(Effect::Write), is_confidential: false, ..scene.clone() };
    assert_eq!(found(&writes, default()), Decision::Ask);
    let untrusted = EffectDecisions { write: Decision::Deny, ..EffectDecisions::UNTRUSTED };
    assert_eq!(found(&writes, ToolPolicy { untrusted, ..default() }), Decision::Deny);
    let writes = Scene { is_trusted: true, is_confidential: true, ..writes };
    assert_eq!(found(&writes, default()), Decision::Allow);
    let confidential = EffectDecisions { write: Decision::Deny, ..EffectDecisions::CONFIDENTIAL };
    assert_eq!(found(&writes, ToolPolicy { confidential, ..default() }), Decision::Deny);
    // Neither more bits, nor more trusted values.
    let few = ToolPolicy { extraction_bits: 3, ..default() };
    assert_eq!((default().tightened(&few).extraction_bits, few.tightened(&default()).extraction_bits), (3, 3));
    let lists = vec!["own-value".to_owned()];
    let other = ToolPolicy { destinations: lists.clone(), trusted_values: lists, ..default() };
    assert_eq!(found(&own, other), Decision::Ask);
}

const DEPTH: usize = 7;

/// The tools of the exhaustive test: one reads untrusted content, one changes data, one is hidden.
const TOOLS: &str = "\
---
tools:
  - {name: page, kind: function, effect: read, parameters: []}
  - {name: hidden, kind: function, effect: read, hide: always, parameters: []}
  - {name: write, kind: function, effect: write, parameters: [{name: text, kind: string}]}
---
user:
go";

fn alphabet() -> Vec<InputEvent> {
    vec![
        answer(&[]),
        answer(&[("page", json!({}))]),
        answer(&[("hidden", json!({}))]),
        answer(&[("write", json!({"text": "x"}))]),
        answer(&[("write", json!({"text": "$hidden_1"}))]),
        answer(&[("write", json!({})), ("page", json!({}))]),
        answer(&[("read_value", json!({"value": "$hidden_1"}))]),
        InputEvent::Returned { index: 0, result: ToolResult::text("EVIL") },
        InputEvent::Returned { index: 1, result: ToolResult::text("EVIL") },
        InputEvent::Approved { verdict: Verdict::Allow },
        InputEvent::Approved { verdict: Verdict::Deny("no".into()) },
        InputEvent::Summarized { summary: Some("nothing".into()) },
        InputEvent::Steered { text: "go on".into() },
    ]
}

/// What a turn may do, kept in the simplest way: from the events alone.
#[derive(Clone, Default)]
struct Model {
    /// Whether the model has read untrusted content.
    is_tainted: bool,
    /// Whether the results of the current round will taint it.
    will_taint: bool,
    /// Whether the only call of the current round that changes something was approved.
    is_approved: bool,
    /// Whether there is a hidden value.
    has_hidden: bool,
    /// The calls of the current round.
    calls: Vec<String>,
}

impl Model {
    fn feed(&mut self, event: &InputEvent) {
        match event {
            InputEvent::Responded { response } => {
                let Output::Answer(answer) = &response.output else { return };
                self.is_tainted |= self.will_taint;
                self.will_taint = false;
                self.is_approved = false;
                self.calls = answer.tool_calls.iter().map(|call| call.name.clone()).collect();
                self.will_taint |= self.has_hidden && self.calls.iter().any(|name| name == "read_value");
            }
            InputEvent::Returned { index, .. } => match self.calls[*index].as_str() {
                "hidden" => self.has_hidden = true,
                // The result of a tool is untrusted, whatever the tool does.
                _ => self.will_taint = true,
            },
            InputEvent::Approved { verdict } => self.is_approved |= *verdict == Verdict::Allow,
            _ => {}
        }
    }
}

fn explore(prompt: &Prompt, alphabet: &[InputEvent], order: &mut Vec<usize>, seen: &mut [usize; 3]) {
    let replay = |order: &[usize]| {
        let (mut turn, mut model) = (turn(prompt), Model::default());
        turn.next();
        for index in order {
            model.feed(&alphabet[*index]);
            turn.feed(alphabet[*index].clone()).expect("it was taken before");
        }
        (turn, model)
    };
    let (mut now, model) = replay(order);
    let names = || order.iter().map(|index| format!("{:?}", alphabet[*index])).collect::<Vec<_>>();
    // Crash and resume: the same events lead to the same labels.
    let (again, _) = replay(order);
    assert_eq!(now.context(), again.context());
    assert_eq!(now.labels().len(), now.messages().len());
    if model.is_tainted {
        assert!(!now.context().trusted, "a taint was lost: {:?}", names());
    }
    match now.next() {
        Next::Run(runs) => {
            seen[0] += 1;
            let writes = runs.iter().any(|run| run.name == "write");
            assert!(!writes || !model.is_tainted || model.is_approved, "forbidden: {:?}", names());
        }
        Next::Approve(_) => {
            seen[1] += 1;
            assert!(model.is_tainted, "asked without a reason: {:?}", names());
        }
        _ => seen[2] += 1,
    }
    if order.len() == DEPTH {
        return;
    }
    for index in 0..alphabet.len() {
        let is_idle = matches!(alphabet[index], InputEvent::Steered { .. });
        if is_idle && order.contains(&index) {
            continue;
        }
        let (mut turn, _) = replay(order);
        match turn.feed(alphabet[index].clone()) {
            Ok(()) => {
                order.push(index);
                explore(prompt, alphabet, order, seen);
                order.pop();
            }
            Err(error) => assert_eq!(error.kind(), Kind::NotAsked),
        }
    }
}

fn turn(prompt: &Prompt) -> Turn {
    let messages = vec![Message::text(Role::User, "go")];
    let labels = Some(vec![MessageLabel { parts: vec![Label::user().into()] }]);
    let options = TurnOptions {
        max_iterations: 4,
        flow: FlowOptions { labels, ..FlowOptions::default() },
        ..TurnOptions::default()
    };
    Turn::new(prompt, &Inputs::new(), messages, options).expect("it is a turn")
}

#[test]
fn no_order_of_events_runs_what_the_policy_forbids() {
    let mut seen = [0; 3];
    let prompt = Prompt::from_prompty(TOOLS).expect("it is a prompt");
    explore(&prompt, &alphabet(), &mut Vec::new(), &mut seen);
    assert!(seen[0] > 1000 && seen[1] > 200, "too few states: {seen:?}");
}

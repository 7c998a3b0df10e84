//! Turns with a journal: what is saved, when it is saved, and how a turn is resumed after a crash.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use proptest::prelude::*;
use serde_json::{Value, json};
use tympan_core::spec::Secret;
use tympan_core::turn::{TurnEvent, Verdict};
use tympan_core::wire::response::{Answer, Output, Response, ToolCall};
use tympan_core::{Inputs, Message, Prompt, Role};
use tympan_runtime::turn::journal::{JournalStore, JournalWriter, Stored};
use tympan_runtime::{
    AgentEvent, Error, Journal, Kind, ModelCall, Provider, Reply, RunOptions, Runtime, Tool, TurnRun, TurnSettings,
    tool,
};

use crate::journals::{Effect, Memory, Moment, STEPS, effects, inputs, prompt, runtime, settings, state};

/// Returns a scripted prompt for the provider `echo`, with tools that are idempotent or not.
fn scripted(tools: &[(&str, bool)], script: &Value) -> Prompt {
    scripted_saying("Hello?", tools, script)
}

fn scripted_saying(words: &str, tools: &[(&str, bool)], script: &Value) -> Prompt {
    let parameters = json!([{ "name": "n", "kind": "integer" }]);
    let tools: Vec<_> = tools
        .iter()
        .map(|(name, idempotent)| {
            json!({ "name": name, "kind": "function", "idempotent": idempotent, "parameters": parameters })
        })
        .collect();
    let model = json!({ "provider": "echo", "options": { "additionalProperties": { "script": script } } });
    let front = json!({ "name": "scripted", "model": model, "tools": tools });
    let text = format!("---\n{front}\n---\nuser:\n{words}\n");
    Runtime::default().load_str(&text, "scripted.prompty", ".").expect("it loads")
}

fn calls(names: &[&str]) -> Value {
    json!({ "tool_calls": names.iter().map(|name| json!({ "name": name, "arguments": { "n": 1 } })).collect::<Vec<_>>() })
}

fn with_tool(name: &str, tool: Arc<dyn Tool>, journal: Journal) -> TurnSettings {
    TurnSettings { tools: [(name.to_owned(), tool)].into(), journal: Some(journal), ..TurnSettings::default() }
}

/// Returns a tool that counts its calls.
fn counting() -> (Arc<dyn Tool>, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    let tool = tool::function(move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
        Ok::<_, String>("done")
    });
    (tool, count)
}

fn kinds(records: &[Value]) -> Vec<&str> {
    records
        .iter()
        .map(|record| record["what"]["fed"].as_str().or(record["record"].as_str()).unwrap_or("header"))
        .collect()
}

#[test]
fn a_journal_cut_at_any_record_comes_to_the_same() {
    for compaction in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let effect = Effect::new(folder.path(), true);
        let memory = Memory::default();
        let whole = runtime().0.turn(&prompt(), inputs(), &settings(&effect, memory.journal(), compaction));
        let whole = state(&whole.expect("it ends well"));
        let records = memory.all();
        assert_eq!(kinds(&memory.json()).contains(&"summarized"), compaction);
        for length in 1..=records.len() {
            let memory = Memory::holding(&records[..length]);
            let (runtime, calls) = runtime();
            let resumed = runtime.resume(&prompt(), &settings(&effect, memory.journal(), compaction));
            let resumed = resumed.unwrap_or_else(|error| panic!("{length} records: {error}"));
            assert_eq!(state(&resumed), whole, "{length} records");
            assert_eq!(resumed.resumed.expect("it was").records, length);
            // Saved answers are not requested again.
            let answers = memory.json()[..length].iter().filter(|record| record["what"]["fed"] == "responded").count();
            assert_eq!(calls.lock().expect("nobody panics").len(), STEPS + 1 - answers, "{length} records");
        }
    }
}

/// A step of the model in the property test below: the tools it calls, and whether they fail.
type Step = Vec<(usize, bool)>;

const NAMES: [&str; 2] = ["works", "fails"];

fn random_turn(steps: &[Step], parallel: bool, deny: usize, memory: &Memory) -> (Result<TurnRun, Error>, Vec<Value>) {
    let mut script: Vec<_> = steps
        .iter()
        .map(|step| calls(&step.iter().map(|(_, fails)| NAMES[usize::from(*fails)]).collect::<Vec<_>>()))
        .collect();
    script.push(json!({ "text": "The end." }));
    let prompt = scripted(&[("works", true), ("fails", true)], &json!(script));
    let mut settings = with_tool("works", tool::function(|_| Ok::<_, String>("done")), memory.journal());
    settings.tools.insert("fails".to_owned(), tool::function(|_| Err::<String, _>("it fails")));
    settings.turn.parallel_tool_calls = parallel;
    settings.judge_tool = Some(Arc::new(move |run| match (run.round as usize * 7 + run.index) % 5 == deny {
        true => Verdict::Deny("not this one".into()),
        false => Verdict::Allow,
    }));
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = events.clone();
    settings.on_event = Some(Arc::new(move |event| {
        if let AgentEvent::Turn(TurnEvent::ToolResult { name, result, .. }) = event {
            seen.lock().expect("nobody panics").push(json!([name, result]));
        }
    }));
    let turn = match memory.all().is_empty() {
        true => Runtime::default().turn(&prompt, Inputs::new(), &settings),
        false => Runtime::default().resume(&prompt, &settings),
    };
    let events = events.lock().expect("nobody panics").clone();
    (turn, events)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_turn_cut_anywhere_comes_to_the_same(
        steps in prop::collection::vec(prop::collection::vec((0..2_usize, any::<bool>()), 1..4), 0..4),
        parallel in any::<bool>(),
        deny in 0..8_usize,
    ) {
        let memory = Memory::default();
        let (turn, mut all) = random_turn(&steps, parallel, deny, &memory);
        let whole = state(&turn.expect("it ends well"));
        let records = memory.all();
        for length in 1..=records.len() {
            let (turn, mut events) = random_turn(&steps, parallel, deny, &Memory::holding(&records[..length]));
            prop_assert_eq!(&state(&turn.expect("it ends well")), &whole);
            // Concurrent tools may finish in any order.
            let told = |events: &mut Vec<Value>| events.sort_by_key(Value::to_string);
            told(&mut events);
            told(&mut all);
            prop_assert!(events.iter().all(|event| all.contains(event)));
        }
    }
}

#[test]
fn nothing_is_done_before_it_is_on_the_disk() {
    let log = Arc::new(Mutex::new(Vec::<String>::new()));
    let note = |log: &Arc<Mutex<Vec<String>>>, text: String| log.lock().expect("nobody panics").push(text);
    let (folder, watched) = (tempfile::tempdir().expect("a folder"), log.clone());
    let memory = Memory {
        watch: Some(Arc::new(move |records| {
            for record in records {
                let record: Value = serde_json::from_slice(record).expect("it is JSON");
                match record["record"].as_str() {
                    Some("started") => {
                        for tool in record["tools"].as_array().expect("a list") {
                            note(&watched, format!("started {}", tool["key"].as_str().expect("a key")));
                        }
                    }
                    _ => note(&watched, format!("kept {}", record["what"]["fed"].as_str().expect("a kind"))),
                }
            }
        })),
        ..Memory::default()
    };
    let mut effect = Effect::new(folder.path(), false);
    let seen = log.clone();
    effect.interrupt = Some(Arc::new(move |invocation, moment| {
        if moment == Moment::BeforeEffect {
            note(&seen, format!("runs {}", invocation.idempotency_key));
        }
    }));
    let mut settings = settings(&effect, memory.journal(), false);
    let told = log.clone();
    settings.on_event = Some(Arc::new(move |event| match event {
        AgentEvent::Turn(TurnEvent::ToolResult { .. }) => note(&told, "told".into()),
        AgentEvent::Turn(TurnEvent::ToolCallStart { .. }) => note(&told, "answer".into()),
        AgentEvent::Turn(TurnEvent::Done { .. }) => note(&told, "done".into()),
        _ => {}
    }));
    runtime().0.turn(&prompt(), inputs(), &settings).expect("it ends well");
    let log = log.lock().expect("nobody panics").clone();
    let count = |text: &str, before: usize| log[..before].iter().filter(|line| *line == text).count();
    let (mut runs, mut told, mut answers) = (0, 0, 0);
    for (at, line) in log.iter().enumerate() {
        if let Some(key) = line.strip_prefix("runs ") {
            assert_eq!(count(&format!("started {key}"), at), 1, "{key} ran before that was kept");
            runs += 1;
        } else if line == "told" {
            told += 1;
            assert!(count("kept returned", at) >= told, "a result was told before it was kept");
        } else if line == "answer" {
            answers += 1;
            assert!(count("kept responded", at) * 2 >= answers, "an answer was used before it was kept");
        }
    }
    assert_eq!((runs, told, answers), (STEPS * 2, STEPS * 2, STEPS * 2));
    assert_eq!(log.last().map(String::as_str), Some("done"));
}

#[test]
fn a_turn_that_is_over_calls_nobody() {
    let folder = tempfile::tempdir().expect("a folder");
    let (effect, memory) = (Effect::new(folder.path(), false), Memory::default());
    let whole = runtime().0.turn(&prompt(), inputs(), &settings(&effect, memory.journal(), false));
    let (records, done) = (memory.all(), effects(&effect.file));
    let (runtime, calls) = runtime();
    let mut settings = settings(&effect, memory.journal(), false);
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = events.clone();
    settings.on_event = Some(Arc::new(move |event| seen.lock().expect("nobody panics").push(event.clone())));
    let again = runtime.resume(&prompt(), &settings).expect("it ended well");
    // A new listener receives the end, but no earlier events.
    let events = events.lock().expect("nobody panics");
    assert!(matches!(events[..], [AgentEvent::Turn(TurnEvent::Done { .. })]), "{events:?}");
    assert_eq!(state(&again), state(&whole.expect("it ends well")));
    assert_eq!((calls.lock().expect("nobody panics").len(), memory.all(), effects(&effect.file)), (0, records, done));
}

/// Returns the records of a turn until its only tool has started.
fn died_in_its_tool(prompt: &Prompt) -> Memory {
    let memory = Memory::default();
    let (tool, _) = counting();
    Runtime::default().turn(prompt, Inputs::new(), &with_tool("act", tool, memory.journal())).expect("it ends well");
    let begun = kinds(&memory.json()).iter().position(|kind| *kind == "started").expect("it began");
    Memory::holding(&memory.all()[..=begun])
}

#[test]
fn a_declaration_says_whether_a_tool_may_run_again() {
    let script = json!([calls(&["act"]), { "text": "I see." }]);
    for (idempotent, ran, told) in [(true, 1, "done"), (false, 0, "its outcome is unknown")] {
        let prompt = scripted(&[("act", idempotent)], &script);
        let memory = died_in_its_tool(&prompt);
        let (tool, count) = counting();
        let turn = Runtime::default().resume(&prompt, &with_tool("act", tool, memory.journal())).expect("it ends well");
        let heard = turn.messages.iter().find(|message| message.role == Role::Tool).expect("a result").to_text();
        assert!(heard.contains(told), "{heard}");
        assert_eq!(count.load(Ordering::SeqCst), ran);
        let returned =
            memory.json().into_iter().find(|record| record["what"]["fed"] == "returned").expect("it is kept");
        let expected = if idempotent { json!("ok") } else { json!({ "error": { "code": "unknown_outcome" } }) };
        assert_eq!(returned["what"]["result"]["status"], expected);
    }
}

#[test]
fn the_key_of_a_tool_is_the_same_after_a_death() {
    struct Keys(Mutex<Vec<String>>);
    impl Tool for Keys {
        fn call(
            &self,
            invocation: tympan_runtime::Invocation,
        ) -> BoxFuture<'static, Result<tympan_runtime::ToolOutput, tool::ToolError>> {
            self.0.lock().expect("nobody panics").push(invocation.idempotency_key);
            Box::pin(async { Ok("done".into()) })
        }
        fn is_idempotent(&self) -> bool {
            true
        }
    }
    let prompt = scripted(&[("act", false)], &json!([calls(&["act"]), { "text": "I see." }]));
    let memory = died_in_its_tool(&prompt);
    let started = memory.json().pop().expect("a record")["tools"][0]["key"].clone();
    let keys = Arc::new(Keys(Mutex::default()));
    Runtime::default().resume(&prompt, &with_tool("act", keys.clone(), memory.journal())).expect("it ends well");
    assert_eq!(json!(*keys.0.lock().expect("nobody panics")), json!([started]));
}

#[test]
fn a_person_is_not_asked_twice() {
    let prompt = scripted(&[("act", true)], &json!([calls(&["act"]), { "text": "I see." }]));
    let memory = died_in_its_tool(&prompt);
    let (tool, count) = counting();
    let settings = TurnSettings {
        approve_all: true,
        approve: Some(Arc::new(|_| Box::pin(async { panic!("nobody is to be asked") }))),
        ..with_tool("act", tool, memory.journal())
    };
    Runtime::default().resume(&prompt, &settings).expect("it ends well");
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

fn refusal(prompt: &Prompt, settings: &TurnSettings) -> String {
    let error = Runtime::default().resume(prompt, settings).expect_err("it does not fit");
    assert_eq!(error.kind(), Kind::JournalMismatch, "{error}");
    error.message().to_owned()
}

#[test]
fn a_journal_of_another_turn_is_refused() {
    let script = json!([calls(&["act"]), { "text": "I see." }]);
    let prompt = scripted(&[("act", true)], &script);
    let memory = died_in_its_tool(&prompt);
    let settings = || with_tool("act", counting().0, memory.journal());
    let other = scripted_saying("Something else.", &[("act", true)], &script);
    assert!(refusal(&other, &settings()).contains("the prompt has changed"));
    let mut changed = settings();
    changed.turn.parallel_tool_calls = true;
    assert!(refusal(&prompt, &changed).contains("`parallel_tool_calls`"));
    let mut judged = settings();
    judged.judge_output = Some(Arc::new(|_| Verdict::Allow));
    assert!(refusal(&prompt, &judged).contains("`judge_output`"));
    let messages = vec![Message::text(Role::User, "Something else.")];
    let resumed =
        tympan_runtime::net::io::wait(Runtime::default().resume_messages_async(&prompt, messages, &settings()));
    let error = resumed.expect_err("it does not fit");
    assert_eq!(error.kind(), Kind::JournalMismatch);
    assert!(error.message().contains("messages"), "{error}");
}

#[test]
fn messages_that_were_ready_are_given_again() {
    let prompt = scripted(&[], &json!([{ "text": "I see." }]));
    let messages = vec![Message::text(Role::User, "Something of the host's.")];
    let memory = Memory::default();
    let settings = TurnSettings { journal: Some(memory.journal()), ..TurnSettings::default() };
    let runtime = Runtime::default();
    let turn = tympan_runtime::net::io::wait(async {
        let first = runtime.turn_messages_async(&prompt, &Inputs::new(), messages.clone(), &settings).await;
        let again = runtime.resume_messages_async(&prompt, messages, &settings).await;
        assert_eq!(state(&first.expect("it ends well")), state(again.as_ref().expect("it ends well")));
        again
    });
    assert_eq!(turn.expect("it ends well").messages[0].to_text(), "Something of the host's.");
}

#[test]
fn what_stands_for_a_picture_is_another_in_each_render() {
    let front = json!({ "model": { "provider": "echo" }, "inputs": [{ "name": "photo", "kind": "image" }] });
    let text = format!("---\n{front}\n---\nuser:\nWhat is on {{{{ photo }}}}?\n");
    let runtime = Runtime::default();
    let prompt = runtime.load_str(&text, "photo.prompty", ".").expect("it loads");
    let inputs = json!({ "photo": "https://example.com/a.png" });
    let memory = Memory::default();
    let settings = TurnSettings { journal: Some(memory.journal()), ..TurnSettings::default() };
    runtime.turn(&prompt, inputs.as_object().expect("a map"), &settings).expect("it ends well");
    runtime.resume(&prompt, &settings).expect("it fits");
    let mut records = memory.all();
    let header = String::from_utf8(records[0].clone()).expect("it is text");
    records[0] = header.replace("example.com/a.png", "example.com/b.png").into_bytes();
    let changed = TurnSettings { journal: Some(Memory::holding(&records).journal()), ..TurnSettings::default() };
    let error = runtime.resume(&prompt, &changed).expect_err("it is another picture");
    assert_eq!(error.kind(), Kind::JournalMismatch);
}

#[test]
fn no_credential_is_kept() {
    let prompt = scripted(&[], &json!([{ "text": "I see." }]));
    let folder = tempfile::tempdir().expect("a folder");
    let secrets = ["sk-very-secret-0123456789", "hunter2hunter2"];
    for (name, base_url) in [
        ("a", format!("https://me:{}@example.com/v1", secrets[1])),
        ("b", format!("https://example.com/v1?key={}", secrets[1])),
    ] {
        let path = folder.path().join(name);
        let journal = Journal::file(&path).with_host(json!({ "variant": "b" }));
        let run = RunOptions {
            model: Some("gpt-4o".into()),
            base_url: Some(base_url),
            api_key: Some(Secret::new(secrets[0])),
            ..RunOptions::default()
        };
        let settings = TurnSettings { run, journal: Some(journal.clone()), ..TurnSettings::default() };
        Runtime::default().turn(&prompt, Inputs::new(), &settings).expect("it ends well");
        let text = std::fs::read_to_string(&path).expect("it is there");
        assert!(secrets.iter().all(|secret| !text.contains(secret)), "{text}");
        let header = journal.header().expect("it is there");
        assert_eq!((header.model.as_deref(), header.base_url.as_deref()), (Some("gpt-4o"), None));
        assert_eq!((header.prompt.as_str(), &header.host["variant"]), ("scripted.prompty", &json!("b")));
    }
}

#[test]
fn inputs_are_not_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let memory = Memory::default();
    let settings = settings(&Effect::new(folder.path(), true), memory.journal(), false);
    runtime().0.turn(&prompt(), inputs(), &settings).expect("it ends well");
    let shown = format!("{:?} {:?}", memory.journal().header().expect("a header"), memory.journal());
    assert!(shown.contains("job") && !shown.contains("Do it."), "{shown}");
}

/// A model that fails until it is repaired.
struct Mended(Mutex<Option<Kind>>);

impl Provider for Mended {
    fn call<'a>(&'a self, _: ModelCall<'a>) -> BoxFuture<'a, Result<Reply, Error>> {
        let wrong = *self.0.lock().expect("nobody panics");
        let answer = Answer { text: "Here I am.".into(), ..Answer::default() };
        let response = Response { output: Output::Answer(answer), ..Response::default() };
        let reply = wrong.map_or(Ok(Reply::Whole(response)), |kind| Err(Error::new(kind, "it is broken")));
        Box::pin(std::future::ready(reply))
    }
}

#[test]
fn a_model_that_could_not_be_called_is_called_again() {
    let prompt = Runtime::default().load_str("---\nmodel: {provider: mended}\n---\nuser:\nHello?\n", "m.prompty", ".");
    let prompt = prompt.expect("it loads");
    let model = Arc::new(Mended(Mutex::new(Some(Kind::MissingKey))));
    let runtime = Runtime::default();
    runtime.register_provider("mended", model.clone());
    let memory = Memory::default();
    let settings = TurnSettings { journal: Some(memory.journal()), ..TurnSettings::default() };
    assert_eq!(runtime.turn(&prompt, Inputs::new(), &settings).expect_err("no key").kind(), Kind::MissingKey);
    assert_eq!(runtime.resume(&prompt, &settings).expect_err("still no key").kind(), Kind::MissingKey);
    *model.0.lock().expect("nobody panics") = None;
    let turn = runtime.resume(&prompt, &settings).expect("there is a key now");
    assert_eq!(turn.run.outcome.to_json(), "Here I am.");
    let expected = ["header", "failed", "called_again", "failed", "called_again", "responded"];
    assert_eq!(kinds(&memory.json()), expected);
    *model.0.lock().expect("nobody panics") = Some(Kind::MissingKey);
    assert_eq!(state(&runtime.resume(&prompt, &settings).expect("it was over")), state(&turn));
}

#[test]
fn the_time_before_a_death_counts() {
    let prompt = scripted(&[("act", true)], &json!([calls(&["act"]), { "text": "I see." }]));
    let mut records = died_in_its_tool(&prompt).all();
    let late = |record: &[u8]| {
        let mut record: Value = serde_json::from_slice(record).expect("it is JSON");
        if record["at"].is_u64() {
            record["at"] = 5_000_000.into();
        }
        serde_json::to_vec(&record).expect("it is JSON")
    };
    records.iter_mut().skip(1).for_each(|record| *record = late(record));
    let (tool, count) = counting();
    let memory = Memory::holding(&records);
    let mut settings = with_tool("act", tool, memory.journal());
    settings.turn.max_time = Some(Duration::from_secs(5_000));
    let runtime = Runtime::default();
    assert_eq!(runtime.resume(&prompt, &settings).expect_err("its time is up").kind(), Kind::TurnLimit);
    assert_eq!((count.load(Ordering::SeqCst), kinds(&memory.json()).pop()), (0, Some("ticked")));
    assert_eq!(runtime.resume(&prompt, &settings).expect_err("it is still up").kind(), Kind::TurnLimit);
    // With a longer time limit, the turn continues.
    settings.turn.max_time = Some(Duration::from_secs(500_000));
    let turn = runtime.resume(&prompt, &settings).expect("it ends well");
    assert_eq!((turn.rounds, count.load(Ordering::SeqCst)), (2, 1));
}

#[test]
fn a_turn_that_was_stopped_stays_so() {
    let prompt = scripted(&[], &json!([{ "text": "I see." }]));
    let memory = Memory::default();
    let settings = TurnSettings { journal: Some(memory.journal()), ..TurnSettings::default() };
    settings.cancel.cancel();
    let runtime = Runtime::default();
    assert_eq!(runtime.turn(&prompt, Inputs::new(), &settings).expect_err("it is stopped").kind(), Kind::Cancelled);
    let anew = TurnSettings { journal: Some(memory.journal()), ..TurnSettings::default() };
    assert_eq!(runtime.resume(&prompt, &anew).expect_err("it was stopped").kind(), Kind::Cancelled);
}

#[test]
fn a_bound_may_be_raised() {
    let folder = tempfile::tempdir().expect("a folder");
    let (effect, memory) = (Effect::new(folder.path(), false), Memory::default());
    let mut settings = settings(&effect, memory.journal(), false);
    settings.turn.max_iterations = 5;
    let error = runtime().0.turn(&prompt(), inputs(), &settings).expect_err("it is too long");
    assert_eq!((error.kind(), effects(&effect.file).len()), (Kind::MaxIterations, 10));
    settings.turn.max_iterations = 100;
    let turn = runtime().0.resume(&prompt(), &settings).expect("it ends well");
    assert_eq!((turn.rounds as usize, effects(&effect.file).len()), (STEPS + 1, STEPS * 2));
}

/// A message that was steered before the turn started is in its first round, and a later one in a later round. Resuming
/// preserves this.
#[test]
fn what_was_said_stays_where_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut effect, memory) = (Effect::new(folder.path(), true), Memory::default());
    let quiet = effect.clone();
    let steering = tympan_runtime::Steering::default();
    let speaker = steering.clone();
    effect.interrupt = Some(Arc::new(move |invocation, moment| {
        if (moment, invocation.run.round, invocation.run.index) == (Moment::BeforeEffect, 4, 0) {
            speaker.send("And later this.");
        }
    }));
    let settings_of =
        |effect: &Effect, journal| TurnSettings { steering: steering.clone(), ..settings(effect, journal, false) };
    steering.send("First this.");
    let whole = runtime().0.turn(&prompt(), inputs(), &settings_of(&effect, memory.journal())).expect("it ends well");
    let said: Vec<_> = whole.messages.iter().map(Message::to_text).collect();
    let place = |text: &str| said.iter().position(|said| said.starts_with(text)).expect("it was said");
    assert_eq!(place("First this."), 2);
    assert!(place("step 3") < place("And later this.") && place("And later this.") < place("step 4"), "{said:?}");
    let records = memory.all();
    let steered = kinds(&memory.json()).iter().position(|kind| *kind == "steered").expect("it is kept");
    for length in [1..steered, steered + 1..records.len()].into_iter().flatten() {
        let memory = Memory::holding(&records[..length]);
        let effect = if length < steered { &effect } else { &quiet };
        let resumed = runtime().0.resume(&prompt(), &settings_of(effect, memory.journal())).expect("it ends well");
        // When resumed, the message may be steered while the other tool runs or after both have finished.
        let is_same = length > steered || resumed.messages.len() == whole.messages.len();
        assert!(is_same && (length < steered || state(&resumed) == state(&whole)), "{length} records");
    }
}

/// A message that is steered during the first model call is in the second one, also after resuming.
#[test]
fn what_was_said_during_the_first_call_is_for_the_second() {
    struct Interrupted(tympan_runtime::Steering);
    impl Provider for Interrupted {
        fn call<'a>(&'a self, call: ModelCall<'a>) -> BoxFuture<'a, Result<Reply, Error>> {
            let mut answer = Answer { text: "The end.".into(), ..Answer::default() };
            if call.messages.len() == 1 {
                self.0.send("Wait!");
                answer.tool_calls = vec![ToolCall { id: "a".into(), name: "act".into(), arguments: "{}".into() }];
            }
            let response = Response { output: Output::Answer(answer), ..Response::default() };
            Box::pin(std::future::ready(Ok(Reply::Whole(response))))
        }
    }
    let front = json!({ "model": { "provider": "interrupted" }, "tools": [{ "name": "act", "kind": "function" }] });
    let runtime = Runtime::default();
    let prompt = runtime.load_str(&format!("---\n{front}\n---\nuser:\nHello?\n"), "p.prompty", ".").expect("it loads");
    let settings = with_tool("act", counting().0, Memory::default().journal());
    runtime.register_provider("interrupted", Arc::new(Interrupted(settings.steering.clone())));
    let turn = runtime.turn(&prompt, Inputs::new(), &settings).expect("it ends well");
    assert_eq!(turn.messages[3].to_text(), "Wait!");
    assert_eq!(runtime.resume(&prompt, &settings).expect("it was over").messages, turn.messages);
}

/// A steered message is saved before the model is called, because the call may take long.
#[test]
fn what_was_said_is_kept_before_the_model_is_called() {
    struct Looks(Memory);
    impl Provider for Looks {
        fn call<'a>(&'a self, call: ModelCall<'a>) -> BoxFuture<'a, Result<Reply, Error>> {
            let mut answer = Answer::default();
            if call.messages.len() == 1 {
                answer.tool_calls = vec![ToolCall { id: "a".into(), name: "act".into(), arguments: "{}".into() }];
            } else {
                answer.text = kinds(&self.0.json()).last().copied().unwrap_or_default().to_owned();
            }
            let response = Response { output: Output::Answer(answer), ..Response::default() };
            Box::pin(std::future::ready(Ok(Reply::Whole(response))))
        }
    }
    let front = json!({ "model": { "provider": "looks" }, "tools": [{ "name": "act", "kind": "function" }] });
    let runtime = Runtime::default();
    let prompt = runtime.load_str(&format!("---\n{front}\n---\nuser:\nHello?\n"), "p.prompty", ".").expect("it loads");
    let memory = Memory::default();
    runtime.register_provider("looks", Arc::new(Looks(memory.clone())));
    let mut settings = with_tool("act", counting().0, memory.journal());
    let steering = settings.steering.clone();
    settings.on_event = Some(Arc::new(move |event| {
        if let AgentEvent::Turn(TurnEvent::ToolResult { .. }) = event {
            steering.send("By the way.");
        }
    }));
    let turn = runtime.turn(&prompt, Inputs::new(), &settings).expect("it ends well");
    assert_eq!(turn.run.outcome.to_json(), "steered");
}

#[test]
fn numbers_come_back_as_they_were() {
    struct Precise;
    impl Provider for Precise {
        fn call<'a>(&'a self, call: ModelCall<'a>) -> BoxFuture<'a, Result<Reply, Error>> {
            let mut answer = Answer { text: "The end.".into(), ..Answer::default() };
            if call.messages.len() == 1 {
                // A fast parser would round these numbers.
                answer.blocks = Some(json!([{ "score": 0.100_493_827_156_000_01, "big": 6.934_698_245_112_694e276 }]));
                answer.tool_calls = vec![ToolCall { id: "a".into(), name: "act".into(), arguments: "{}".into() }];
            }
            let response = Response { output: Output::Answer(answer), ..Response::default() };
            Box::pin(std::future::ready(Ok(Reply::Whole(response))))
        }
    }
    let front = json!({ "model": { "provider": "precise" }, "tools": [{ "name": "act", "kind": "function" }] });
    let prompt = Runtime::default().load_str(&format!("---\n{front}\n---\nuser:\nHello?\n"), "p.prompty", ".");
    let prompt = prompt.expect("it loads");
    let runtime = Runtime::default();
    runtime.register_provider("precise", Arc::new(Precise));
    let memory = Memory::default();
    let settings = with_tool("act", counting().0, memory.journal());
    let turn = runtime.turn(&prompt, Inputs::new(), &settings).expect("it ends well");
    assert_eq!(runtime.resume(&prompt, &settings).expect("it was over").messages, turn.messages);
}

#[test]
fn what_cannot_be_kept_is_not_done() {
    struct Full(Memory, usize);
    impl JournalStore for Full {
        fn create(&self, first: &[u8]) -> Result<Box<dyn JournalWriter>, Error> {
            self.0.create(first)?;
            Ok(Box::new(Full(self.0.clone(), self.1)))
        }
        fn open(&self) -> Result<(Stored, Box<dyn JournalWriter>), Error> {
            self.0.open()
        }
        fn read(&self) -> Result<Stored, Error> {
            self.0.read()
        }
    }
    impl JournalWriter for Full {
        fn commit(&mut self, records: &[Vec<u8>]) -> Result<(), Error> {
            self.1 = self.1.checked_sub(1).ok_or_else(|| Error::new(Kind::InvalidJournal, "the disk is full"))?;
            self.0.commit(records)
        }
    }
    // The answer can be saved, but the start of the tool cannot.
    let prompt = scripted(&[("act", false)], &json!([calls(&["act"]), { "text": "I see." }]));
    let (tool, count) = counting();
    let journal = Journal::in_store(Arc::new(Full(Memory::default(), 1)));
    let error =
        Runtime::default().turn(&prompt, Inputs::new(), &with_tool("act", tool, journal)).expect_err("it is full");
    assert_eq!((error.kind(), count.load(Ordering::SeqCst)), (Kind::InvalidJournal, 0));
}

#[test]
fn a_journal_is_needed_and_is_begun_once() {
    let prompt = scripted(&[], &json!([{ "text": "I see." }]));
    let error = Runtime::default().resume(&prompt, &TurnSettings::default()).expect_err("there is none");
    assert_eq!(error.kind(), Kind::InvalidJournal);
    let folder = tempfile::tempdir().expect("a folder");
    let journal = Journal::file(folder.path().join("turn.journal"));
    let settings = TurnSettings { journal: Some(journal), ..TurnSettings::default() };
    Runtime::default().turn(&prompt, Inputs::new(), &settings).expect("it ends well");
    let error = Runtime::default().turn(&prompt, Inputs::new(), &settings).expect_err("it is there");
    assert!(error.message().contains("already exists"), "{error}");
    // A finished turn has released its journal.
    Runtime::default().resume(&prompt, &settings).expect("it was over");
}

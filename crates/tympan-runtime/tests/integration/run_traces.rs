//! What traces contain about a run over a real socket, and what they never contain.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tympan_core::spec::Secret;
use tympan_core::wire::Protocol;
use tympan_runtime::trace::{SpanKind, SpanRecord, TracyBackend};
use tympan_runtime::{Inputs, Kind, RunOptions, Runtime, TurnSettings};

use crate::faults;
use crate::faults::Server;
use crate::faults::client::fails;
use crate::runs;
use crate::runs::{Kept, PLAIN_KEY, TEMPLATE, event, inputs, model, prompt, runtime, runtime_with, say};

/// Longer than any test takes. No test waits that long.
const LONG: Duration = Duration::from_secs(60);

/// The output of a runtime's backends: one that stores spans, and one that writes files.
struct Told {
    kept: Kept,
    folder: tempfile::TempDir,
}

impl Told {
    fn by(runtime: &Runtime) -> Self {
        let told = Self { kept: Kept::default(), folder: tempfile::tempdir().expect("a folder") };
        runtime.tracer().add("kept", told.kept.clone()).expect("there are threads");
        runtime.tracer().add("tracy", TracyBackend::new(told.folder.path())).expect("there are threads");
        told
    }

    fn spans(&self, runtime: &Runtime) -> Vec<SpanRecord> {
        assert!(runtime.tracer().flush(LONG));
        self.kept.records()
    }

    fn span(&self, runtime: &Runtime, name: &str) -> SpanRecord {
        self.spans(runtime).into_iter().find(|span| span.begun.name == name).expect("there is such a span")
    }

    /// Returns the only file, as JSON.
    fn file(&self, runtime: &Runtime) -> Value {
        assert!(runtime.tracer().flush(LONG));
        let files = files(self.folder.path());
        assert_eq!(files.len(), 1, "{files:?}");
        serde_json::from_str(&files[0]).expect("it is JSON")
    }

    /// Returns everything that the backends received.
    fn all(&self, runtime: &Runtime) -> String {
        let spans = self.spans(runtime);
        format!("{spans:?} {}", files(self.folder.path()).concat())
    }
}

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    entries.map(|entry| fs::read_to_string(entry.expect("it can be read").path()).expect("it is text")).collect()
}

/// Returns a frame of a file as its name and the frames below it.
fn tree(frame: &Value) -> Value {
    let below: Vec<_> = frame["__frames"].as_array().into_iter().flatten().map(tree).collect();
    json!([frame["name"], below])
}

fn stages_of_invoke() -> Value {
    json!(["prepare", [["render", []], ["parse", []]]])
}

#[test]
fn an_invocation_is_a_tree_of_its_stages() {
    let server = Server::start(|exchange| say(exchange, "Fine."));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("test.prompty");
    let front = json!({ "name": "greet", "model": model(&server, Protocol::OpenAiChat), "inputs": [{ "name": "q", "kind": "string" }] });
    fs::write(&path, format!("---\n{front}\n---\n{TEMPLATE}")).expect("it is written");
    let runtime = runtime(&[]);
    let told = Told::by(&runtime);
    runtime.invoke(path.as_path(), inputs()).expect("it succeeds");
    let file = told.file(&runtime);
    let stages = json!([["load", []], stages_of_invoke(), ["execute", []], ["process", []]]);
    assert_eq!(tree(&file["trace"]), json!(["invoke", stages]));
    assert_eq!(file["trace"]["inputs"], json!({ "prompt": "greet", "inputs": { "q": "How are you?" } }));
    assert_eq!(file["trace"]["result"], "Fine.");
    let used = json!({ "prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5 });
    assert_eq!(file["trace"]["__usage"], used, "usage is counted once, and hoisted");
    for span in told.spans(&runtime) {
        let is_client = span.begun.kind == SpanKind::Client;
        assert_eq!(is_client, span.begun.name == "execute", "{}", span.begun.name);
        assert!(span.error.is_none(), "{span:?}");
    }
    let execute = told.span(&runtime, "execute");
    let said = [
        ("gen_ai.operation.name", json!("chat")),
        ("gen_ai.provider.name", json!("openai")),
        ("gen_ai.request.model", json!("m")),
        ("gen_ai.response.model", json!("m-1")),
        ("gen_ai.response.id", json!("chatcmpl-1")),
        ("gen_ai.response.finish_reasons", json!(["stop"])),
        ("gen_ai.usage.input_tokens", json!(3)),
        ("gen_ai.usage.output_tokens", json!(2)),
    ];
    for (name, value) in said {
        assert_eq!(execute.attributes.get(name), Some(&value), "{name}");
    }
    assert_eq!(execute.fields["inputs"]["messages"][1]["role"], "user");
    assert_eq!(execute.fields["result"]["output"]["text"], "Fine.");
    let frames = file["trace"]["__frames"].as_array().expect("a list");
    let signatures: Vec<_> = frames.iter().map(|frame| frame["signature"].as_str().unwrap_or_default()).collect();
    assert_eq!(
        signatures,
        ["prompty.load", "prompty.prepare", "prompty.openai.executor.invoke", "prompty.processor.invoke"]
    );
    assert_eq!(frames[1]["result"][1]["role"], "user");
    assert_eq!(frames[2]["inputs"]["data"], execute.fields["inputs"]["messages"]);
    let said = json!({ "role": "assistant", "content": "Fine." });
    assert_eq!(frames[2]["result"]["choices"][0]["message"], said);
}

/// Prompty's viewer recognizes stages by their signatures, and takes the number of a turn from its name.
#[test]
fn turns_have_numbers_and_all_frames_have_signatures() {
    fn check(frame: &Value, names: &mut Vec<String>) {
        assert!(frame["signature"].as_str().is_some_and(|signature| !signature.is_empty()), "{frame}");
        if frame["signature"] == "prompty.turn" {
            names.push(frame["name"].as_str().expect("a name").to_owned());
        }
        frame["__frames"].as_array().into_iter().flatten().for_each(|frame| check(frame, names));
    }
    let runtime = Runtime::default();
    let told = Told::by(&runtime);
    let front = json!({ "name": "p", "model": { "provider": "echo" } });
    let prompt = runtime.load_str(&format!("---\n{front}\n---\nuser:\nHi\n"), "p.prompty", ".").expect("it loads");
    let span = runtime.tracer().start("session");
    let within = runtime.under(&span);
    for number in [None, None, Some(7)] {
        let settings = TurnSettings { turn_number: number, ..TurnSettings::default() };
        within.turn(&prompt, Inputs::new(), &settings).expect("it ends");
    }
    drop((within, span));
    let mut names = Vec::new();
    assert!(told.spans(&runtime).len() > 3);
    for file in files(told.folder.path()) {
        let file: Value = serde_json::from_str(&file).expect("it is JSON");
        if file["trace"]["name"] == "session" {
            check(&file["trace"], &mut names);
        }
    }
    assert_eq!(names, ["turn 1", "turn 2", "turn 7"]);
}

#[test]
fn runs_and_streams_are_trees_too() {
    let server = Server::start(|exchange| say(exchange, "Fine."));
    for streams in [false, true] {
        let runtime = runtime(&[]);
        let (prompt, messages) = runs::chat(&runtime, &server);
        let told = Told::by(&runtime);
        if streams {
            let stream = runtime.stream(&prompt, &messages, &RunOptions::default()).expect("it begins");
            assert_eq!(told.spans(&runtime).len(), 0, "nothing has ended while the answer arrives");
            stream.finish().expect("it succeeds");
        } else {
            runtime.run(&prompt, &messages).expect("it succeeds");
        }
        let file = told.file(&runtime);
        assert_eq!(tree(&file["trace"]), json!(["run", [["execute", []], ["process", []]]]), "{streams}");
        assert_eq!(file["trace"]["result"], "Fine.");
        assert_eq!(file["trace"]["__usage"]["total_tokens"], 5);
    }
    let runtime = runtime(&[]);
    let (prompt, _) = runs::chat(&runtime, &server);
    let told = Told::by(&runtime);
    runtime.process(&prompt, runs::saying("Fine.").as_bytes()).expect("it succeeds");
    assert_eq!(told.file(&runtime)["trace"]["result"], "Fine.");
}

#[test]
fn a_run_can_be_a_stage_of_the_host_s_own() {
    let server = Server::start(|exchange| say(exchange, "Fine."));
    let runtime = runtime(&[]);
    let (prompt, messages) = runs::chat(&runtime, &server);
    let told = Told::by(&runtime);
    let mine = runtime.tracer().start("mine");
    let under = runtime.under(&mine);
    under.run(&prompt, &messages).expect("it succeeds");
    under.stream(&prompt, &messages, &RunOptions::default()).and_then(|s| s.finish()).expect("it succeeds");
    drop(mine);
    let run = json!(["run", [["execute", []], ["process", []]]]);
    assert_eq!(tree(&told.file(&runtime)["trace"]), json!(["mine", [run, run]]));
    assert_eq!(told.file(&runtime)["trace"]["__usage"]["total_tokens"], 10);
}

/// The server repeats everything it receives: in answers and errors, whole and in pieces.
#[test]
fn no_span_has_a_secret() {
    let secrets =
        [PLAIN_KEY, "key-of-the-caller", "tenant-of-the-environment", "key-in-the-address", "ambient-of-the-host"];
    let variables =
        [("SERVER_KEY", PLAIN_KEY), ("TENANT", "tenant-of-the-environment"), ("OPENAI_API_KEY", "ambient-of-the-host")];
    type Answer = fn(&mut faults::Exchange<'_>, &str);
    let answers: [Answer; 4] = [
        |exchange, heard| say(exchange, heard),
        |exchange, heard| exchange.answer(400, "Content-Type: text/plain\r\n", heard),
        |exchange, heard| exchange.json(&json!({ "error": { "message": heard } }).to_string()),
        |exchange, heard| {
            exchange.events();
            // Two letters at a time.
            let letters: Vec<_> = heard.chars().collect();
            letters.chunks(2).for_each(|two| _ = exchange.chunk(event(&two.iter().collect::<String>())));
            exchange.chunk(format!("data: {}\n\n", json!({ "error": { "message": heard } })));
            exchange.end();
        },
    ];
    for answer in answers {
        let server = Server::start(move |exchange| {
            // A value after `Bearer` would be recognized by its format. Here, it must be recognized by its value.
            let head = exchange.request.head.lines().rev().collect::<Vec<_>>().join(" ").replace("Bearer ", "");
            let body: Value = serde_json::from_str(&exchange.request.body).unwrap_or_default();
            answer(exchange, &format!("{} {} {head}", body["user"], body["messages"]));
        });
        let runtime = runs::runtime_with(&variables, |options| options.allow_endpoints = vec![server.url("")]);
        let told = Told::by(&runtime);
        let mut own = model(&server, Protocol::OpenAiChat);
        own["connection"]["apiKey"] = json!("${env:SERVER_KEY}");
        own["connection"]["endpoint"] = json!(server.url("/v1?key=key-in-the-address"));
        own["options"] = json!({ "additionalProperties": { "user": "${env:TENANT}" } });
        let ambient = json!({ "id": "m", "provider": "openai" });
        let path = told.folder.path().with_extension("prompty");
        let front = json!({ "model": own, "inputs": [{ "name": "q", "kind": "string" }] });
        fs::write(&path, format!("---\n{front}\n---\n{TEMPLATE}")).expect("it is written");
        let _ = runtime.invoke(path.as_path(), inputs());
        fs::remove_file(&path).expect("it was written");
        let by_caller = RunOptions { api_key: Some(Secret::new("key-of-the-caller")), ..RunOptions::default() };
        let by_host = RunOptions { base_url: Some(server.url("/v1")), ..RunOptions::default() };
        for (model, options) in [(&own, RunOptions::default()), (&own, by_caller), (&ambient, by_host)] {
            let prompt = prompt(&runtime, model, TEMPLATE);
            let _ = runtime.invoke_with(&prompt, inputs(), &options);
            let messages = runtime.prepare(&prompt, inputs()).expect("it renders");
            let _ = runtime.stream(&prompt, &messages, &options).and_then(|stream| stream.finish());
        }
        let sent: String = server.requests().iter().map(|request| format!("{request:?}")).collect();
        let all = told.all(&runtime);
        for secret in secrets {
            assert!(sent.contains(secret), "{secret} is sent");
            assert!(!all.contains(secret), "{secret}: {all}");
        }
        assert!(all.contains("How are you?"), "{all}");
    }
}

#[test]
fn errors_are_told_by_every_stage_that_they_pass() {
    let server = Server::start(|exchange| exchange.answer(401, "", "who are you?"));
    let runtime = runtime(&[]);
    let told = Told::by(&runtime);
    let prompt = prompt(&runtime, &model(&server, Protocol::OpenAiChat), TEMPLATE);
    fails(runtime.invoke(&prompt, inputs()), Kind::Provider);
    for name in ["execute", "invoke"] {
        let error = told.span(&runtime, name).error.expect("it says what went wrong");
        assert_eq!((error.code.as_str(), error.class.as_str()), ("provider", Kind::Provider.class().as_str()));
        assert!(error.message.contains("who are you?"), "{error:?}");
    }
    assert!(told.span(&runtime, "prepare").error.is_none());
    assert_eq!(told.file(&runtime)["trace"]["result"]["code"], "provider");
}

#[test]
fn errors_in_the_middle_of_an_answer_are_told() {
    let server = Server::start(|exchange| {
        exchange.events();
        exchange.chunk(event("One "));
        exchange.end();
    });
    let runtime = runtime(&[]);
    let (prompt, messages) = runs::chat(&runtime, &server);
    let told = Told::by(&runtime);
    let stream = runtime.stream(&prompt, &messages, &RunOptions::default()).expect("it begins");
    fails(stream.finish(), Kind::Truncated);
    for name in ["execute", "run"] {
        assert_eq!(told.span(&runtime, name).error.map(|error| error.code).as_deref(), Some("truncated"), "{name}");
    }
    let error = json!({ "id": "m", "provider": "nobody" });
    let prompt = runs::prompt(&runtime, &error, TEMPLATE);
    fails(runtime.stream(&prompt, &messages, &RunOptions::default()), Kind::NotRegistered);
    let codes: Vec<_> = told.spans(&runtime).into_iter().filter_map(|span| span.error).map(|e| e.code).collect();
    assert_eq!(codes.iter().filter(|code| *code == Kind::NotRegistered.code()).count(), 2, "{codes:?}");
}

#[test]
fn spans_end_with_the_answer_that_nobody_wants() {
    let server = Server::start(|exchange| {
        exchange.events();
        exchange.chunk(event("One "));
        exchange.stall();
    });
    let runtime = runtime(&[]);
    let (prompt, messages) = runs::chat(&runtime, &server);
    let told = Told::by(&runtime);
    let mut stream = runtime.stream(&prompt, &messages, &RunOptions::default()).expect("it begins");
    assert!(stream.next().is_some());
    assert_eq!(told.spans(&runtime).len(), 0);
    drop(stream);
    let names: Vec<_> = told.spans(&runtime).into_iter().map(|span| span.begun.name).collect();
    assert_eq!(names, ["execute", "run"]);
    assert_eq!(tree(&told.file(&runtime)["trace"]), json!(["run", [["execute", []]]]));
    server.wait_until_left();
}

/// The answer repeats the input, as models do, and one of the providers repeats it in an error.
#[test]
fn what_is_untrusted_is_masked_everywhere() {
    for is_error in [false, true] {
        let server = Server::start(move |exchange| {
            let body: Value = serde_json::from_str(&exchange.request.body).expect("it is JSON");
            let heard = format!("you wrote: {}", body["messages"][1]["content"]);
            match is_error {
                true => exchange.answer(400, "Content-Type: text/plain\r\n", heard),
                false => say(exchange, &heard),
            }
        });
        let runtime = runtime_with(&[], |options| options.trace.mask_untrusted = true);
        let told = Told::by(&runtime);
        let template = "system:\nBe kind to everybody.\n\nuser:\nThey ask: {{ q }}\n";
        let prompt = prompt(&runtime, &model(&server, Protocol::OpenAiChat), template);
        let secret_of_a_person = json!({ "q": "my-illness-is-private" });
        let inputs = secret_of_a_person.as_object().expect("a map");
        let _ = runtime.invoke(&prompt, inputs);
        let messages = runtime.prepare(&prompt, inputs).expect("it renders");
        let _ = runtime.stream(&prompt, &messages, &RunOptions::default()).and_then(|stream| stream.finish());
        assert!(server.requests().iter().all(|request| request.body.contains("my-illness")));
        let all = told.all(&runtime);
        assert!(!all.contains("illness"), "{all}");
        assert!(all.contains("Be kind to everybody.") && all.contains("They ask: [UNTRUSTED 21 bytes]"), "{all}");
        if !is_error {
            assert_eq!(told.span(&runtime, "execute").fields["result"]["usage"]["total_tokens"], 5);
        }
    }
}

#[test]
fn without_a_backend_nothing_is_told() {
    let server = Server::start(|exchange| say(exchange, "Fine."));
    let runtime = runtime(&[]);
    let told = Told::by(&runtime);
    runtime.tracer().clear();
    let prompt = prompt(&runtime, &model(&server, Protocol::OpenAiChat), TEMPLATE);
    runtime.invoke(&prompt, inputs()).expect("it succeeds");
    assert!(!runtime.tracer().is_enabled());
    assert_eq!((told.spans(&runtime).len(), files(told.folder.path()).len()), (0, 0));
}

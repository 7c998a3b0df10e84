//! Traces: backends, what they receive, and what they never receive.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tympan_core::spec::Secret;
use tympan_core::{Error, Kind, Result};
use tympan_runtime::trace::{
    Backend, BackendError, ConsoleBackend, Span, SpanRecord, Trace, TraceOptions, Tracer, TracyBackend, mask_inputs,
    mask_messages, mask_rendered,
};
use tympan_runtime::{LoadOptions, Runtime, RuntimeOptions};

use crate::shared;

/// Longer than any test takes. No test waits that long.
const LONG: Duration = Duration::from_secs(60);

/// Records the spans that it receives.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<SpanRecord>>>);

impl Kept {
    fn records(&self) -> Vec<SpanRecord> {
        self.0.lock().expect("nobody panicked").clone()
    }

    fn names(&self) -> Vec<String> {
        self.records().into_iter().map(|record| record.begun.name).collect()
    }
}

impl Backend for Kept {
    fn ended(&mut self, span: &SpanRecord) -> Result<(), BackendError> {
        self.0.lock().expect("nobody panicked").push(span.clone());
        Ok(())
    }
}

/// Returns a tracer and the records of its only backend.
fn kept(options: TraceOptions) -> (Tracer, Kept) {
    let (tracer, kept) = (Tracer::new(options), Kept::default());
    tracer.add("kept", kept.clone()).expect("there are threads");
    (tracer, kept)
}

/// A backend that never returns from its first call.
struct Stuck(Receiver<()>);

impl Backend for Stuck {
    fn ended(&mut self, _: &SpanRecord) -> Result<(), BackendError> {
        Ok(self.0.recv()?)
    }
}

struct Panicking;

impl Backend for Panicking {
    fn ended(&mut self, _: &SpanRecord) -> Result<(), BackendError> {
        panic!("a backend that panics")
    }
}

struct Failing;

impl Backend for Failing {
    fn trace(&mut self, _: &Trace) -> Result<(), BackendError> {
        Err("a backend that fails".into())
    }
}

#[test]
fn no_backend_harms_a_run_or_another_backend() {
    let (tracer, kept) = kept(TraceOptions { queue: 64, drop_timeout: Duration::ZERO, ..TraceOptions::default() });
    let (_never, stuck): (Sender<()>, _) = channel();
    tracer.add("stuck", Stuck(stuck)).expect("there are threads");
    tracer.add("panicking", Panicking).expect("there are threads");
    tracer.add("failing", Failing).expect("there are threads");
    for round in 1..=100 {
        let root = tracer.start("run");
        drop(root.child("render"));
        drop(root);
        // The queues are short. Give the working backend time to catch up; the stuck one cannot use it.
        while kept.records().len() < 2 * round {
            std::thread::yield_now();
        }
    }
    assert_eq!(kept.names().len(), 200);
    assert!(!tracer.flush(Duration::ZERO), "the stuck backend is not done");
    let status: HashMap<_, _> = tracer.status().into_iter().map(|status| (status.name.clone(), status)).collect();
    assert!(status["stuck"].dropped > 0);
    assert!(status["panicking"].failed + status["panicking"].dropped >= 100);
    assert_eq!(status["kept"].dropped + status["kept"].failed, 0);
    assert!(status["failing"].last_error.as_deref().is_none_or(|error| error == "a backend that fails"));
}

#[test]
fn nothing_is_made_for_nobody() {
    let tracer = Tracer::default();
    let span = tracer.start("run");
    span.inputs(|| panic!("nobody wants to know"));
    span.child("render").result(|| panic!("nobody wants to know"));
    assert!(!span.is_enabled() && !tracer.is_enabled());
}

#[test]
fn spans_end_by_themselves() {
    let (tracer, kept) = kept(TraceOptions::default());
    let fails = |root: &Span| -> Result<()> {
        root.stage("failing", |_| Err(Error::new(Kind::MissingInput, "q")))?;
        Ok(())
    };
    assert!(fails(&tracer.start("root")).is_err());
    let panics = std::panic::catch_unwind(|| {
        let _span = tracer.start("panicking");
        panic!("as the test wants it");
    });
    assert!(panics.is_err());
    // A future that is dropped.
    let span = tracer.start("cancelled");
    let future = async move {
        let _span = span;
        std::future::pending::<()>().await;
    };
    drop(future);
    assert!(tracer.flush(LONG));
    let records = kept.records();
    assert_eq!(kept.names(), ["failing", "root", "panicking", "cancelled"]);
    let error = records[0].error.as_ref().expect("it failed");
    assert_eq!((error.class.as_str(), error.code.as_str()), ("ValueError", "missing_input"));
    assert_eq!(records[0].begun.parent, Some(records[1].begun.span_id));
    assert_eq!(records[0].begun.trace_id, records[1].begun.trace_id);
    assert_eq!(records[2].error.as_ref().map(|error| error.code.as_str()), Some("panic"));
    assert!(records.iter().all(|record| record.end >= record.begun.start));
}

#[test]
fn backends_come_and_go() {
    let (tracer, first) = kept(TraceOptions::default());
    drop(tracer.start("a"));
    assert!(tracer.flush(LONG));
    let second = Kept::default();
    tracer.add("kept", second.clone()).expect("there are threads");
    drop(tracer.start("b"));
    assert!(tracer.flush(LONG));
    assert!(tracer.remove("kept") && !tracer.remove("kept"));
    drop(tracer.start("c"));
    tracer.clear();
    assert_eq!((first.names(), second.names()), (vec!["a".to_owned()], vec!["b".to_owned()]));
    assert!(tracer.status().is_empty());
}

#[test]
fn the_last_clone_waits_for_what_is_not_written_yet() {
    let (tracer, kept) = kept(TraceOptions { drop_timeout: LONG, ..TraceOptions::default() });
    let other = tracer.clone();
    for _ in 0..100 {
        drop(other.start("run"));
    }
    drop((tracer, other));
    assert_eq!(kept.names().len(), 100);
}

#[test]
fn secrets_of_the_environment_and_of_connections_are_scrubbed() {
    let prompt = "---\nname: p\nmodel:\n  id: m\n  connection:\n    kind: key\n    apiKey: literal-key-1\n    \
        serviceName: ${env:HOST_NAME}\n    clientSecret: literal-secret-2\nmetadata:\n  region: ${env:UNSET:default-3}\n---\n{{ q }}";
    let env_vars = Some(HashMap::from([("HOST_NAME".to_owned(), "hidden.example".to_owned())]));
    let load = LoadOptions { env_vars, ..LoadOptions::default() };
    let runtime = Runtime::new(RuntimeOptions { load, ..RuntimeOptions::default() });
    let prompt = runtime.load_str(prompt, "p.prompty", ".").expect("it loads");
    assert!(!format!("{prompt:?} {:?}", prompt.secrets()).contains("literal-"));

    let (tracer, kept) = kept(TraceOptions::default());
    let span = tracer.start("run at hidden.example");
    span.inputs(|| json!({ "q": "literal-key-1, literal-secret-2, hidden.example and default-3" }));
    span.attribute("server.address", "hidden.example");
    span.hide(&prompt.secrets());
    span.error(&Error::new(Kind::Unreachable, "hidden.example"));
    drop(span);
    assert!(tracer.flush(LONG));
    let record = &kept.records()[0];
    let shown = format!("{:?}", (&record.fields, &record.attributes, &record.error));
    assert!(!shown.contains("literal-") && !shown.contains("hidden.example"), "{shown}");
    assert_eq!(record.fields["inputs"]["q"], "[REDACTED], [REDACTED], [REDACTED] and default-3");
}

#[test]
fn secrets_of_the_host_are_kept_out_of_every_trace() {
    let (tracer, kept) = kept(TraceOptions::default());
    tracer.hide(&Secret::new("the-host's-key"));
    drop(tracer.start("the-host's-key"));
    assert!(tracer.flush(LONG));
    assert_eq!(kept.names(), ["[REDACTED]"]);
}

#[test]
fn long_values_are_cut_after_secrets_are_gone() {
    let (tracer, kept) = kept(TraceOptions { max_value_bytes: 20, ..TraceOptions::default() });
    let span = tracer.start("run");
    span.hide(&[Secret::new("twelve bytes")]);
    span.result(|| json!({ "text": "eleven byte twelve bytes and more", "wide": "é".repeat(20), "short": "yes" }));
    drop(span);
    assert!(tracer.flush(LONG));
    let result = &kept.records()[0].fields["result"];
    assert_eq!(result["text"], "eleven byte [REDACTE… [20 of 31 bytes]");
    assert_eq!(result["wide"], format!("{}… [20 of 40 bytes]", "é".repeat(10)));
    assert_eq!(result["short"], "yes");
}

#[test]
fn what_untrusted_inputs_wrote_can_be_left_out() {
    let text = "---\nname: p\ninputs:\n  q: {kind: string}\n  tone: {kind: string, trusted: true}\n  history: {kind: thread}\n\
        ---\nsystem:\nBe {{ tone }}.\n{{ history }}\nuser:\nQ: {{ q }}!";
    let runtime = Runtime::default();
    let prompt = runtime.load_str(text, "p.prompty", ".").expect("it loads");
    let inputs = json!({ "q": "private words", "tone": "kind", "history": [{ "role": "user", "content": "private" }] });
    let inputs = inputs.as_object().expect("a map");
    let rendered = runtime.render(&prompt, inputs).expect("it renders");
    assert_eq!(
        mask_inputs(&prompt, inputs),
        json!({ "q": "[UNTRUSTED 13 bytes]", "tone": "kind", "history": "[UNTRUSTED 37 bytes]" })
    );
    let shown = mask_rendered(&rendered);
    assert!(
        shown.starts_with("system:\nBe kind.\n[UNTRUSTED ") && shown.ends_with("Q: [UNTRUSTED 13 bytes]!"),
        "{shown}"
    );
    assert_eq!(
        mask_messages(&prompt, &rendered).expect("there is a parser"),
        json!([
            { "role": "system", "content": "Be kind." },
            { "role": "user", "content": "[UNTRUSTED 7 bytes]" },
            { "role": "user", "content": "Q: [UNTRUSTED 13 bytes]!" },
        ])
    );
}

#[test]
fn a_console_shows_the_tree() {
    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("nobody panicked").write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let (tracer, written) = (Tracer::default(), Shared::default());
    tracer.add("console", ConsoleBackend::new(written.clone())).expect("there are threads");
    let root = tracer.start("run\u{1b}[31m");
    let call = root.child_client("chat");
    call.usage(&tympan_core::wire::response::Usage { input_tokens: 7, output_tokens: 3, ..Default::default() });
    drop(call);
    root.error(&Error::new(Kind::MissingInput, "q"));
    drop(root);
    assert!(tracer.flush(LONG));
    let text = String::from_utf8(written.0.lock().expect("nobody panicked").clone()).expect("it is UTF-8");
    let lines: Vec<_> = text.lines().map(|line| line.split(['(', ')']).collect::<Vec<_>>()).collect();
    assert_eq!(lines[0], [r"[tympan] ▶ run\u{1b}[31m"]);
    assert_eq!(lines[1], ["[tympan]   ▶ chat"]);
    assert_eq!((lines[2][0], lines[2][2]), ("[tympan]   ◀ chat ", " 7 tokens in, 3 out"));
    assert_eq!((lines[3][0], lines[3][2]), (r"[tympan] ◀ run\u{1b}[31m ", " ValueError: Missing required input: q"));
}

/// Creates a tracer that writes files to a folder.
fn to_files(folder: &Path) -> Tracer {
    let tracer = Tracer::default();
    tracer.add("tracy", TracyBackend::new(folder)).expect("there are threads");
    tracer
}

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name")).collect();
    names.sort();
    names
}

#[test]
fn a_file_holds_the_whole_tree() {
    let folder = tempfile::tempdir().expect("a folder");
    let tracer = to_files(folder.path());
    {
        let root = tracer.start("tympan.run");
        root.signature("tympan_runtime.run");
        let usage = json!({ "prompt_tokens": 2, "completion_tokens": 1.5, "details": {} });
        for round in 0..2 {
            let turn = root.child(format!("round {round}"));
            let call = turn.child_client("execute");
            call.inputs(|| json!({ "messages": [], "api_key": "k" }));
            call.result(|| json!({ "usage": usage }));
            call.attribute("gen_ai.request.model", "gpt-4o");
        }
        root.emit("note", || json!(1));
        root.error(&Error::new(Kind::Refused, "no"));
    }
    assert!(tracer.flush(LONG));
    let names = files(folder.path());
    let [name] = &names[..] else { panic!("one file, not {names:?}") };
    let (stem, time) = name.strip_suffix(".tracy").and_then(|name| name.split_at_checked(11)).expect("a name");
    assert_eq!(stem, "tympan.run.");
    assert!(time.len() == 15 && time.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'), "{time}");
    let text = fs::read_to_string(folder.path().join(name)).expect("a file");
    let file: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!((&file["runtime"], &file["version"]), (&json!("rust"), &json!(env!("CARGO_PKG_VERSION"))));
    let trace = &file["trace"];
    assert_eq!(trace["signature"], "tympan_runtime.run");
    assert_eq!(trace["result"]["exception"], "ValueError");
    assert_eq!(trace["note"], 1);
    assert_eq!(trace["__usage"], json!({ "prompt_tokens": 4, "completion_tokens": 3.0 }));
    assert!(
        trace["__time"]["duration"].is_number() && trace["__time"]["start"].as_str() <= trace["__time"]["end"].as_str()
    );
    let call = &trace["__frames"][1]["__frames"][0];
    assert_eq!((&call["name"], &call["inputs"]["api_key"]), (&json!("execute"), &json!("[REDACTED]")));
    assert_eq!(call["__attributes"]["gen_ai.request.model"], "gpt-4o");
}

#[test]
fn nobody_sees_half_a_file_and_no_file_takes_the_place_of_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_owned();
    let tracer = to_files(&path);
    let (done, is_done) = channel::<()>();
    let reader = std::thread::spawn({
        let path = path.clone();
        move || {
            let mut seen = 0;
            while is_done.try_recv().is_err() || seen == 0 {
                for name in files(&path).into_iter().filter(|name| name.ends_with(".tracy")) {
                    let text = fs::read(path.join(name)).expect("it stays");
                    serde_json::from_slice::<Value>(&text).expect("it is whole");
                    seen += 1;
                }
            }
        }
    });
    for _ in 0..1000 {
        drop(tracer.start("run"));
    }
    assert!(tracer.flush(LONG));
    done.send(()).expect("the reader listens");
    reader.join().expect("every file was whole");
    assert_eq!(files(&path).len(), 1000);
    assert_eq!(tracer.status()[0].failed, 0);
    #[cfg(unix)]
    for name in files(&path) {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(path.join(name)).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn two_programs_can_share_a_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let tracers = [to_files(folder.path()), to_files(folder.path())];
    for _ in 0..50 {
        tracers.iter().for_each(|tracer| drop(tracer.start("run")));
    }
    assert!(tracers.iter().all(|tracer| tracer.flush(LONG) && tracer.status()[0].failed == 0));
    assert_eq!(files(folder.path()).len(), 100);
}

#[test]
fn a_folder_that_cannot_be_written_to_is_no_error_of_the_run() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let tracer = to_files(file.path());
    drop(tracer.start("run"));
    assert!(tracer.flush(LONG));
    let status = &tracer.status()[0];
    assert!(status.failed == 1 && status.last_error.is_some(), "{status:?}");
}

/// Returns the text of the only file of a trace with this value.
fn traced(name: &str, value: &Value) -> String {
    let outside = tempfile::tempdir().expect("a folder");
    let inside = outside.path().join("traces");
    let tracer = to_files(&inside);
    let span = tracer.start(name);
    span.inputs(|| json!({ "value": value }));
    span.result(|| value.clone());
    drop(span);
    assert!(tracer.flush(LONG));
    assert_eq!(files(outside.path()), ["traces"]);
    let names = files(&inside);
    assert!(names.len() == 1 && names[0].len() < 200 && !names[0].contains(['/', '\0', '\n', '\u{202e}']), "{names:?}");
    fs::read_to_string(inside.join(&names[0])).expect("it can be read")
}

#[test]
fn attacks_on_traces_fail() {
    for case in shared::attacks().iter().filter(|case| case["surface"] == "trace") {
        let (id, expect) = (&case["id"], &case["expect"]);
        match expect["kind"].as_str().unwrap_or_default() {
            "no_leak" => {
                let text = traced("run", &case["inputs"]["trace_value"]);
                let canary = expect["canary"].as_str().expect("a canary");
                assert!(!text.contains(canary) && !text.contains(&json!(canary).to_string()), "{id}: {text}");
            }
            "keeps" => {
                let value = &case["inputs"]["trace_value"];
                let text: Value = serde_json::from_str(&traced("run", value)).expect("it is JSON");
                assert_eq!(&text["trace"]["result"], value, "{id}");
            }
            "inside_dir" => {
                let name = shared::expand(&case["inputs"]["prompt_name"]);
                traced(name.as_str().expect("a name"), &Value::Null);
            }
            // Covered by the tests above.
            "count" | "mode" | "prefix_valid" => {}
            other => panic!("{id}: unknown expectation {other}"),
        }
    }
}

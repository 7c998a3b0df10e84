//! Runs: streams, approval, stopping, and recording.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value as Json, json};
use tympan_core::json::JsonMap;
use tympan_core::{Prompt, Result};
use tympan_runtime::host::data;
use tympan_runtime::{BoxFuture, ModelCall, Provider, Reply, Runtime, RuntimeOptions};
use tympan_studio::{Host, Tools};

use crate::client::{ECHO, Server};

const AGENT: &str = "---\nmodel: {id: m, provider: scripted}\ninputs: [{name: q, kind: string}]\ntools:\n  \
    - {name: send, kind: function, effect: read, parameters: [{name: to, kind: string, required: true}]}\n---\nuser:\n{{ q }}";

/// A host with a model that calls a tool once, and a tool that counts its calls.
#[derive(Clone, Default)]
struct Scripted {
    sent: Arc<AtomicUsize>,
}

impl Host for Scripted {
    fn runtime(&self, _prompt: &Path, options: RuntimeOptions) -> Runtime {
        let runtime = Runtime::new(options);
        runtime.register_provider("scripted", self.clone());
        runtime
    }

    fn tools(&self, _runtime: &Runtime, _prompt: &Prompt) -> Result<Tools> {
        let sent = self.sent.clone();
        let send = tympan_runtime::tool::function(move |arguments: JsonMap| {
            sent.fetch_add(1, Ordering::SeqCst);
            Ok::<_, String>(json!(format!("sent to {}", arguments["to"])))
        });
        Ok(Tools::new(HashMap::from([("send".to_owned(), send)]), HashMap::new()))
    }
}

impl Provider for Scripted {
    fn call<'a>(&'a self, call: ModelCall<'a>) -> BoxFuture<'a, Result<Reply>> {
        let is_first = call.messages.iter().all(|message| message.role.as_str() != "tool");
        let answer = match is_first {
            true => json!({"tool_calls": [{"id": "c1", "name": "send", "arguments": "{\"to\": \"mallory\"}"}]}),
            false => json!({"text": "Done.", "usage": {"input_tokens": 3, "output_tokens": 1}}),
        };
        Box::pin(async move { Ok(Reply::Whole(data::response(answer)?)) })
    }
}

fn scripted() -> (Server, Arc<AtomicUsize>) {
    let host = Scripted::default();
    let sent = host.sent.clone();
    (Server::with(&[("a.prompty", AGENT)], |options| options.host = Arc::new(host)), sent)
}

fn request() -> Json {
    json!({"path": "a.prompty", "inputs": {"q": "Tell mallory"}})
}

#[test]
fn an_answer_arrives_piece_by_piece() {
    let server = Server::start(&[("a.prompty", ECHO)]);
    let page = server.page();
    let mut events = page.stream("POST", "/api/run", &json!({"path": "a.prompty", "inputs": {"q": "Hello there"}}));
    assert_eq!(events.next().expect("it starts").0, "start");
    let mut text = String::new();
    let done = loop {
        match events.next().expect("it goes on") {
            (name, data) if name == "delta" => text.push_str(data["text"].as_str().expect("it is text")),
            (name, data) if name == "done" => break data,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((text.as_str(), &done["text"], &done["cost"]), ("Hello there", &json!("Hello there"), &json!(null)));
    assert!(done["time_ms"].is_number() && events.next().is_none());
    // The text in the editor is the one that runs.
    let text = ECHO.replace("{{ q }}", "edited");
    let mut events = page.stream("POST", "/api/run", &json!({"path": "a.prompty", "text": text}));
    assert_eq!(events.until("done")["text"], "edited");
    let mut events = page.stream(
        "POST",
        "/api/run",
        &json!({"path": "a.prompty", "inputs": {"q": "<b>"}, "options": {"guard": true}}),
    );
    assert!(events.until("done")["text"].as_str().expect("it is text").contains("<untrusted>&lt;b&gt;</untrusted>"));
}

#[test]
fn an_answer_may_arrive_faster_than_it_is_read() {
    let server = Server::with(&[("a.prompty", ECHO)], |options| options.limits.queued_events = 4);
    let page = server.page();
    let long = "word ".repeat(100_000);
    let mut events = page.stream("POST", "/api/run", &json!({"path": "a.prompty", "inputs": {"q": long}}));
    let mut text = String::new();
    while let Some((name, data)) = events.next() {
        match name.as_str() {
            "delta" => text.push_str(data["text"].as_str().expect("it is text")),
            "error" => panic!("{data}"),
            _ => {}
        }
    }
    assert_eq!(text.trim(), long.trim());
}

#[test]
fn tools_run_only_if_they_are_approved() {
    let (server, sent) = scripted();
    let page = server.page();
    for (approve, count) in [(false, 0), (true, 1)] {
        let mut events = page.stream("POST", "/api/run", &request());
        let run = events.until("start")["run"].clone();
        let question = events.until("approval");
        assert_eq!((&question["name"], &question["arguments"]), (&json!("send"), &json!({"to": "mallory"})));
        assert_eq!((&question["effect"], &question["call"]), (&json!("read"), &json!("c1")));
        assert!(question["origins"].is_array() && question["context"]["sources"].is_array());
        assert_eq!(sent.load(Ordering::SeqCst), 0, "nothing runs before the answer");
        // Answers to other questions change nothing.
        for wrong in
            [json!({"run": run, "id": 99, "approve": true}), json!({"run": 99, "id": question["id"], "approve": true})]
        {
            assert_eq!(page.post("/api/approve", &wrong).status, 404);
        }
        let answer = json!({"run": run, "id": question["id"], "approve": approve});
        assert_eq!(page.post("/api/approve", &answer).status, 200);
        let done = events.until("done");
        assert_eq!((&done["text"], &done["rounds"]), (&json!("Done."), &json!(2)));
        assert_eq!(sent.load(Ordering::SeqCst), count);
        assert_eq!(page.post("/api/approve", &answer).status, 404, "a question is answered once");
    }
}

#[test]
fn a_run_can_be_stopped() {
    let (server, sent) = scripted();
    let page = server.page();
    let mut events = page.stream("POST", "/api/run", &request());
    let run = events.until("start")["run"].clone();
    let question = events.until("approval");
    assert_eq!(page.post("/api/stop", &json!({"run": run})).status, 200);
    assert_eq!(events.until("error")["finding"]["code"], "cancelled");
    assert!(events.next().is_none());
    assert_eq!(page.post("/api/approve", &json!({"run": run, "id": question["id"], "approve": true})).status, 404);
    assert_eq!(sent.load(Ordering::SeqCst), 0);
    assert_eq!(page.post("/api/stop", &json!({"run": 99})).status, 404);
}

#[test]
fn runs_end_with_their_page_and_are_limited() {
    let host = Scripted::default();
    let server = Server::with(&[("a.prompty", AGENT)], |options| {
        options.host = Arc::new(host);
        options.limits.runs = 1;
    });
    let page = server.page();
    let mut events = page.stream("POST", "/api/run", &request());
    events.until("approval");
    assert_eq!(page.post("/api/run", &request()).status, 429);
    drop(events);
    // The place is free again when the server has noticed that the page is gone.
    while page.post("/api/test", &json!({"path": "a.prompty"})).status == 429 {
        std::thread::yield_now();
    }
}

#[test]
fn mistakes_are_events() {
    let server = Server::start(&[("a.prompty", ECHO), ("b.prompty", AGENT), ("a.test.yaml", "cases: []")]);
    let page = server.page();
    for (body, code) in [
        (json!({"path": "missing.prompty"}), "file"),
        (json!({"path": "a.prompty", "text": "---\nname: ["}), "frontmatter_not_closed"),
        (json!({"path": "a.prompty", "options": {"variant": "x"}}), "unknown_variant"),
        (json!({"path": "a.test.yaml"}), "invalid_definition"),
        (json!({"path": "b.prompty", "inputs": {"q": "x"}, "options": {"provider": "echo"}}), "tool_not_registered"),
    ] {
        let mut events = page.stream("POST", "/api/run", &body);
        let found = events.until("error")["finding"]["code"].clone();
        // Which of the mistakes of a front matter comes first is for the engine to say.
        assert!(found == code || code == "frontmatter_not_closed" && found.is_string(), "{body}: {found}");
    }
    for body in ["", "[]", "{}", "{\"path\": 1}", "{\"path\": \"a.prompty\", \"inputs\": []}"] {
        let origin = server.origin();
        let headers = [("Cookie", page.cookie.as_str()), ("Origin", origin.as_str())];
        assert_eq!(server.request("POST", "/api/run", &headers, body).status, 400, "{body}");
    }
}

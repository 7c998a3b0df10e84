//! Limits on what model calls may cost: what counts if requests fail, are repeated, or stream.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tympan_core::wire::catalog::{Catalog, ModelOverride};
use tympan_runtime::model::spending::SpendLimit;
use tympan_runtime::{Error, Kind, Prompt, Result, Run, RunOptions, Runtime, RuntimeOptions};

use crate::faults::client::{self, Waits};

const ANSWER: &str = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],
    "usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}}"#;
const STREAM: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n\
    data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2,\"total_tokens\":7}}\n\ndata: [DONE]\n\n";

/// What a server does with a request.
#[derive(Clone, Copy, Debug)]
enum Reply {
    Status(u16, &'static str),
    Stream,
    /// Closes the connection without an answer.
    Close,
}

const OK: Reply = Reply::Status(200, ANSWER);

/// Starts a server that replies in this order. Returns its URL and the number of requests.
fn server(replies: Vec<Reply>) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    let count = Arc::new(AtomicUsize::new(0));
    let seen = count.clone();
    std::thread::spawn(move || {
        for reply in replies {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let mut reader = BufReader::new(stream.try_clone().expect("a copy"));
            let mut length = 0;
            for line in reader.by_ref().lines().map_while(std::io::Result::ok).take_while(|line| !line.is_empty()) {
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().expect("a number");
                }
            }
            reader.read_exact(&mut vec![0; length]).expect("a body");
            seen.fetch_add(1, Ordering::SeqCst);
            let (status, kind, body) = match reply {
                Reply::Close => continue,
                Reply::Status(status, body) => (status, "application/json", body),
                Reply::Stream => (200, "text/event-stream", STREAM),
            };
            let head = format!("HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\nconnection: close");
            // The client may have gone away.
            let _ = write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        }
    });
    (url, count)
}

/// Prices of a model whose input is free, and whose output costs 1 dollar per token.
fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    catalog.set("m", ModelOverride { input: Some(0.0), output: Some(1e6), ..ModelOverride::default() });
    catalog
}

struct Fixture {
    runtime: Runtime,
    limit: SpendLimit,
    prompt: Prompt,
    options: RunOptions,
    count: Arc<AtomicUsize>,
}

impl Fixture {
    /// A call of this fixture can cost 10 dollars.
    fn new(dollars: f64, replies: Vec<Reply>) -> Self {
        let (url, count) = server(replies);
        let limit = SpendLimit::new(dollars, catalog());
        let http = client::options(&Waits::default());
        let runtime =
            Runtime::new(RuntimeOptions { http, ..RuntimeOptions::default() }).with_spend_limit(limit.clone());
        let model = json!({"id": "m", "provider": "openai", "options": {"maxOutputTokens": 10}});
        let text = format!("---\n{}\n---\nuser:\nHello\n", json!({"model": model}));
        let prompt = runtime.load_str(&text, "test.prompty", ".").expect("it loads");
        let key = Some(tympan_core::spec::Secret::new("sk-test"));
        let options = RunOptions { base_url: Some(url), api_key: key, ..RunOptions::default() };
        Self { runtime, limit, prompt, options, count }
    }

    fn run(&self) -> Result<Run> {
        let messages = self.runtime.prepare(&self.prompt, json!({}))?;
        self.runtime.run_with(&self.prompt, &messages, &self.options)
    }

    fn requests(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    fn assert_spent(&self, dollars: f64, requests: usize) {
        assert_eq!((self.limit.spent(), self.requests()), (dollars, requests));
    }
}

fn is_refused(result: Result<Run>, reason: &str) {
    let error: Error = result.expect_err("it is refused");
    assert_eq!((error.kind(), error.code()), (Kind::SpendLimit, "spend_limit"), "{error}");
    assert!(error.message().contains(reason), "{error}");
}

#[test]
fn only_what_may_have_been_billed_counts() {
    let failed = |status| Reply::Status(status, "{}");
    let cases: [(Vec<Reply>, f64); 7] = [
        (vec![OK], 1.0),
        (vec![failed(429), failed(500), OK], 1.0),
        (vec![failed(400)], 0.0),
        (vec![failed(504), OK], 11.0),
        (vec![Reply::Close, OK], 11.0),
        (vec![Reply::Status(200, "{}")], 10.0),
        (vec![Reply::Status(200, r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"Hi"}}]}"#)], 10.0),
    ];
    for (replies, spent) in cases {
        let (count, shown) = (replies.len(), format!("{replies:?}"));
        let fixture = Fixture::new(100.0, replies);
        let run = fixture.run();
        assert_eq!((fixture.limit.spent(), fixture.requests()), (spent, count), "{shown}: {run:?}");
    }
}

#[test]
fn a_retry_needs_a_reservation_of_its_own() {
    let fixture = Fixture::new(15.0, vec![Reply::Close, OK]);
    is_refused(fixture.run(), "$10.0000 of $15.0000 are spent");
    fixture.assert_spent(10.0, 1);
}

#[test]
fn nothing_is_sent_if_a_call_could_exceed_the_limit() {
    let fixture = Fixture::new(9.99, vec![OK]);
    is_refused(fixture.run(), "the call could cost $10.0000");
    fixture.assert_spent(0.0, 0);
}

#[test]
fn a_scope_with_a_refusal_makes_no_more_calls() {
    let fixture = Fixture::new(10.0, vec![OK]);
    let scope = fixture.limit.scoped();
    let runtime = fixture.runtime.with_spend_limit(scope.clone());
    let dear = "---\nmodel: {id: m, provider: openai, options: {maxOutputTokens: 11}}\n---\nuser:\nHello\n";
    let dear = runtime.load_str(dear, "dear.prompty", ".").expect("it loads");
    let messages = runtime.prepare(&dear, json!({})).expect("it renders");
    is_refused(runtime.run_with(&dear, &messages, &fixture.options), "could cost $11");
    is_refused(runtime.run_with(&fixture.prompt, &messages, &fixture.options), "could cost $11");
    assert!(scope.refusal().is_some() && fixture.limit.refusal().is_none());
    fixture.assert_spent(0.0, 0);
    assert!(fixture.run().is_ok(), "other scopes are not affected");
    fixture.assert_spent(1.0, 1);
}

#[test]
fn streams_settle_when_they_are_complete() {
    for (is_complete, spent) in [(true, 2.0), (false, 10.0)] {
        let fixture = Fixture::new(100.0, vec![Reply::Stream]);
        let messages = fixture.runtime.prepare(&fixture.prompt, json!({})).expect("it renders");
        let stream = fixture.runtime.stream(&fixture.prompt, &messages, &fixture.options).expect("it starts");
        if is_complete {
            stream.finish().expect("it ends");
        } else {
            drop(stream);
        }
        fixture.assert_spent(spent, 1);
    }
}

#[test]
fn input_is_bounded_by_bytes_and_media_by_the_context_window() {
    let limit = |dollars| {
        let mut catalog = Catalog::default();
        // Input costs 1 dollar per token, and there is no output.
        let row = ModelOverride { input: Some(1e6), output: Some(0.0), ..ModelOverride::default() };
        catalog.set("m", ModelOverride { context: Some(5_000), max_output: Some(1), ..row });
        catalog.set("blind", ModelOverride { max_output: Some(1), ..row });
        SpendLimit::new(dollars, catalog)
    };
    let front = "inputs:\n  - {name: it, kind: KIND}\n";
    let image = json!({"it": {"url": "https://example.com/a.png"}});
    let cases = [
        ("m", "string", json!({"it": "x".repeat(1000)}), 1000.0, "the call could cost $1"),
        ("m", "image", image.clone(), 4999.0, "the call could cost $5000.0000"),
        ("blind", "image", image, 4999.0, "nothing limits the size of images"),
    ];
    for (model, kind, inputs, dollars, reason) in cases {
        let (url, count) = server(vec![OK]);
        let runtime = Runtime::default().with_spend_limit(limit(dollars));
        let front = format!("model: {{id: {model}, provider: openai}}\n{}", front.replace("KIND", kind));
        let prompt = runtime.load_str(&format!("---\n{front}---\nuser:\n{{{{ it }}}}\n"), "a.prompty", ".");
        let prompt = prompt.expect("it loads");
        let messages = runtime.prepare(&prompt, &inputs).expect("it renders");
        let key = Some(tympan_core::spec::Secret::new("sk-test"));
        let options = RunOptions { base_url: Some(url), api_key: key, ..RunOptions::default() };
        is_refused(runtime.run_with(&prompt, &messages, &options), reason);
        assert_eq!(count.load(Ordering::SeqCst), 0);
    }
}

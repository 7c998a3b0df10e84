//! Runs over a real socket: every way to call a model, and their failures.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tympan_core::wire::Protocol;
use tympan_core::{Message, Prompt};
use tympan_runtime::net::io;
use tympan_runtime::{Kind, PromptSource, Result, Run, RunOptions, Runtime};

use crate::faults;
use crate::faults::Server;
use crate::faults::client::{fails, shown};
use crate::runs;
use crate::runs::{
    PLAIN_KEY, TEMPLATE, chat, inputs, model, prompt, runtime, runtime_with, say, saying, streamed, whole,
};

/// The data that a call needs.
struct Called {
    runtime: Runtime,
    prompt: Prompt,
    messages: Vec<Message>,
    /// The server's response if it is not asked for a stream.
    body: String,
}

type Work = BoxFuture<'static, Result<Run>>;

/// Ways to call a model, by name.
type Ways = Vec<(&'static str, fn(Arc<Called>) -> Work)>;

/// Returns every way to get a complete answer, including the blocking ones, as work for any executor.
fn whole_calls() -> Ways {
    vec![
        ("run", |c| Box::pin(async move { c.runtime.run(&c.prompt, &c.messages) })),
        ("run_async", |c| Box::pin(async move { c.runtime.run_async(&c.prompt, &c.messages).await })),
        ("run_with", |c| Box::pin(async move { c.runtime.run_with(&c.prompt, &c.messages, &RunOptions::default()) })),
        ("run_with_async", |c| {
            Box::pin(async move { c.runtime.run_with_async(&c.prompt, &c.messages, &RunOptions::default()).await })
        }),
        ("invoke", |c| Box::pin(async move { c.runtime.invoke(&c.prompt, inputs()) })),
        ("invoke_async", |c| Box::pin(async move { c.runtime.invoke_async(&c.prompt, &inputs()).await })),
        ("invoke_with", |c| {
            Box::pin(async move { c.runtime.invoke_with(&c.prompt, inputs(), &RunOptions::default()) })
        }),
        ("invoke_with_async", |c| {
            Box::pin(async move { c.runtime.invoke_with_async(&c.prompt, &inputs(), &RunOptions::default()).await })
        }),
        ("process", |c| Box::pin(async move { c.runtime.process(&c.prompt, c.body.as_bytes()) })),
        ("process_async", |c| Box::pin(async move { c.runtime.process_async(&c.prompt, c.body.as_bytes()).await })),
        ("free run", |c| Box::pin(async move { tympan_runtime::run(&c.prompt, &c.messages) })),
        ("free run_async", |c| Box::pin(async move { tympan_runtime::run_async(&c.prompt, &c.messages).await })),
        ("free invoke", |c| Box::pin(async move { tympan_runtime::invoke(&c.prompt, inputs()) })),
        ("free invoke_async", |c| Box::pin(async move { tympan_runtime::invoke_async(&c.prompt, &inputs()).await })),
        ("free process", |c| Box::pin(async move { tympan_runtime::process(&c.prompt, c.body.as_bytes()) })),
        ("free process_async", |c| {
            Box::pin(async move { tympan_runtime::process_async(&c.prompt, c.body.as_bytes()).await })
        }),
    ]
}

/// Returns every way to get a streamed answer.
fn streamed_calls() -> Ways {
    vec![
        ("stream", |c| {
            Box::pin(async move {
                let mut stream = c.runtime.stream(&c.prompt, &c.messages, &RunOptions::default())?;
                for step in stream.by_ref() {
                    step?;
                }
                stream.finish()
            })
        }),
        ("stream, skipped", |c| {
            Box::pin(async move { c.runtime.stream(&c.prompt, &c.messages, &RunOptions::default())?.finish() })
        }),
        ("stream_async", |c| {
            Box::pin(async move {
                let options = RunOptions::default();
                let mut stream = c.runtime.stream_async(&c.prompt, &c.messages, &options).await?;
                while let Some(step) = stream.next_async().await {
                    step?;
                }
                stream.finish_async().await
            })
        }),
    ]
}

/// An executor that is independent of tokio and this crate.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Runs the work on every kind of executor.
fn on_every_executor(work: impl Fn() -> Work) -> Vec<Run> {
    let current = tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts");
    let several = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime starts");
    let results = [
        io::wait(work()),
        block_on(work()),
        current.block_on(work()),
        several.block_on(several.spawn(work())).expect("it does not panic"),
    ];
    results.into_iter().map(|result| result.expect("it succeeds")).collect()
}

fn called(server: &Server, protocol: Protocol, body: &str) -> Arc<Called> {
    let runtime = runtime(&[]);
    let prompt = prompt(&runtime, &model(server, protocol), TEMPLATE);
    let messages = runtime.prepare(&prompt, inputs()).expect("it renders");
    Arc::new(Called { runtime, prompt, messages, body: body.to_owned() })
}

#[test]
fn every_way_to_a_whole_answer_comes_to_the_same() {
    let answers = [
        (Protocol::OpenAiChat, "text", json!("Grüße aus Köln 🎈"), "/v1/chat/completions"),
        (Protocol::OpenAiResponses, "text", json!("Hello, world!"), "/v1/responses"),
        (Protocol::AnthropicMessages, "text", json!("Hello, world!"), "/v1/messages"),
        (Protocol::OpenAiEmbeddings, "single", json!([0.1, -0.2, 3.0]), "/v1/embeddings"),
        (Protocol::OpenAiImages, "url", json!("https://img.example/a.png"), "/v1/images/generations"),
    ];
    for (protocol, name, expected, path) in answers {
        let body = whole(protocol, name);
        let answer = body.clone();
        let server = Server::start(move |exchange| exchange.json(&answer));
        let called = called(&server, protocol, &body);
        let first = called.runtime.run(&called.prompt, &called.messages).expect("it succeeds");
        assert_eq!(first.outcome.to_json(), expected, "{protocol:?}");
        for (way, call) in whole_calls() {
            for run in on_every_executor(|| call(called.clone())) {
                assert_eq!(run, first, "{protocol:?} {way}");
            }
        }
        let typed: Value = called.runtime.invoke_as(&called.prompt, inputs()).expect("it fits");
        let free: Value = tympan_runtime::invoke_as(&called.prompt, inputs()).expect("it fits");
        let later: Value = block_on(called.runtime.invoke_as_async(&called.prompt, &inputs())).expect("it fits");
        let free_later: Value = block_on(tympan_runtime::invoke_as_async(&called.prompt, &inputs())).expect("it fits");
        assert!([typed, free, later, free_later].iter().all(|value| *value == expected), "{protocol:?}");
        // Processing sends no request; all others do.
        let requests = server.requests();
        assert_eq!(requests.len(), 1 + 4 * (whole_calls().len() - 4) + 4, "{protocol:?}");
        let line = format!("POST {path} HTTP/1.1");
        assert!(requests.iter().all(|request| request.head.starts_with(&line)), "{protocol:?}");
        assert!(requests.iter().all(|request| request.body == requests[0].body), "{protocol:?}");
    }
}

#[test]
fn every_way_to_a_streamed_answer_comes_to_the_same() {
    let answers = [
        (Protocol::OpenAiChat, json!("Hello, world!")),
        (Protocol::OpenAiResponses, json!("Grüße, Welt 🎈")),
        (Protocol::AnthropicMessages, json!("Grüße 🎈")),
    ];
    for (protocol, expected) in answers {
        let server = Server::start(move |exchange| {
            assert!(runs::wants_stream(exchange));
            exchange.events();
            exchange.chunk(streamed(protocol, "text"));
            exchange.end();
        });
        let called = called(&server, protocol, "");
        let mut first: Option<Run> = None;
        for (way, call) in streamed_calls() {
            for run in on_every_executor(|| call(called.clone())) {
                assert_eq!(run.outcome.to_json(), expected, "{protocol:?} {way}");
                assert!(run.usage.is_some() && run.id.is_some() && run.model.is_some(), "{protocol:?} {way}");
                assert_eq!(run, *first.get_or_insert(run.clone()), "{protocol:?} {way}");
            }
        }
    }
}

#[test]
fn a_prompt_file_is_a_source_too() {
    let server = Server::start(|exchange| exchange.json(&saying("Fine.")));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("test.prompty");
    let front = json!({ "model": model(&server, Protocol::OpenAiChat), "inputs": [{ "name": "q", "kind": "string" }] });
    std::fs::write(&path, format!("---\n{front}\n---\n{TEMPLATE}")).expect("it is written");
    let runtime = runtime(&[]);
    let name = path.to_str().expect("a name");
    for source in [PromptSource::from(path.as_path()), PromptSource::from(name)] {
        assert_eq!(runtime.invoke(source, inputs()).expect("it succeeds").outcome.to_json(), "Fine.");
    }
    let tokio = tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts");
    let run = tokio.block_on(runtime.invoke_async(name, &inputs())).expect("it succeeds");
    assert_eq!(run.outcome.to_json(), "Fine.");
    let body: Value = serde_json::from_str(&server.requests()[0].body).expect("it is JSON");
    assert_eq!(body["messages"][1], json!({ "role": "user", "content": "How are you?" }));
    let error = fails(runtime.invoke("no-such-file.prompty", inputs()), Kind::FileNotFound);
    assert!(error.message().contains("no-such-file.prompty"), "{error}");
}

#[test]
fn what_a_caller_wants_goes_before_what_the_prompt_says() {
    let server = Server::start(|exchange| say(exchange, "Fine."));
    let runtime = runtime(&[]);
    let (prompt, messages) = chat(&runtime, &server);
    let options = RunOptions {
        model: Some("another".into()),
        base_url: Some(server.url("/other/v2")),
        api_key: Some(tympan_core::spec::Secret::new("another-key")),
        functions: vec![tympan_core::wire::Function {
            name: "look_up".into(),
            description: None,
            parameters: json!({ "type": "object", "properties": {} }),
            strict: false,
        }],
        ..RunOptions::default()
    };
    runtime.run_with(&prompt, &messages, &options).expect("it succeeds");
    runtime.stream(&prompt, &messages, &options).and_then(|stream| stream.finish()).expect("it succeeds");
    for request in server.requests() {
        assert!(request.head.starts_with("POST /other/v2/chat/completions"), "{}", request.head);
        assert_eq!(request.header("authorization"), Some("Bearer another-key"));
        let body: Value = serde_json::from_str(&request.body).expect("it is JSON");
        assert_eq!((&body["model"], &body["tools"][0]["function"]["name"]), (&json!("another"), &json!("look_up")));
    }
    let responses = RunOptions { api_type: Some("responses".into()), ..options };
    let request = runtime.request(&prompt, &messages, &responses, true).expect("it can be made");
    assert!(request.url.ends_with("/other/v2/responses") && request.stream, "{request:?}");
    assert_eq!(server.requests().len(), 2, "a request that is only shown is not sent");
}

#[test]
fn faults_of_providers_are_errors_of_a_run() {
    type Answer = fn(&mut faults::Exchange<'_>);
    let html: Answer = |exchange| exchange.answer(200, "Content-Type: text/html\r\n", "<html>portal</html>");
    let cases: [(Answer, Kind, usize, &str); 6] = [
        (
            |exchange| {
                exchange.answer(401, "Content-Type: application/json\r\n", r#"{"error":{"message":"Incorrect key"}}"#)
            },
            Kind::Provider,
            1,
            "Incorrect key",
        ),
        (|exchange| exchange.answer(500, "", "broken"), Kind::ProviderUnavailable, 3, "HTTP 500"),
        (html, Kind::ContentType, 1, "text/html"),
        (
            |exchange| exchange.answer(200, "Content-Type: application/json\r\n", vec![b' '; 5000]),
            Kind::ResponseTooLarge,
            1,
            "5000",
        ),
        (|exchange| exchange.json(r#"{"surprise": true}"#), Kind::UnexpectedResponse, 1, "choices"),
        (|exchange| exchange.json("{"), Kind::UnexpectedResponse, 1, "choices"),
    ];
    for (answer, kind, requests, message) in cases {
        let server = Server::start(answer);
        let runtime = runtime_with(&[], |options| options.http.max_response_bytes = 4096);
        let (prompt, messages) = chat(&runtime, &server);
        let error = fails(runtime.run(&prompt, &messages), kind);
        assert!(error.message().contains(message), "{error}");
        assert_eq!(server.requests().len(), requests, "{error}");
        fails(runtime.invoke(&prompt, inputs()), kind);
        fails(runtime.stream(&prompt, &messages, &RunOptions::default()), kind);
    }
}

#[test]
fn a_key_that_is_wrong_gets_help() {
    let server = Server::start(|exchange| {
        let key = exchange.request.header("authorization").unwrap_or_default().to_owned();
        let body = json!({ "error": { "message": format!("Incorrect API key provided: {key}.") } }).to_string();
        exchange.answer(401, "Content-Type: application/json\r\n", body);
    });
    let runtime = runtime(&[]);
    let (prompt, messages) = chat(&runtime, &server);
    let error = fails(runtime.run(&prompt, &messages), Kind::Provider);
    assert!(error.help().is_some_and(|help| help.contains("key")), "{error:?}");
    assert!(!shown(&error).contains(PLAIN_KEY), "{}", shown(&error));
}

#[test]
fn what_recovers_is_asked_again() {
    let server = Server::start(|exchange| match exchange.number {
        0 | 1 => exchange.answer(429, "", "later"),
        _ => exchange.json(&saying("Fine.")),
    });
    let runtime = runtime(&[]);
    let (prompt, messages) = chat(&runtime, &server);
    assert_eq!(runtime.run(&prompt, &messages).expect("it succeeds").outcome.to_json(), "Fine.");
    let bodies: Vec<_> = server.requests().into_iter().map(|request| request.body).collect();
    assert!(bodies.len() == 3 && bodies.iter().all(|body| *body == bodies[0]));
}

#[test]
fn a_redirect_to_another_host_is_refused_with_all_that_it_would_carry() {
    let thief = Server::start(|exchange| exchange.json(&saying("thanks")));
    let location = format!("Location: http://localhost:{}/steal\r\n", thief.port);
    let server = Server::start(move |exchange| exchange.answer(307, &location, ""));
    for protocol in [Protocol::OpenAiChat, Protocol::AnthropicMessages] {
        let runtime = runtime(&[]);
        let prompt = prompt(&runtime, &model(&server, protocol), TEMPLATE);
        let error = fails(runtime.invoke(&prompt, inputs()), Kind::RedirectRefused);
        assert!(!shown(&error).contains(PLAIN_KEY));
        let messages = runtime.prepare(&prompt, inputs()).expect("it renders");
        fails(runtime.stream(&prompt, &messages, &RunOptions::default()), Kind::RedirectRefused);
    }
    assert_eq!((server.requests().len(), thief.connections()), (4, 0));
}

/// Providers have been seen to repeat the key in a response with status 200.
#[test]
fn an_error_with_status_200_does_not_show_the_key() {
    let error = |exchange: &faults::Exchange<'_>| {
        let key = exchange.request.header("authorization").unwrap_or_default();
        json!({ "error": { "message": format!("Incorrect API key: {key}"), "type": "auth" } })
    };
    let server = Server::start(move |exchange| {
        let body = error(exchange);
        if !runs::wants_stream(exchange) {
            return exchange.json(&body.to_string());
        }
        exchange.events();
        exchange.chunk(runs::event("Well, "));
        exchange.chunk(format!("event: error\ndata: {body}\n\n"));
        exchange.end();
    });
    let runtime = runtime(&[]);
    let (prompt, messages) = chat(&runtime, &server);
    let whole = fails(runtime.run(&prompt, &messages), Kind::Provider);
    let stream = runtime.stream(&prompt, &messages, &RunOptions::default()).expect("it begins");
    let streamed = fails(stream.finish(), Kind::Provider);
    for error in [&whole, &streamed] {
        assert!(error.message().contains("Incorrect API key"), "{error}");
        assert!(!shown(error).contains(PLAIN_KEY), "{}", shown(error));
    }
    assert_eq!(streamed.partial_text(), Some("Well, "));
}

#[test]
fn models_are_listed() {
    let server = Server::start(|exchange| exchange.json(r#"{"data": [{"id": "m-1"}, {"id": "m-2"}]}"#));
    let runtime = runtime(&[("OPENAI_API_KEY", PLAIN_KEY), ("OPENAI_BASE_URL", &server.url("/v1"))]);
    let models = runtime.list_models(None, &RunOptions::default()).expect("it succeeds");
    let later = block_on(runtime.list_models_async(None, &RunOptions::default())).expect("it succeeds");
    assert_eq!(models.iter().map(|model| model.id.as_str()).collect::<Vec<_>>(), ["m-1", "m-2"]);
    assert_eq!(models, later);
    let request = &server.requests()[0];
    assert!(request.head.starts_with("GET /v1/models HTTP/1.1"), "{}", request.head);
    assert_eq!(request.header("authorization"), Some(format!("Bearer {PLAIN_KEY}").as_str()));
    let (prompt, _) = chat(&runtime, &server);
    assert_eq!(runtime.list_models(Some(&prompt), &RunOptions::default()).expect("it succeeds"), models);
    let echo = RunOptions { provider: Some("echo".into()), ..RunOptions::default() };
    assert_eq!(runtime.list_models(None, &echo).expect("it needs nobody")[0].id, "echo");
}

/// Streams and complete answers share a few connections.
#[test]
fn connections_are_used_again() {
    let server = Server::start(|exchange| say(exchange, "Fine."));
    let runtime = runtime(&[]);
    let (prompt, messages) = chat(&runtime, &server);
    for _ in 0..10 {
        runtime.run(&prompt, &messages).expect("it succeeds");
    }
    for _ in 0..10 {
        runtime.stream(&prompt, &messages, &RunOptions::default()).and_then(|s| s.finish()).expect("it succeeds");
    }
    // A connection becomes available shortly after its response, so a fast caller may need an additional one sometimes.
    assert!(server.connections() <= 10, "{} connections", server.connections());
}

//! Streamed answers, over a real socket.

use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::json;
use tympan_core::wire::response::Delta;
use tympan_runtime::net::io;
use tympan_runtime::{Kind, ResponseStream, RunOptions, Runtime};

use crate::faults;
use crate::faults::Server;
use crate::faults::client::fails;
use crate::runs;
use crate::runs::{TEMPLATE, chat, event, inputs, last_events, model, prompt, runtime, runtime_with, say, saying};

fn begin(runtime: &Runtime, server: &Server) -> ResponseStream {
    let (prompt, messages) = chat(runtime, server);
    runtime.stream(&prompt, &messages, &RunOptions::default()).expect("it begins")
}

/// The server sends no more until the client has seen everything so far. If anything buffered it, the test would hang.
#[test]
fn steps_arrive_before_the_answer_is_over() {
    for is_async in [false, true] {
        let (seen, client_has_seen) = channel();
        let client_has_seen = Mutex::new(client_has_seen);
        let server = Server::start(move |exchange| {
            exchange.events();
            for word in ["One ", "two ", "three"] {
                exchange.chunk(event(word));
                client_has_seen.lock().expect("nobody panicked").recv().expect("the test runs");
            }
            exchange.chunk(last_events());
            exchange.end();
        });
        let mut stream = begin(&runtime(&[]), &server);
        for word in ["One ", "two ", "three"] {
            let step = if is_async { io::wait(stream.next_async()) } else { stream.next() };
            assert_eq!(step.expect("more comes").expect("it is good"), Delta::Text(word.into()));
            seen.send(()).expect("the server waits");
        }
        let run = stream.finish().expect("it succeeds");
        assert_eq!(run.outcome.to_json(), "One two three");
        assert_eq!(run.usage.map(|usage| usage.total_tokens), Some(5));
    }
}

#[test]
fn a_stream_of_the_futures_crates_has_the_same_steps() {
    let server = Server::start(|exchange| say(exchange, "One two three"));
    let steps: Vec<Delta> = begin(&runtime(&[]), &server).take(10).map(|step| step.expect("it is good")).collect();
    let stream = begin(&runtime(&[]), &server).into_stream();
    let tokio = tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts");
    let others: Vec<_> = tokio.block_on(stream.map(|step| step.expect("it is good")).collect());
    assert_eq!(steps, others);
    assert_eq!(steps.len(), 4, "{steps:?}");
}

#[test]
fn an_answer_that_breaks_off_is_an_error_with_what_had_arrived() {
    type Fault = fn(&mut faults::Exchange<'_>);
    let faults: [Fault; 4] = [
        |exchange| exchange.end(),
        |exchange| exchange.close(),
        |exchange| exchange.reset(),
        |exchange| {
            exchange.write("ffff\r\ndata: {\"choi");
            exchange.close();
        },
    ];
    for fault in faults {
        // A reset discards unread data, so the server waits until it has been read.
        let (seen, client_has_seen) = channel();
        let client_has_seen = Mutex::new(client_has_seen);
        let server = Server::start(move |exchange| {
            exchange.events();
            exchange.chunk(event("One "));
            exchange.chunk(event("two"));
            client_has_seen.lock().expect("nobody panicked").recv().expect("the test runs");
            fault(exchange);
        });
        let mut stream = begin(&runtime(&[]), &server);
        for word in ["One ", "two"] {
            assert_eq!(stream.next().expect("it comes").expect("it is good"), Delta::Text(word.into()));
        }
        seen.send(()).expect("the server waits");
        let error = fails(stream.finish(), Kind::Truncated);
        assert_eq!(error.partial_text(), Some("One two"));
        assert_eq!(server.requests().len(), 1, "what has begun is not asked for again");
    }
}

#[test]
fn an_error_comes_once_and_after_all_steps_before_it() {
    let server = Server::start(|exchange| {
        exchange.events();
        let error = json!({ "error": { "message": "overloaded" } });
        exchange.chunk(format!("{}{}event: error\ndata: {error}\n\n", event("One "), event("two")));
        exchange.end();
    });
    let mut stream = begin(&runtime(&[]), &server);
    // A stream that repeated its error would never end.
    let steps: Vec<_> = stream.by_ref().take(10).collect();
    assert_eq!(steps.len(), 3, "{steps:?}");
    assert!(steps[..2].iter().all(Result::is_ok));
    let error = fails(steps.into_iter().nth(2).expect("there are three"), Kind::Provider);
    assert_eq!(error.partial_text(), Some("One two"));
    assert!(error.message().contains("overloaded"), "{error}");
    let error = fails(stream.finish(), Kind::Provider);
    assert_eq!(error.partial_text(), Some("One two"));
}

#[test]
fn a_model_that_refuses_is_an_error() {
    let server = Server::start(|exchange| {
        exchange.events();
        exchange.chunk(runs::streamed(tympan_core::wire::Protocol::OpenAiChat, "refusal"));
        exchange.end();
    });
    let error = fails(begin(&runtime(&[]), &server).finish(), Kind::Refused);
    assert_eq!(error.partial_text(), Some("Well, "));
}

#[test]
fn silence_in_the_middle_is_an_error_with_what_had_arrived() {
    let server = Server::start(|exchange| {
        exchange.events();
        exchange.chunk(event("One "));
        exchange.stall();
    });
    let runtime = runtime_with(&[], |options| options.http.idle_timeout = Duration::from_millis(50));
    let error = fails(begin(&runtime, &server).finish(), Kind::IdleTimeout);
    assert_eq!(error.partial_text(), Some("One "));
    server.wait_until_left();
}

#[test]
fn a_server_that_does_not_stream_is_understood() {
    let server = Server::start(|exchange| exchange.json(&saying("All at once")));
    let mut stream = begin(&runtime(&[]), &server);
    assert_eq!(stream.next().expect("it comes").expect("it is good"), Delta::Text("All at once".into()));
    let run = stream.finish().expect("it succeeds");
    assert_eq!((run.outcome.to_json(), run.id.as_deref()), (json!("All at once"), Some("chatcmpl-1")));
}

#[test]
fn interfaces_without_streams_answer_in_one_step() {
    use tympan_core::wire::Protocol;
    for (protocol, name) in [(Protocol::OpenAiEmbeddings, "single"), (Protocol::OpenAiImages, "url")] {
        let body = runs::whole(protocol, name);
        let server = Server::start(move |exchange| exchange.json(&body));
        let runtime = runtime(&[]);
        let prompt = prompt(&runtime, &model(&server, protocol), TEMPLATE);
        let messages = runtime.prepare(&prompt, inputs()).expect("it renders");
        let whole = runtime.run(&prompt, &messages).expect("it succeeds");
        let stream = runtime.stream(&prompt, &messages, &RunOptions::default()).expect("it begins");
        assert_eq!(stream.finish().expect("it succeeds"), whole, "{protocol:?}");
    }
}

#[test]
fn dropping_an_answer_closes_the_connection() {
    let server = Server::start(|exchange| {
        exchange.events();
        exchange.chunk(event("One "));
        exchange.stall();
    });
    let mut stream = begin(&runtime(&[]), &server);
    assert!(stream.next().is_some());
    drop(stream);
    server.wait_until_left();
    let stream = begin(&runtime(&[]), &server).into_stream();
    drop(stream);
    server.wait_until_left();
}

#[test]
fn every_stream_comes_to_what_it_should_over_a_socket() {
    for (protocol, path, bytes, expected) in runs::streams() {
        // No server can start an empty stream.
        if bytes.is_empty() {
            continue;
        }
        let kept = bytes.clone();
        let server = Server::start(move |exchange| {
            exchange.events();
            let sent = bytes.chunks(11).all(|piece| exchange.chunk(piece));
            if sent {
                exchange.end();
            }
        });
        let runtime = runtime(&[]);
        let prompt = prompt(&runtime, &model(&server, protocol), TEMPLATE);
        let messages = runtime.prepare(&prompt, inputs()).expect("it renders");
        let stream = runtime.stream(&prompt, &messages, &RunOptions::default());
        let kept = runtime.process(&prompt, &kept);
        match stream.and_then(ResponseStream::finish) {
            Ok(run) => {
                assert_eq!(kept.expect("it is the same later"), run, "{path:?}");
                assert_eq!(run.outcome.to_json(), expected["result"], "{path:?}");
                let said = [
                    ("id", json!(run.id)),
                    ("model", json!(run.model)),
                    ("usage", json!(run.usage)),
                    ("finish_reason", json!(run.finish_reason.as_ref().map(|reason| reason.as_str()))),
                ];
                for (key, actual) in said {
                    assert!(expected[key].is_null() || expected[key] == actual, "{path:?}: {key} {actual}");
                }
            }
            Err(error) => {
                assert_eq!(kept.expect_err("it is the same later").message(), error.message(), "{path:?}");
                assert_eq!(json!(error.code()), expected["error"], "{path:?}: {error}");
                let partial = &expected["partial_text"];
                assert!(partial.is_null() || *partial == json!(error.partial_text()), "{path:?}: {error:?}");
            }
        }
    }
}

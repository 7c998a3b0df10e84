//! Custom providers of bindings, whose answers are data.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream;
use serde_json::{Value as Json, json};
use tympan_runtime::host::data;
use tympan_runtime::net::io;
use tympan_runtime::{Inputs, Kind, ModelCall, Provider, Reply, Result, RunOptions, Runtime};

/// Answers with these deltas.
struct Stepwise(Vec<Json>);

impl Provider for Stepwise {
    fn call<'a>(&'a self, _call: ModelCall<'a>) -> BoxFuture<'a, Result<Reply>> {
        let steps: Vec<_> = self.0.iter().cloned().map(data::read_delta).collect();
        Box::pin(std::future::ready(Ok(data::streamed(Box::pin(stream::iter(steps))))))
    }
}

fn runtime(steps: &[Json]) -> Runtime {
    let runtime = Runtime::default();
    runtime.register_provider("mine", Arc::new(Stepwise(steps.to_vec())));
    runtime
}

const PROMPT: &str = "---\nmodel: {id: m, provider: mine}\n---\nuser:\nHi";

#[test]
fn steps_add_up_to_an_answer() {
    let usage = json!({ "type": "usage", "usage": { "input_tokens": 2, "output_tokens": 3 } });
    let runtime = runtime(&[json!("Hel"), json!({ "type": "text", "text": "lo" }), usage]);
    let prompt = runtime.load_str(PROMPT, "p.prompty", ".").expect("a prompt");
    let messages = runtime.prepare(&prompt, Inputs::new()).expect("messages");
    let whole = runtime.run(&prompt, &messages).expect("an answer");
    assert_eq!((whole.outcome.to_json(), whole.usage.map(|usage| usage.total_tokens)), (json!("Hello"), Some(5)));

    let streamed = io::wait(async {
        let mut stream = runtime.stream_async(&prompt, &messages, &RunOptions::default()).await?;
        let mut steps = Vec::new();
        while let Some(step) = stream.next_async().await {
            steps.push(data::delta(&step?)["type"].clone());
        }
        stream.finish_async().await.map(|run| (steps, run.outcome.to_json()))
    });
    assert_eq!(streamed.expect("an answer"), (vec![json!("text"), json!("text"), json!("usage")], json!("Hello")));
}

#[test]
fn calls_of_tools_arrive_in_steps() {
    let runtime = runtime(&[
        json!({ "type": "tool_call", "index": 0, "id": "1", "name": "t" }),
        json!({ "type": "tool_arguments", "index": 0, "text": "{\"a\":" }),
        json!({ "type": "tool_arguments", "index": 0, "text": "1}" }),
    ]);
    let prompt = runtime.load_str(PROMPT, "p.prompty", ".").expect("a prompt");
    let run = runtime.invoke(&prompt, Inputs::new()).expect("an answer");
    assert_eq!(run.outcome.to_json(), json!([{ "id": "1", "name": "t", "arguments": "{\"a\":1}" }]));
}

#[test]
fn a_step_that_is_not_its_turn_is_an_error() {
    let runtime = runtime(&[json!({ "type": "tool_arguments", "index": 7, "text": "{" })]);
    let prompt = runtime.load_str(PROMPT, "p.prompty", ".").expect("a prompt");
    let error = runtime.invoke(&prompt, Inputs::new()).expect_err("no call has begun");
    assert_eq!(error.kind(), Kind::UnexpectedResponse);
    assert!(error.help().is_some());
}

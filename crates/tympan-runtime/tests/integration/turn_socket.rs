//! Turns with a scripted model at the other end of a socket, which uses the providers' protocols.

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tympan_core::turn::{TurnEvent, TurnOptions};
use tympan_core::wire::Protocol;
use tympan_core::{Content, ContentPart, Inputs};
use tympan_runtime::{AgentEvent, Prompt, Runtime, ToolOutput, TurnSettings, tool};

use crate::faults::{Exchange, Server};
use crate::runs;
use crate::runs::{event, last_events, runtime, streamed};

fn prompt(runtime: &Runtime, server: &Server, protocol: Protocol) -> Prompt {
    let city = json!([{ "name": "city", "kind": "string" }]);
    let function = |name: &str| json!({ "name": name, "kind": "function", "parameters": city });
    let mut model = runs::model(server, protocol);
    model["options"] = json!({ "maxOutputTokens": 100 });
    let front = json!({ "model": model, "tools": [function("weather"), function("time")] });
    let text = format!("---\n{front}\n---\nsystem:\nBe brief.\n\nuser:\nGo.\n");
    runtime.load_str(&text, "socket.prompty", ".").expect("it loads")
}

/// Registers two tools: one returns an image and a text, and the other a text.
fn register(runtime: &Runtime) {
    let picture: ContentPart = serde_json::from_value(json!({
        "kind": "image", "value": "iVBORw0KGgo=", "mediaType": "image/png",
    }))
    .expect("it is a part");
    runtime.register_tool(
        "weather",
        tool::function(move |_| {
            let mut content = Content::text("See:");
            content.push(picture.clone());
            Ok::<_, String>(ToolOutput::from(content))
        }),
    );
    runtime.register_tool("time", tool::function(|_| Ok::<_, String>("noon")));
}

fn stream(exchange: &mut Exchange<'_>, bytes: &[u8]) {
    exchange.events();
    for piece in bytes.chunks(7) {
        exchange.chunk(piece);
    }
    exchange.end();
}

/// Returns what the server received in the second round, after two tools.
fn second_request(protocol: Protocol, first: &'static str) -> (Value, Vec<String>) {
    let server = Server::start(move |exchange| {
        let is_second = exchange.request.body.contains("noon");
        let name = if is_second { "text" } else { first };
        stream(exchange, &streamed(protocol, name));
    });
    let runtime = runtime(&[]);
    register(&runtime);
    let events = Arc::new(Mutex::new(Vec::new()));
    let listener = events.clone();
    let settings = TurnSettings {
        turn: TurnOptions { parallel_tool_calls: true, ..TurnOptions::default() },
        on_event: Some(Arc::new(move |event: &AgentEvent| {
            let name = match event {
                AgentEvent::Token(_) => "token",
                AgentEvent::Thinking(_) => "thinking",
                AgentEvent::Turn(event) => event.name(),
                _ => "other",
            };
            listener.lock().expect("nobody panics with it").push(name.to_owned());
        })),
        ..TurnSettings::default()
    };
    runtime.turn(&prompt(&runtime, &server, protocol), Inputs::new(), &settings).expect("it ends well");
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    let body = serde_json::from_str(&requests[1].body).expect("it is JSON");
    let events = events.lock().expect("nobody panics with it").clone();
    (body, events)
}

#[test]
fn chat_gets_a_message_for_each_result() {
    let (body, events) = second_request(Protocol::OpenAiChat, "tool_calls");
    let messages = body["messages"].as_array().expect("a list");
    assert_eq!(messages.len(), 5);
    assert_eq!(messages[2]["tool_calls"][1]["function"], json!({ "name": "time", "arguments": "{}" }));
    assert_eq!(messages[3]["tool_call_id"], "call_1");
    assert!(messages[3].to_string().contains("data:image/png;base64,iVBORw0KGgo="), "{}", messages[3]);
    assert_eq!((&messages[4]["role"], &messages[4]["content"]), (&json!("tool"), &json!("noon")));
    let first_token = events.iter().position(|event| event == "token").expect("the last round is streamed");
    let last_result = events.iter().rposition(|event| event == "tool_result").expect("there are results");
    assert!(last_result < first_token, "{events:?}");
    assert_eq!(events.last().map(String::as_str), Some("done"));
}

#[test]
fn anthropic_gets_its_blocks_back_and_all_results_in_one_message() {
    let (body, _) = second_request(Protocol::AnthropicMessages, "thinking_and_tool_use");
    let messages = body["messages"].as_array().expect("a list");
    assert_eq!(messages.len(), 3);
    let kinds: Vec<_> = messages[1]["content"].as_array().expect("blocks").iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["thinking", "text", "tool_use", "tool_use"]);
    assert_eq!(messages[1]["content"][0]["signature"], "c2ln");
    let results = messages[2]["content"].as_array().expect("blocks");
    assert_eq!(
        (results.len(), &results[0]["tool_use_id"], &results[1]["tool_use_id"]),
        (2, &json!("toolu_1"), &json!("toolu_2"))
    );
    assert_eq!(results[0]["content"][1]["source"]["data"], "iVBORw0KGgo=");
}

#[test]
fn responses_gets_an_output_for_each_call() {
    let (body, _) = second_request(Protocol::OpenAiResponses, "reasoning_and_calls");
    let input = body["input"].as_array().expect("a list");
    let of = |kind: &str| {
        input.iter().filter(|item| item["type"] == kind).map(|item| item["call_id"].clone()).collect::<Vec<_>>()
    };
    let calls = of("function_call");
    assert!(!calls.is_empty());
    assert_eq!(calls, of("function_call_output"));
}

/// The result of a tool server must not be able to end a turn.
#[test]
fn what_cannot_be_carried_is_told_of_in_words() {
    for (protocol, first) in [
        (Protocol::OpenAiChat, "tool_calls"),
        (Protocol::AnthropicMessages, "thinking_and_tool_use"),
        (Protocol::OpenAiResponses, "reasoning_and_calls"),
    ] {
        let server = Server::start(move |exchange| {
            let name = if exchange.request.body.contains("noon") { "text" } else { first };
            stream(exchange, &streamed(protocol, name));
        });
        let runtime = runtime(&[]);
        register(&runtime);
        runtime.register_tool(
            "weather",
            tool::function(|_| {
                let parts = json!([
                    { "kind": "text", "value": "Hear:" },
                    { "kind": "audio", "value": "https://example.org/rain.wav" },
                    { "kind": "image", "value": "neither an address nor base64" },
                ]);
                let content: Content = serde_json::from_value(parts).map_err(|error| error.to_string())?;
                Ok::<_, String>(ToolOutput::from(content))
            }),
        );
        let prompt = prompt(&runtime, &server, protocol);
        let settings = TurnSettings { on_event: Some(Arc::new(|_: &AgentEvent| {})), ..TurnSettings::default() };
        runtime.turn(&prompt, Inputs::new(), &settings).expect("the turn goes on");
        let body = &server.requests()[1].body;
        assert!(body.contains("Hear:") && body.contains("[audio that cannot be played]"), "{body}");
        assert!(body.contains("[an image that cannot be shown]"), "{body}");
    }
}

#[test]
fn the_last_answer_is_told_as_it_arrives() {
    let (heard, hears) = mpsc::channel::<()>();
    let hears = Mutex::new(hears);
    let server = Server::start(move |exchange| {
        exchange.events();
        exchange.chunk(event("First "));
        // The rest is sent after a listener has received the start. If none does, it is never sent.
        let heard = hears.lock().expect("nobody panics with it").recv_timeout(Duration::from_secs(30)).is_ok();
        if heard {
            exchange.chunk(event("second."));
            exchange.chunk(last_events());
            exchange.end();
        } else {
            exchange.reset();
        }
    });
    let runtime = runtime(&[]);
    register(&runtime);
    let settings = TurnSettings {
        on_event: Some(Arc::new(move |event: &AgentEvent| match event {
            AgentEvent::Token(_) => drop(heard.send(())),
            AgentEvent::Turn(TurnEvent::Done { response, .. }) => assert_eq!(response, "First second."),
            _ => {}
        })),
        ..TurnSettings::default()
    };
    let prompt = prompt(&runtime, &server, Protocol::OpenAiChat);
    let run = runtime.turn(&prompt, Inputs::new(), &settings).expect("it ends well");
    assert_eq!(run.run.outcome.to_json(), "First second.");
}

#[test]
fn two_hundred_calls_over_a_socket_come_back_in_order() {
    let server = Server::start(|exchange| {
        let body: Value = serde_json::from_str(&exchange.request.body).expect("it is JSON");
        let results: Vec<_> =
            body["messages"].as_array().into_iter().flatten().filter(|message| message["role"] == "tool").collect();
        if results.is_empty() {
            let calls: Vec<_> = (0..200)
                .map(|index| {
                    json!({
                        "id": format!("c{index}"), "type": "function",
                        "function": { "name": "time", "arguments": "{}" },
                    })
                })
                .collect();
            let message = json!({ "role": "assistant", "content": null, "tool_calls": calls });
            return exchange.json(
                &json!({ "choices": [{ "index": 0, "finish_reason": "tool_calls", "message": message }] }).to_string(),
            );
        }
        let in_order = results.iter().enumerate().all(|(index, result)| result["tool_call_id"] == format!("c{index}"));
        exchange.json(&runs::saying(&format!("{} {in_order}", results.len())));
    });
    let runtime = runtime(&[]);
    register(&runtime);
    let turn = TurnOptions { parallel_tool_calls: true, ..TurnOptions::default() };
    let prompt = prompt(&runtime, &server, Protocol::OpenAiChat);
    let run = runtime.turn(&prompt, Inputs::new(), &TurnSettings { turn, ..TurnSettings::default() });
    assert_eq!(run.expect("it ends well").run.outcome.to_json(), "200 true");
}

//! Stand-ins for models: a provider with a script, and a server on this machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::{Value as Json, json};
use tympan_core::wire::response::{Answer, FinishReason, Output, Response, Usage};
use tympan_core::{Message, Result};
use tympan_runtime::{BoxFuture, ModelCall, Provider, Reply};

/// A provider that answers from a list, again and again, and remembers what it was asked.
#[derive(Clone)]
pub(crate) struct Scripted {
    answers: Arc<Vec<String>>,
    asked: Arc<Mutex<Vec<Vec<Message>>>>,
}

impl Scripted {
    pub(crate) fn new(answers: &[&str]) -> Self {
        let answers = answers.iter().map(|answer| (*answer).to_owned()).collect();
        Self { answers: Arc::new(answers), asked: Arc::default() }
    }

    /// Returns the messages of all calls so far.
    pub(crate) fn asked(&self) -> Vec<Vec<Message>> {
        self.asked.lock().expect("no test panics").clone()
    }
}

impl Provider for Scripted {
    fn call<'a>(&'a self, call: ModelCall<'a>) -> BoxFuture<'a, Result<Reply>> {
        let mut asked = self.asked.lock().expect("no test panics");
        let text = self.answers[asked.len() % self.answers.len()].clone();
        asked.push(call.messages.to_vec());
        let usage = Usage { input_tokens: 1_000_000, output_tokens: 0, total_tokens: 1_000_000, ..Usage::default() };
        let response = Response {
            output: Output::Answer(Answer { text, ..Answer::default() }),
            finish_reason: Some(FinishReason::Stop),
            usage: Some(usage),
            ..Response::default()
        };
        Box::pin(std::future::ready(Ok(Reply::Whole(response))))
    }
}

/// A server for chats that answers from a list, and remembers the requests.
pub(crate) struct Server {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<Json>>>,
}

impl Server {
    pub(crate) fn start(answers: Vec<Json>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let requests = Arc::<Mutex<Vec<Json>>>::default();
        let seen = requests.clone();
        std::thread::spawn(move || {
            for answer in answers {
                let Ok((mut stream, _)) = listener.accept() else { return };
                let mut reader = BufReader::new(stream.try_clone().expect("a copy"));
                let mut length = 0;
                for line in reader.by_ref().lines().map_while(std::io::Result::ok).take_while(|line| !line.is_empty()) {
                    if let Some((name, value)) = line.split_once(':')
                        && name.eq_ignore_ascii_case("content-length")
                    {
                        length = value.trim().parse().expect("a number");
                    }
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).expect("a body");
                seen.lock().expect("no test panics").push(serde_json::from_slice(&body).expect("JSON"));
                let answer = answer.to_string();
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
                write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{answer}", answer.len()).expect("it is sent");
            }
        });
        Self { url, requests }
    }

    pub(crate) fn requests(&self) -> Vec<Json> {
        self.requests.lock().expect("no test panics").clone()
    }

    /// Returns the front matter of a model on this server.
    pub(crate) fn model(&self) -> Json {
        let connection = json!({"kind": "key", "endpoint": self.url, "apiKey": "correct-horse-battery-staple"});
        json!({"id": "gpt-4o-mini", "provider": "openai", "connection": connection})
    }
}

/// Returns a chat answer with this text.
pub(crate) fn saying(text: &str) -> Json {
    chat(json!({"role": "assistant", "content": text}), "stop")
}

/// Returns a chat answer that calls a tool.
pub(crate) fn calling(name: &str, arguments: &str) -> Json {
    let call = json!({"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}});
    chat(json!({"role": "assistant", "content": null, "tool_calls": [call]}), "tool_calls")
}

fn chat(message: Json, finish_reason: &str) -> Json {
    json!({
        "id": "chatcmpl-1", "model": "gpt-4o-mini-2024-07-18",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 30, "completion_tokens": 20, "total_tokens": 50},
    })
}

//! A test server over a real socket, and the program to run against it.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::mpsc::{self, Receiver};
use std::thread;

pub(crate) const KEY: &str = "sk-test-0123456789abcdef";

/// A server that answers every request with the same handler and reports the requests.
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) requests: Receiver<String>,
}

impl Server {
    pub(crate) fn start(answer: impl Fn(&mut TcpStream, usize) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let url = format!("http://{}/v1", listener.local_addr().expect("it has an address"));
        let (told, requests) = mpsc::channel();
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let mut stream = stream.expect("a connection");
                if told.send(read_request(&stream)).is_err() {
                    return;
                }
                answer(&mut stream, number);
            }
        });
        Self { url, requests }
    }
}

fn read_request(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let start = head.len();
        if reader.read_line(&mut head).expect("a line") == 0 {
            break;
        }
        if let Some(value) = head[start..].to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a number");
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    head + &String::from_utf8(body).expect("it is text")
}

pub(crate) fn respond(stream: &mut TcpStream, status: &str, content_type: &str, body: &str) {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all((head + body).as_bytes()).expect("the client reads");
}

pub(crate) fn chunk(text: &str) -> String {
    let text = serde_json::Value::from(text);
    format!(
        "data: {{\"id\":\"1\",\"model\":\"gpt-4o-mini\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":{text}}}}}]}}\n\n"
    )
}

const END: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
    data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":7,\"total_tokens\":12}}\n\ndata: [DONE]\n\n";

pub(crate) fn stream_of(texts: &[&str]) -> String {
    texts.iter().map(|text| chunk(text)).collect::<String>() + END
}

/// Returns a stream that calls a tool.
pub(crate) fn stream_of_call(name: &str, arguments: &str) -> String {
    let call = serde_json::json!({ "index": 0, "id": "call_1", "function": { "name": name, "arguments": arguments } });
    let delta = format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{call}]}}}}]}}\n\n");
    delta + &END.replace("\"stop\"", "\"tool_calls\"")
}

pub(crate) fn tympan(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tympan"));
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    command.args(arguments).env("OPENAI_API_KEY", KEY).env_remove("OPENAI_BASE_URL").env("NO_PROXY", "*");
    command.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

pub(crate) fn finish(command: &mut Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("it is text");
    (status.code(), text(stdout), text(stderr))
}

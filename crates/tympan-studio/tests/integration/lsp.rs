//! The language server over a WebSocket.

use std::net::TcpStream;

use serde_json::{Value as Json, json};
use tungstenite::client::IntoClientRequest;
use tungstenite::{Message, WebSocket};

use crate::client::{Page, Server};

/// A client of the language server.
struct Client {
    socket: WebSocket<TcpStream>,
    last: u64,
}

impl Client {
    fn connect(page: &Page<'_>) -> Result<Self, tungstenite::http::StatusCode> {
        let server = page.server;
        let mut request = format!("ws://127.0.0.1:{}/api/lsp", server.port).into_client_request().expect("it is valid");
        let headers = request.headers_mut();
        headers.insert("origin", server.origin().parse().expect("it is valid"));
        headers.insert("cookie", page.cookie.parse().expect("it is valid"));
        match tungstenite::client(request, server.connect()) {
            Ok((socket, _)) => Ok(Self { socket, last: 0 }),
            Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(response))) => Err(response.status()),
            Err(error) => panic!("{error}"),
        }
    }

    fn send(&mut self, message: &Json) {
        self.socket.send(Message::text(message.to_string())).expect("it is sent");
    }

    fn notify(&mut self, method: &str, params: Json) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn request(&mut self, method: &str, params: Json) -> Json {
        self.last += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}));
        let id = json!(self.last);
        self.until(|message| message["id"] == id && message.get("method").is_none())
    }

    fn until(&mut self, is_it: impl Fn(&Json) -> bool) -> Json {
        loop {
            let Message::Text(text) = self.socket.read().expect("it arrives in time") else { continue };
            let message: Json = serde_json::from_str(&text).expect("it is JSON");
            assert_eq!(message["jsonrpc"], "2.0");
            if is_it(&message) {
                return message;
            }
        }
    }

    fn initialize(&mut self) {
        let params = json!({"capabilities": {}, "rootUri": "file:///"});
        assert!(self.request("initialize", params)["result"]["capabilities"].is_object());
        self.notify("initialized", json!({}));
    }

    fn open(&mut self, uri: &str, text: &str) {
        let document = json!({"uri": uri, "languageId": "prompty", "version": 1, "text": text});
        self.notify("textDocument/didOpen", json!({"textDocument": document}));
    }
}

#[test]
fn a_page_gets_diagnostics_and_formatting() {
    let server = Server::start(&[("d/ä b.prompty", "user:\nHi"), ("d/name.txt", "x")]);
    let page = server.page();
    let mut client = Client::connect(&page).expect("it is accepted");
    client.initialize();
    let uri = "file:///d/%C3%A4%20b.prompty";
    client.open(uri, "---\nname: ${file:name.txt}\ndescription: ${file:missing.txt}\n---\nuser:\nHi {{name}}");
    let published = client.until(|message| message["method"] == "textDocument/publishDiagnostics");
    assert_eq!(published["params"]["uri"], uri);
    let codes = published["params"]["diagnostics"].to_string();
    assert!(codes.contains("missing.txt") && !codes.contains("name.txt"), "{codes}");
    let root = server.folder.path().display().to_string();
    assert!(!published.to_string().contains(&root), "the page does not learn where the folder is");
    let symbols = client.request("textDocument/documentSymbol", json!({"textDocument": {"uri": uri}}));
    assert!(symbols["result"].is_array(), "{symbols}");
}

#[test]
fn documents_outside_of_the_folder_are_refused() {
    let server = Server::start(&[("a.prompty", "user:\nHi"), (".env", "KEY=hidden")]);
    let page = server.page();
    let mut client = Client::connect(&page).expect("it is accepted");
    client.initialize();
    for uri in [
        "file:///../x.prompty",
        "file:///.env",
        "file:///%2e%2e/x.prompty",
        "http://x/a.prompty",
        "file:////etc/passwd",
    ] {
        client.open(uri, "user:\n{{");
        let answer = client.request(
            "textDocument/hover",
            json!({"textDocument": {"uri": uri}, "position": {"line": 0, "character": 0}}),
        );
        assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("folder")), "{uri}: {answer}");
    }
    // Frames that are not messages are ignored, and the session goes on.
    for garbage in ["", "{", "[]", "{\"jsonrpc\": \"2.0\"}", "{\"id\": {}, \"method\": 1}"] {
        client.socket.send(Message::text(garbage)).expect("it is sent");
    }
    client.open("file:///a.prompty", "user:\n{{");
    let published = client.until(|message| message["method"] == "textDocument/publishDiagnostics");
    assert_eq!(published["params"]["uri"], "file:///a.prompty");
}

#[test]
fn sessions_are_limited_and_end_with_their_page() {
    let server = Server::with(&[("a.prompty", "user:\nHi")], |options| options.limits.lsp_sessions = 1);
    let page = server.page();
    let mut first = Client::connect(&page).expect("it is accepted");
    first.initialize();
    assert_eq!(Client::connect(&page).err().map(|status| status.as_u16()), Some(429));
    first.socket.close(None).expect("it is closed");
    // The place is free when the server has noticed.
    while Client::connect(&page).is_err() {
        std::thread::yield_now();
    }
}

#[test]
fn messages_that_are_too_large_end_the_session() {
    let server = Server::start(&[("a.prompty", "user:\nHi")]);
    let page = server.page();
    let mut client = Client::connect(&page).expect("it is accepted");
    client.initialize();
    let text = "x".repeat(21 << 20);
    let _ = client.socket.send(Message::text(text));
    let ended =
        std::iter::from_fn(|| Some(client.socket.read())).take(10).any(|read| !matches!(read, Ok(Message::Text(_))));
    assert!(ended);
}

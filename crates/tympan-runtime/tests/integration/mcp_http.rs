//! Tools of Model Context Protocol servers over HTTP: sessions that end, invalid responses, and addresses that must not
//! be called.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use serde_json::{Value, json};
use tympan_core::Inputs;
use tympan_core::spec::{Connection, ConnectionKind, Secret};
use tympan_runtime::tool::ToolAddresses;
use tympan_runtime::{Error, Kind, McpServer, Result, Runtime, TurnRun, TurnSettings};

use crate::faults::client::shown;
use crate::faults::{Exchange, Server};
use crate::mcp_double::{mcp, prompt, scripted, told};
use crate::runs::{PLAIN_KEY, runtime, runtime_with};
use crate::shared;

/// How a server answers a call of its tool.
type Answer<'a> = dyn Fn(&mut Exchange<'_>, &Value) + Send + Sync + 'a;

/// The format of a server's responses.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Whole,
    Events,
}

/// Starts a server with one tool, `add`. Sessions are numbered.
fn server(form: Form, answer: impl Fn(&mut Exchange<'_>, &Value) + Send + Sync + 'static) -> Server {
    let (sessions, answer) = (AtomicUsize::new(0), Arc::new(answer));
    Server::start(move |exchange| serve(exchange, form, &sessions, &*answer))
}

fn serve(exchange: &mut Exchange<'_>, form: Form, sessions: &AtomicUsize, answer: &Answer<'_>) {
    let Ok(message) = serde_json::from_str::<Value>(&exchange.request.body) else {
        return exchange.answer(405, "", "");
    };
    let result = match message["method"].as_str() {
        Some("initialize") => {
            let number = sessions.fetch_add(1, Ordering::SeqCst) + 1;
            let result = json!({ "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": { "tools": {} }, "serverInfo": { "name": "s", "version": "1" } });
            let body = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string();
            let headers = format!("Content-Type: application/json\r\nMcp-Session-Id: s{number}\r\n");
            return exchange.answer(200, &headers, body);
        }
        Some("tools/list") => {
            let number = json!({ "type": "number" });
            let schema = json!({ "type": "object", "properties": { "a": number, "b": number } });
            json!({ "tools": [{ "name": "add", "inputSchema": schema }] })
        }
        Some("tools/call") => return answer(exchange, &message),
        _ => return exchange.answer(202, "", ""),
    };
    respond(exchange, form, &message, &result);
}

fn respond(exchange: &mut Exchange<'_>, form: Form, message: &Value, result: &Value) {
    let body = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string();
    match form {
        Form::Whole => exchange.json(&body),
        Form::Events => {
            exchange.events();
            exchange.chunk(format!(": hello\n\nevent: message\ndata: {body}\n\n"));
            exchange.end();
        }
    }
}

/// Answers correctly with the sum.
fn add(form: Form) -> impl Fn(&mut Exchange<'_>, &Value) + Send + Sync {
    move |exchange, message| {
        let arguments = &message["params"]["arguments"];
        let sum = arguments["a"].as_i64().unwrap_or(0) + arguments["b"].as_i64().unwrap_or(0);
        respond(exchange, form, message, &json!({ "content": [{ "type": "text", "text": sum.to_string() }] }));
    }
}

/// Creates a runtime with the server registered as `double`.
fn knowing(server: &Server) -> Runtime {
    let runtime = runtime(&[]);
    let known = McpServer::http(server.url("/mcp")).header("X-Key", Secret::new(PLAIN_KEY));
    runtime.register_mcp_server("double", known);
    runtime
}

fn turn(runtime: &Runtime, tool: Value, names: &[&str]) -> Result<TurnRun> {
    runtime.turn(&scripted(json!([tool]), names), Inputs::new(), &TurnSettings::default())
}

fn tell(runtime: &Runtime, names: &[&str]) -> Vec<String> {
    told(&turn(runtime, mcp(json!({})), names).expect("it ends well"))
}

/// Returns the error of a turn that must fail before the model is called.
#[track_caller]
fn refused(runtime: &Runtime, tool: Value, kind: Kind) -> Error {
    let prompt = prompt(json!([tool]), json!([{ "error": "the model was called" }]));
    let error = runtime.turn(&prompt, Inputs::new(), &TurnSettings::default()).expect_err("it is refused");
    assert_eq!(error.kind(), kind, "{error} {:?}", error.help());
    assert!(!shown(&error).contains(PLAIN_KEY), "{error:?}");
    error
}

/// Returns the methods of the messages that a server received.
fn methods(server: &Server) -> Vec<String> {
    let method = |body: &str| serde_json::from_str::<Value>(body).ok()?["method"].as_str().map(str::to_owned);
    server.requests().iter().filter_map(|request| method(&request.body)).collect()
}

#[test]
fn tools_at_an_address_run_whether_answers_are_whole_or_events() {
    for form in [Form::Whole, Form::Events] {
        let server = server(form, add(form));
        let runtime = knowing(&server);
        assert_eq!((tell(&runtime, &["add"]), tell(&runtime, &["add"])), (vec!["5".into()], vec!["5".into()]));
        let expected =
            ["initialize", "notifications/initialized", "tools/list", "tools/call", "tools/list", "tools/call"];
        assert_eq!(methods(&server), expected);
        let requests = server.requests();
        assert!(requests.iter().all(|request| request.header("x-key") == Some(PLAIN_KEY)));
        assert!(requests.last().is_some_and(|request| request.header("mcp-session-id") == Some("s1")));
    }
}

#[test]
fn a_session_that_is_gone_is_begun_again_and_the_call_repeated() {
    let adds = add(Form::Whole);
    let server = server(Form::Whole, move |exchange, message| match exchange.request.header("mcp-session-id") {
        Some("s1") => exchange.answer(404, "", ""),
        _ => adds(exchange, message),
    });
    assert_eq!(tell(&knowing(&server), &["add"]), ["5"]);
    let again = ["initialize", "notifications/initialized", "tools/list", "tools/call"];
    assert_eq!(methods(&server), [again, again].concat());
}

#[test]
fn a_session_that_is_gone_every_time_is_not_begun_for_ever() {
    let server = server(Form::Whole, |exchange, _| exchange.answer(404, "", ""));
    let told = tell(&knowing(&server), &["add"]);
    assert!(told[0].starts_with("Error: Tool 'add' failed: Tool unavailable"), "{told:?}");
    assert_eq!(methods(&server).iter().filter(|method| *method == "tools/call").count(), 2);
}

#[test]
fn a_call_that_may_have_begun_is_not_repeated() {
    let adds = add(Form::Whole);
    let server = server(Form::Whole, move |exchange, message| match exchange.request.header("mcp-session-id") {
        Some("s1") => exchange.reset(),
        _ => adds(exchange, message),
    });
    let told = tell(&knowing(&server), &["add", "add"]);
    assert!(told[0].ends_with("the tool may or may not have run"), "{told:?}");
    assert_eq!(told[1], "5");
    assert_eq!(methods(&server).iter().filter(|method| *method == "tools/call").count(), 2);
}

#[test]
fn answers_that_cannot_be_used_are_errors() {
    let many = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"x":[0{}]}}}}"#, ",0".repeat(300_000));
    let other = r#"{"jsonrpc":"2.0","id":999,"result":{"content":[]}}"#;
    let unread = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"cannot read this"}}"#;
    let answers: [(&str, Box<Answer<'static>>, &str); 7] = [
        ("another answer", Box::new(move |exchange, _| exchange.json(other)), "an invalid message"),
        ("an error", Box::new(move |exchange, _| exchange.json(unread)), "cannot read this (error -32700)"),
        (
            "a page",
            Box::new(|exchange, _| exchange.answer(200, "Content-Type: text/html\r\n", "<p>")),
            "an invalid message",
        ),
        ("no JSON", Box::new(|exchange, _| exchange.json("hello")), "an invalid message"),
        ("many values", Box::new(move |exchange, _| exchange.json(&many)), "too large"),
        ("a status", Box::new(|exchange, _| exchange.answer(500, "", "")), "status 500"),
        (
            "too much",
            Box::new(|exchange, _| {
                exchange.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n");
                while exchange.write(vec![b' '; 1 << 20]) {}
                exchange.close();
            }),
            "too large",
        ),
    ];
    for (what, answer, expected) in answers {
        let server = server(Form::Whole, answer);
        let told = tell(&knowing(&server), &["add"]);
        assert!(told[0].starts_with("Error: Tool 'add' failed: ") && told[0].contains(expected), "{what}: {told:?}");
        assert!(server.written() < 64 << 20, "{what}: {} bytes", server.written());
    }
}

#[test]
fn events_that_are_too_large_or_break_off_end_the_call() {
    for giant in [true, false] {
        let server = server(Form::Events, move |exchange, _| {
            exchange.events();
            exchange.chunk("data: ");
            while giant && exchange.chunk(vec![b'x'; 1 << 20]) {}
            exchange.reset();
        });
        let told = tell(&knowing(&server), &["add"]);
        assert!(told[0].starts_with("Error: Tool 'add' failed: "), "{told:?}");
        assert!(server.written() < 64 << 20, "{} bytes", server.written());
    }
}

#[test]
fn events_that_the_server_puts_off_are_fetched_later() {
    let asked = Arc::new(Mutex::new(Value::Null));
    let (sessions, writer) = (AtomicUsize::new(0), asked.clone());
    let server = Server::start(move |exchange| {
        if exchange.request.header("last-event-id") == Some("e1") {
            let message = asked.lock().expect("nobody panicked").clone();
            return add(Form::Events)(exchange, &message);
        }
        serve(exchange, Form::Whole, &sessions, &|exchange, message| {
            *writer.lock().expect("nobody panicked") = message.clone();
            exchange.events();
            exchange.chunk("id: e1\nretry: 1\ndata: \n\n");
            exchange.end();
        });
    });
    assert_eq!(tell(&knowing(&server), &["add"]), ["5"]);
}

#[test]
fn a_server_is_told_when_nobody_waits_any_more() {
    let (cancelled, heard) = mpsc::channel();
    let sessions = AtomicUsize::new(0);
    let server = Server::start(move |exchange| {
        if exchange.request.body.contains("notifications/cancelled") {
            let _ = cancelled.send(());
        }
        serve(exchange, Form::Whole, &sessions, &|exchange, _| exchange.stall());
    });
    let settings = TurnSettings { tool_timeout: Duration::from_secs(1), ..TurnSettings::default() };
    let prompt = scripted(json!([mcp(json!({}))]), &["add"]);
    let runtime = knowing(&server);
    let run = runtime.turn(&prompt, Inputs::new(), &settings).expect("it ends well");
    assert_eq!(told(&run), ["Error: Tool 'add' failed: Tool timed out: no result after 1 s"]);
    heard.recv_timeout(Duration::from_secs(60)).expect("the server is told");
    server.wait_until_left();
}

#[test]
fn redirects_are_not_followed() {
    let other = Server::start(|exchange| exchange.json("{}"));
    let location = format!("Location: {}\r\n", other.url("/mcp"));
    let server = Server::start(move |exchange| exchange.answer(307, &location, ""));
    let error = refused(&knowing(&server), mcp(json!({})), Kind::ToolUnavailable);
    assert!(error.message().ends_with("returned status 307"), "{error}");
    assert_eq!((server.requests().len(), other.connections()), (1, 0));
}

#[test]
fn who_is_not_there_or_wants_another_key_is_no_server() {
    let runtime = runtime(&[]);
    let gone = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("an address");
    runtime.register_mcp_server("double", McpServer::http(format!("http://{gone}/mcp")));
    refused(&runtime, mcp(json!({})), Kind::ToolUnavailable);
    let server = Server::start(|exchange| exchange.answer(401, "", ""));
    let error = refused(&knowing(&server), mcp(json!({})), Kind::ToolUnavailable);
    assert_eq!(error.help(), Some("the server requires a key, or rejected the one it received"));
    runtime.register_mcp_server("double", McpServer::http("no address"));
    refused(&runtime, mcp(json!({})), Kind::ToolUnavailable);
}

/// Returns a declaration that names an address itself.
fn at(address: &str) -> Value {
    json!({ "name": "tools", "kind": "mcp", "connection": { "kind": "key", "endpoint": address, "apiKey": PLAIN_KEY } })
}

#[test]
fn an_address_of_a_prompt_gets_the_key_of_the_prompt() {
    let server = server(Form::Whole, add(Form::Whole));
    let allowed = ToolAddresses { allow_hosts: vec!["localhost".into()], ..ToolAddresses::default() };
    let runtime = runtime_with(&[], |options| options.tool_addresses = allowed);
    assert_eq!(told(&turn(&runtime, at(&server.url("/mcp")), &["add"]).expect("it ends well")), ["5"]);
    let bearer = format!("Bearer {PLAIN_KEY}");
    assert!(server.requests().iter().all(|request| request.header("authorization") == Some(&bearer)));
    assert!(runtime.mcp_tools_hash(&server.url("/mcp"), None).is_some());
    // A different key uses a different session, and redirects are not followed.
    let mut other = at(&server.url("/mcp"));
    other["connection"]["apiKey"] = json!("another-key");
    turn(&runtime, other, &["add"]).expect("it ends well");
    assert_eq!(methods(&server).iter().filter(|method| *method == "initialize").count(), 2);
}

#[test]
fn a_connection_of_the_host_is_its_word_and_nobody_elses() {
    let server = server(Form::Whole, add(Form::Whole));
    let runtime = runtime(&[]);
    let connection = Connection {
        kind: ConnectionKind::Key,
        name: None,
        endpoint: Some(server.url("/mcp")),
        api_key: None,
        extra: Default::default(),
    };
    runtime.register_connection("ours", connection);
    let tool = json!({ "name": "tools", "kind": "mcp", "connection": { "kind": "reference", "name": "ours" } });
    assert_eq!(told(&turn(&runtime, tool, &["add"]).expect("it ends well")), ["5"]);
    let mut same = at(&server.url("/mcp"));
    same["connection"] = json!({ "kind": "anonymous", "endpoint": server.url("/mcp") });
    refused(&runtime, same, Kind::BlockedDestination);
}

#[test]
fn an_address_of_a_prompt_is_not_a_private_one() {
    let server = server(Form::Whole, add(Form::Whole));
    for address in [server.url("/mcp"), format!("http://127.0.0.1:{}/mcp", server.port)] {
        refused(&runtime(&[]), at(&address), Kind::BlockedDestination);
    }
    assert_eq!(server.connections(), 0);
    // An address that the host registers is allowed.
    assert_eq!(tell(&knowing(&server), &["add"]), ["5"]);
}

#[test]
fn no_request_goes_where_the_attack_corpus_wants_it() {
    for case in shared::attacks() {
        if case["surface"] == "tool_url"
            && let Some(address) = case["inputs"]["mcp_server_url"].as_str()
        {
            let error = refused(&runtime(&[]), at(address), Kind::BlockedDestination);
            assert_eq!(case["expect"]["code"], error.code(), "{}", case["id"]);
        }
    }
}

#[test]
fn a_reference_never_falls_back_to_an_address() {
    let tool = json!({ "name": "tools", "kind": "mcp",
        "connection": { "kind": "reference", "name": "nobody", "endpoint": "https://example.org/mcp" } });
    refused(&runtime(&[]), tool, Kind::ToolUnavailable);
}

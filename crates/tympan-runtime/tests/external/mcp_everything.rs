//! A real third-party server: npm's `@modelcontextprotocol/server-everything`, which `make test` installs. `MCP_SERVER`
//! names its script.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tympan_core::{ContentPart, Inputs};
use tympan_runtime::{McpServer, Runtime, TurnSettings};

use crate::mcp_double::{mcp, prompt, told};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

/// Returns the script of the server.
fn script() -> String {
    std::env::var("MCP_SERVER").expect("the test needs it")
}

/// The server on a free port. It stops at the end of the test.
struct Listening(Child, String);

impl Listening {
    fn start(script: &str) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|port| port.local_addr()).expect("a free port").port();
        Self::start_at(script, port)
    }

    fn start_at(script: &str, port: u16) -> Self {
        let mut command = Command::new("node");
        command.args([script, "streamableHttp"]).env("PORT", port.to_string());
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let server = Self(child.expect("node is here"), format!("http://127.0.0.1:{port}/mcp"));
        let deadline = Instant::now() + LONG;
        while TcpStream::connect(("127.0.0.1", port)).is_err() && TcpStream::connect(("localhost", port)).is_err() {
            assert!(Instant::now() < deadline, "the server does not listen");
            std::thread::yield_now();
        }
        server
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn knowing(server: McpServer) -> Runtime {
    let runtime = Runtime::default();
    runtime.register_mcp_server("double", server.connect_timeout(LONG));
    runtime
}

/// Runs a turn that calls all kinds of tools.
fn goes_through_a_turn(runtime: &Runtime) {
    let call = |name: &str, arguments: Value| json!({ "tool_calls": [{ "name": name, "arguments": arguments }] });
    let script = json!([
        call("echo", json!({ "message": "hello" })),
        call("get-sum", json!({ "a": 2, "b": 40 })),
        call("get-tiny-image", json!({})),
        call("get-structured-content", json!({ "location": "Chicago" })),
        call("get-resource-links", json!({ "count": 2 })),
        call("get-resource-reference", json!({ "resourceType": "Blob", "resourceId": 1 })),
        call("get-sum", json!({ "a": 1, "b": "two" })),
        { "text": "Done." },
    ]);
    let run = runtime.turn(&prompt(json!([mcp(json!({}))]), script), Inputs::new(), &TurnSettings::default());
    let run = run.expect("it ends well");
    let told = told(&run);
    assert!(told[0].contains("hello") && told[1].contains("42"), "{told:?}");
    assert!(told[3].contains("temperature"), "{told:?}");
    assert!(told[4].contains("[resource "), "{told:?}");
    assert!(told[6].starts_with("Error: Tool 'get-sum' failed"), "{told:?}");
    let has_picture = run
        .messages
        .iter()
        .flat_map(|message| message.content.iter())
        .any(|part| matches!(part, ContentPart::Image(image) if image.media_type.as_deref() == Some("image/png")));
    assert!(has_picture, "{told:?}");
    let hash = runtime.mcp_tools_hash("double", None).expect("it was listed");
    // The second turn finds the same tools.
    let again = prompt(json!([mcp(json!({ "toolsHash": hash }))]), json!([{ "text": "Done." }]));
    runtime.turn(&again, Inputs::new(), &TurnSettings::default()).expect("it ends well");
}

pub(crate) fn a_real_server_that_is_a_program_is_understood() {
    let script = script();
    let runtime = knowing(McpServer::stdio(vec!["node".into(), script]));
    goes_through_a_turn(&runtime);
    runtime.close_mcp_servers();
}

pub(crate) fn a_real_server_at_an_address_is_understood() {
    let script = script();
    let server = Listening::start(&script);
    goes_through_a_turn(&knowing(McpServer::http(&server.1)));
}

pub(crate) fn a_real_server_that_is_started_anew_is_used_again() {
    let script = script();
    let server = Listening::start(&script);
    let url = server.1.clone();
    let runtime = knowing(McpServer::http(&url));
    goes_through_a_turn(&runtime);
    let port = url.trim_start_matches("http://127.0.0.1:").trim_end_matches("/mcp").parse().expect("a port");
    drop(server);
    let _server = Listening::start_at(&script, port);
    goes_through_a_turn(&runtime);
}

//! `tympan run` and related commands against a test server, over a real socket.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;

use crate::server::{KEY, Server, chunk, finish, respond, stream_of, stream_of_call, tympan};

const HELLO: [&str; 4] = ["run", "examples/hello.prompty", "--set", "name=Ada"];
const EXTRACT: [&str; 3] = ["run", "examples/extract.prompty", "--sample"];

fn with<'a>(first: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [first, more].concat()
}

#[test]
fn text_is_printed_and_what_it_took_is_said_apart() {
    let server = Server::start(|stream, _| respond(stream, "200 OK", "text/event-stream", &stream_of(&["Hel", "lo!"])));
    let (status, out, error) = finish(&mut tympan(&with(&HELLO, &["--base-url", &server.url])));
    assert_eq!((status, out.as_str()), (Some(0), "Hello!\n"), "{error}");
    assert!(error.starts_with("gpt-4o-mini · 5 tokens in, 7 out · $"), "{error}");
    let request = server.requests.recv().expect("a request");
    assert!(request.contains(&format!("authorization: Bearer {KEY}")), "{request}");
    assert!(request.contains("\"stream\":true"), "{request}");
}

#[test]
fn policies_apply_to_every_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, untrusted: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, format!("[policy.messages]\nuntrusted = [{untrusted}]\n")).expect("it can be written");
        path.display().to_string()
    };
    let (user, none) = (file("user.toml", "'user'"), file("none.toml", ""));
    let (empty, broken) = (folder.path().join("empty.toml"), file("broken.toml", "'nobody'"));
    std::fs::write(&empty, "").expect("it can be written");
    let hello = ["examples/hello.prompty", "--set", "name=Ada"];
    let commands = [&["render"][..], &["messages"], &["request"], &["run", "--provider", "echo"]];
    for command in commands {
        let run = |policy: &str| finish(&mut tympan(&[command, &hello, &["--policy", policy]].concat()));
        for policy in ["user", "assistant, user", &user] {
            let (status, _, error) = run(policy);
            assert_eq!(status, Some(0), "{command:?} {policy}: {error}");
        }
        for policy in ["assistant", "system,tool", &none] {
            let (status, out, error) = run(policy);
            assert_eq!((status, out.as_str()), (Some(1), ""), "{command:?} {policy}");
            assert!(error.contains("policy_violation"), "{command:?} {policy}: {error}");
        }
        for policy in ["nobody", "", "missing.toml", &empty.display().to_string(), &broken] {
            let (status, out, error) = run(policy);
            assert_eq!(out, "", "{command:?} {policy}");
            assert!(status == Some(1) || status == Some(2), "{command:?} {policy}: {status:?} {error}");
        }
    }
}

#[test]
fn programs_get_the_result_the_usage_and_the_rounds() {
    let answer = r#"{"title":"T","copies":2,"urgent":null}"#;
    let server = Server::start(move |stream, _| respond(stream, "200 OK", "text/event-stream", &stream_of(&[answer])));
    let (status, out, error) = finish(&mut tympan(&with(&EXTRACT, &["--json", "--base-url", &server.url])));
    let json: serde_json::Value = serde_json::from_str(&out).expect("it is JSON");
    let expected = serde_json::json!({
        "result": {"title": "T", "copies": 2, "urgent": null},
        "usage": {"input_tokens": 5, "output_tokens": 7, "total_tokens": 12},
        "rounds": 1,
    });
    assert_eq!((status, json, error.as_str()), (Some(0), expected, ""));
}

#[test]
fn what_the_model_wrote_can_be_had_unchanged() {
    let answer = "{\"title\":  \"T\", \"copies\": \"two\"}";
    let server = Server::start(move |stream, _| respond(stream, "200 OK", "text/event-stream", &stream_of(&[answer])));
    let (_, raw, error) = finish(&mut tympan(&with(&EXTRACT, &["--raw", "--base-url", &server.url])));
    assert_eq!(raw, format!("{answer}\n"));
    assert!(error.contains("warning[invalid_result]") && error.contains("copies"), "{error}");
}

#[test]
fn an_answer_that_breaks_off_is_an_error_that_keeps_what_came() {
    let start = |stream: &mut TcpStream, _| respond(stream, "200 OK", "text/event-stream", &chunk("half of"));
    let server = Server::start(start);
    let (status, out, error) = finish(&mut tympan(&with(&HELLO, &["--base-url", &server.url])));
    assert_eq!((status, out.as_str()), (Some(1), "half of\n"), "{error}");
    assert!(error.contains("error[truncated]"), "{error}");
    let (status, out, error) = finish(&mut tympan(&with(&HELLO, &["--json", "--base-url", &server.url])));
    let json: serde_json::Value = serde_json::from_str(&error).expect("it is JSON");
    assert_eq!((status, out.as_str()), (Some(1), ""));
    assert_eq!((&json["error"]["code"], &json["error"]["partial"]), (&"truncated".into(), &"half of".into()));
}

/// Starts a run whose answer stops in the middle, and waits until its first part is printed.
fn halfway(arguments: &[&str], wait_for: &str) -> (Child, String) {
    let (stop, held) = mpsc::channel::<()>();
    let server = Server::start(move |stream, _| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        stream.write_all((head.to_owned() + &chunk("half of ")).as_bytes()).expect("the client reads");
        // Keep the connection open until the test ends.
        let _ = held.recv();
    });
    let mut command = tympan(&with(arguments, &["--base-url", &server.url]));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut printed = vec![0; wait_for.len()];
    server.requests.recv().expect("a request");
    child.stdout.as_mut().expect("a pipe").read_exact(&mut printed).expect("what has come");
    std::mem::forget(stop);
    (child, String::from_utf8(printed).expect("it is text"))
}

fn interrupt(child: Child) -> (Option<i32>, String, String) {
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(killed.success());
    let Output { status, stdout, stderr } = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("it is text");
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn interrupting_stops_at_once_with_what_had_arrived() {
    let (child, printed) = halfway(&HELLO, "half of ");
    assert_eq!(printed, "half of ");
    let (status, rest, error) = interrupt(child);
    assert_eq!((status, rest.as_str(), error.as_str()), (Some(130), "\n", "interrupted\n"));
}

#[test]
fn a_prompt_file_cannot_have_the_key_sent_elsewhere() {
    let server = Server::start(|stream, _| respond(stream, "200 OK", "text/event-stream", &stream_of(&["x"])));
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("evil.prompty");
    let text = format!(
        "---\nmodel:\n  id: m\n  provider: openai\n  connection: {{kind: key, endpoint: \"{}\"}}\n---\nuser:\nHi",
        server.url
    );
    std::fs::write(&file, text).expect("it can be written");
    let (status, _, error) = finish(&mut tympan(&["run", file.to_str().expect("a name")]));
    assert_eq!(status, Some(1));
    assert!(error.contains("error[untrusted_endpoint]"), "{error}");
    assert!(server.requests.try_recv().is_err(), "nothing was sent");
}

#[test]
fn a_run_is_recorded_replayed_and_traced_without_the_key() {
    // A server that echoes the key, which must be redacted everywhere.
    let server = Server::start(|stream, _| respond(stream, "200 OK", "text/event-stream", &stream_of(&["key ", KEY])));
    let directory = tempfile::tempdir().expect("a directory");
    let [tapes, traces] =
        ["tapes", "traces"].map(|name| directory.path().join(name).to_str().expect("a name").to_owned());
    let arguments = with(&HELLO, &["--base-url", &server.url, "--quiet"]);
    let recording = with(&arguments, &["--record", &tapes, "--trace", &traces]);
    let (status, out, error) = finish(&mut tympan(&recording));
    assert_eq!((status, out.as_str()), (Some(0), format!("key {KEY}\n").as_str()), "{error}");
    let mut replay = tympan(&with(&arguments, &["--replay", &tapes]));
    let (status, out, error) = finish(replay.env_remove("OPENAI_API_KEY"));
    assert_eq!((status, out.as_str()), (Some(0), "key [REDACTED]\n"), "{error}");
    let mut files = 0;
    for folder in [&tapes, &traces] {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("a file");
            assert!(!text.contains(KEY), "{text}");
            files += 1;
        }
    }
    assert_eq!(files, 2);
    let (status, _, error) = finish(&mut tympan(&with(&arguments, &["--set", "name=Bob", "--replay", &tapes])));
    assert_eq!(status, Some(1));
    assert!(error.contains("error[unknown_exchange]") && error.contains("body.messages[1].content"), "{error}");
}

#[test]
fn a_key_that_the_provider_repeats_is_in_no_journal() {
    let repeated: String = KEY.chars().map(|char| format!("%{:02x}", u32::from(char))).collect();
    let answer = stream_of(&["It is ", &KEY[..9], &KEY[9..], " or ", &repeated, " or ", &KEY.to_uppercase()]);
    let server = Server::start(move |stream, _| respond(stream, "200 OK", "text/event-stream", &answer));
    let directory = tempfile::tempdir().expect("a directory");
    let journal = directory.path().join("j").display().to_string();
    let (status, _, error) = finish(&mut tympan(&with(&HELLO, &["--base-url", &server.url, "--journal", &journal])));
    assert_eq!(status, Some(0), "{error}");
    let kept = std::fs::read_to_string(&journal).expect("it is there");
    assert!(kept.contains("It is [REDACTED] or [REDACTED] or [REDACTED]"), "{kept}");
    let (status, out, error) = finish(&mut tympan(&["resume", &journal, "--base-url", &server.url]));
    assert_eq!((status, out.as_str()), (Some(0), "It is [REDACTED] or [REDACTED] or [REDACTED]\n"), "{error}");
}

#[test]
fn no_trace_holds_a_secret_in_any_disguise() {
    let secret = "Horse/Battery+staple";
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let front = "model:\n  provider: echo\n  connection: {kind: key, apiKey: '${env:A_KEY}'}";
    let template = "{{ x|upper }} {{ x|lower }} {{ x|title }} {{ x|urlencode }} {{ x|tojson }} {{ x|e }} {{ y }}";
    std::fs::write(path("p.prompty"), format!("---\n{front}\n---\nuser:\n{template}\n")).expect("it is written");
    let percent: String = secret.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let escaped: String = secret.chars().map(|char| format!("\\u{:04X}", u32::from(char))).collect();
    let sets = [format!("x={secret}"), format!("y={percent} {escaped}")];
    let (prompt, traces) = (path("p.prompty"), path("traces"));
    let arguments = ["run", &prompt, "--set", &sets[0], "--set", &sets[1], "--trace", &traces];
    let (status, _, error) = finish(tympan(&arguments).env("A_KEY", secret));
    assert_eq!(status, Some(0), "{error}");
    let files = std::fs::read_dir(&traces).expect("a folder").map(|file| file.expect("a trace").path());
    let written: String = files.map(|file| std::fs::read_to_string(file).expect("it is text")).collect();
    assert!(written.contains("[REDACTED] [REDACTED] [REDACTED]"), "{written}");
    let small = written.to_lowercase();
    for leak in ["horse", "battery", "staple", "%48%6f", "u0048"] {
        assert!(!small.contains(leak), "{leak}: {written}");
    }
}

#[test]
fn models_are_listed() {
    let list = r#"{"data": [{"id": "small", "created": 1, "owned_by": "us"}, {"id": "large"}]}"#;
    let server = Server::start(move |stream, _| respond(stream, "200 OK", "application/json", list));
    let (status, out, error) = finish(&mut tympan(&["models", "--provider", "openai", "--base-url", &server.url]));
    assert_eq!((status, out.as_str()), (Some(0), "small\nlarge\n"), "{error}");
}

#[test]
fn errors_of_the_provider_say_what_to_do() {
    let body = r#"{"error": {"message": "Incorrect API key provided: sk-…", "type": "invalid_request_error"}}"#;
    let server = Server::start(move |stream, _| respond(stream, "401 Unauthorized", "application/json", body));
    let (status, _, error) = finish(&mut tympan(&with(&HELLO, &["--base-url", &server.url])));
    assert_eq!(status, Some(1));
    assert!(error.contains("error[provider]") && error.contains("help: check the API key"), "{error}");
    let (_, _, error) = finish(tympan(&HELLO).env_remove("OPENAI_API_KEY"));
    assert!(error.contains("error[missing_key]") && error.contains("set OPENAI_API_KEY"), "{error}");
}

/// Runs the example with this tools file.
fn run_with_tool(tools: &str) -> (Option<i32>, String, String) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("tools.toml");
    std::fs::write(&file, tools).expect("it can be written");
    let file = file.to_str().expect("a name").to_owned();
    finish(&mut tympan(&["run", "examples/weather/weather.prompty", "--sample", "--tools", &file]))
}

#[test]
fn programs_are_tools() {
    let (status, out, error) = run_with_tool("[get_weather]\ncommand = [\"cat\"]\n");
    assert_eq!((status, out.as_str()), (Some(0), "It is clear in Paris, at 21 degrees.\n"), "{error}");
    assert!(error.contains(r#"← get_weather {"city":"Paris","unit":"celsius"}"#), "{error}");
}

#[test]
fn programs_that_fail_or_hang_are_told_to_the_model() {
    let cases = [
        (r#"command = ["sh", "-c", "echo no luck >&2; exit 3"]"#, "exit status: 3: no luck"),
        (r#"command = ["no-such-program-anywhere"]"#, "cannot start `no-such-program-anywhere`"),
        ("command = [\"sh\", \"-c\", \"read a; exec cat /dev/zero > /dev/null\"]\ntimeout = 0.05", "Tool timed out"),
    ];
    for (tool, complaint) in cases {
        let (status, out, error) = run_with_tool(&format!("[get_weather]\n{tool}\n"));
        assert_eq!((status, out.as_str()), (Some(0), "It is clear in Paris, at 21 degrees.\n"), "{error}");
        let told = format!("← get_weather Error: Tool 'get_weather' failed: {complaint}");
        assert!(error.contains(&told), "{error}");
    }
}

#[test]
fn a_file_of_tools_that_cannot_be_used_is_an_error() {
    for (tools, complaint) in [
        ("[get_weather]\ncommand = []", "`get_weather`: `command` is empty"),
        (
            "[get_weather]\ncommand = [\"cat\"]\ntimeout = -1",
            "`get_weather`: expected `timeout` to be a number of seconds",
        ),
        ("[get_weather]\ncmd = [\"cat\"]", "unknown field `cmd`"),
        ("[s]\ncommand = [\"cat\"]\nurl = \"http://localhost/\"", "exactly one of `command`, `server` and `url`"),
        ("[s]\n", "exactly one of `command`, `server` and `url`"),
        ("[s]\nserver = []", "`s`: `server` is empty"),
        ("[s]\nserver = [\"cat\"]\nenv = [\"TYMPAN_NOT_SET\"]", "environment variable TYMPAN_NOT_SET is not set"),
        ("[s]\nserver = [\"cat\"]\nkey = \"PATH\"", "`s`: `key` is only allowed with a `url`"),
        ("[s]\nurl = \"http://localhost/\"\ntimeout = 1", "`s`: `timeout` is only allowed with a `command`"),
        ("get_weather", "tools.toml"),
        ("[get_weather]\ncommand = [\"cat\"]\neffect = \"sends\"", "unknown variant `sends`, expected one of `read`"),
        ("[get_weather]\ncommand = [\"cat\"]\nhide = true", "hide = true"),
        (
            "[get_weather]\ncommand = [\"cat\"]\nparameters = { town = { destination = true } }",
            "`get_weather`: the prompt declares no parameter `town`",
        ),
        ("[get_weather]\ncommand = [\"cat\"]\nparameters = { city = { to = true } }", "unknown field `to`"),
        (
            "[get_weather]\ncommand = [\"cat\"]\ntools = { a = { effect = \"read\" } }",
            "`get_weather`: `tools` is only allowed with a `server` or a `url`",
        ),
        ("[s]\neffect = \"read\"\ntimeout = 1", "`s`: `timeout` is only allowed with a `command`"),
        ("[s]\neffect = \"read\"\nkey = \"PATH\"", "`s`: `key` is only allowed with a `url`"),
        ("[s]\ntools = { a = { effect = \"read\" } }", "`s`: `tools` is only allowed with a `server` or a `url`"),
    ] {
        let (status, _, error) = run_with_tool(tools);
        assert_eq!(status, Some(2), "{error}");
        assert!(error.contains(complaint), "{error}");
    }
    let (status, _, error) = run_with_tool("[other]\ncommand = [\"cat\"]");
    assert_eq!(status, Some(1));
    assert!(error.contains("error[tool_not_registered]: Tool not registered: get_weather"), "{error}");
}

/// Runs the example against a server that calls its tool and then sends the given answer.
fn run_with_calls(
    more: &[&str],
    answer: impl Fn(&mut TcpStream) + Send + 'static,
) -> (Server, Option<i32>, String, String) {
    let server = Server::start(move |stream, number| match number {
        0 => {
            let call = stream_of_call("get_weather", "{\"city\":\"Oslo\"}");
            respond(stream, "200 OK", "text/event-stream", &call);
        }
        _ => answer(stream),
    });
    let prompt = ["run", "examples/weather/weather.prompty", "--sample", "--tools", "examples/weather/tools.toml"];
    let model = ["--provider", "openai", "--model", "gpt-4o-mini", "--base-url", &server.url];
    let (status, out, error) = finish(&mut tympan(&[&prompt[..], &model, more].concat()));
    (server, status, out, error)
}

#[test]
fn what_tools_say_is_guarded_too() {
    let answer = |stream: &mut TcpStream| respond(stream, "200 OK", "text/event-stream", &stream_of(&["Well."]));
    for (more, is_guarded) in [(&["--guard"][..], true), (&[], false)] {
        let (server, status, out, error) = run_with_calls(more, answer);
        assert_eq!((status, out.as_str()), (Some(0), "Well.\n"), "{error}");
        assert!(error.contains("gpt-4o-mini · 10 tokens in, 14 out · $0.000010 · 2 rounds"), "{error}");
        let [_, second] = [(); 2].map(|()| server.requests.recv().expect("a request"));
        assert_eq!(second.contains("<untrusted>{\\\"asked"), is_guarded, "{second}");
    }
}

#[test]
fn an_error_of_the_provider_is_not_waited_for() {
    let answer = |stream: &mut TcpStream| respond(stream, "401 Unauthorized", "application/json", "{}");
    let (server, status, _, error) = run_with_calls(&[], answer);
    assert_eq!(status, Some(1));
    assert!(error.contains("error[provider]"), "{error}");
    assert_eq!(server.requests.try_iter().count(), 2);
}

#[test]
fn servers_have_tools() {
    let run = |tools: &str| {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("tools.toml");
        std::fs::write(&file, tools).expect("it can be written");
        let file = file.to_str().expect("a name").to_owned();
        finish(&mut tympan(&["run", "examples/mcp/define.prompty", "--sample", "--tools", &file]))
    };
    let (status, out, error) = run("[dictionary]\nserver = [\"python3\", \"examples/mcp/dictionary.py\"]\n");
    assert_eq!((status, out.as_str()), (Some(0), "It is a sheet between the platen and the paper.\n"), "{error}");
    let (status, _, error) = run("[dictionary]\nserver = [\"sh\", \"-c\", \"echo no dictionary >&2; exit 4\"]\n");
    assert_eq!(status, Some(1));
    assert!(error.contains("error[tool_unavailable]") && error.contains("last output: no dictionary"), "{error}");
    // You name the address in the tools file, so a private one is called, with the key that you name.
    let server = Server::start(|stream, _| respond(stream, "403 Forbidden", "text/plain", ""));
    let (status, _, error) = run(&format!("[dictionary]\nurl = \"{}\"\nkey = \"OPENAI_API_KEY\"\n", server.url));
    assert_eq!(status, Some(1));
    assert!(error.contains("error[tool_unavailable]") && error.contains("returned status 403"), "{error}");
    let request = server.requests.recv().expect("it was called");
    assert!(request.contains(&format!("authorization: Bearer {KEY}\r\n")) && !error.contains(KEY), "{request}");
}

#[test]
fn the_model_is_told_about_the_guard() {
    let arguments = ["request", "examples/guard.prompty", "--sample", "--guard", "--model", "m", "--json"];
    let (status, out, error) = finish(&mut tympan(&arguments));
    assert_eq!(status, Some(0), "{error}");
    let body: serde_json::Value = serde_json::from_str(&out).expect("it is JSON");
    let roles: Vec<_> = body["messages"].as_array().expect("a list").iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["system", "system", "user"]);
    assert!(body["messages"][1]["content"].as_str().is_some_and(|text| text.contains("<untrusted>")), "{body}");
}

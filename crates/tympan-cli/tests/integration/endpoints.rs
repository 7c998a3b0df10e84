//! Where the command sends keys and other values from the environment: the cases of `fixtures/endpoints`, with real
//! `.env` files, a real environment and a real server.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::TryRecvError;

use serde_json::Value;
use tempfile::TempDir;

use crate::server::{Server, finish, respond, stream_of};

/// Returns the cases. A case that applies to all providers is repeated for each of them.
fn cases(server: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/endpoints/endpoints.json");
    let data: Value = serde_json::from_slice(&fs::read(path).expect("the cases are there")).expect("they are JSON");
    let port = server.rsplit(':').next().unwrap_or_default();
    let mut cases = Vec::new();
    for case in data["cases"].as_array().expect("a list") {
        let text = case.to_string().replace("{server}", server).replace("{port}", port);
        for row in data["providers"].as_array().expect("a list") {
            if text.contains("{address}") && row["address"].is_null() {
                continue;
            }
            let fill =
                |text: String, name: &str| text.replace(&format!("{{{name}}}"), row[name].as_str().unwrap_or(""));
            let filled = ["provider", "key", "address"].into_iter().fold(text.clone(), fill);
            cases.push(serde_json::from_str(&filled).expect("it is JSON still"));
            if !text.contains("{provider}") {
                break;
            }
        }
    }
    assert!(cases.len() > 100, "{}", cases.len());
    cases
}

/// Creates a folder with the prompt of a case in a subfolder. The first `.env` file is next to the prompt, and the
/// second is in the working directory of the command.
fn folder(case: &Value) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("it can be written");
    fs::create_dir(folder.path().join("prompts")).expect("it can be made");
    let template = case["template"].as_str().unwrap_or("user:\nHello.\n");
    write("prompts/case.prompty", &format!("---\n{}\n---\n{template}", case["front"]));
    for (name, file) in ["prompts/.env", ".env"].into_iter().zip(case["files"].as_array().into_iter().flatten()) {
        let lines = file
            .as_object()
            .expect("a map")
            .iter()
            .map(|(name, value)| format!("export {name}=\"{}\"\n", value.as_str().expect("text")));
        write(name, &lines.collect::<String>());
    }
    folder
}

fn command(folder: &TempDir, case: &Value, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tympan"));
    command.current_dir(folder.path()).args(arguments).env_clear().stdin(Stdio::null());
    for (name, value) in case["host"].as_object().into_iter().flatten() {
        command.env(name, value.as_str().expect("text"));
    }
    for address in case["allow"].as_array().into_iter().flatten() {
        command.args(["--allow-endpoint", address.as_str().expect("text")]);
    }
    if let Some(url) = case["base_url"].as_str() {
        command.args(["--base-url", url]);
    }
    command
}

fn commands(case: &Value) -> Vec<Vec<&'static str>> {
    let file = "prompts/case.prompty";
    if case["tools"] == true {
        return vec![vec!["run", file, "--json", "--allow-private"]];
    }
    vec![vec!["run", file, "--json", "--no-tools"], vec!["models", file, "--json"]]
}

#[test]
fn values_go_where_their_source_or_the_host_says() {
    let server = Server::start(|stream, _| respond(stream, "400 Bad Request", "text/plain", "no"));
    let root = server.url.trim_end_matches("/v1").to_owned();
    for case in cases(&root) {
        let folder = folder(&case);
        for arguments in commands(&case) {
            let (status, _, error) = finish(&mut command(&folder, &case, &arguments));
            let sent = server.requests.try_iter().count();
            let name = format!("{} {arguments:?} {case}", case["name"]);
            match case["expect"].as_str() {
                Some("sent") => assert!(sent > 0 && !error.contains("untrusted_endpoint"), "{name}: {error}"),
                _ => {
                    assert_eq!((sent, status), (0, Some(1)), "{name}: {error}");
                    check_error(&name, &case, &error, &root);
                }
            }
        }
    }
}

/// Checks that the error names the variables, the address and the flag, but no value.
fn check_error(name: &str, case: &Value, error: &str, root: &str) {
    let json: Value = serde_json::from_str(error).unwrap_or_else(|_| panic!("{name}: {error}"));
    assert_eq!(json["error"]["code"], "untrusted_endpoint", "{name}: {error}");
    assert!(!error.to_ascii_lowercase().contains("canary"), "{name}: {error}");
    let text = format!("{} {}", json["error"]["message"], json["error"]["help"]);
    let flag = format!("--allow-endpoint {root}");
    for part in case["names"].as_array().expect("names").iter().filter_map(Value::as_str).chain([flag.as_str()]) {
        assert!(text.contains(part), "{name}: {part}: {text}");
    }
}

/// Returns a case by name.
fn case(root: &str, name: &str) -> Value {
    let found = cases(root).into_iter().find(|case| case["name"].as_str().is_some_and(|found| found == name));
    found.expect("there is such a case")
}

#[test]
fn what_is_shown_and_what_is_typed_go_through_the_same_check() {
    let server = Server::start(|stream, _| respond(stream, "400 Bad Request", "text/plain", "no"));
    let root = server.url.trim_end_matches("/v1").to_owned();
    let refused = case(&root, "the key is the host's and the address is from a file");
    let folder_of_refused = folder(&refused);
    for arguments in [vec!["request", "prompts/case.prompty"], vec!["request", "prompts/case.prompty", "--curl"]] {
        let (status, out, error) = finish(&mut command(&folder_of_refused, &refused, &arguments));
        assert_eq!((status, out.as_str()), (Some(1), ""), "{error}");
        assert!(error.contains("error[untrusted_endpoint]"), "{error}");
    }
    let fine = case(&root, "key and address are from one file");
    let (status, out, error) = finish(&mut command(&folder(&fine), &fine, &["request", "prompts/case.prompty"]));
    assert_eq!(status, Some(0), "{error}");
    assert!(out.contains(&root) && out.contains("authorization: Bearer"), "{out}");

    fs::write(folder_of_refused.path().join("questions"), "Hello?\n").expect("it can be written");
    let questions = fs::File::open(folder_of_refused.path().join("questions")).expect("it is there");
    fs::write(
        folder_of_refused.path().join("prompts/case.prompty"),
        "---\nmodel: {id: m, provider: openai}\ninputs: [{name: q, kind: string, required: true}]\n---\nuser:\n{{ q }}\n",
    )
    .expect("it can be written");
    let mut chat = command(&folder_of_refused, &refused, &["chat", "prompts/case.prompty", "--no-history"]);
    let Output { status, stderr, .. } = chat.stdin(questions).output().expect("it runs");
    assert_eq!(status.code(), Some(1));
    assert!(String::from_utf8_lossy(&stderr).contains("untrusted_endpoint"), "{}", String::from_utf8_lossy(&stderr));
    assert_eq!(server.requests.try_recv(), Err(TryRecvError::Empty));
}

#[test]
fn a_journal_does_not_name_an_address() {
    let server = Server::start(|stream, _| respond(stream, "200 OK", "text/event-stream", &stream_of(&["Fine."])));
    let case = serde_json::json!({
        "front": { "model": { "id": "m", "provider": "openai" } }, "host": { "OPENAI_API_KEY": "canary-key" },
    });
    let folder = folder(&case);
    let run = ["run", "prompts/case.prompty", "--journal", "j", "--base-url", &server.url];
    let (status, _, error) = finish(&mut command(&folder, &case, &run));
    assert_eq!(status, Some(0), "{error}");
    let (status, _, error) = finish(&mut command(&folder, &case, &["resume", "j"]));
    assert_eq!(status, Some(1), "{error}");
    assert!(error.contains("error[untrusted_endpoint]") && error.contains("--base-url"), "{error}");
    for flag in ["--base-url", "--allow-endpoint"] {
        let (status, out, error) = finish(&mut command(&folder, &case, &["resume", "j", flag, &server.url]));
        assert_eq!((status, out.as_str()), (Some(0), "Fine.\n"), "{error}");
    }
    assert_eq!(server.requests.try_iter().count(), 1);
}

/// A proxy would see everything, so a `.env` file must not set one.
#[test]
fn a_file_of_variables_names_no_proxy() {
    let server = Server::start(|stream, _| respond(stream, "400 Bad Request", "text/plain", "no"));
    let root = server.url.trim_end_matches("/v1");
    let names = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
    let file = names.into_iter().map(|name| (name.to_owned(), Value::from(root))).collect::<serde_json::Map<_, _>>();
    let case = serde_json::json!({
        "front": { "model": { "id": "m", "provider": "openai" } },
        "host": { "OPENAI_API_KEY": "canary-key" },
        "files": [file],
        "base_url": "http://nowhere.invalid/v1",
    });
    let folder = folder(&case);
    let (status, _, error) = finish(&mut command(&folder, &case, &["models", "prompts/case.prompty", "--json"]));
    assert_eq!(status, Some(1), "{error}");
    assert_eq!(server.requests.try_recv(), Err(TryRecvError::Empty));
    // Control: the same variable in the real environment is trusted and does set the proxy.
    let mut by_host = command(&folder, &case, &["models", "prompts/case.prompty", "--json"]);
    finish(by_host.env("http_proxy", root));
    assert!(server.requests.try_recv().is_ok());
}

#[test]
fn prompts_read_the_variables_that_are_allowed() {
    let case = serde_json::json!({
        "front": { "name": "${env:MY_NAME}", "model": { "id": "m", "provider": "echo" } },
        "host": { "MY_NAME": "Ada" },
        "files": [{ "MY_NAME": "Eve" }],
    });
    let folder = folder(&case);
    for arguments in [
        vec!["run", "prompts/case.prompty"],
        vec!["render", "prompts/case.prompty"],
        vec!["messages", "prompts/case.prompty"],
        vec!["request", "prompts/case.prompty", "--provider", "openai"],
        vec!["inspect", "prompts/case.prompty"],
        vec!["models", "prompts/case.prompty"],
        vec!["process", "prompts/case.prompty", "--response", "/dev/null"],
        vec!["chat", "prompts/case.prompty", "--no-history"],
    ] {
        for (allowed, is_allowed) in [("MY_*", true), ("MY_NAME", true), ("OTHER", false), ("", false)] {
            let arguments = [&arguments[..], &["--allow-env", allowed]].concat();
            let (_, out, error) = finish(&mut command(&folder, &case, &arguments));
            assert_eq!((out + &error).contains("env_not_allowed"), !is_allowed, "{arguments:?}: {error}");
        }
    }
}

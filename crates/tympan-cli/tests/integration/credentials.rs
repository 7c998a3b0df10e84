//! The program that prints access tokens: it comes from the command line or the user's configuration, never from the
//! folder of a prompt.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;
use tempfile::TempDir;

use crate::server::{Server, finish, respond};

const ANSWER: &str =
    r#"{"choices": [{"message": {"role": "assistant", "content": "Fine."}, "finish_reason": "stop"}]}"#;

fn server() -> Server {
    Server::start(|stream, _| respond(stream, "200 OK", "application/json", ANSWER))
}

/// Creates a folder with a prompt whose connection has no key.
fn folder(connection: &serde_json::Value) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let front = json!({ "model": { "id": "m", "provider": "foundry", "connection": connection } });
    fs::write(folder.path().join("p.prompty"), format!("---\n{front}\n---\nuser:\nHi\n")).expect("it can be written");
    folder
}

fn tympan(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tympan"));
    command.current_dir(folder).args(arguments).env_clear().stdin(Stdio::null());
    command.env("PATH", std::env::var_os("PATH").expect("there is one"));
    command
}

fn config(folder: &Path, text: &str) {
    fs::create_dir_all(folder.join("tympan")).expect("it can be made");
    fs::write(folder.join("tympan/config.toml"), text).expect("it can be written");
}

#[test]
fn the_command_line_and_the_user_s_configuration_name_the_program() {
    let home = tempfile::tempdir().expect("a folder");
    config(home.path(), "[credentials.foundry]\ncommand = [\"echo\", \"token-of-the-user\"]\ntimeout = 20\n");
    config(&home.path().join(".config"), "[credentials.foundry]\ncommand = [\"echo\", \"token-of-the-home\"]\n");
    let folder = folder(&json!({ "kind": "foundry" }));
    let cases: [(&[&str], Option<&str>, &str); 3] = [
        (&["--credential-command", "echo 'token-of-the-flag'"], Some("XDG_CONFIG_HOME"), "token-of-the-flag"),
        (&[], Some("XDG_CONFIG_HOME"), "token-of-the-user"),
        (&[], Some("HOME"), "token-of-the-home"),
    ];
    for (flags, variable, token) in cases {
        let server = server();
        let mut command = tympan(folder.path(), &["run", "p.prompty", "--no-stream", "--base-url", &server.url]);
        command.args(flags);
        variable.map(|name| command.env(name, home.path()));
        let (status, out, error) = finish(&mut command);
        assert_eq!((status, out.as_str()), (Some(0), "Fine.\n"), "{error}");
        let sent = server.requests.recv().expect("a request");
        assert!(sent.to_lowercase().contains(&format!("authorization: bearer {token}\r\n")), "{sent}");
        assert!(!error.contains(token), "{error}");
    }
}

/// Attack: whoever writes a prompt also writes other files beside it.
#[test]
fn nothing_in_the_folder_of_a_prompt_is_run() {
    let server = server();
    let folder = folder(&json!({
        "kind": "foundry", "command": ["./az"], "credentialCommand": "./az", "credential_command": ["./az"],
        "token": { "command": ["./az"] },
    }));
    let path = folder.path();
    let marker = path.join("was-run");
    let script = format!("#!/bin/sh\ntouch '{}'\necho stolen\n", marker.display());
    for name in ["az", "gcloud"] {
        fs::write(path.join(name), &script).expect("it can be written");
        fs::set_permissions(path.join(name), fs::Permissions::from_mode(0o755)).expect("it can be changed");
    }
    let program = path.join("az");
    let text = format!("[credentials.foundry]\ncommand = [\"{}\"]\n", program.display());
    config(path, &text);
    config(&path.join(".config"), &text);
    for name in ["config.toml", "tympan.toml", ".tympan.toml", "tools.toml"] {
        fs::write(path.join(name), &text).expect("it can be written");
    }
    let folder_name = path.display();
    let variables = format!(
        "XDG_CONFIG_HOME={folder_name}\nHOME={folder_name}\nAPPDATA={folder_name}\nPATH={folder_name}\n\
            TYMPAN_CREDENTIAL_COMMAND={folder_name}/az\nTYMPAN_CONFIG={folder_name}/config.toml\n"
    );
    fs::write(path.join(".env"), variables).expect("it can be written");
    let url = server.url.as_str();
    for arguments in [
        vec!["run", "p.prompty", "--no-stream", "--base-url", url],
        vec!["models", "p.prompty", "--base-url", url],
        vec!["request", "p.prompty", "--base-url", url],
        vec!["check", "p.prompty"],
    ] {
        // A relative directory is not the user's either.
        for home in [None, Some(".")] {
            let mut command = tympan(path, &arguments);
            home.map(|home| command.env("XDG_CONFIG_HOME", home).env("HOME", home));
            let (_, out, error) = finish(&mut command);
            assert!(!marker.exists(), "{arguments:?}: {out} {error}");
            assert!(!out.contains("stolen") && !error.contains("stolen"), "{arguments:?}: {out} {error}");
        }
    }
    let (status, _, error) = finish(&mut tympan(path, &["run", "p.prompty", "--base-url", url]));
    assert!(status == Some(1) && error.contains("error[missing_key]"), "{error}");
    assert_eq!(server.requests.try_iter().count(), 0);
}

/// Attack: the prompt names the address.
#[test]
fn a_token_does_not_go_where_a_prompt_says() {
    let server = server();
    let folder = folder(&json!({ "kind": "foundry", "endpoint": server.url }));
    let marker = folder.path().join("was-run");
    let flag = format!("touch '{}'", marker.display());
    for command in ["run", "models", "request"] {
        let arguments = [command, "p.prompty", "--credential-command", &flag];
        let (status, _, error) = finish(&mut tympan(folder.path(), &arguments));
        assert!(status == Some(1) && error.contains("error[untrusted_endpoint]"), "{command}: {error}");
    }
    assert!(!marker.exists());
    assert_eq!(server.requests.try_iter().count(), 0);
}

#[test]
fn invalid_commands_and_files_are_errors_of_usage() {
    let folder = folder(&json!({ "kind": "foundry" }));
    let home = tempfile::tempdir().expect("a folder");
    for text in [
        "[credentials.foundry]\ncommand = [\"./az\"]\n",
        "[credentials.foundry]\ncommand = []\n",
        "[credentials.foundry]\ncommand = [\"az\"]\ntimeout = -1\n",
        "[credential.foundry]\ncommand = [\"az\"]\n",
        "nonsense",
    ] {
        config(home.path(), text);
        let mut command = tympan(folder.path(), &["run", "p.prompty"]);
        let (status, _, error) = finish(command.env("XDG_CONFIG_HOME", home.path()));
        assert!(status == Some(2) && error.contains("config.toml"), "{text}: {error}");
    }
    for flag in ["./az", "", "az 'open"] {
        let (status, _, error) =
            finish(&mut tympan(folder.path(), &["run", "p.prompty", "--credential-command", flag]));
        assert!(status == Some(2) && error.contains("--credential-command"), "{flag}: {error}");
    }
}

#[test]
fn request_knows_the_program_and_check_needs_none() {
    let folder = folder(&json!({ "kind": "foundry", "endpoint": "https://mine.services.ai.azure.com/api/projects/p" }));
    let (status, out, _) = finish(&mut tympan(folder.path(), &["check", "p.prompty"]));
    assert!(status == Some(0) && out.contains("no problems found"), "{out}");
    let home = tempfile::tempdir().expect("a folder");
    config(home.path(), "[credentials.foundry]\ncommand = [\"false\"]\n");
    let mut command = tympan(folder.path(), &["request", "p.prompty"]);
    let (status, out, error) = finish(command.env("XDG_CONFIG_HOME", home.path()));
    assert!(status == Some(0) && out.contains("authorization: Bearer [REDACTED]"), "{out} {error}");
}

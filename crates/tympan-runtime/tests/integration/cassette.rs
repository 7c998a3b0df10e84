//! Cassettes: what is recorded, what is not, and the results of a replay.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tympan_core::spec::Secret;
use tympan_core::wire::{Function, Protocol};
use tympan_runtime::{Cassette, Kind, Result, Run, RunOptions, Runtime};

use crate::faults;
use crate::faults::Server;
use crate::faults::client::{fails, shown};
use crate::runs;
use crate::runs::{
    PLAIN_KEY, TEMPLATE, event, inputs, last_events, model, prompt, runtime_with, say, saying, streamed, whole,
};

fn recorder(folder: &Path, variables: &[(&str, &str)]) -> Runtime {
    runtime_with(variables, |options| options.cassette = Some(Cassette::Record(folder.to_owned())))
}

/// Creates a recording runtime that allows the server to receive values from the environment.
fn trusting_recorder(folder: &Path, variables: &[(&str, &str)], server: &Server) -> Runtime {
    runtime_with(variables, |options| {
        options.cassette = Some(Cassette::Record(folder.to_owned()));
        options.allow_endpoints = vec![server.url("")];
    })
}

/// Creates a runtime that replays. Its environment has no keys.
fn player(folder: &Path, variables: &[(&str, &str)]) -> Runtime {
    runtime_with(variables, |options| options.cassette = Some(Cassette::Replay(folder.to_owned())))
}

fn run(runtime: &Runtime, model: &Value, options: &RunOptions) -> Result<Run> {
    runtime.invoke_with(&prompt(runtime, model, TEMPLATE), inputs(), options)
}

fn stream(runtime: &Runtime, model: &Value) -> Result<Run> {
    let prompt = prompt(runtime, model, TEMPLATE);
    let messages = runtime.prepare(&prompt, inputs())?;
    runtime.stream(&prompt, &messages, &RunOptions::default())?.finish()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<_> = entries.map(|entry| entry.expect("it can be read").path()).collect();
    files.sort();
    files
}

/// Returns everything on disk, including the names of files.
fn on_disk(folder: &Path) -> String {
    let files = files(folder).into_iter();
    files.map(|path| format!("{path:?}\n{}\n", fs::read_to_string(&path).expect("it is text"))).collect()
}

#[test]
fn what_was_recorded_is_replayed_without_server_and_key() {
    let protocols = [
        (Protocol::OpenAiChat, "text", true),
        (Protocol::OpenAiResponses, "text", true),
        (Protocol::AnthropicMessages, "text", true),
        (Protocol::OpenAiEmbeddings, "single", false),
        (Protocol::OpenAiImages, "url", false),
    ];
    for (protocol, name, has_streams) in protocols {
        let server = Server::start(move |exchange| {
            if !runs::wants_stream(exchange) {
                return exchange.json(&whole(protocol, name));
            }
            exchange.events();
            // Pieces end in the middle of events and characters.
            streamed(protocol, name).chunks(13).for_each(|piece| _ = exchange.chunk(piece));
            exchange.end();
        });
        let folder = tempfile::tempdir().expect("a folder");
        let model = model(&server, protocol);
        let recorder = recorder(folder.path(), &[]);
        let recorded = run(&recorder, &model, &RunOptions::default()).expect("it succeeds");
        let streamed = has_streams.then(|| stream(&recorder, &model).expect("it succeeds"));
        assert_eq!(files(folder.path()).len(), if has_streams { 2 } else { 1 }, "{protocol:?}");
        let connections = server.connections();

        // The key is not needed and may differ.
        let mut keyless = model.clone();
        keyless["connection"]["apiKey"] = json!("another-key");
        let mut absent = model.clone();
        absent["connection"].as_object_mut().expect("a map").remove("apiKey");
        for model in [&model, &keyless, &absent] {
            let player = player(folder.path(), &[]);
            assert_eq!(run(&player, model, &RunOptions::default()).expect("it is known"), recorded, "{protocol:?}");
            if let Some(streamed) = &streamed {
                assert_eq!(stream(&player, model).expect("it is known"), *streamed, "{protocol:?}");
            }
        }
        assert_eq!(server.connections(), connections, "a replay calls nobody");
    }
}

#[test]
fn a_replayed_stream_has_the_same_steps() {
    let server = Server::start(|exchange| say(exchange, "One two three"));
    let folder = tempfile::tempdir().expect("a folder");
    let steps = |runtime: &Runtime| -> Vec<_> {
        let (prompt, messages) = runs::chat(runtime, &server);
        let mut stream = runtime.stream(&prompt, &messages, &RunOptions::default()).expect("it begins");
        let steps = stream.by_ref().map(|step| step.expect("it is good")).collect();
        stream.finish().expect("it succeeds");
        steps
    };
    let recorded = steps(&recorder(folder.path(), &[]));
    assert_eq!(recorded.len(), 4);
    assert_eq!(steps(&player(folder.path(), &[])), recorded);
}

/// Starts a server that repeats everything it receives.
fn parrot() -> Server {
    Server::start(|exchange| {
        let heard = format!("{} {}", exchange.request.head.replace("\r\n", " "), exchange.request.body);
        say(exchange, &heard);
    })
}

#[test]
fn secrets_never_touch_the_disk() {
    let server = parrot();
    let folder = tempfile::tempdir().expect("a folder");
    let variables =
        [("SERVER_KEY", PLAIN_KEY), ("TENANT", "tenant-of-the-environment"), ("QUOTED", "pass\"word\\with quotes")];
    let runtime = trusting_recorder(folder.path(), &variables, &server);
    let mut model = model(&server, Protocol::OpenAiChat);
    model["connection"]["apiKey"] = json!("${env:SERVER_KEY}");
    model["connection"]["endpoint"] = json!(server.url("/v1?key=key-in-the-address&code=tenant-of-the-environment"));
    model["options"] = json!({ "additionalProperties": { "user": "${env:TENANT}", "note": "${env:QUOTED}" } });
    let options = RunOptions { api_key: Some(Secret::new("key-of-the-caller")), ..RunOptions::default() };
    run(&runtime, &model, &RunOptions::default()).expect("it succeeds");
    run(&runtime, &model, &options).expect("it succeeds");
    stream(&runtime, &model).expect("it succeeds");
    let sent: String = server.requests().iter().map(|request| format!("{request:?}")).collect();
    let kept = on_disk(folder.path());
    for secret in [PLAIN_KEY, "tenant-of-the-environment", "key-of-the-caller", "key-in-the-address", "with quotes"] {
        assert!(sent.contains(secret), "{secret} is sent");
        assert!(!kept.contains(secret), "{secret} is kept: {kept}");
    }
    assert!(kept.contains("How are you?"), "{kept}");
    let player = player(folder.path(), &variables);
    run(&player, &model, &RunOptions::default()).expect("it is found all the same");
    stream(&player, &model).expect("it is found all the same");
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_a_recording() {
    use std::os::unix::fs::PermissionsExt;
    let server = Server::start(|exchange| say(exchange, "Fine."));
    let folder = tempfile::tempdir().expect("a folder");
    let below = folder.path().join("not/there/yet");
    for _ in 0..2 {
        run(&recorder(&below, &[]), &model(&server, Protocol::OpenAiChat), &RunOptions::default())
            .expect("it succeeds");
        let files = files(&below);
        assert_eq!(files.len(), 1, "the same request has one file, and nothing is left beside it: {files:?}");
        assert_eq!(fs::metadata(&files[0]).expect("it is there").permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn the_last_answer_to_a_request_counts() {
    let server = Server::start(|exchange| {
        let text = format!("answer {}", exchange.number);
        say(exchange, &text);
    });
    let folder = tempfile::tempdir().expect("a folder");
    let model = model(&server, Protocol::OpenAiChat);
    for _ in 0..2 {
        run(&recorder(folder.path(), &[]), &model, &RunOptions::default()).expect("it succeeds");
    }
    let run = run(&player(folder.path(), &[]), &model, &RunOptions::default()).expect("it is known");
    assert_eq!(run.outcome.to_json(), "answer 1");
}

#[test]
fn an_unknown_request_is_shown_beside_the_nearest() {
    let server = Server::start(|exchange| say(exchange, "Fine."));
    let folder = tempfile::tempdir().expect("a folder");
    let chat = model(&server, Protocol::OpenAiChat);
    run(&recorder(folder.path(), &[]), &chat, &RunOptions::default()).expect("it succeeds");
    let far = RunOptions { model: Some("x".into()), base_url: Some(server.url("/far/away")), ..RunOptions::default() };
    run(&recorder(folder.path(), &[]), &chat, &far).expect("it succeeds");
    let near = files(folder.path()).into_iter().find(|path| path.to_string_lossy().contains("/m.")).expect("a file");
    let near = near.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
    let connections = server.connections();

    let mut warm = chat.clone();
    warm["options"] = json!({ "temperature": 0.5 });
    let error = fails(run(&player(folder.path(), &[]), &warm, &RunOptions::default()), Kind::UnknownExchange);
    assert!(error.message().contains(&server.url("/v1/chat/completions")), "{error}");
    let help = error.help().expect("it has help");
    assert!(help.contains(&near) && help.contains("body.temperature: not recorded, requested 0.5"), "{help}");

    let error = fails(stream(&player(folder.path(), &[]), &chat), Kind::UnknownExchange);
    assert!(error.help().is_some_and(|help| help.contains("stream: recorded false, requested true")), "{error:?}");

    let empty = tempfile::tempdir().expect("a folder");
    let error = fails(run(&player(empty.path(), &[]), &chat, &RunOptions::default()), Kind::UnknownExchange);
    assert!(error.help().is_some_and(|help| help.contains("contains no recordings")), "{error:?}");
    let nowhere = empty.path().join("nowhere");
    let error = fails(run(&player(&nowhere, &[]), &chat, &RunOptions::default()), Kind::UnknownExchange);
    assert!(error.help().is_some_and(|help| help.contains("the directory does not exist")), "{error:?}");
    assert!(!nowhere.exists() && server.connections() == connections);
}

#[test]
fn an_unknown_request_is_shown_without_its_secrets() {
    let server = Server::start(|exchange| say(exchange, "Fine."));
    let folder = tempfile::tempdir().expect("a folder");
    let variables = [("TENANT", "tenant-of-the-environment")];
    let mut model = model(&server, Protocol::OpenAiChat);
    run(&recorder(folder.path(), &variables), &model, &RunOptions::default()).expect("it succeeds");
    model["connection"]["endpoint"] = json!(server.url("/v1?key=key-in-the-address"));
    model["options"] = json!({ "additionalProperties": { "user": "${env:TENANT}" } });
    let error = run(&player(folder.path(), &variables), &model, &RunOptions::default());
    let shown = shown(&fails(error, Kind::UnknownExchange));
    for secret in ["tenant-of", "key-in-the-address", PLAIN_KEY] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

/// The attacks `cache.cached-error` and `cache.cached-partial`.
#[test]
fn only_whole_answers_are_kept() {
    type Answer = fn(&mut faults::Exchange<'_>);
    let answers: [(&str, Answer, bool); 7] = [
        ("a status", |exchange| exchange.answer(400, "", "no"), false),
        ("an error with status 200", |exchange| exchange.json(r#"{"error":{"message":"no"}}"#), false),
        ("another protocol", |exchange| exchange.json(r#"{"surprise":1}"#), false),
        ("an error instead of a stream", |exchange| exchange.json(r#"{"error":{"message":"no"}}"#), true),
        (
            "a truncated stream",
            |exchange| {
                exchange.events();
                exchange.chunk(event("Hel"));
                exchange.end();
            },
            true,
        ),
        (
            "a broken stream",
            |exchange| {
                exchange.events();
                exchange.chunk(event("Hel"));
                exchange.close();
            },
            true,
        ),
        (
            "an error in a stream",
            |exchange| {
                exchange.events();
                exchange.chunk(event("Hel"));
                exchange.chunk("data: {\"error\":{\"message\":\"no\"}}\n\n");
                exchange.end();
            },
            true,
        ),
    ];
    for (what, answer, streams) in answers {
        let server = Server::start(answer);
        let folder = tempfile::tempdir().expect("a folder");
        let (runtime, model) = (recorder(folder.path(), &[]), model(&server, Protocol::OpenAiChat));
        let result = if streams { stream(&runtime, &model) } else { run(&runtime, &model, &RunOptions::default()) };
        assert!(result.is_err(), "{what}");
        assert_eq!(on_disk(folder.path()), "", "{what}");
    }
}

#[test]
fn an_answer_that_nobody_read_to_its_end_is_not_kept() {
    let server = Server::start(|exchange| {
        exchange.events();
        exchange.chunk(event("Hel"));
        exchange.stall();
    });
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = recorder(folder.path(), &[]);
    let (prompt, messages) = runs::chat(&runtime, &server);
    let mut stream = runtime.stream(&prompt, &messages, &RunOptions::default()).expect("it begins");
    assert!(stream.next().is_some());
    drop(stream);
    server.wait_until_left();
    assert_eq!(on_disk(folder.path()), "");
}

/// The attacks `cache.key-omits-tools`, `cache.key-omits-role`, `cache.concat-ambiguity` and `cache.template-swap`.
#[test]
fn what_the_provider_would_see_is_what_a_request_is_known_by() {
    let server = Server::start(|exchange| say(exchange, "Fine."));
    let folder = tempfile::tempdir().expect("a folder");
    let count = Arc::new(AtomicUsize::new(0));
    let tool = |name: &str| Function {
        name: name.into(),
        description: None,
        parameters: json!({ "type": "object" }),
        strict: false,
    };
    let chat = model(&server, Protocol::OpenAiChat);
    let cases: Vec<(&str, Vec<Function>, &str)> = vec![
        (TEMPLATE, vec![], "m"),
        (TEMPLATE, vec![tool("x")], "m"),
        (TEMPLATE, vec![tool("y")], "m"),
        (TEMPLATE, vec![tool("x"), tool("y")], "m"),
        (TEMPLATE, vec![], "other"),
        ("user:\nYou are kind.\n\nuser:\n{{ q }}\n", vec![], "m"),
        ("user:\nab\n\nuser:\nc\n", vec![], "m"),
        ("user:\na\n\nuser:\nbc\n", vec![], "m"),
        ("user:\nabc\n", vec![], "m"),
    ];
    for (template, functions, name) in &cases {
        let options = RunOptions { functions: functions.clone(), model: Some((*name).into()), ..RunOptions::default() };
        let invoke = |runtime: Runtime| {
            let prompt = prompt(&runtime, &chat, template);
            runtime.invoke_with(&prompt, inputs(), &options)
        };
        fails(invoke(player(folder.path(), &[])), Kind::UnknownExchange);
        invoke(recorder(folder.path(), &[])).expect("it succeeds");
        invoke(player(folder.path(), &[])).expect("now it is known");
        count.fetch_add(1, Ordering::SeqCst);
        assert_eq!(files(folder.path()).len(), count.load(Ordering::SeqCst));
    }
}

#[test]
fn a_file_that_is_none_is_an_error() {
    let server = Server::start(|exchange| say(exchange, "Fine."));
    let folder = tempfile::tempdir().expect("a folder");
    let model = model(&server, Protocol::OpenAiChat);
    run(&recorder(folder.path(), &[]), &model, &RunOptions::default()).expect("it succeeds");
    let path = files(folder.path()).remove(0);
    let good = fs::read_to_string(&path).expect("it is there");
    let broken = [
        String::new(),
        good[..good.len() / 2].to_owned(),
        good.replace("\"version\": 1", "\"version\": 2"),
        good.replace("\"body\"", "\"boddy\""),
        "[]".to_owned(),
    ];
    for text in broken {
        fs::write(&path, text).expect("it is written");
        let error = fails(run(&player(folder.path(), &[]), &model, &RunOptions::default()), Kind::InvalidCassette);
        assert!(error.message().contains(".json") && error.help().is_some(), "{error:?}");
    }
    fs::write(&path, [0xff, 0xfe]).expect("it is written");
    fails(run(&player(folder.path(), &[]), &model, &RunOptions::default()), Kind::InvalidCassette);
    fs::write(&path, good.replace("Fine.", "Changed by hand.")).expect("it is written");
    let run = run(&player(folder.path(), &[]), &model, &RunOptions::default()).expect("it is known");
    assert_eq!(run.outcome.to_json(), "Changed by hand.");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error() {
    let server = Server::start(|exchange| say(exchange, "Fine."));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("it is written");
    let model = model(&server, Protocol::OpenAiChat);
    fails(run(&recorder(&file, &[]), &model, &RunOptions::default()), Kind::InvalidCassette);
    fails(stream(&recorder(&file, &[]), &model), Kind::InvalidCassette);
}

#[test]
fn names_of_models_stay_in_the_folder() {
    let server = Server::start(|exchange| say(exchange, "Fine."));
    let folder = tempfile::tempdir().expect("a folder");
    let inner = folder.path().join("inner");
    for name in ["../../up", "/etc/x", "a\0b", &"long".repeat(1000)] {
        let options = RunOptions { model: Some(name.into()), ..RunOptions::default() };
        let model = model(&server, Protocol::OpenAiChat);
        let run = |runtime: Runtime| run(&runtime, &model, &options);
        run(recorder(&inner, &[])).expect("it succeeds");
        run(player(&inner, &[])).expect("it is known");
    }
    assert_eq!(files(&inner).len(), 4);
    assert_eq!(files(folder.path()).len(), 1);
}

#[test]
fn lists_of_models_are_recorded_too() {
    let server = Server::start(|exchange| exchange.json(r#"{"data": [{"id": "m-1"}]}"#));
    let folder = tempfile::tempdir().expect("a folder");
    let options = RunOptions { base_url: Some(server.url("/v1")), ..RunOptions::default() };
    let recorder = recorder(folder.path(), &[("OPENAI_API_KEY", PLAIN_KEY)]);
    let models = recorder.list_models(None, &options).expect("it succeeds");
    let player = player(folder.path(), &[]);
    assert_eq!(player.list_models(None, &options).expect("it is known"), models);
    let other = RunOptions { base_url: Some(server.url("/v2")), ..RunOptions::default() };
    fails(player.list_models(None, &other), Kind::UnknownExchange);
    assert_eq!(server.requests().len(), 1);
    assert!(!on_disk(folder.path()).contains(PLAIN_KEY));
}

#[test]
fn a_server_that_does_not_stream_is_recorded_as_it_answers() {
    let server = Server::start(|exchange| exchange.json(&saying("All at once")));
    let folder = tempfile::tempdir().expect("a folder");
    let model = model(&server, Protocol::OpenAiChat);
    let recorded = stream(&recorder(folder.path(), &[]), &model).expect("it succeeds");
    assert_eq!(stream(&player(folder.path(), &[]), &model).expect("it is known"), recorded);
}

/// A model repeats a secret a few letters at a time. No single event contains it, but all of them together do.
#[test]
fn a_secret_in_pieces_is_not_kept_either() {
    let server = Server::start(|exchange| {
        exchange.events();
        for piece in ["It is ", "tenant-of", "-the-envi", "ronment", "!"] {
            exchange.chunk(event(piece));
        }
        exchange.chunk(last_events());
        exchange.end();
    });
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = trusting_recorder(folder.path(), &[("TENANT", "tenant-of-the-environment")], &server);
    let mut model = model(&server, Protocol::OpenAiChat);
    model["options"] = json!({ "additionalProperties": { "user": "${env:TENANT}" } });
    let run = stream(&runtime, &model).expect("it succeeds");
    assert_eq!(run.outcome.to_json(), "It is tenant-of-the-environment!");
    let kept = on_disk(folder.path());
    assert!(!kept.contains("ronment") && !kept.contains("tenant"), "{kept}");
    let player = player(folder.path(), &[("TENANT", "tenant-of-the-environment")]);
    let replayed = stream(&player, &model).expect("it is known");
    assert_eq!(replayed.outcome.to_json(), "It is [REDACTED]!");
    assert_eq!(replayed.usage, run.usage);
}

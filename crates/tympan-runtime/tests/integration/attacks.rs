//! The attack corpus, on the attack surfaces of rendering.

use serde_json::Value;
use tympan_core::chat::guard::{CLOSE, OPEN};
use tympan_core::secret::env_value::ValueSource;
use tympan_core::spec::Secret;
use tympan_core::text::hash::sha256_hex;
use tympan_core::wire::compatible::PROVIDERS;
use tympan_core::wire::{
    Address, Carried, EncodeOptions, Protocol, SseDecoder, StreamDecoder, check_destination, encode,
};
use tympan_core::{Error, Message};
use tympan_core::{Inputs, Prompt};
use tympan_runtime::{Guard, Runtime, RuntimeOptions, prepare};

use crate::shared;

/// Runs every case of a surface and collects the failures.
fn run(surface: &str, check: impl Fn(&Value) -> Result<(), String>) {
    let mut cases = shared::attacks();
    cases.retain(|case| case["surface"] == surface);
    assert!(!cases.is_empty(), "there are no cases for {surface}");
    let failures: Vec<String> =
        cases.iter().filter_map(|case| check(case).err().map(|reason| format!("{}: {reason}", case["id"]))).collect();
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn render() {
    run("render", |case| {
        let (prompt, inputs) = shared::prompt(case);
        let result = prepare(&prompt, &inputs);
        let expect = &case["expect"];
        match expect["kind"].as_str().unwrap_or_default() {
            "messages" => messages_hold(case, &result.map_err(|error| error.to_string())?),
            "no_leak" => no_leak(case, &result),
            "no_raw" => no_raw_escapes(&result),
            "limits" => limits_hold(expect, &result),
            "error" => result.map_or(Ok(()), |_| Err("expected an error".to_owned())),
            "error_or_drop" => result.map_or(Ok(()), |messages| dropped(expect, &messages)),
            other => Err(format!("unknown expectation {other}")),
        }
    });
}

fn roles(messages: &[Message]) -> Vec<&'static str> {
    messages.iter().map(|message| message.role.as_str()).collect()
}

fn messages_hold(case: &Value, messages: &[Message]) -> Result<(), String> {
    let expect = &case["expect"];
    let expected: Vec<_> = expect["roles"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if roles(messages) != expected {
        return Err(format!("roles {:?}, expected {expected:?}", roles(messages)));
    }
    if let (Some(index), Some(name)) = (expect["verbatim"]["message"].as_u64(), expect["verbatim"]["input"].as_str()) {
        let inputs = shared::expand(&case["inputs"]);
        // Blank lines at the ends of a message are trimmed, whoever wrote them.
        let value = inputs[name].as_str().unwrap_or_default().trim_matches(['\n', '\r']);
        if !messages[usize::try_from(index).unwrap_or(0)].to_text().contains(value) {
            return Err("the input's bytes are not in the message".to_owned());
        }
    }
    for part in expect["contains"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let part = part.trim_matches(['\n', '\r']);
        if !messages.iter().any(|message| message.to_text().contains(part)) {
            return Err(format!("no message contains {part:?}"));
        }
    }
    match expect["no_text_regex"].as_str() {
        Some(forbidden) if messages.iter().any(|message| message.to_text().contains(forbidden)) => {
            Err(format!("a message contains {forbidden:?}"))
        }
        _ => Ok(()),
    }
}

/// Formats everything visible about a result.
fn shown(result: &Result<Vec<Message>, Error>) -> String {
    match result {
        Ok(messages) => messages.iter().map(Message::to_text).collect(),
        Err(error) => format!("{error} {error:?} {}", error.help().unwrap_or_default()),
    }
}

fn no_leak(case: &Value, result: &Result<Vec<Message>, Error>) -> Result<(), String> {
    let shown = shown(result);
    let canaries = ["canary", "canary_regex"].map(|key| case["expect"][key].as_str());
    for canary in canaries.into_iter().flatten().flat_map(|canary| canary.split('|')) {
        if shown.contains(canary.trim_end_matches("[0-9a-f]+")) {
            return Err(format!("{canary:?} leaks"));
        }
    }
    Ok(())
}

/// An input may contain escape sequences, but an error message must not.
fn no_raw_escapes(result: &Result<Vec<Message>, Error>) -> Result<(), String> {
    if result.is_err() && shown(result).contains('\u{1b}') {
        return Err("the error holds a raw escape sequence".to_owned());
    }
    Ok(())
}

/// The process has survived. Times and sizes are covered by the benchmarks.
fn limits_hold(expect: &Value, result: &Result<Vec<Message>, Error>) -> Result<(), String> {
    let expected: Vec<_> = expect["roles"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    match result {
        Ok(messages) if !expected.is_empty() && roles(messages) != expected => {
            Err(format!("roles {:?}, expected {expected:?}", roles(messages)))
        }
        _ => Ok(()),
    }
}

fn dropped(expect: &Value, messages: &[Message]) -> Result<(), String> {
    let json = serde_json::to_string(messages).map_err(|error| error.to_string())?;
    for field in expect["fields"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if json.contains(field) {
            return Err(format!("{field:?} got through"));
        }
    }
    Ok(())
}

fn guarding() -> Runtime {
    Runtime::new(RuntimeOptions {
        guard: Some(Guard::default().without_advisory_message()),
        ..RuntimeOptions::default()
    })
}

#[test]
fn render_guarded() {
    let runtime = guarding();
    run("render_guarded", |case| {
        let (prompt, inputs) = shared::prompt(case);
        guard_holds(&runtime, case, &prompt, &inputs)?;
        // Without origins, all text would count as the author's. The case must fail then.
        let mut spec = prompt.spec().clone();
        spec.inputs.iter_mut().for_each(|input| input.trusted = true);
        let is_refused = runtime.render(&prompt, &inputs).is_err();
        if is_refused || case["expect"]["kind"] != "guarded" {
            return Ok(());
        }
        match guard_holds(&runtime, case, &Prompt::from_spec(spec), &inputs) {
            Ok(()) => Err("it would pass without origins".to_owned()),
            Err(_) => Ok(()),
        }
    });
}

fn guard_holds(runtime: &Runtime, case: &Value, prompt: &Prompt, inputs: &Inputs) -> Result<(), String> {
    let expect = &case["expect"];
    let rendered = match runtime.render(prompt, inputs) {
        Ok(rendered) => rendered,
        Err(_) if expect["allow_error"] == true => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    let text = rendered.text();
    match expect["kind"].as_str() {
        Some("text_equals") if expect["text"] == text => return Ok(()),
        Some("guarded") => {}
        _ => return Err(format!("{text:?}")),
    }
    let outside = without_spans(text).matches(expect["canary"].as_str().unwrap_or_default()).count();
    if expect["outside"] != outside {
        return Err(format!("{outside} times outside of spans: {text:?}"));
    }
    let closers = text.matches(CLOSE).count();
    if !expect["closers"].is_null() && expect["closers"] != closers {
        return Err(format!("{closers} closing markers: {text:?}"));
    }
    let messages = runtime.prepare(prompt, inputs).map_err(|error| error.to_string())?;
    if messages.iter().map(Message::to_text).collect::<String>() != text.trim_matches('\n') {
        return Err(format!("the messages are not the text: {messages:?}"));
    }
    Ok(())
}

fn without_spans(text: &str) -> String {
    let (mut outside, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once(OPEN) {
        outside.push_str(before);
        rest = behind.split_once(CLOSE).map_or("", |(_, after)| after);
    }
    outside + rest
}

#[test]
fn hash_of_a_guarded_render() {
    run("hash", |case| {
        if case["id"] != "hash.guard-on-off" {
            return Ok(());
        }
        let (prompt, inputs) = shared::prompt(&serde_json::json!({"template": "{{ q }}", "inputs": {"q": "x"}}));
        let hash = |guard: bool| {
            let guard = guard.then(Guard::default);
            let runtime = Runtime::new(RuntimeOptions { guard, ..RuntimeOptions::default() });
            runtime.render(&prompt, &inputs).map(|rendered| sha256_hex(rendered.text())).map_err(|e| e.to_string())
        };
        let inputs = &case["inputs"];
        let (a, b) = (&inputs["a"]["guard"], &inputs["b"]["guard"]);
        if hash(*a == true)? == hash(*b == true)? { Err("the hashes are equal".to_owned()) } else { Ok(()) }
    });
}

#[test]
fn render_many_and_concurrently() {
    run("render_many", |case| {
        let (prompt, inputs) = shared::prompt(case);
        // The corpus asks for 200,000 runs. A nonce that failed once in a thousand runs would be found.
        for _ in 0..20_000 {
            prepare(&prompt, &inputs).map_err(|error| error.to_string())?;
        }
        Ok(())
    });
    run("render_concurrent", |case| {
        let (prompt, _) = shared::prompt(case);
        let tasks = case["expect"]["tasks"].as_u64().unwrap_or(0);
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..8)
                .map(|worker| {
                    let prompt = &prompt;
                    scope.spawn(move || {
                        (0..tasks / 8).all(|task| {
                            let value = format!("value {worker} {task}");
                            let inputs = serde_json::json!({"q": value});
                            let messages = prepare(prompt, inputs.as_object().expect("a map"));
                            messages.is_ok_and(|messages| messages[1].to_text() == value)
                        })
                    })
                })
                .collect();
            let fine = workers.into_iter().all(|worker| worker.join().unwrap_or(false));
            if fine { Ok(()) } else { Err("a render saw another's value".to_owned()) }
        })
    });
}

/// By design, inputs are never checked against a type, so validation has nothing to leak.
#[test]
fn validate() {
    run("validate", |case| {
        let spec = tympan_core::spec::PromptSpec {
            inputs: vec![tympan_core::spec::schema::Property::new(
                "q",
                tympan_core::spec::schema::PropertyKind::Object,
            )],
            instructions: "{{ q.missing.key }}".to_owned(),
            ..Default::default()
        };
        let prompt = tympan_core::Prompt::from_spec(spec);
        let inputs = case["inputs"].as_object().cloned().unwrap_or_default();
        prompt.validate_inputs(&inputs).map_err(|error| error.to_string())?;
        no_leak(case, &prepare(&prompt, &inputs))
    });
}

/// A value that looks like an instruction to a deserializer is a plain value.
#[test]
fn roundtrip() {
    run("roundtrip", |case| {
        let value = &case["inputs"]["value"];
        let spec =
            tympan_core::spec::PromptSpec { instructions: "{{ value | tojson }}".to_owned(), ..Default::default() };
        let inputs = case["inputs"].as_object().cloned().unwrap_or_default();
        let rendered = tympan_core::Prompt::from_spec(spec).render(&inputs).map_err(|error| error.to_string())?;
        let back: Value = serde_json::from_str(rendered.text()).map_err(|error| error.to_string())?;
        if back == *value { Ok(()) } else { Err(format!("{value} came back as {back}")) }
    });
}

/// The streams of the corpus that need no server. Stalled and invalid streams are tested with the client.
#[test]
fn streams() {
    run("provider", |case| {
        let chunks = shared::expand(&case["inputs"]["chunks"]);
        let pieces: Option<Vec<&str>> = match &chunks {
            Value::String(text) => Some(vec![text]),
            Value::Array(pieces) => pieces.iter().map(Value::as_str).collect(),
            _ => None,
        };
        let expect = &case["expect"];
        match (case["class"].as_str(), pieces, expect["code"].as_str()) {
            (Some("sse"), Some(pieces), code) if code != Some("content_type") => stream_holds(expect, &pieces),
            _ => Ok(()),
        }
    });
}

fn stream_holds(expect: &Value, pieces: &[&str]) -> Result<(), String> {
    let mut deltas = Vec::new();
    let mut decoder = StreamDecoder::new(Protocol::OpenAiChat);
    let pushed = pieces.iter().try_for_each(|piece| decoder.push(piece.as_bytes(), &mut deltas));
    let result = pushed.and_then(|()| decoder.finish());
    match (expect["kind"].as_str().unwrap_or_default(), result) {
        ("error", Err(error)) => match expect["code"].as_str() {
            Some(code) if code != error.code() => Err(format!("{code} was expected, and not {error}")),
            _ => Ok(()),
        },
        ("error", Ok(response)) => Err(format!("expected an error, got {response:?}")),
        ("limits", _) => Ok(()),
        ("events", Err(error)) => Err(error.to_string()),
        ("events", Ok(response)) => {
            let text = expect["text"].as_str().unwrap_or_default();
            let tympan_core::wire::response::Output::Answer(answer) = response.output else {
                return Err("no answer".into());
            };
            let count = expect["count"].as_u64();
            if answer.text != text || count.is_some_and(|count| count != events_before_the_end(pieces)) {
                return Err(format!("{:?}", answer.text));
            }
            Ok(())
        }
        (other, _) => Err(format!("unknown expectation {other}")),
    }
}

/// Counts the events before the one that ends the stream. An event counts once the piece with its blank line is read.
fn events_before_the_end(pieces: &[&str]) -> u64 {
    let mut count = 0;
    let mut decoder = SseDecoder::new(1 << 20);
    for piece in pieces {
        let pushed = decoder.push(piece.as_bytes(), |event| {
            count += u64::from(event.data != "[DONE]");
            Ok(())
        });
        assert!(pushed.is_ok() && count > 0, "{piece:?}");
    }
    count
}

/// A key from the environment is never sent to any of these addresses, whatever its provider.
#[test]
fn endpoints() {
    run("provider", |case| {
        let endpoint = case["inputs"]["endpoint"].as_str().filter(|_| case["inputs"]["ambient_key"] == true);
        let Some(endpoint) = endpoint else { return Ok(()) };
        for provider in PROVIDERS {
            let carried = Carried { what: "KEY".into(), source: ValueSource::Host, value: Secret::new("key") };
            let address = Address::of(endpoint, ValueSource::Prompt);
            match address.and_then(|address| check_destination(&address, &[carried], Some(provider), &[])) {
                Err(error) if case["expect"]["code"] == error.code() => {}
                Err(error) => return Err(format!("{}: {error:?}", provider.name)),
                Ok(_) => return Err(format!("the key of {} goes there", provider.name)),
            }
        }
        Ok(())
    });
}

/// An input that names a file is rejected, and the file is not read.
#[test]
fn files_in_inputs() {
    run("provider", |case| {
        let Some(image) = case["inputs"]["image_input"].as_str() else { return Ok(()) };
        let spec = tympan_core::spec::PromptSpec {
            inputs: vec![tympan_core::spec::schema::Property::new(
                "image",
                tympan_core::spec::schema::PropertyKind::Image,
            )],
            instructions: "user:\n{{ image }}".to_owned(),
            ..Default::default()
        };
        let prompt = Prompt::from_spec(spec);
        let inputs = serde_json::json!({ "image": image });
        let messages = prepare(&prompt, inputs.as_object().expect("a map")).map_err(|error| error.to_string())?;
        let options = EncodeOptions { model: Some("m"), ..EncodeOptions::default() };
        match encode(&prompt, &messages, &options) {
            Err(error) if error.code() == "invalid_input" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
}

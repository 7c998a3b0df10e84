//! Responses: the cases in `fixtures/response` and `fixtures/stream`. Streams are cut at every byte.
#![expect(clippy::disallowed_methods, reason = "tests read their cases from files")]

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::{Value, json};
use tympan::spec::PromptSpec;
use tympan::spec::schema::{Property, PropertyKind};
use tympan::turn::outcome::finish;
use tympan::wire::response::{Delta, Output};
use tympan::wire::{self, Protocol, StreamDecoder, StreamLimits};
use tympan::{Error, Kind, Prompt, Response, Result};

const PROTOCOLS: [Protocol; 5] = [
    Protocol::OpenAiChat,
    Protocol::OpenAiResponses,
    Protocol::OpenAiEmbeddings,
    Protocol::OpenAiImages,
    Protocol::AnthropicMessages,
];

/// Returns the files of a stage, with their protocols.
fn files(stage: &str, extension: &str, at_least: usize) -> Vec<(Protocol, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(stage);
    let mut files = Vec::new();
    for protocol in PROTOCOLS {
        let Ok(entries) = std::fs::read_dir(root.join(protocol.as_str())) else { continue };
        let paths = entries.map(|entry| entry.expect("the directory can be read").path());
        files.extend(paths.filter(|path| path.extension().is_some_and(|e| e == extension)).map(|p| (protocol, p)));
    }
    assert!(files.len() >= at_least, "{stage} has {} cases", files.len());
    files
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("the case is there")).expect("it is JSON")
}

/// Parses a declared output of a fixture.
fn property(json: &Value) -> Property {
    let kind = json["kind"].as_str().and_then(PropertyKind::from_name).expect("a kind");
    let mut property = Property::new(json["name"].as_str().unwrap_or_default(), kind);
    property.required = json["required"].as_bool();
    property.enum_values = json["enumValues"].as_array().cloned();
    property.items = json.get("items").map(|items| Box::new(self::property(items)));
    property.properties = json["properties"].as_array().into_iter().flatten().map(self::property).collect();
    property
}

/// Compares a result with everything that a case specifies.
fn check(name: &Path, expected: &Value, outputs: &Value, result: Result<Response>) {
    let response = match result {
        Ok(response) => response,
        Err(error) => return check_error(name, expected, &error),
    };
    assert!(expected["error"].is_null(), "{name:?}: expected {}, got {response:?}", expected["error"]);
    if let Output::Answer(answer) = &response.output {
        for (key, actual) in [("text", json!(answer.text)), ("thinking", json!(answer.thinking))] {
            assert!(expected[key].is_null() || expected[key] == actual, "{name:?}: {key} {actual}");
        }
        assert_eq!(answer.blocks, expected.get("blocks").cloned().or(answer.blocks.clone()), "{name:?}");
    }
    let usage = response.usage.as_ref().map(|usage| json!(usage));
    let reason = response.finish_reason.as_ref().map(|reason| reason.as_str());
    let said = [("id", json!(response.id)), ("model", json!(response.model)), ("usage", json!(usage))];
    for (key, actual) in said.into_iter().chain([("finish_reason", json!(reason))]) {
        assert!(expected[key].is_null() || expected[key] == actual, "{name:?}: {key} {actual}");
    }
    let outputs = outputs.as_array().into_iter().flatten().map(property).collect();
    let prompt = Prompt::from_spec(PromptSpec { outputs, ..PromptSpec::default() });
    let outcome = finish(&prompt, response).expect("it comes to a result");
    assert_eq!(outcome.to_json(), expected["result"], "{name:?}");
    if !expected["problems"].is_null() {
        assert_eq!(json!(outcome.problems()), expected["problems"], "{name:?}");
    }
}

fn check_error(name: &Path, expected: &Value, error: &Error) {
    assert_eq!(json!(error.code()), expected["error"], "{name:?}: {error}");
    let message = expected["message"].as_str().unwrap_or_default();
    assert!(error.message().contains(message), "{name:?}: {error}");
    assert!(error.message().chars().count() < 400, "{name:?}: {error}");
    if !expected["partial_text"].is_null() {
        assert_eq!(json!(error.partial_text()), expected["partial_text"], "{name:?}");
    }
}

#[test]
fn whole_answers() {
    for (protocol, path) in files("response", "json", 45) {
        let case = read_json(&path);
        let body = match &case["response"] {
            Value::String(text) => text.clone(),
            json => json.to_string(),
        };
        check(&path, &case["expected"], &case["outputs"], wire::decode(protocol, body.as_bytes()));
    }
}

/// Returns the deltas and the result of a stream in these pieces.
fn stream<'a>(protocol: Protocol, pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Delta>, Result<Response>) {
    let mut deltas = Vec::new();
    let mut decoder = StreamDecoder::new(protocol);
    for piece in pieces {
        if let Err(error) = decoder.push(piece, &mut deltas) {
            return (deltas, Err(error));
        }
    }
    (deltas, decoder.finish())
}

/// Formats the outcome of a stream for comparison.
fn shown((deltas, result): (Vec<Delta>, Result<Response>)) -> String {
    let partial = result.as_ref().err().map(|error| error.partial_text().map(str::to_owned));
    format!("{deltas:?} {result:?} {partial:?}")
}

fn short(delta: &Delta) -> String {
    match delta {
        Delta::Text(text) => format!("text {text}"),
        Delta::Thinking(text) => format!("thinking {text}"),
        Delta::ToolCall { index, id, name } => format!("call {index} {id} {name}"),
        Delta::ToolArguments { index, fragment } => format!("arguments {index} {fragment}"),
        Delta::Usage(usage) => format!("usage {} {}", usage.input_tokens, usage.output_tokens),
        other => panic!("unexpected {other:?}"),
    }
}

#[test]
fn streams() {
    for (protocol, path) in files("stream", "sse", 40) {
        let bytes = std::fs::read(&path).expect("the stream is there");
        let expected = read_json(&path.with_extension("json"));
        let (deltas, result) = stream(protocol, [bytes.as_slice()]);
        if !expected["deltas"].is_null() {
            let deltas: Vec<_> = deltas.iter().map(short).collect();
            assert_eq!(json!(deltas), expected["deltas"], "{path:?}");
        }
        check(&path, &expected, &Value::Null, result);
    }
}

#[test]
fn streams_are_the_same_however_they_are_cut() {
    for (protocol, path) in files("stream", "sse", 40) {
        let bytes = std::fs::read(&path).expect("the stream is there");
        let whole = shown(stream(protocol, [bytes.as_slice()]));
        assert_eq!(shown(stream(protocol, bytes.chunks(1))), whole, "{path:?}, in single bytes");
        for at in 0..=bytes.len() {
            let (before, after) = bytes.split_at(at);
            assert_eq!(shown(stream(protocol, [before, after])), whole, "{path:?}, cut at {at}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// Arbitrary bytes and cuts: streams of a protocol with some bytes changed.
    #[test]
    fn damaged_streams_are_the_same_however_they_are_cut(
        pick in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let files = files("stream", "sse", 40);
        let (protocol, path) = pick.get(&files);
        let mut bytes = std::fs::read(path).expect("the stream is there");
        if bytes.is_empty() {
            return Ok(());
        }
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]);
        prop_assert_eq!(shown(stream(*protocol, pieces)), shown(stream(*protocol, [bytes.as_slice()])));
    }
}

#[test]
fn a_stream_has_limits() {
    let event = b"data: {\"choices\":[{\"delta\":{\"content\":\"0123456789\"}}]}\n\n";
    let limits = StreamLimits { max_total_bytes: 5 * event.len() + 3, ..StreamLimits::default() };
    for pieces in [vec![event.repeat(9)], event.repeat(9).chunks(7).map(<[u8]>::to_vec).collect()] {
        let mut decoder = StreamDecoder::with_limits(Protocol::OpenAiChat, limits);
        let mut deltas = Vec::new();
        let error = pieces.iter().find_map(|piece| decoder.push(piece, &mut deltas).err()).expect("too large");
        assert_eq!((error.kind(), deltas.len()), (Kind::ResponseTooLarge, 5));
        assert_eq!(error.partial_text().map(str::len), Some(50));
    }
    let call = |index: usize| {
        let call = json!({"index": index, "id": format!("c{index}"), "function": {"name": "f", "arguments": "{}"}});
        format!("data: {}\n\n", json!({"choices": [{"delta": {"tool_calls": [call]}}]}))
    };
    let calls: String = (0..257).map(call).collect();
    let (deltas, result) = stream(Protocol::OpenAiChat, [calls.as_bytes()]);
    assert_eq!(result.expect_err("too many").kind(), Kind::ResponseTooLarge);
    assert_eq!(deltas.len(), 512);
    let (_, result) = stream(Protocol::OpenAiImages, [b"data: {}\n\n".as_slice()]);
    assert_eq!(result.expect_err("it has no streams").kind(), Kind::UnsupportedApi);
}

#[test]
fn errors_of_all_providers_are_read() {
    let cases = [
        (
            401,
            r#"{"error":{"message":"Incorrect API key","type":"invalid_request_error","code":"invalid_api_key"}}"#,
            "The provider returned an error: HTTP 401: Incorrect API key (invalid_request_error, invalid_api_key)",
        ),
        (
            529,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            "Provider unavailable: HTTP 529: Overloaded (overloaded_error)",
        ),
        (
            400,
            r#"[{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT"}}]"#,
            "The provider returned an error: HTTP 400: API key not valid (INVALID_ARGUMENT, 400)",
        ),
        (404, r#"{"error":"model 'x' not found"}"#, "The provider returned an error: HTTP 404: model 'x' not found"),
        (
            422,
            r#"{"object":"error","message":"no such option","type":"invalid"}"#,
            "The provider returned an error: HTTP 422: no such option (invalid)",
        ),
        (
            422,
            r#"{"detail":[{"loc":["body"],"msg":"wrong"}]}"#,
            r#"The provider returned an error: HTTP 422: {"detail":[{"loc":["body"],"msg":"wrong"}]}"#,
        ),
        (429, "slow down", "Provider unavailable: HTTP 429: slow down"),
        (500, "", "Provider unavailable: HTTP 500"),
        (
            403,
            r#"{"token":"abc","why":1}"#,
            r#"The provider returned an error: HTTP 403: {"token":"[REDACTED]","why":1}"#,
        ),
    ];
    for (status, body, message) in cases {
        let error = wire::decode_error(Protocol::OpenAiChat, status, body.as_bytes());
        assert_eq!(error.message(), message);
    }
    let giant = "É".repeat(10_000_000);
    for body in [giant.clone(), json!({"error": {"message": giant}}).to_string()] {
        let error = wire::decode_error(Protocol::AnthropicMessages, 500, body.as_bytes());
        assert!(error.message().len() < 1000, "{}", error.message().len());
    }
    let error = wire::decode(Protocol::OpenAiChat, giant.as_bytes()).expect_err("it is no answer");
    assert!(error.kind() == Kind::UnexpectedResponse && error.message().len() < 1000);
}

#[test]
fn the_numbers_are_kept_under_their_own_names() {
    let body = json!({"content": [], "usage": {"input_tokens": 1, "output_tokens": 2, "service_tier": "x",
        "cache_creation": {"ephemeral_5m_input_tokens": 3, "note": "y"}, "server_tool_use": {"z": null}}});
    let response = wire::decode(Protocol::AnthropicMessages, body.to_string().as_bytes()).expect("it reads");
    let reported = response.usage.expect("it has numbers").reported;
    let expected = json!({"input_tokens": 1, "output_tokens": 2, "cache_creation": {"ephemeral_5m_input_tokens": 3}});
    assert_eq!(Value::Object(reported), expected);
}

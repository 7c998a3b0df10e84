//! The cost of building requests, reading responses and reporting errors about them grows no faster than their size.

use std::fmt::Write as _;

use crate::measure::{Row, check};
use serde_json::{Value as Json, json};
use tympan::chat::message::Role;
use tympan::chat::thread::{ThreadRoles, parse_thread};
use tympan::format::{NoReferences, prompty};
use tympan::spec::schema::{Property, PropertyKind};
use tympan::spec::{PromptSpec, Secret};
use tympan::text::source::{SourceFile, Span};
use tympan::turn::outcome;
use tympan::turn::{Next, Turn, TurnOptions, TurnTool};
use tympan::wire::arguments;
use tympan::wire::response::{Answer, Output};
use tympan::wire::{EncodeOptions, Function, Protocol, SseDecoder, StreamDecoder, decode, encode};
use tympan::{Inputs, Message, Prompt, Redactor, RenderOptions, Response, diagnostic};

/// Concatenates numbered pieces.
fn pieces(size: usize, piece: impl FnMut(usize) -> String) -> String {
    (0..size).map(piece).collect()
}

/// Builds requests from messages, for every conversation protocol.
fn request(messages: Vec<Message>, tools: String) -> Box<dyn Fn()> {
    let file = |provider: &str, api: &str| {
        let model = format!("model: {{id: m, provider: {provider}, apiType: {api}, options: {{cache: auto}}}}\n");
        let source = SourceFile::new("a.prompty", format!("---\n{model}{tools}---\n"));
        let (document, findings) = prompty::parse(&source, &mut NoReferences);
        let document = document.unwrap_or_else(|| panic!("{findings:?}"));
        Prompt::from_document(document.spec, source, document.body.start, Vec::new())
    };
    let prompts = [file("openai", "chat"), file("openai", "responses"), file("anthropic", "chat")];
    Box::new(move || {
        for prompt in &prompts {
            let request = encode(prompt, &messages, &EncodeOptions::default()).expect("it can be encoded");
            assert!(request.body.len() > messages.len());
        }
    })
}

/// Returns a conversation with this many rounds of a tool call and its result.
fn calls_and_results(size: usize) -> Json {
    let round = |index: usize| {
        let call = json!({"id": format!("c{index}"), "function": {"name": "f", "arguments": "{}"}});
        [
            json!({"role": "assistant", "content": "", "tool_calls": [call]}),
            json!({"role": "tool", "content": "ok", "tool_call_id": format!("c{index}")}),
        ]
    };
    (0..size).flat_map(round).collect()
}

fn messages(value: &Json) -> Vec<Message> {
    parse_thread(value, ThreadRoles::Any).expect("it is a thread")
}

fn answer(protocol: Protocol, body: String) -> Box<dyn Fn()> {
    Box::new(move || drop(decode(protocol, body.as_bytes())))
}

/// Reads a stream, cut into pieces of this many bytes.
fn stream(protocol: Protocol, body: String, cut: usize) -> Box<dyn Fn()> {
    Box::new(move || {
        let mut decoder = StreamDecoder::new(protocol);
        let mut deltas = Vec::new();
        for chunk in body.as_bytes().chunks(cut) {
            if decoder.push(chunk, &mut deltas).is_err() {
                break;
            }
        }
        drop(decoder.finish());
    })
}

/// Validates the arguments of a call with a JSON Schema.
fn arguments_of(schema: Json, arguments: Json) -> Box<dyn Fn()> {
    let function = Function { name: "f".into(), description: None, parameters: schema, strict: false };
    let options = TurnOptions { tools: vec![TurnTool::new(function)], ..TurnOptions::default() };
    let call = json!({"id": "a", "name": "f", "arguments": arguments.to_string()});
    Box::new(move || {
        let prompt = Prompt::from_spec(PromptSpec::default());
        let begun = vec![Message::text(Role::User, "x")];
        let mut turn = Turn::new(&prompt, &Inputs::new(), begun, options.clone()).expect("it begins");
        assert!(matches!(turn.next(), Next::Call));
        let call = tympan::wire::response::ToolCall {
            id: "a".into(),
            name: "f".into(),
            arguments: call["arguments"].as_str().unwrap_or_default().to_owned(),
        };
        let answer = Answer { tool_calls: vec![call], ..Answer::default() };
        turn.responded(Response { output: Output::Answer(answer), ..Response::default() }).expect("it was asked for");
    })
}

fn finished(outputs: Vec<Property>, value: Json) -> Box<dyn Fn()> {
    let text = value.to_string();
    Box::new(move || {
        let answer = Answer { text: text.clone(), ..Answer::default() };
        let response = Response { output: Output::Answer(answer), ..Response::default() };
        assert!(outcome::finish_as(&outputs, response).is_ok());
    })
}

fn named(size: usize) -> Vec<Property> {
    (0..size).map(|index| Property::new(format!("n{index}"), PropertyKind::String)).collect()
}

const REQUESTS: &[Row] = &[
    Row { name: "calls and results", size: 1_000, work: |n| request(messages(&calls_and_results(n)), String::new()) },
    Row {
        name: "instructions",
        size: 5_000,
        work: |n| request((0..n).map(|_| Message::text(Role::System, "be kind")).collect(), String::new()),
    },
    Row {
        name: "messages of a prompt that is cached",
        size: 500,
        work: |n| {
            let model = "model: {id: m, provider: anthropic, options: {cache: auto}}";
            let body = "user:\nx\n\nassistant:\ny {{ a }}\n\n".repeat(n);
            let source = SourceFile::new("a.prompty", format!("---\n{model}\ninputs: {{a: b}}\n---\n{body}"));
            let (document, _) = prompty::parse(&source, &mut NoReferences);
            let document = document.expect("it is a prompt");
            let prompt = Prompt::from_document(document.spec, source, document.body.start, Vec::new());
            Box::new(move || {
                let rendered = prompt.render_with(Inputs::new(), &RenderOptions::default()).expect("it renders");
                let messages = prompt.messages(rendered).expect("it has messages");
                assert!(encode(&prompt, &messages, &EncodeOptions::default()).is_ok());
            })
        },
    },
    Row {
        name: "tools and bindings",
        size: 500,
        work: |n| {
            let parameters = pieces(n, |i| format!("    p{i}: {{kind: string}}\n"));
            let bindings = pieces(n, |i| format!("    q{i}: {{input: x}}\n"));
            let tools =
                format!("tools:\n- name: t\n  kind: function\n  parameters:\n{parameters}  bindings:\n{bindings}");
            request(vec![Message::text(Role::User, "x")], tools)
        },
    },
];

#[test]
fn requests() {
    check(REQUESTS);
}

fn chat_call(index: usize, number: u64) -> String {
    let call = json!({"index": number, "id": format!("c{index}"), "function": {"name": "f", "arguments": "{}"}});
    format!("data: {}\n\n", json!({"choices": [{"delta": {"tool_calls": [call]}}]}))
}

const ANSWERS: &[Row] = &[
    Row {
        name: "a stream of words",
        size: 5_000,
        work: |n| {
            stream(
                Protocol::OpenAiChat,
                "data: {\"choices\":[{\"delta\":{\"content\":\"a \"}}]}\n\n".repeat(n),
                1 << 20,
            )
        },
    },
    Row {
        name: "a stream byte by byte",
        size: 500,
        work: |n| {
            stream(Protocol::OpenAiChat, "data: {\"choices\":[{\"delta\":{\"content\":\"a \"}}]}\n\n".repeat(n), 1)
        },
    },
    Row {
        name: "a long event byte by byte",
        size: 100_000,
        work: |n| {
            stream(
                Protocol::AnthropicMessages,
                format!("data: {{\"type\":\"ping\",\"x\":\"{}\"}}\n\n", "a".repeat(n)),
                1,
            )
        },
    },
    Row {
        name: "an event of many lines",
        size: 20_000,
        work: |n| {
            let text = format!("{}\n", "data: x\n".repeat(n));
            Box::new(move || {
                let mut decoder = SseDecoder::new(1 << 30);
                for chunk in text.as_bytes().chunks(7) {
                    decoder.push(chunk, |_| Ok(())).expect("it is an event");
                }
            })
        },
    },
    Row { name: "comments", size: 50_000, work: |n| stream(Protocol::OpenAiChat, ":\n".repeat(n), 3) },
    Row {
        name: "calls with the same number",
        size: 60,
        work: |n| stream(Protocol::OpenAiChat, pieces(n, |i| chat_call(i, 0)), 1 << 20),
    },
    Row {
        name: "calls with great numbers",
        size: 2_000,
        work: |n| stream(Protocol::OpenAiChat, pieces(n, |i| chat_call(i, u64::MAX - i as u64)), 1 << 20),
    },
    Row {
        name: "one call in many pieces",
        size: 5_000,
        work: |n| {
            let piece = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"x\"}}]}}]}\n\n";
            stream(Protocol::OpenAiChat, piece.repeat(n), 1 << 20)
        },
    },
    Row {
        name: "a whole answer with many calls",
        size: 5_000,
        work: |n| {
            let calls: Json =
                (0..n).map(|i| json!({"id": i.to_string(), "function": {"name": "f", "arguments": "{}"}})).collect();
            answer(Protocol::OpenAiChat, json!({"choices": [{"message": {"tool_calls": calls}}]}).to_string())
        },
    },
    Row {
        name: "a whole answer with many blocks",
        size: 5_000,
        work: |n| {
            let blocks: Json = (0..n).map(|_| json!({"type": "text", "text": "a"})).collect();
            answer(Protocol::AnthropicMessages, json!({"content": blocks}).to_string())
        },
    },
    Row {
        name: "a whole answer with many items",
        size: 5_000,
        work: |n| {
            let item = json!({"type": "message", "content": [{"type": "output_text", "text": "a"}]});
            let output: Json = (0..n).map(|_| item.clone()).collect();
            answer(Protocol::OpenAiResponses, json!({"output": output}).to_string())
        },
    },
    Row {
        name: "halves of characters",
        size: 5_000,
        work: |n| {
            let text = "\\ud83d".repeat(n);
            stream(
                Protocol::OpenAiChat,
                format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"),
                1 << 20,
            )
        },
    },
];

#[test]
fn answers() {
    check(ANSWERS);
}

fn read_arguments(text: String) -> Box<dyn Fn()> {
    Box::new(move || drop(arguments::parse(&text)))
}

const ARGUMENTS: &[Row] = &[
    Row { name: "commas", size: 20_000, work: |n| read_arguments(format!("{{\"a\": [{}]}}", ", ".repeat(n))) },
    Row {
        name: "commas and spaces",
        size: 20_000,
        work: |n| read_arguments(format!("{{\"a\": [1,{}]}}", " ".repeat(n))),
    },
    Row { name: "braces", size: 50_000, work: |n| read_arguments("{".repeat(n)) },
    Row { name: "quotes", size: 50_000, work: |n| read_arguments("{\"\\\"".repeat(n)) },
    Row { name: "fences", size: 50_000, work: |n| read_arguments("```json\n".repeat(n)) },
    Row {
        name: "a list and a long enumeration",
        size: 500,
        work: |n| {
            let allowed: Json = (0..n).map(|i| json!(format!("a{i}"))).collect();
            let given: Json = (0..n).map(|_| json!("b")).collect();
            let schema = json!({"type": "object", "properties": {"a": {"items": {"enum": allowed}}}});
            arguments_of(schema, json!({"a": given}))
        },
    },
    Row {
        name: "objects and many required members",
        size: 500,
        work: |n| {
            let required: Json = (0..n).map(|i| json!(format!("a{i}"))).collect();
            let given: Json = (0..n).map(|_| json!({})).collect();
            let schema = json!({"properties": {"a": {"items": {"anyOf": [{"required": required}, {}]}}}});
            arguments_of(schema, json!({"a": given}))
        },
    },
    Row {
        name: "a result with members that nothing declares",
        size: 2_000,
        work: |n| finished(named(n), (0..n).map(|i| (format!("m{i}"), json!(1))).collect()),
    },
    Row {
        name: "a result and a long enumeration",
        size: 500,
        work: |n| {
            let allowed = (0..n).map(|i| json!(format!("a{i}"))).collect();
            let items = Property { enum_values: Some(allowed), ..Property::new("", PropertyKind::String) };
            let list = Property { items: Some(Box::new(items)), ..Property::new("a", PropertyKind::Array) };
            finished(vec![list], json!({"a": (0..n).map(|_| "b").collect::<Vec<_>>()}))
        },
    },
];

#[test]
fn arguments_and_results() {
    check(ARGUMENTS);
}

const OTHERS: &[Row] = &[
    Row {
        name: "guesses among many names",
        size: 500,
        work: |n| {
            let names: Vec<_> = (0..n).map(|index| format!("name_{index}")).collect();
            Box::new(move || {
                for name in &names {
                    diagnostic::guess_name(&name.replace('n', "m"), names.iter().map(String::as_str));
                }
            })
        },
    },
    Row {
        name: "guesses among long names",
        size: 2_000,
        work: |n| {
            let (one, other) = ("a".repeat(n), "b".repeat(n));
            Box::new(move || assert_eq!(diagnostic::guess(&one, [other.as_str(); 20]), None))
        },
    },
    Row {
        name: "places on one line",
        size: 10_000,
        work: |n| {
            let source = SourceFile::new("x", "é".repeat(n));
            Box::new(move || {
                let columns: usize = (0..source.text().len()).map(|at| source.line_column(at).column).sum();
                assert!(columns > 0);
            })
        },
    },
    Row {
        name: "places on many lines",
        size: 10_000,
        work: |n| {
            let source = SourceFile::new("x", "\n".repeat(n));
            Box::new(move || {
                let lines: usize = (0..source.text().len()).map(|at| source.line_column(at).line).sum();
                assert!(lines > 0);
            })
        },
    },
    Row {
        name: "a definition's hash",
        size: 2_000,
        work: |n| {
            let metadata = (0..n).map(|index| (format!("k{index}"), json!([index]))).collect();
            let spec = PromptSpec { metadata, ..PromptSpec::default() };
            Box::new(move || assert_eq!(Prompt::from_spec(spec.clone()).definition_hash().len(), 64))
        },
    },
    Row {
        name: "redaction of a long text",
        size: 20_000,
        work: |n| {
            let mut redactor = Redactor::new(true);
            redactor.register("a-long-secret");
            let text = "sk-aaaa eyJhb.x Bearer key=a-long-secre ".repeat(n / 10);
            Box::new(move || assert!(!redactor.text(&text).is_empty()))
        },
    },
    Row {
        name: "redaction of text without spaces",
        size: 20_000,
        work: |n| {
            let redactor = Redactor::new(true);
            let texts = ["a", "sk-", "eyJ", "-----BEGIN ", "://", "@", "=", "AKIA"].map(|piece| piece.repeat(n / 10));
            Box::new(move || assert!(texts.iter().all(|text| !redactor.text(text).is_empty())))
        },
    },
    Row {
        name: "redaction of many secrets",
        size: 200,
        work: |n| {
            let mut redactor = Redactor::new(false);
            let secrets: Vec<_> = (0..n).map(|index| Secret::new(format!("secret-number-{index}"))).collect();
            redactor.register_all(&secrets);
            let text = pieces(n, |index| format!("secret-number-{index} "));
            Box::new(move || assert!(!redactor.text(&text).contains("number")))
        },
    },
    Row {
        name: "redaction of many keys",
        size: 1_000,
        work: |n| {
            let redactor = Redactor::new(true);
            let value: Json = (0..n).map(|index| (format!("sk-a{index:020}"), json!(1))).collect();
            Box::new(move || assert!(redactor.json(&value).is_object()))
        },
    },
    Row {
        name: "redaction of JSON in JSON",
        size: 5_000,
        work: |n| {
            let redactor = Redactor::new(true);
            let value = json!({"a": json!({"b": "{[\"\\".repeat(n)}).to_string(), "c": vec![json!({"token": "x"}); n]});
            Box::new(move || assert!(redactor.json(&value).is_object()))
        },
    },
    Row {
        name: "many findings with places",
        size: 2_000,
        work: |n| {
            let source = SourceFile::new("x", "a".repeat(n * 10));
            Box::new(move || {
                let spans = (0..source.text().len() / 10).map(|index| Span::new(index * 10, index * 10 + 1));
                let mut text = String::new();
                for span in spans {
                    let place = source.line_column(span.start);
                    let _ = write!(text, "{}:{} ", place.line, place.column);
                }
                assert!(!text.is_empty());
            })
        },
    },
];

#[test]
fn what_is_said_about_it() {
    check(OTHERS);
}

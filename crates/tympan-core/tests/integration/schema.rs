//! JSON Schemas: the cases in `fixtures/schema`, from the declaration to the requests, and to the checks of arguments and
//! results.
#![expect(clippy::disallowed_methods, reason = "tests read their cases from files")]

use std::fmt::Write as _;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};
use tympan::chat::message::ContentPart;
use tympan::format::{NoReferences, prompty};
use tympan::text::source::SourceFile;
use tympan::turn::{Next, Turn, TurnEvent, TurnOptions, outcome};
use tympan::wire::response::{Answer, Output, ToolCall};
use tympan::wire::{EncodeOptions, Function, encode};
use tympan::{Inputs, Message, Outcome, Prompt, Response, Role};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    schema: Value,
    /// The parameters that the model does not see.
    #[serde(default)]
    bound: Vec<String>,
    accepted: Vec<Value>,
    refused: Vec<Value>,
    /// Values that match because an optional property may be null.
    #[serde(default)]
    accepted_null: Vec<Value>,
    /// Values that do not match because a property is not declared.
    #[serde(default)]
    refused_undeclared: Vec<Value>,
}

fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/schema")
}

fn read<T: for<'de> Deserialize<'de>>(path: &str) -> T {
    let text = std::fs::read_to_string(fixtures().join(path)).expect("the fixture is there");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn parse(front_matter: &Value) -> Prompt {
    let source = SourceFile::new("case.prompty", format!("---\n{front_matter}\n---\nuser:\nGo.\n"));
    let (document, findings) = prompty::parse(&source, &mut NoReferences);
    let document = document.unwrap_or_else(|| panic!("{findings:?}"));
    assert_eq!(findings, [], "{front_matter}");
    Prompt::from_document(document.spec, source, document.body.start, findings)
}

impl Case {
    fn prompt(&self, provider: &str, is_strict: bool) -> Prompt {
        let bindings: serde_json::Map<_, _> = self.bound.iter().map(|name| (name.clone(), json!("bound"))).collect();
        parse(&json!({
            "model": {"provider": provider, "id": "m"},
            "tools": [{
                "name": "t", "kind": "function", "strict": is_strict, "parameters": self.schema, "bindings": bindings,
            }],
            "outputs": self.schema,
        }))
    }

    /// Returns the part of a request that depends on the schema.
    fn request(&self, provider: &str, api_type: &str, is_strict: bool) -> (Value, Value) {
        let prompt = self.prompt(provider, is_strict);
        let options = EncodeOptions { api_type: Some(api_type), ..EncodeOptions::default() };
        let request = encode(&prompt, &[Message::text(Role::User, "Go.")], &options).expect("it is a request");
        let body: Value = serde_json::from_str(&request.body).expect("a body is JSON");
        let format = ["response_format", "text", "output_config"].iter().find_map(|key| body.get(*key));
        (body["tools"][0].clone(), format.cloned().unwrap_or_default())
    }

    fn describe(&self, text: &mut String) {
        let _ = writeln!(text, "# {}", self.name);
        let as_written = self.request("openai", "chat", false).0["function"]["parameters"].clone();
        if as_written == self.schema {
            let _ = writeln!(text, "sent as written");
        } else {
            let _ = writeln!(text, "sent: {as_written}");
        }
        assert_eq!(as_written, self.request("openai", "responses", false).0["parameters"]);
        assert_eq!(as_written, self.request("anthropic", "chat", false).0["input_schema"]);
        for (provider, api) in [("openai", "chat"), ("openai", "responses"), ("anthropic", "chat")] {
            let (tool, format) = self.request(provider, api, true);
            let _ = writeln!(text, "{provider} {api}, strict tool: {tool}\n{provider} {api}, outputs: {format}");
        }
        for provider in ["openai", "azure", "anthropic"] {
            for finding in self.prompt(provider, true).check_schemas() {
                let _ = writeln!(text, "{provider}, {}: {}", finding.code, finding.message);
            }
        }
        for value in self.refused.iter().chain(&self.refused_undeclared) {
            let _ = writeln!(text, "{value}: {}", self.argument_problem(value).expect("it is refused"));
        }
        text.push('\n');
    }

    /// Returns what the model is told about arguments that do not match.
    fn argument_problem(&self, arguments: &Value) -> Option<String> {
        let prompt = self.prompt("openai", false);
        let messages = vec![Message::text(Role::User, "Go.")];
        let mut turn = Turn::new(&prompt, &Inputs::new(), messages, TurnOptions::default()).expect("it is sound");
        assert!(matches!(turn.next(), Next::Call));
        let call = ToolCall { id: "1".into(), name: "t".into(), arguments: arguments.to_string() };
        turn.responded(response(Answer { tool_calls: vec![call], ..Answer::default() })).expect("a call was expected");
        if let Next::Run(runs) = turn.next() {
            assert!(self.bound.iter().all(|name| runs[0].arguments[name] == "bound"));
            return None;
        }
        turn.take_events().into_iter().find_map(|event| match event {
            TurnEvent::ToolResult { result, .. } => {
                Some(result.parts.iter().filter_map(ContentPart::as_text).collect::<String>())
            }
            _ => None,
        })
    }

    fn result_problems(&self, value: &Value) -> Vec<String> {
        let answer = Answer { text: value.to_string(), ..Answer::default() };
        match outcome::finish(&self.prompt("openai", false), response(answer)).expect("a result") {
            Outcome::Structured(structured) => structured.problems,
            other => panic!("{other:?}"),
        }
    }
}

fn response(answer: Answer) -> Response {
    Response { output: Output::Answer(answer), ..Response::default() }
}

#[test]
fn schemas_are_sent_as_their_snapshots_say() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(fixtures().join("snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for name in ["pydantic", "zod", "other"] {
            let mut text = String::new();
            read::<Vec<Case>>(&format!("cases/{name}.json")).iter().for_each(|case| case.describe(&mut text));
            insta::assert_snapshot!(name, text);
        }
    });
}

#[test]
fn arguments_and_results_are_checked_by_schemas() {
    for case in ["pydantic", "zod", "other"].iter().flat_map(|name| read::<Vec<Case>>(&format!("cases/{name}.json"))) {
        for value in case.accepted.iter().chain(&case.accepted_null) {
            assert_eq!(case.argument_problem(value), None, "{}: {value}", case.name);
            if case.bound.is_empty() {
                assert_eq!(case.result_problems(value), [""; 0], "{}: {value}", case.name);
            }
        }
        for value in case.refused.iter().chain(&case.refused_undeclared) {
            assert!(case.argument_problem(value).is_some(), "{}: {value}", case.name);
            assert_ne!(case.result_problems(value), [""; 0], "{}: {value}", case.name);
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Verdict {
    Defs { defs: Value },
    Schema { schema: Value, valid: Vec<Value>, invalid: Vec<Value> },
}

/// Compares verdicts with those of the Python package jsonschema.
#[test]
fn verdicts_are_those_of_jsonschema() {
    let mut all_defs = Value::Null;
    let mut wrong = String::new();
    for verdict in read::<Vec<Verdict>>("verdicts.json") {
        let (schema, valid, invalid) = match verdict {
            Verdict::Defs { defs } => {
                all_defs = defs;
                continue;
            }
            Verdict::Schema { schema, valid, invalid } => (schema, valid, invalid),
        };
        let root = json!({
            "type": "object", "properties": {"v": schema}, "required": ["v"], "$defs": all_defs,
            "additionalProperties": true,
        });
        let case = Case {
            name: String::new(),
            schema: root,
            bound: Vec::new(),
            accepted: valid,
            refused: invalid,
            accepted_null: Vec::new(),
            refused_undeclared: Vec::new(),
        };
        for (value, is_valid) in
            case.accepted.iter().map(|value| (value, true)).chain(case.refused.iter().map(|value| (value, false)))
        {
            let problems = case.host_problems(value);
            if problems.is_none() != is_valid {
                let _ = writeln!(wrong, "{} {value}: {problems:?}", case.schema["properties"]["v"]);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

impl Case {
    /// Returns what the model is told about arguments of a function that the host provides. Only the schema counts.
    fn host_problems(&self, value: &Value) -> Option<String> {
        let function = Function { name: "t".into(), description: None, parameters: self.schema.clone(), strict: false };
        let tools = vec![tympan::turn::TurnTool::new(function)];
        let options = TurnOptions { tools, ..TurnOptions::default() };
        let prompt = parse(&json!({}));
        let messages = vec![Message::text(Role::User, "Go.")];
        let mut turn = Turn::new(&prompt, &Inputs::new(), messages, options).expect("it is sound");
        assert!(matches!(turn.next(), Next::Call));
        let arguments = json!({ "v": value }).to_string();
        let call = ToolCall { id: "1".into(), name: "t".into(), arguments };
        turn.responded(response(Answer { tool_calls: vec![call], ..Answer::default() })).expect("a call was expected");
        if matches!(turn.next(), Next::Run(_)) {
            return None;
        }
        turn.take_events().into_iter().find_map(|event| match event {
            TurnEvent::ToolResult { result, .. } => {
                Some(result.parts.iter().filter_map(ContentPart::as_text).collect::<String>())
            }
            _ => None,
        })
    }
}

fn hash(front_matter: &Value) -> String {
    parse(front_matter).definition_hash().to_owned()
}

#[test]
fn hashes_depend_on_restrictions_that_properties_do_not_express() {
    let tool = |parameters: Value| json!({"tools": [{"name": "t", "kind": "function", "parameters": parameters}]});
    let plain = hash(&tool(json!({"type": "object", "properties": {"a": {"type": "string"}}})));
    let titled = json!({
        "type": "object", "title": "T", "additionalProperties": false, "$schema": "https://json-schema.org/schema",
        "properties": {"a": {"type": ["string", "null"], "title": "A"}},
    });
    assert_eq!(hash(&tool(titled)), plain);
    let listed = json!([{"name": "a", "kind": "string"}]);
    assert_eq!(hash(&tool(listed)), plain);
    let bounded = |most: u32| json!({"type": "object", "properties": {"a": {"type": "string", "maxLength": most}}});
    assert_ne!(hash(&tool(bounded(1))), plain);
    assert_ne!(hash(&tool(bounded(1))), hash(&tool(bounded(2))));
}

#[test]
fn keywords_of_properties_in_prompt_files_are_kept() {
    let prompt = parse(&json!({
        "model": {"provider": "openai", "id": "m"},
        "tools": [{"name": "t", "kind": "function", "parameters": [
            {"name": "tags", "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
            {"name": "size", "kind": "float", "required": true, "minimum": 0, "example": 3},
            {"name": "unit", "kind": "string", "enumValues": ["m", "km"], "default": "m"},
        ]}],
    }));
    let options = EncodeOptions::default();
    let request = encode(&prompt, &[Message::text(Role::User, "Go.")], &options).expect("it is a request");
    let body: Value = serde_json::from_str(&request.body).expect("a body is JSON");
    assert_eq!(
        body["tools"][0]["function"]["parameters"],
        json!({
            "type": "object",
            "properties": {
                "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
                "size": {"type": "number", "minimum": 0},
                "unit": {"type": "string", "enum": ["m", "km"], "default": "m"},
            },
            "required": ["size"],
        })
    );
}

#[test]
fn the_echo_provider_answers_with_values_that_match() {
    for case in ["pydantic", "zod", "other"].iter().flat_map(|name| read::<Vec<Case>>(&format!("cases/{name}.json"))) {
        // Patterns and conditions would need a search.
        if ["Bounds", "conditions", "search", "a pattern with a word boundary"].contains(&case.name.as_str()) {
            continue;
        }
        let prompt = case.prompt("echo", false);
        let messages = [Message::text(Role::User, "Go.")];
        let response = tympan::wire::echo::answer(&prompt, &messages, None).expect("it answers");
        let Output::Answer(answer) = &response.output else { panic!("{response:?}") };
        let value: Value = serde_json::from_str(&answer.text).expect("it is JSON");
        assert_eq!(case.result_problems(&value), [""; 0], "{}: {value}", case.name);
    }
}

#[test]
fn hostile_schemas_end() {
    let circle = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
    let several = |name: &str| json!([{"$ref": name}, {"$ref": name}, {"$ref": name}, {"$ref": name}]);
    let mut defs = serde_json::Map::new();
    for index in 0..40 {
        let name = format!("#/$defs/d{}", index + 1);
        let properties = json!({"a": {"anyOf": several(&name)}, "b": {"$ref": name}, "c": {"allOf": several(&name)}});
        defs.insert(format!("d{index}"), json!({"properties": properties, "allOf": several(&name)}));
    }
    defs.insert("d40".into(), json!({"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}));
    let bomb = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "allOf": several("#/$defs/d0"), "$defs": defs});
    for schema in [circle, bomb] {
        let case = Case {
            name: String::new(),
            schema,
            bound: vec!["x".into()],
            accepted: Vec::new(),
            refused: Vec::new(),
            accepted_null: Vec::new(),
            refused_undeclared: Vec::new(),
        };
        for provider in ["openai", "anthropic"] {
            case.request(provider, "chat", true);
            case.prompt(provider, true).check_schemas();
        }
        case.argument_problem(&json!({"a": {"a": {"a": {}}}}));
        case.result_problems(&json!({"a": {"b": {"c": {}}}}));
    }
}

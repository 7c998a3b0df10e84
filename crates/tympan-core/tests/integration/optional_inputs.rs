//! Inputs that are declared and not given: the cases in `fixtures/inputs/optional.json`.

use std::path::Path;

use serde_json::{Value as Json, json};
use tympan_core::{Inputs, Prompt, RenderOptions};

pub(crate) fn cases(file: &str) -> Vec<Json> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/inputs").join(file);
    #[expect(clippy::disallowed_methods, reason = "a test reads its cases")]
    let text = std::fs::read_to_string(path).expect("the cases are there");
    serde_json::from_str(&text).expect("a list of cases")
}

fn prompt(case: &Json) -> Prompt {
    let text = |key: &str| case[key].as_str().unwrap_or_default();
    let template = case["template"].as_str().unwrap_or("jinja2");
    let (declared, body) = (text("declared"), text("body"));
    let source = format!("---\ntemplate: {template}\ninputs:\n  {declared}\n---\n{body}");
    Prompt::from_prompty(&source).expect("the prompt loads")
}

fn inputs(case: &Json) -> Inputs {
    case["inputs"].as_object().cloned().unwrap_or_default()
}

#[test]
fn fixtures() {
    for case in cases("optional.json") {
        let (prompt, inputs) = (prompt(&case), inputs(&case));
        let options = RenderOptions { entropy: Some(&|| Ok(7)), ..RenderOptions::default() };
        let rendered = prompt.render_with(&inputs, &options);
        if let Some(code) = case["error"].as_str() {
            let error = rendered.expect_err(case["name"].as_str().expect("a name"));
            assert_eq!(error.code(), code, "{case}");
            assert!(case["message"].is_null() || case["message"] == error.message(), "{error}: {case}");
            let help = case["help"].as_str().unwrap_or_default();
            assert!(error.help().unwrap_or_default().contains(help), "{:?}: {case}", error.help());
            continue;
        }
        let rendered = rendered.unwrap_or_else(|error| panic!("{error}: {case}"));
        assert!(case["text"].is_null() || case["text"] == rendered.text(), "{:?}: {case}", rendered.text());
        let messages = prompt.messages(rendered).expect("the parser is known");
        let roles: Vec<_> = messages.iter().map(|message| message.role.as_str()).collect();
        assert!(case["roles"].is_null() || case["roles"] == json!(roles), "{roles:?}: {case}");
    }
}

#[test]
fn validated_inputs_leave_out_what_has_no_value() {
    let source = "---\ninputs:\n  a: {kind: string}\n  b: {kind: string, default: x}\n  \
                  c: {kind: string, required: true}\n---\n{{ a }}";
    let prompt = Prompt::from_prompty(source).expect("it loads");
    let inputs = json!({ "z": null, "a": null, "b": null, "c": null, "d": 1 });
    let validated = prompt.validate_inputs(&inputs).expect("they are valid");
    assert_eq!(Json::Object(validated), json!({ "z": null, "b": "x", "c": null, "d": 1 }));
}

#[test]
fn definitions_and_directives_keep_their_rules() {
    let prompt =
        Prompt::from_yaml("{name: a, role: user, body: '{{ x }}', variables: {x: {type: string, trusted: false}}}");
    let prompt = prompt.expect("a definition");
    assert_eq!(prompt.render(json!({})).expect_err("x has no value").code(), "undefined_variable");
    assert_eq!(prompt.render(json!({ "x": null })).expect("null is a value").text(), "");
}

#[test]
fn what_an_absent_input_decides_is_not_the_authors() {
    let source = "---\ninputs:\n  a: {kind: string}\n---\nuser:\n{{ 'x' + a }}{{ a | default('y') }}";
    let rendered = Prompt::from_prompty(source).expect("it loads").render(json!({})).expect("it renders");
    assert_eq!(rendered.text(), "user:\nxy");
}

//! Prompts give the same results as in Python and Node: all three are compared with `fixtures/bindings/parity.json`.
//! `UPDATE_PARITY=1` regenerates it.

use std::path::Path;

use serde_json::{Value as Json, json};
use tympan_runtime::{Error, Guard, Inputs, Result, Runtime, RuntimeOptions};

#[test]
fn prompts_become_what_they_become_in_all_languages() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file = root.join("fixtures/bindings/parity.json");
    let text = std::fs::read_to_string(&file).expect("the cases");
    let mut cases: Vec<Json> = serde_json::from_str(&text).expect("a list of cases");
    assert!(cases.len() >= 20, "{} cases", cases.len());
    for case in &mut cases {
        let became = outcome(&root, case).unwrap_or_else(|error| refusal(&error));
        if std::env::var_os("UPDATE_PARITY").is_some() {
            case["expected"] = became;
        } else {
            assert_eq!(case["expected"], became, "{} {}", case["file"], case["inputs"]);
        }
    }
    if std::env::var_os("UPDATE_PARITY").is_some() {
        std::fs::write(file, serde_json::to_string_pretty(&cases).expect("JSON") + "\n").expect("it is written");
    }
}

fn outcome(root: &Path, case: &Json) -> Result<Json> {
    let guard = case["guard"].as_bool().unwrap_or(false).then(Guard::default);
    let runtime = Runtime::new(RuntimeOptions { guard, ..RuntimeOptions::default() });
    let prompt = runtime.load(root.join(case["file"].as_str().expect("a file")))?;
    let inputs: &Inputs = case["inputs"].as_object().expect("inputs");
    let variant = case["variant"].as_str();
    let options = tympan_core::RenderOptions { variant, ..runtime.render_options() };
    let rendered = runtime.render_with(&prompt, inputs, &options)?;
    let segments: Vec<_> = rendered
        .segments()
        .map(|segment| {
            let origins: Vec<_> = rendered.inputs().names(segment.origin).collect();
            json!({ "text": segment.text, "origins": origins, "trusted": rendered.is_trusted(&segment) })
        })
        .collect();
    Ok(json!({
        "name": prompt.name(),
        "definition_hash": prompt.definition_hash(),
        "template_hash": rendered.template_hash(),
        "render_hash": rendered.render_hash(),
        "variant": rendered.variant(),
        "text": rendered.text(),
        "segments": segments,
        "messages": runtime.parse(&prompt, &rendered)?,
    }))
}

fn refusal(error: &Error) -> Json {
    let place = error.line_column();
    json!({
        "class": error.class().as_str(),
        "code": error.code(),
        "help": error.help(),
        "line": place.map(|place| place.line),
        "column": place.map(|place| place.column),
    })
}

//! The cases in `fixtures/lsp`: a document, a request at its cursor, and the expected answer.
//!
//! In a document, `‸` marks the cursor, or both ends of a range.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value as Json, json};
use tympan_lsp::position::{Encoding, LineIndex};

use crate::client::{Client, usual_params};
use crate::show;

#[derive(Deserialize)]
struct Fixture {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(default = "default_file")]
    file: String,
    text: String,
    /// Files beside the document, on disk.
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// Documents beside it that are open and not saved.
    #[serde(default)]
    open: BTreeMap<String, String>,
    /// The request, such as `hover`.
    request: String,
    /// What the request is about: the new name, the title of the action to apply, or the suggestion to choose.
    #[serde(default)]
    with: String,
    /// The whole answer, or for completions the lines that it has to contain.
    expected: String,
    /// Lines that the answer must not contain.
    #[serde(default)]
    unexpected: Vec<String>,
}

fn default_file() -> String {
    "test.prompty".to_owned()
}

#[test]
fn fixtures_have_the_expected_answers() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/lsp");
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("a file").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    assert!(!files.is_empty());
    let mut failures = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).expect("it is readable");
        let fixture: Fixture = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for case in fixture.case {
            let actual = answer(&case);
            if !fits(&case, &actual) {
                let file = path.file_name().expect("a name").display().to_string();
                failures.push(format!("{file}: {}\nexpected:\n{}\nfound:\n{actual}\n", case.name, case.expected));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn fits(case: &Case, actual: &str) -> bool {
    let has = |line: &str| actual.lines().any(|other| other.trim_end() == line.trim_end());
    if case.unexpected.iter().any(|line| has(line)) {
        return false;
    }
    match case.request.as_str() {
        "completion" if case.with.is_empty() => case.expected.lines().all(has),
        _ => case.expected.trim_end() == actual.trim_end(),
    }
}

fn answer(case: &Case) -> String {
    let mut parts = case.text.split('‸');
    let mut text = parts.next().unwrap_or_default().to_owned();
    let mut marks = Vec::new();
    for part in parts {
        marks.push(text.len());
        text += part;
    }
    let lines = LineIndex::new(&text);
    let position = |mark: usize| {
        let at = lines.position(&text, marks.get(mark).copied().unwrap_or_default(), Encoding::Utf8);
        json!({"line": at.line, "character": at.character})
    };
    let (start, end) = (position(0), position(marks.len().max(1) - 1));
    let folder = tempfile::tempdir().expect("a folder");
    let root = match case.files.is_empty() && case.open.is_empty() {
        true => "file:///workspace".to_owned(),
        false => format!("file://{}", folder.path().canonicalize().expect("a path").display()),
    };
    for (name, text) in &case.files {
        fs::write(folder.path().join(name), text).expect("it is written");
    }
    let uri = format!("{root}/{}", case.file);
    let mut params = usual_params();
    params["initializationOptions"] = json!({"trusted": true});
    let mut client = Client::initialized(params);
    for (name, text) in &case.open {
        client.open(&format!("{root}/{name}"), text);
    }
    client.open(&uri, &text);
    let document = json!({"uri": uri});
    let range = json!({"start": start, "end": end});
    let answer = match case.request.as_str() {
        "diagnostics" => show::diagnostics(&client.diagnostics(&uri)["diagnostics"]),
        "actions" | "source" => {
            let only = if case.request == "source" { json!(["source.fixAll"]) } else { json!(null) };
            let context = json!({"diagnostics": [], "only": only});
            let params = json!({"textDocument": document, "range": range, "context": context});
            let actions = client.request("textDocument/codeAction", params).expect("an answer");
            show_actions(&actions, &case.with, &text, &uri)
        }
        "rename" => {
            let params = json!({"textDocument": document, "position": start, "newName": case.with});
            let prepared = client.request("textDocument/prepareRename", params.clone());
            match prepared.and_then(|_| client.request("textDocument/rename", params)) {
                Ok(edit) => show_changes(case, &text, &edit["changes"], &root),
                Err(error) => format!("error: {}\n", error.message),
            }
        }
        "format" => {
            let options = json!({"tabSize": 2, "insertSpaces": true});
            let params = json!({"textDocument": document, "options": options});
            apply(&text, &client.request("textDocument/formatting", params).expect("an answer"))
        }
        // The text after choosing a suggestion.
        "completion" if !case.with.is_empty() => {
            let params = json!({"textDocument": document, "position": start});
            let found = client.request("textDocument/completion", params).expect("an answer");
            let items = found["items"].as_array().expect("a list");
            let chosen = items.iter().find(|item| item["label"] == case.with).expect("a suggestion");
            apply(&text, &json!([chosen["textEdit"]]))
        }
        "render" => {
            let params = json!({"command": "tympan.render", "arguments": [uri]});
            match client.request("workspace/executeCommand", params) {
                Ok(answer) => answer["text"].as_str().unwrap_or("?").to_owned(),
                Err(error) => format!("error: {}\n", error.message),
            }
        }
        request => {
            let method = match request {
                "tokens" => "textDocument/semanticTokens/full".to_owned(),
                "symbols" => "textDocument/documentSymbol".to_owned(),
                "hints" => "textDocument/inlayHint".to_owned(),
                "lenses" => "textDocument/codeLens".to_owned(),
                other => format!("textDocument/{other}"),
            };
            let range = json!({"start": {"line": 0, "character": 0}, "end": {"line": 9999, "character": 0}});
            let context = json!({"includeDeclaration": true, "triggerKind": 1});
            let params = json!({"textDocument": document, "position": start, "range": range, "context": context});
            let answer = client.request(&method, params).expect("an answer");
            show::answer(request, &answer, &text).replace(&format!("{uri} "), "").replace(&format!("{root}/"), "")
        }
    };
    client.shut_down();
    answer
}

/// Returns the text after a change, and those of the other files that change.
fn show_changes(case: &Case, text: &str, changes: &Json, root: &str) -> String {
    let mut shown = apply(text, &changes[format!("{root}/{}", case.file)]);
    for (name, text) in case.files.iter().chain(&case.open) {
        if let Some(edits) = changes.get(format!("{root}/{name}")) {
            shown += &format!("== {name}\n{}", apply(text, edits));
        }
    }
    shown
}

/// Returns the titles of the actions, or the text after one of them.
fn show_actions(actions: &Json, chosen: &str, text: &str, uri: &str) -> String {
    let actions = actions.as_array().expect("a list");
    if chosen.is_empty() {
        return actions.iter().map(|action| format!("{}\n", action["title"].as_str().unwrap_or("?"))).collect();
    }
    match actions.iter().find(|action| action["title"].as_str().is_some_and(|title| title.starts_with(chosen))) {
        Some(action) => apply(text, &action["edit"]["changes"][uri]),
        None => "no such action\n".to_owned(),
    }
}

/// Applies edits to a text.
pub(crate) fn apply(text: &str, edits: &Json) -> String {
    let lines = LineIndex::new(text);
    let offset = |position: &Json| {
        let number = |unit: &str| u32::try_from(position[unit].as_u64().unwrap_or_default()).unwrap_or_default();
        lines.offset(text, gen_lsp_types::Position::new(number("line"), number("character")), Encoding::Utf8)
    };
    let edits = edits.as_array().into_iter().flatten();
    let mut edits: Vec<_> = edits
        .map(|edit| (offset(&edit["range"]["start"])..offset(&edit["range"]["end"]), edit["newText"].as_str()))
        .collect();
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    let mut text = text.to_owned();
    for (range, new) in edits.into_iter().rev() {
        text.replace_range(range, new.unwrap_or_default());
    }
    text
}

//! Code actions, compared with what a check does: comments that ignore a finding, and all fixes at once.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use tympan_core::text::source::SourceFile;
use tympan_lint::{FixMode, Options, fix_file};
use tympan_runtime::LoadOptions;
use tympan_runtime::load::References;

use crate::client::Client;
use crate::fixtures::apply;

/// Returns the codes of the diagnostics.
fn codes(diagnostics: &[Json]) -> Vec<&str> {
    diagnostics.iter().map(|diagnostic| diagnostic["code"].as_str().expect("a code")).collect()
}

/// Returns the diagnostics of a text.
fn check(client: &mut Client, uri: &str, text: &str) -> Vec<Json> {
    client.open(uri, text);
    client.diagnostics(uri)["diagnostics"].as_array().expect("a list").clone()
}

/// Returns the text after the action that ignores a diagnostic.
fn ignored(client: &mut Client, uri: &str, text: &str, diagnostic: &Json) -> Option<String> {
    let params = json!({
        "textDocument": {"uri": uri},
        "range": diagnostic["range"],
        "context": {"diagnostics": [diagnostic], "only": ["quickfix"]},
    });
    let actions = client.request("textDocument/codeAction", params).expect("actions");
    let code = diagnostic["code"].as_str().expect("a code");
    let is_wanted = |action: &&Json| {
        let title = action["title"].as_str().expect("a title");
        title.starts_with(&format!("Ignore {code} ")) && action["diagnostics"][0]["range"] == diagnostic["range"]
    };
    let actions = actions.as_array().expect("a list").clone();
    actions.iter().find(is_wanted).map(|action| apply(text, &action["edit"]["changes"][uri]))
}

/// Returns the prompt files of a folder in which comments are possible.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    const EXTENSIONS: [&str; 3] = ["prompty", "yaml", "toml"];
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, found);
        } else if EXTENSIONS.iter().any(|known| path.extension().is_some_and(|extension| extension == *known)) {
            found.push(path);
        }
    }
}

fn fixtures(folders: &[&str]) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").canonicalize().expect("the folder");
    let mut found = Vec::new();
    folders.iter().for_each(|folder| files(&root.join(folder), &mut found));
    found.sort();
    found
}

#[test]
fn ignored_findings_are_gone() {
    let mut client = Client::usual();
    let (mut tried, mut refused) = (0, Vec::new());
    for path in fixtures(&["lint"]) {
        let (uri, text) = (format!("file://{}", path.display()), fs::read_to_string(&path).expect("a text"));
        let before = check(&mut client, &uri, &text);
        for diagnostic in &before {
            let code = diagnostic["code"].as_str().expect("a code");
            let Some(after) = ignored(&mut client, &uri, &text, diagnostic) else {
                refused.push(format!("{} {code}", path.file_name().expect("a name").display()));
                continue;
            };
            tried += 1;
            let left = check(&mut client, &uri, &after);
            let count = |list: &[Json], code: &str| codes(list).iter().filter(|other| **other == code).count();
            assert!(count(&left, code) < count(&before, code), "{}: {code}\n{after}", path.display());
            // This includes suppressions without an effect.
            for code in codes(&left) {
                assert!(count(&left, code) <= count(&before, code), "{}: new {code}\n{after}", path.display());
            }
            check(&mut client, &uri, &text);
        }
    }
    client.shut_down();
    assert!(tried > 200, "{tried}");
    // Nothing can hide an error that keeps a file from loading, or a template from compiling.
    let is_fatal = |refused: &&String| ["TY004", "TY005", "TY008", "TY501"].iter().any(|code| refused.ends_with(code));
    let others: Vec<_> = refused.iter().filter(|refused| !is_fatal(refused)).collect();
    assert_eq!(others, ["definition.yaml TY101"]);
}

#[test]
fn all_fixes_are_those_of_a_check() {
    let mut client = Client::usual();
    let mut changed = 0;
    for path in fixtures(&["lint", "load", "cli/prompts", "test_file"]) {
        // One of the files is not UTF-8.
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let uri = format!("file://{}", path.display());
        check(&mut client, &uri, &text);
        let start = json!({"line": 0, "character": 0});
        let params = json!({
            "textDocument": {"uri": uri},
            "range": {"start": start, "end": start},
            "context": {"diagnostics": [], "only": ["source.fixAll.tympan"]},
        });
        let actions = client.request("textDocument/codeAction", params).expect("actions");
        let after = apply(&text, &actions[0]["edit"]["changes"][&uri]);
        let source = SourceFile::new(path.display().to_string(), text.as_str());
        let load = LoadOptions::default();
        let mut files = References::new(path.parent().expect("a folder"), &load);
        let fixed = fix_file(&source, &mut files, &Options::default(), FixMode::Safe);
        assert_eq!(after, fixed.source.text(), "{}", path.display());
        assert_eq!(actions.as_array().map(Vec::len), Some(usize::from(after != text)), "{}", path.display());
        changed += usize::from(after != text);
    }
    client.shut_down();
    assert!(changed > 5, "{changed}");
}

//! No errors in the examples and in valid fixtures, and all errors in a file that has many.

use std::path::{Path, PathBuf};

use tympan_core::diagnostic::Severity;

use crate::fixtures::{findings, load, read, root};

/// Files that load and have a mistake on purpose, with the rule that reports it.
const MISTAKES: [(&str, &str); 2] = [("load/v1_openai.prompty", "TY108"), ("cli/prompts/misspelt.prompty", "TY107")];

/// All files below a folder that may be prompts.
pub(crate) fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("an entry").path();
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        if path.is_dir() && !["lint", "node_modules", "target"].iter().any(|name| path.ends_with(name)) {
            files(&path, found);
        } else if ["prompty", "yaml", "yml", "toml"].contains(&extension) {
            found.push(path);
        }
    }
}

/// Whatever is wrong with a file, its findings point into it.
#[test]
fn positions_are_inside_of_the_file() {
    let mut paths = Vec::new();
    files(&root(), &mut paths);
    files(&root().join("lint"), &mut paths);
    for path in paths.into_iter().filter(|path| !path.ends_with("not_utf8.prompty")) {
        let source = read(&path);
        for finding in findings(&source) {
            let edits = finding.fix.iter().flat_map(|fix| &fix.edits).map(|(span, _)| *span);
            let related = finding.related.iter().map(|(span, _)| *span);
            for span in finding.span.into_iter().chain(edits).chain(related) {
                assert!(source.text().get(span.range()).is_some(), "{}: {finding:?}", path.display());
            }
        }
    }
}

#[test]
fn valid_files_have_no_errors() {
    let mut paths = Vec::new();
    files(&root(), &mut paths);
    files(&root().join("../examples"), &mut paths);
    let (mut count, mut wrong) = (0, Vec::new());
    for path in paths {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // A prompt with invalid tests is a valid prompt.
        if name == "not_utf8.prompty" || name.starts_with("rejected_") {
            continue;
        }
        let source = read(&path);
        let Ok(prompt) = load(source.clone()) else { continue };
        // A template that does not compile is not valid.
        if prompt.template().is_err() || prompt.only_role().is_err() {
            continue;
        }
        count += 1;
        let is_meant = |code| MISTAKES.iter().any(|(file, mistake)| path.ends_with(file) && *mistake == code);
        let errors = findings(&source).into_iter().filter(|finding| finding.severity == Severity::Error);
        for finding in errors.filter(|finding| !is_meant(finding.rule.code)) {
            wrong.push(format!("{}: {} {}", path.display(), finding.rule.code, finding.message));
        }
    }
    assert!(count > 60, "only {count} files were found");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A file with a mistake on nearly every line.
const MISTAKEN: &str = "\
---
model: {id: gpt-4o, provider: opanai, apiType: chatt}
inputs:
  - {name: ticket, kind: string}
  - {name: week, kind: integer, default: abc}
  - {name: unused, kind: string}
---
sytem:
Hello {{ tiket }} {{ ticket | uper }}
";

#[test]
fn all_mistakes_of_a_file_are_found() {
    let source = tympan_core::text::source::SourceFile::new("mistaken.prompty", MISTAKEN);
    let found: Vec<_> = findings(&source)
        .iter()
        .map(|finding| {
            let at = source.line_column(finding.span.expect("it has a position").start);
            format!("{}:{} {}", at.line, at.column, finding.rule.name)
        })
        .collect();
    let expected = [
        "2:31 unknown_provider",
        "2:48 unsupported_api",
        "5:12 unused_variable",
        "5:42 invalid_default",
        "6:12 unused_variable",
        "8:1 misspelt_role",
        "9:10 undeclared_variable",
        "9:10 untrusted_in_system",
        "9:22 untrusted_in_system",
        "9:31 unknown_filter",
    ];
    assert_eq!(found, expected);
}

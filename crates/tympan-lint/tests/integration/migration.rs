//! Fixes convert older files to the current format, and change nothing else.

use std::path::PathBuf;

use tympan_core::text::source::SourceFile;
use tympan_lint::Finding;

use crate::fixtures::{findings, load, read, root};
use crate::valid_files::files;

fn legacy(source: &SourceFile) -> Vec<Finding> {
    findings(source).into_iter().filter(|finding| finding.rule.name == "legacy_key").collect()
}

/// Applies the fixes that do not overlap.
fn fixed(source: &SourceFile, findings: &[Finding]) -> SourceFile {
    let mut edits: Vec<(tympan_core::text::source::Span, String)> = Vec::new();
    for fix in findings.iter().filter_map(|finding| finding.fix.as_ref()) {
        assert!(fix.safe, "{fix:?}");
        let overlaps = fix.edits.iter().any(|(span, _)| {
            edits.iter().any(|(edit, _)| (edit.start < span.end && span.start < edit.end) || edit.start == span.start)
        });
        if !overlaps {
            edits.extend(fix.edits.iter().cloned());
        }
    }
    edits.sort_by_key(|(span, _)| (span.start, span.end));
    let mut text = source.text().to_owned();
    for (span, replacement) in edits.iter().rev() {
        text.replace_range(span.range(), replacement);
    }
    SourceFile::new(source.name(), text)
}

fn migrated(source: &SourceFile) -> Result<SourceFile, String> {
    let Ok(before) = load(source.clone()) else { return Ok(source.clone()) };
    let mut current = source.clone();
    for _ in 0..5 {
        let found = legacy(&current);
        if found.is_empty() {
            break;
        }
        let next = fixed(&current, &found);
        let after = load(next.clone()).map_err(|error| format!("{error}\n{}", next.text()))?;
        if before.definition_hash() != after.definition_hash() {
            return Err(format!("another prompt:\n{}", next.text()));
        }
        current = next;
    }
    match legacy(&current).as_slice() {
        [] => Ok(current),
        left => {
            let left: Vec<_> = left.iter().map(|finding| &finding.message).collect();
            Err(format!("left: {left:?}\n{}", current.text()))
        }
    }
}

#[test]
fn older_files_are_migrated() {
    let mut paths: Vec<PathBuf> = Vec::new();
    files(&root(), &mut paths);
    files(&root().join("../examples"), &mut paths);
    let (mut count, mut wrong) = (0, Vec::new());
    for path in paths.into_iter().filter(|path| !path.ends_with("not_utf8.prompty")) {
        let source = read(&path);
        if legacy(&source).is_empty() {
            continue;
        }
        count += 1;
        if let Err(problem) = migrated(&source) {
            wrong.push(format!("{}: {problem}", path.display()));
        }
    }
    assert!(count > 15, "only {count} files");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Comments, quotes and references stay as they are.
#[test]
fn only_what_moves_changes() {
    let before = "---
# The name.
name: chat
tags:
  # For the shop.
  - retail
model: # the model
  api: chat
  configuration:
    type: azure_openai
    # Our own deployment.
    azure_deployment: gpt-4o
    api_key: '${env:KEY:none: set}'
  parameters: {max_tokens: 100, logprobs: true}
metadata: {owner: Ada}

# The inputs.
inputs:
  - name: question # What is asked.
    type: string
  - plain
sample:
  question: 'Why?'
  plain: 3
  more: [1]
---
user:
{{ question }}
";
    let after = "---
# The name.
name: chat
# the model
# Our own deployment.
model:
  id: gpt-4o
  provider: azure
  apiType: chat
  connection:
    kind: key
    apiKey: \"${env:KEY:none: set}\"
  options:
    maxOutputTokens: 100
    additionalProperties:
      logprobs: true
# For the shop.
metadata:
  owner: Ada
  tags:
    - retail

# The inputs.
inputs:
  - name: question # What is asked.
    kind: string
    example: \"Why?\"
  - {name: \"plain\", kind: string, example: 3}
  - {name: \"more\", kind: array, example: [1]}
---
user:
{{ question }}
";
    let migrated = migrated(&SourceFile::new("a.prompty", before)).expect("it is migrated");
    assert_eq!(migrated.text(), after);
}

/// The tests of a prompt are not declarations, so they are not written anew.
#[test]
fn tests_stay_as_they_are() {
    let tests =
        "tests: # of the prompt\n- name:   'a'\n  inputs: {q:  \"${env:HOME:default}\"}\n  expect: [{messages: 1}]\n";
    let text = format!(
        "---\nauthors: [Ada]\nmodel:\n  api: chat\n  configuration: {{type: openai, name: gpt-4o}}\n{tests}sample: {{q: \"${{env:Q:why}}\"}}\n---\nuser:\n{{{{ q }}}}\n"
    );
    let migrated = migrated(&SourceFile::new("a.prompty", text.as_str())).expect("it is migrated");
    assert!(migrated.text() != text && migrated.text().contains(tests), "{}", migrated.text());
}

#[test]
fn metadata_gets_the_keys_of_the_top_level() {
    let cases = [
        ("authors: [Ada]\nmetadata:\n    team: red\n", "metadata:\n    team: red\n    authors: [Ada]\n"),
        ("version: \"1\"\nmetadata:\n  version: \"2\"\n", "metadata:\n  version: \"2\"\n"),
        (
            "tags: |\n  a\n\n  b\nname: x\nversion: '1'\n",
            "metadata:\n  tags: |\n    a\n\n    b\n  version: '1'\nname: x\n",
        ),
    ];
    for (before, after) in cases {
        let source = SourceFile::new("a.prompty", format!("---\n{before}---\nuser:\nHi\n"));
        let migrated = migrated(&source).expect("it is migrated");
        assert_eq!(migrated.text(), format!("---\n{after}---\nuser:\nHi\n"));
    }
}

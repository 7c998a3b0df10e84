//! Test files as a whole: suppressions, fixes, formatting, files elsewhere, and hostile files.

use std::collections::HashMap;
use std::fmt::Write as _;

use proptest::prelude::*;
use tympan_core::diagnostic::Severity;
use tympan_core::format::{ReferencedFile, Resolve};
use tympan_core::text::source::SourceFile;
use tympan_core::{Error, Kind, Result};
use tympan_lint::format::{FormatError, FormatOptions, format_file};
use tympan_lint::{Finding, FixMode, Options, check_file, fix_file};

const PROMPT: &str = "---\ninputs: [{name: name, kind: string, required: true}]\n---\nuser:\nHello {{ name }}!\n";

/// Files in memory, by path. It fails the test if a variable is read.
#[derive(Default)]
struct Memory(HashMap<&'static str, &'static str>);

impl Memory {
    fn new(files: &[(&'static str, &'static str)]) -> Self {
        Self(files.iter().copied().collect())
    }
}

impl Resolve for Memory {
    fn env(&mut self, name: &str) -> Result<Option<String>> {
        panic!("a check reads no variables, but read {name}")
    }

    fn file(&mut self, path: &str) -> Result<ReferencedFile> {
        if path.starts_with("/outside") {
            return Err(Error::new(Kind::FileOutsideRoot, path));
        }
        let text = self.0.get(path).ok_or_else(|| Error::new(Kind::ReferencedFileNotFound, path))?;
        Ok(ReferencedFile { text: (*text).to_owned() })
    }
}

fn check(name: &str, text: &str, files: &[(&'static str, &'static str)]) -> Vec<Finding> {
    let source = SourceFile::new(name, text);
    check_file(&source, &mut Memory::new(files), &Options::default()).findings
}

/// The findings as `line rule`.
fn found(name: &str, text: &str, files: &[(&'static str, &'static str)]) -> Vec<String> {
    let source = SourceFile::new(name, text);
    let line = |finding: &Finding| source.line_column(finding.span.expect("it has a position").start).line;
    check(name, text, files).iter().map(|finding| format!("{} {}", line(finding), finding.rule.name)).collect()
}

#[test]
fn the_prompt_has_the_name_of_the_test_file() {
    let text = "cases:\n  - expect: [{messages: 1}]\n";
    assert_eq!(found("a/greet.test.yaml", text, &[("greet.prompty", PROMPT)]), ["2 missing_test_input"]);
    let definition = "{name: a, role: user, body: Hi}";
    assert!(found("a/greet.test.yaml", text, &[("greet.yaml", definition)]).is_empty());
    assert_eq!(found("a/greet.test.yaml", text, &[]), ["1 test_file_not_found"]);
}

#[test]
fn a_prompt_elsewhere_has_its_own_references() {
    const REFERRING: &str =
        "---\nname: a\nmetadata: ${file:data/meta.json}\nmodel: {id: '${env:MODEL}'}\n---\nuser:\nHi\n";
    let text = "prompt: ../prompts/a.prompty\ncases:\n  - expect: [{messages: 1}]\n";
    let files = [("../prompts/a.prompty", REFERRING), ("../prompts/data/meta.json", "{}")];
    assert!(found("a.test.yaml", text, &files).is_empty());
    assert_eq!(found("a.test.yaml", text, &files[..1]), ["1 broken_test_prompt"]);
}

#[test]
fn a_prompt_that_may_not_be_read_is_a_warning() {
    let text = "prompt: /outside/a.prompty\ncases:\n  - inputs: {x: 1}\n    expect: [{messages: 1}]\n";
    let findings = check("a.test.yaml", text, &[]);
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!((finding.rule.name, finding.severity), ("file_outside_root", Severity::Warning));
    assert!(!finding.is_fatal);
}

#[test]
fn findings_can_be_suppressed() {
    let yaml = "cases:\n  - inputs: {name: Ada}  # tympan: ignore[TY513]\n  # tympan: ignore[tests]\n  - inputs: {name: Ada}\n";
    assert!(found("a.test.yaml", yaml, &[("a.prompty", PROMPT)]).is_empty());
    let toml = "# tympan: ignore-file[case_without_assertions]\n[[cases]]\ninputs = {name = 'Ada'}\n";
    assert!(found("a.test.toml", toml, &[("a.prompty", PROMPT)]).is_empty());
    let unused = "cases:\n  - inputs: {name: Ada}\n    expect: [{messages: 1}]  # tympan: ignore[TY513]\n";
    assert_eq!(found("a.test.yaml", unused, &[("a.prompty", PROMPT)]), ["3 unused_suppression"]);
    // A comment in a text is not a comment.
    let text = "cases:\n  - inputs: {name: '# tympan: ignore[TY513]'}\n";
    assert_eq!(found("a.test.yaml", text, &[("a.prompty", PROMPT)]), ["2 case_without_assertions"]);
    let embedded = "---\ntests:\n  - skip: later\n  - guard: true # tympan: ignore[TY513]\n---\nuser:\nHi\n";
    assert!(found("a.prompty", embedded, &[]).is_empty());
    // Tests that do not load cannot be checked.
    let invalid = "cases:\n  - expects: []  # tympan: ignore[TY501]\n";
    assert_eq!(found("a.test.yaml", invalid, &[]), ["2 invalid_tests"]);
    let mut options = Options::default();
    options.selection = selection("TY4");
    let source = SourceFile::new("a.test.yaml", invalid);
    assert_eq!(check_file(&source, &mut Memory::default(), &options).findings.len(), 1);
}

fn selection(select: &str) -> tympan_lint::Selection {
    tympan_lint::Selection { select: vec![select.parse().expect("a selector")], ..Default::default() }
}

/// Fixing a misspelt key reveals other mistakes. That is not harm.
#[test]
fn fixes_reveal_other_findings() {
    let text =
        "cases:\n  - input: {nmae: Ada}\n    pass: 50%\n    repeat: \"8\"\n    expect: [{result: {contans: Ada}}]\n";
    let source = SourceFile::new("a.test.yaml", text);
    let mut files = Memory::new(&[("a.prompty", PROMPT)]);
    let safe = fix_file(&source, &mut files, &Options::default(), FixMode::Safe);
    let expected =
        "cases:\n  - inputs: {nmae: Ada}\n    pass: 0.5\n    repeat: 8\n    expect: [{result: {contains: Ada}}]\n";
    assert_eq!(safe.source.text(), expected);
    let all = fix_file(&source, &mut files, &Options::default(), FixMode::Unsafe);
    assert_eq!(all.source.text(), expected.replace("nmae", "name"));
    assert!(all.checked.findings.is_empty(), "{:?}", all.checked.findings);
}

#[test]
fn the_quotes_of_json_stay() {
    let text = "{\"cases\": [{\"input\": {\"nmae\": \"Ada\"}, \"expect\": [{\"roles\": [\"usr\"]}]}]}";
    let source = SourceFile::new("a.test.json", text);
    let mut files = Memory::new(&[("a.prompty", PROMPT)]);
    let fixed = fix_file(&source, &mut files, &Options::default(), FixMode::Unsafe);
    let expected = text.replace("input", "inputs").replace("nmae", "name").replace("usr", "user");
    assert_eq!(fixed.source.text(), expected);
}

#[test]
fn a_prompt_that_does_not_load_has_the_findings_of_its_tests() {
    let text = "---\ninputs: 5\ntests:\n  - repeat: 3\n    expect: [{messages: 1}]\n---\nuser:\nHi\n";
    assert_eq!(found("a.prompty", text, &[]), ["2 invalid_document", "4 needless_repeat"]);
    let twice = "name: a\nrole: user\nbody: Hi\ntests: 5\n";
    assert_eq!(found("a.yaml", twice, &[]), ["4 invalid_definition"]);
}

#[test]
fn test_files_are_formatted() {
    let format = |name: &str, text: &str| {
        format_file(&SourceFile::new(name, text), &mut Memory::default(), &FormatOptions::default())
    };
    let formatted =
        format("a.test.yaml", "cases:\n- inputs: {name:   Ada,note: b}   # why\n  expect:\n  - messages: 1\n");
    let formatted = formatted.expect("it is valid");
    let expected = "cases:\n  - inputs: {name: Ada, note: b}  # why\n    expect:\n      - messages: 1\n";
    assert_eq!((formatted.text.as_str(), formatted.hashes), (expected, None));
    let formatted = format("a.test.json", "{\"cases\":[{\"expect\":[{\"messages\":1}]}]}").expect("it is valid");
    assert!(formatted.text.contains("\"cases\": ["), "{}", formatted.text);
    let toml = format("a.test.toml", "[[cases]]\nexpect   = [{messages = 1}]\n").expect("it is valid");
    assert_eq!((toml.changed, toml.note), (false, Some("test files in TOML are not formatted")));
    let invalid = format("a.test.yaml", "cases:\n- expects: 1\n").expect_err("it is not valid");
    assert!(matches!(&invalid, FormatError::Invalid(error) if error.kind() == Kind::InvalidTests), "{invalid}");
}

/// Many cases take time in proportion to their number.
#[test]
fn large_suites_are_checked() {
    let mut text = "cases:\n".to_owned();
    for case in 0..2_000 {
        let _ = writeln!(text, "  - name: case {case}\n    inputs: {{nmae: Ada}}\n    expect: [{{guarded: nme}}]");
    }
    assert_eq!(check("a.test.yaml", &text, &[("a.prompty", PROMPT)]).len(), 6_000);
}

const PIECES: &[&str] = &[
    "message: {in: 5, matches: \"(\"}",
    "result: {path: $[, schema: {type: 5}}",
    "share: {input: nam, max: 5%}",
    "# tympan: ignore[TY5]",
    "\n  - ",
    "\n    ",
    "variant: x",
    "repeat: 3\n    pass: 0.9",
    "{",
    "]",
    "\"",
    "é",
    "rows: x.csv",
    "judge: {rubric: \"\"}",
    "*a",
    "&a ",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Whatever is written, positions are inside of the file, and fixes do no harm.
    #[test]
    fn positions_are_inside_of_the_file(edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..9, prop::sample::select(PIECES)), 1..4)) {
        let mut text = include_str!("../../../../fixtures/test_file/accepted/full.test.yaml").to_owned();
        for (at, length, piece) in edits {
            let start = text.floor_char_boundary(at.index(text.len() + 1));
            let end = text.ceil_char_boundary((start + length).min(text.len()));
            text.replace_range(start..end, piece);
        }
        let source = SourceFile::new("a.test.yaml", text);
        let mut files = Memory::new(&[("greeting.prompty", PROMPT)]);
        let checked = check_file(&source, &mut files, &Options::default());
        for finding in &checked.findings {
            let edits = finding.fix.iter().flat_map(|fix| &fix.edits).map(|(span, _)| *span);
            let related = finding.related.iter().map(|(span, _)| *span);
            for span in finding.span.into_iter().chain(edits).chain(related) {
                prop_assert!(source.text().get(span.range()).is_some(), "{:?}\n{}", finding, source.text());
            }
        }
        let fixed = fix_file(&source, &mut files, &Options::default(), FixMode::Unsafe);
        prop_assert!(fixed.checked.suite.is_some() || checked.suite.is_none());
    }
}

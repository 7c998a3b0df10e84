//! Test files, and the tests in prompt files: what is accepted, what is rejected and where, and hostile files.
#![allow(clippy::disallowed_methods, reason = "a test may read files")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tympan::diagnostic::Diagnostic;
use tympan::format::definition::Syntax;
use tympan::format::test_file::{parse, parse_embedded, syntax_of_name};
use tympan::format::{Format, ReferencedFile, Resolve};
use tympan::spec::test_suite::{Assertion, Fraction, TestSuite};
use tympan::text::source::SourceFile;
use tympan::{Error, Kind, Prompt};

fn fixtures(directory: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/test_file").join(directory);
    let entries = std::fs::read_dir(directory).expect("the directory is there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

fn read(path: &Path) -> SourceFile {
    let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
    SourceFile::new(name, std::fs::read_to_string(path).expect("it can be read"))
}

fn parse_file(source: &SourceFile) -> (Option<TestSuite>, Vec<Diagnostic>) {
    parse(source, syntax_of_name(source.name()).expect("the name of a test file"))
}

/// Shows findings: position and message, then the help and the fix.
fn report(source: &SourceFile, findings: &[Diagnostic]) -> String {
    let mut text = format!("== {}\n", source.name());
    for finding in findings {
        assert_eq!(finding.code, "invalid_tests");
        let place = source.line_column(finding.span.expect("it has a position").start);
        let _ = writeln!(text, "{}:{} {}", place.line, place.column, finding.message);
        finding.help.iter().for_each(|help| text.push_str(&format!("    {help}\n")));
        finding.fix.iter().for_each(|fix| text.push_str(&format!("    fix: {fix}\n")));
    }
    text + "\n"
}

#[test]
fn names_of_test_files() {
    for (name, syntax) in [
        ("greeting.test.yaml", Some(Syntax::Yaml)),
        ("a/b.c.test.yml", Some(Syntax::Yaml)),
        ("greeting.test.JSON", Some(Syntax::Json)),
        ("greeting.test.toml", Some(Syntax::Toml)),
        ("greeting.test.prompty", None),
        ("test.yaml", None),
        (".test.yaml", None),
        ("prompts/.test.yaml", None),
        ("greeting.tests.yaml", None),
        ("greeting.yaml", None),
    ] {
        assert_eq!(syntax_of_name(name), syntax, "{name}");
        let format = Format::from_name(name);
        assert_eq!(format == syntax.map(Format::Tests), syntax.is_some(), "{name} {format:?}");
    }
}

#[test]
fn accepted() {
    let mut count = 0;
    for path in fixtures("accepted") {
        let source = read(&path);
        let (suite, findings) = parse_file(&source);
        assert!(suite.is_some() && findings.is_empty(), "{}", report(&source, &findings));
        count += 1;
    }
    assert!(count >= 5);
}

#[test]
fn every_key_is_read() {
    let path = fixtures("accepted").into_iter().find(|path| path.ends_with("full.test.yaml")).expect("it is there");
    let suite = parse_file(&read(&path)).0.expect("it is valid");
    let names: std::collections::BTreeSet<_> =
        suite.cases.iter().flat_map(|case| &case.settings.expect).map(|one| one.assertion.name()).collect();
    let all = serde_json::from_str::<serde_json::Value>(tympan::format::test_file::SCHEMA).expect("the schema is JSON");
    let all: Vec<_> = all["$defs"]["Assertion"]["properties"].as_object().expect("a map").keys().cloned().collect();
    let missing: Vec<_> = all.iter().filter(|name| !names.contains(name.as_str()) && *name != "refusal").collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!((suite.defaults.repeat, suite.defaults.pass, suite.defaults.seed), (Some(5), Some(0.8), Some(7)));
    // References are not resolved.
    assert_eq!(suite.cases[0].settings.inputs["note"], "${env:HOME}");
    let shares = suite.cases[0].settings.expect.iter().filter_map(|one| match &one.assertion {
        Assertion::Share(share) => share.max,
        _ => None,
    });
    assert_eq!(shares.collect::<Vec<_>>(), [Fraction(0.6), Fraction(1.0)]);
}

#[test]
fn the_syntax_does_not_matter() {
    let suites = ["json", "toml", "yaml"].map(|extension| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/test_file/accepted/small.test");
        let mut suite = parse_file(&read(&path.with_extension(format!("test.{extension}")))).0.expect("it is valid");
        for case in &mut suite.cases {
            case.span = Default::default();
            case.settings.expect.iter_mut().for_each(|one| one.span = Default::default());
        }
        suite
    });
    assert!(suites[0] == suites[1] && suites[1] == suites[2], "{suites:#?}");
}

#[test]
fn rejected() {
    let mut all = String::new();
    for path in fixtures("rejected") {
        let source = read(&path);
        let (suite, findings) = parse_file(&source);
        assert!(suite.is_none() && !findings.is_empty(), "{} is wrong", path.display());
        all.push_str(&report(&source, &findings));
    }
    insta::assert_snapshot!(all);
}

/// A host that fails if a prompt refers to anything.
struct Nothing;

impl Resolve for Nothing {
    fn env(&mut self, name: &str) -> tympan::Result<Option<String>> {
        Err(Error::new(Kind::EnvNotAllowed, name))
    }

    fn file(&mut self, path: &str) -> tympan::Result<ReferencedFile> {
        Err(Error::new(Kind::FileOutsideRoot, path))
    }
}

fn load(source: &SourceFile) -> tympan::Result<Prompt> {
    match Format::from_name(source.name()) {
        Some(Format::Definition(syntax)) => Prompt::from_definition_source(source.clone(), syntax),
        _ => Prompt::from_prompty_source(source.clone(), &mut Nothing),
    }
}

/// The tests of a prompt file do not keep it from loading, even if they are invalid, unless they are not even a list or
/// a map.
#[test]
fn embedded() {
    let mut all = String::new();
    for path in fixtures("embedded") {
        let source = read(&path);
        let prompt = load(&source).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(prompt.warnings().is_empty(), "{}: {:?}", path.display(), prompt.warnings());
        let format = Format::from_name(source.name()).expect("it has an extension");
        let (suite, findings) = parse_embedded(&source, format).expect("it has tests");
        let is_rejected = source.name().starts_with("rejected");
        assert_eq!((suite.is_none(), findings.is_empty()), (is_rejected, !is_rejected), "{}", path.display());
        if is_rejected {
            all.push_str(&report(&source, &findings));
        }
    }
    insta::assert_snapshot!(all);
}

#[test]
fn a_definition_keeps_its_tests() {
    let path = fixtures("embedded").into_iter().find(|path| path.ends_with("map.yaml")).expect("it is there");
    let prompt = load(&read(&path)).expect("it loads");
    let definition = prompt.to_definition().expect("it is a definition");
    let again = Prompt::new(&definition).expect("it is sound");
    assert!(definition.tests.is_some());
    assert_eq!(again.to_definition(), Some(definition));
}

/// A prompt with tests, with other tests and without any is the same prompt.
#[test]
fn tests_are_in_no_hash() {
    const PROMPTY: &str = "---\nname: a\ntests: [{expect: [{messages: 1}]}]\n---\nuser:\nHi\n";
    const YAML: &str = "name: a\nrole: user\nbody: Hi\ntests: [{expect: [{messages: 1}]}]\n";
    for (name, text) in [("a.prompty", PROMPTY), ("a.yaml", YAML)] {
        let hashes = |text: String| {
            let prompt = load(&SourceFile::new(name, text)).expect("it loads");
            assert!(prompt.spec().extra.is_empty());
            (prompt.definition_hash().to_owned(), prompt.settings_hashes(), prompt.spec().to_json())
        };
        let without = hashes(text.replace("tests: [{expect: [{messages: 1}]}]\n", ""));
        assert_eq!(hashes(text.to_owned()), without);
        assert_eq!(hashes(text.replace("messages: 1", "contains: [1, 2]")), without);
    }
}

/// Nothing in tests is a reference: they are neither resolved nor reported.
#[test]
fn references_in_tests_are_text() {
    let text = "---\ntests:\n  - inputs: {a: '${env:HOME}', b: '${file:/etc/passwd}', c: '${nonsense:x}'}\n    expect: \
                [{message: {contains: 'in text ${env:HOME}'}}]\n---\nuser:\nHi\n";
    let prompt = load(&SourceFile::new("a.prompty", text)).expect("it loads");
    assert!(prompt.warnings().is_empty(), "{:?}", prompt.warnings());
    let outside = text.replace("tests:\n", "metadata:\n");
    assert!(load(&SourceFile::new("a.prompty", outside)).is_err());
}

fn problem(name: &str, text: String) -> String {
    let source = SourceFile::new(name, text);
    let (suite, findings) = parse_file(&source);
    assert!(suite.is_none(), "it is rejected");
    for finding in &findings {
        let span = finding.span.expect("it has a position");
        assert!(source.text().get(span.range()).is_some());
    }
    findings.last().map(|finding| finding.message.clone()).expect("there is a finding")
}

#[test]
fn hostile_files_are_rejected() {
    let nested = "[".repeat(100_000) + &"]".repeat(100_000);
    assert_eq!(problem("a.test.yaml", format!("cases: {nested}")), "Invalid tests: more than 64 levels of nesting");
    let deep = problem("a.test.json", format!("{{\"cases\": {nested}}}"));
    assert_eq!(deep, "Invalid tests: more than 127 levels of nesting");
    let deep = problem("a.test.toml", format!("cases = {nested}"));
    assert!(deep.starts_with("Invalid tests: "), "{deep}");
    let many = format!("cases:\n{}", "  - {}\n".repeat(110_000));
    assert_eq!(
        problem("a.test.yaml", many),
        "Invalid tests: more than 100000 values, including those repeated by aliases"
    );
    let mut laughs = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n".to_owned();
    for level in 1..9 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        laughs.push_str(&format!("a{level}: &a{level} [{before}]\n"));
    }
    assert!(problem("a.test.yaml", laughs + "cases: *a8\n").contains("more than 100000 values"));
    let unknown = format!("cases: [{{{}: 1}}]", "x".repeat(1 << 20));
    assert!(problem("a.test.yaml", unknown).len() < 400);
}

/// Many mistakes do not take long: each is reported once, and with a short message.
#[test]
fn many_mistakes_are_bounded() {
    let text = format!("cases:\n  - expect:\n{}", "      - contans: a\n".repeat(20_000));
    let source = SourceFile::new("a.test.yaml", text);
    let (_, findings) = parse_file(&source);
    assert_eq!(findings.len(), 20_000);
}

/// Typical pieces of test files.
const PIECES: &[&str] = &[
    "cases:\n",
    "  - ",
    "    ",
    "      - ",
    "\n",
    "name: a",
    "inputs: ",
    "expect:\n",
    "expect: ",
    "message: ",
    "messages: ",
    "roles: ",
    "share: ",
    "not: ",
    "in: ",
    "max: ",
    "60%",
    "pass: ",
    "repeat: ",
    "answer: ",
    "matrix: ",
    "rows: ",
    "defaults: ",
    "{",
    "}",
    "[",
    "]",
    ", ",
    ": ",
    "&a ",
    "*a",
    "<<: ",
    "|\n",
    "\"",
    "'",
    "#",
    "1e999",
    "-1",
    "18446744073709551616",
    ".nan",
    "null",
    "true",
    "user",
    "é",
    "\u{feff}",
    "\r\n",
    "\t",
    "[[cases]]\n",
    " = ",
    "\"cases\": ",
    "\\u0000",
    "---\n",
    "tests:\n",
    "name: a\nrole: user\nbody: b\n",
];

fn check_findings(source: &SourceFile, parsed: (Option<TestSuite>, Vec<Diagnostic>)) -> Result<(), TestCaseError> {
    let (suite, findings) = parsed;
    prop_assert_eq!(suite.is_some(), findings.is_empty());
    for finding in &findings {
        let span = finding.span.expect("every finding has a position");
        prop_assert!(source.text().get(span.range()).is_some(), "{:?} in {:?}", finding, source.text());
    }
    for case in suite.iter().flat_map(|suite| &suite.cases) {
        let spans = case.settings.expect.iter().map(|one| one.span);
        for span in spans.chain([case.span]) {
            prop_assert!(source.text().get(span.range()).is_some(), "{:?} in {:?}", span, source.text());
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// Any text is a suite or has findings inside of the text.
    #[test]
    fn any_text_is_a_suite_or_says_why_not(parts in prop::collection::vec(prop::sample::select(PIECES), 0..24)) {
        let source = SourceFile::new("a", parts.concat());
        for syntax in [Syntax::Yaml, Syntax::Json, Syntax::Toml] {
            check_findings(&source, parse(&source, syntax))?;
            if let Some(parsed) = parse_embedded(&source, Format::Definition(syntax)) {
                check_findings(&source, parsed)?;
            }
        }
        let source = SourceFile::new("a", format!("---\n{}\n---\nuser:\nHi\n", parts.concat()));
        if let Some(parsed) = parse_embedded(&source, Format::Prompty) {
            check_findings(&source, parsed)?;
        }
    }

    /// A valid file with a random change is accepted or rejected, and never panics.
    #[test]
    fn a_changed_file_is_a_suite_or_says_why_not(
        at in any::<prop::sample::Index>(),
        length in 0_usize..12,
        piece in prop::sample::select(PIECES),
    ) {
        let full = include_str!("../../../../fixtures/test_file/accepted/full.test.yaml");
        let start = full.floor_char_boundary(at.index(full.len()));
        let end = full.ceil_char_boundary((start + length).min(full.len()));
        let mut text = full.to_owned();
        text.replace_range(start..end, piece);
        let source = SourceFile::new("a", text);
        check_findings(&source, parse(&source, Syntax::Yaml))?;
    }
}

//! Parses test files, and the tests in prompt files.
//!
//! The shape is defined once, in `schemas/test-file.schema.json`. The validation of a document follows it.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value as Json;

use super::de::Document;
use super::definition::{Syntax, read, unreadable};
use super::frontmatter;
use super::report::{Report, error};
use super::shape::DocumentShape;
use super::yaml::{self, Entry, Node, Value};
use super::{Format, definition};
use crate::diagnostic::Diagnostic;
use crate::error::Kind;
use crate::spec::test_suite::{Expectation, TestSuite};
use crate::text::source::{SourceFile, Span};

/// The JSON Schema of test files.
pub const SCHEMA: &str = include_str!("../../schemas/test-file.schema.json");

/// The key of a prompt file that contains tests.
pub(crate) const TESTS: &str = "tests";

/// The key of a test file that contains the cases.
const CASES: &str = "cases";

/// The endings of prompt files, in the order in which they are tried.
const PROMPT_EXTENSIONS: [&str; 6] = ["prompty", "yaml", "yml", "json", "toml", "md"];

static SHAPE: LazyLock<DocumentShape> = LazyLock::new(|| DocumentShape::new(SCHEMA, Kind::InvalidTests));

/// Returns the syntax of a test file, or `None` if the name is not that of a test file, such as `greeting.test.yaml`.
pub fn syntax_of_name(name: &str) -> Option<Syntax> {
    let (rest, extension) = name.rsplit_once('.')?;
    let stem = rest.strip_suffix(".test")?;
    let has_name = stem.rsplit(['/', '\\']).next().is_some_and(|last| !last.is_empty());
    Syntax::from_extension(extension).filter(|_| has_name)
}

/// Returns the names of the prompt files that a test file can be about if it names none, in the order in which they are
/// tried: those with the same name, in its directory.
///
/// ```
/// let names: Vec<_> = tympan_core::format::test_file::default_prompts("tests/hello.test.yaml").collect();
/// assert_eq!(names[..2], ["hello.prompty", "hello.yaml"]);
/// ```
pub fn default_prompts(test_file: &str) -> impl Iterator<Item = String> {
    let name = test_file.rsplit(['/', '\\']).next().unwrap_or_default();
    let stem = name.rsplit_once('.').and_then(|(rest, _)| rest.strip_suffix(".test"));
    stem.into_iter().flat_map(|stem| PROMPT_EXTENSIONS.iter().map(move |extension| format!("{stem}.{extension}")))
}

/// Parses a test file, and reports everything that is wrong with it, in the order of the file.
///
/// Returns a suite if and only if there are no findings.
pub fn parse(source: &SourceFile, syntax: Syntax) -> (Option<TestSuite>, Vec<Diagnostic>) {
    let (root, problems) = read(source.text(), syntax);
    let mut report = Report::default();
    problems.into_iter().for_each(|problem| report.push(unreadable(Kind::InvalidTests, problem)));
    let Some(root) = root else { return (None, report.into_diagnostics()) };
    SHAPE.check(&root, &mut report);
    suite(root, report)
}

/// Parses the tests in a prompt file, if it has any. What is wrong with the rest of the file is not reported.
///
/// In a prompt file, the tests are a list of cases, or a map as in a test file.
pub fn parse_embedded(source: &SourceFile, format: Format) -> Option<(Option<TestSuite>, Vec<Diagnostic>)> {
    let root = match format {
        Format::Prompty => {
            let front_matter = frontmatter::split(source.text()).ok()?.front_matter?;
            yaml::parse(source.slice(front_matter), front_matter.start).0
        }
        Format::Definition(syntax) => definition::read(source.text(), syntax).0,
        Format::Directive | Format::Tests(_) => None,
    };
    let Value::Map(entries) = root?.value else { return None };
    let tests = entries.into_iter().find(|entry| entry.key == TESTS)?.value;
    let mut report = Report::default();
    SHAPE.check_embedded(TESTS, CASES, &tests, &mut report);
    Some(suite(suite_node(tests), report))
}

/// Converts a list of cases to a map with the key `cases`.
fn suite_node(tests: Node<'_>) -> Node<'_> {
    match tests.value {
        Value::List(_) => {
            let span = tests.span;
            let entry = Entry { key: CASES.into(), key_span: span, value: tests };
            Node { value: Value::Map(vec![entry]), span }
        }
        _ => tests,
    }
}

/// Converts a document to a suite, unless there are findings about it.
fn suite(root: Node<'_>, report: Report) -> (Option<TestSuite>, Vec<Diagnostic>) {
    let diagnostics = report.into_diagnostics();
    if !diagnostics.is_empty() {
        return (None, diagnostics);
    }
    let (written, whole) = (Written::of(&root), root.span);
    match TestSuite::deserialize(Document(root)) {
        Ok(mut suite) => {
            written.apply(&mut suite);
            (Some(suite), diagnostics)
        }
        // The schema allows nothing that the types do not. A number that is too large for this machine is an exception.
        Err(failure) => (None, vec![error(Kind::InvalidTests, whole, failure)]),
    }
}

/// What the types of a suite do not say: the positions of its cases, and its assertions as they are written.
struct Written {
    prompt: Span,
    defaults: Vec<(Span, Json)>,
    cases: Vec<(Span, Vec<(Span, Json)>)>,
}

impl Written {
    fn of(root: &Node<'_>) -> Self {
        let expectation = |item: &Node<'_>| (item.span, item.clone().into_json());
        let expectations = |node: &Node<'_>| items(node, "expect").iter().map(expectation).collect();
        Self {
            prompt: value(root, "prompt").map(|node| node.span).unwrap_or_default(),
            defaults: value(root, "defaults").map(expectations).unwrap_or_default(),
            cases: items(root, CASES).iter().map(|case| (case.span, expectations(case))).collect(),
        }
    }

    fn apply(self, suite: &mut TestSuite) {
        suite.prompt_span = self.prompt;
        set(&mut suite.defaults.expect, self.defaults);
        for (case, (span, expectations)) in suite.cases.iter_mut().zip(self.cases) {
            case.span = span;
            set(&mut case.settings.expect, expectations);
        }
    }
}

fn set(expectations: &mut [Expectation], written: Vec<(Span, Json)>) {
    for (expectation, (span, json)) in expectations.iter_mut().zip(written) {
        expectation.span = span;
        expectation.json = json;
    }
}

fn value<'n, 's>(node: &'n Node<'s>, key: &str) -> Option<&'n Node<'s>> {
    let Value::Map(entries) = &node.value else { return None };
    entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
}

fn items<'n, 's>(node: &'n Node<'s>, key: &str) -> &'n [Node<'s>] {
    match value(node, key).map(|node| &node.value) {
        Some(Value::List(items)) => items,
        _ => &[],
    }
}

//! Files that tests refer to and that do not exist.

use tympan_core::diagnostic::Severity;
use tympan_core::format::Resolve;
use tympan_core::format::outline::Field;
use tympan_core::spec::test_suite::Assertion;
use tympan_core::text::source::Span;
use tympan_core::{Error, Kind};

use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};
use crate::suite::SuiteContext;

pub(crate) static RULE: Rule = Rule {
    code: "TY502",
    name: "test_file_not_found",
    group: Group::Tests,
    severity: Severity::Error,
    fix: FixAvailability::Never,
    summary: "Reports a file that tests refer to and that does not exist: the prompt, rows, the rubric of a judge, or its \
        calibration set. A missing directory of cassettes is a warning, because it may be recorded later.",
    why: "The cases that need the file fail.",
    example: "cases:\n  - rows: naems.csv\n    expect: [{messages: 1}]",
    how_to_fix: "Correct the path. It is relative to the file with the tests.",
    check: None,
};

const HELP: &str = "correct the path, which is relative to this file";

/// Creates the finding about a test file whose prompt does not exist. `span` is where it names the prompt, if it does.
pub(crate) fn missing_prompt(span: Option<Span>, path: &str) -> Finding {
    let finding = Finding::new(&RULE, span.unwrap_or_default(), format!("the prompt `{path}` does not exist"));
    finding.with_help(if span.is_some() { HELP } else { "name it with the key `prompt`, or rename this file" })
}

/// Reports the files of a suite that do not exist, apart from the prompt. `files` reads files relative to the suite.
pub(crate) fn check_files(context: &SuiteContext<'_>, files: &mut dyn Resolve, findings: &mut Findings) {
    let cassettes = context.root.get("cassettes").map(|path| ("the directory of cassettes", path));
    let rows = context.cases.iter().filter_map(|case| Some(("rows", case.field.get("rows")?)));
    let judges = context.assertions().filter(|written| matches!(written.assertion, Assertion::Judge(_)));
    let judges = judges.flat_map(|written| {
        let named = |key, what| written.field.get(key).map(|path| (what, path));
        [named("rubric", "the rubric"), named("calibration", "the calibration set")].into_iter().flatten()
    });
    for (what, path) in cassettes.into_iter().chain(rows).chain(judges) {
        check_file(what, path, files, findings);
    }
}

fn check_file(what: &str, field: Field<'_>, files: &mut dyn Resolve, findings: &mut Findings) {
    let Some(path) = field.text() else { return };
    // Another error means that the file may exist, but cannot be read here.
    let is_missing = |error: Error| error.kind() == Kind::ReferencedFileNotFound;
    if !files.file(path).is_err_and(is_missing) {
        return;
    }
    let finding = Finding::new(&RULE, field.span, format!("{what}: `{path}` does not exist")).with_help(HELP);
    findings.push(match field.key {
        Some("cassettes") => finding
            .with_severity(Severity::Warning)
            .with_help("correct the path, or record the answers with `tympan test --record`"),
        _ => finding,
    });
}

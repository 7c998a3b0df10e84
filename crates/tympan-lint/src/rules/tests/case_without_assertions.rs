//! Cases that expect nothing.

use tympan_core::diagnostic::Severity;

use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};
use crate::suite::SuiteContext;

pub(crate) static RULE: Rule = Rule {
    code: "TY513",
    name: "case_without_assertions",
    group: Group::Tests,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports a case without assertions, if `defaults` has none either.",
    why: "The case passes whatever the messages are, as long as the prompt can be rendered.",
    example: "cases:\n  - name: greeting\n    inputs: {name: Ada}",
    how_to_fix: "Add `expect` with what matters about the messages or the answer. A snapshot is a start: \
        `expect: [{message: {snapshot: true}}]`.",
    check: None,
};

pub(super) fn check(context: &SuiteContext<'_>, findings: &mut Findings) {
    for case in context.cases.iter().filter(|case| case.case.skip.is_none()) {
        if context.expected(case.case).next().is_some() {
            continue;
        }
        let written = case.field.get("expect").map(|expect| expect.key_span);
        let name = case.field.get("name").map(|name| name.span);
        let first = case.field.entries().next().map(|entry| entry.key_span);
        let span = written.or(name).or(first).unwrap_or(case.field.span);
        let finding = Finding::new(&RULE, span, "the case has no assertions");
        findings.push(finding.with_help("add `expect` with a list of assertions"));
    }
}

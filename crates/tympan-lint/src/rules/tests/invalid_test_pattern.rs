//! Regular expressions that are not valid.

use tympan_core::diagnostic::Severity;
use tympan_core::text::pattern::Pattern;

use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};
use crate::suite::SuiteContext;

pub(crate) static RULE: Rule = Rule {
    code: "TY509",
    name: "invalid_test_pattern",
    group: Group::Tests,
    severity: Severity::Error,
    fix: FixAvailability::Never,
    summary: "Reports a regular expression in `matches` that is not valid.",
    why: "The assertion cannot be checked, so the case fails.",
    example: "cases:\n  - expect:\n      - message: {matches: \"(Hello|Hi\"}",
    how_to_fix: "Correct the expression. References to groups and look-around are not supported, so that every \
        expression runs in linear time.",
    check: None,
};

pub(super) fn check(context: &SuiteContext<'_>, findings: &mut Findings) {
    for written in context.assertions() {
        let Some(field) = written.field.get("matches") else { continue };
        let Some(problem) = field.text().and_then(|text| Pattern::new(text, false).err()) else { continue };
        let finding = Finding::new(&RULE, field.span, format!("invalid regular expression: {problem}"));
        findings.push(finding.with_help("if a character is meant as it is, write `\\` before it"));
    }
}

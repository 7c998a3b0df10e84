//! Repetitions of cases that are the same every time.

use tympan_core::diagnostic::Severity;
use tympan_core::spec::test_suite::Assertion;

use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};
use crate::suite::{CaseContext, SuiteContext};

pub(crate) static RULE: Rule = Rule {
    code: "TY515",
    name: "needless_repeat",
    group: Group::Tests,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports `repeat` in a case without an assertion about the model's answer.",
    why: "Messages and requests are the same every time, so one repetition shows everything.",
    example: "cases:\n  - inputs: {name: Ada}\n    repeat: 10\n    expect: [{roles: [system, user]}]",
    how_to_fix: "Remove `repeat`, or add an assertion about the answer, such as `result`.",
    check: None,
};

pub(super) fn check(context: &SuiteContext<'_>, findings: &mut Findings) {
    let asks = |case: &CaseContext<'_>| context.expected(case.case).any(Assertion::needs_answer);
    for case in context.cases.iter().filter(|case| case.case.settings.repeat.is_some_and(|n| n > 1) && !asks(case)) {
        let span = case.field.get("repeat").map(|repeat| repeat.key_span);
        let message = "`repeat` has no effect: the case has no assertion about the answer";
        findings.push(Finding::new(&RULE, span, message).with_help("remove it, or add an assertion such as `result`"));
    }
    // The default may be meant for some of the cases.
    let is_repeated = context.suite.defaults.repeat.is_some_and(|repeat| repeat > 1);
    if is_repeated && !context.cases.iter().any(asks) {
        let repeat = context.root.get("defaults").and_then(|defaults| defaults.get("repeat"));
        let message = "`repeat` has no effect: no case has an assertion about the answer";
        let finding = Finding::new(&RULE, repeat.map(|repeat| repeat.key_span), message);
        findings.push(finding.with_help("remove it, or add an assertion such as `result`"));
    }
}

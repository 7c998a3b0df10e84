//! Values for inputs that the prompt does not have.

use tympan_core::diagnostic::{Severity, guess_name, listed};
use tympan_core::format::outline::Field;

use super::with_suggestion;
use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};
use crate::suite::SuiteContext;
use crate::typo;

pub(crate) static RULE: Rule = Rule {
    code: "TY504",
    name: "unknown_test_input",
    group: Group::Tests,
    severity: Severity::Error,
    fix: FixAvailability::Sometimes,
    summary: "Reports a value for an input that the prompt does not have. If the name is not close to that of an input, \
        the finding is a warning.",
    why: "The value has no effect, and the input that was meant has no value or its default.",
    example: "# The input is called `name`.\ncases:\n  - inputs: {nmae: Ada}\n    expect: [{messages: 1}]",
    how_to_fix: "Correct the name, or declare the input in the prompt file.",
    check: None,
};

pub(super) fn check(context: &SuiteContext<'_>, findings: &mut Findings) {
    let Some(known) = context.prompt.as_ref().and_then(|prompt| prompt.inputs()) else { return };
    for written in context.settings() {
        let matrix = written.field.get("matrix").and_then(|matrix| matrix.get("inputs"));
        let values = written.field.get("inputs").into_iter().chain(matrix).flat_map(Field::entries);
        for (name, span) in values.filter_map(|entry| Some((entry.key?, entry.key_span))) {
            if known.contains(&name) {
                continue;
            }
            let severity = guess_name(name, known.iter().copied()).map(|near| typo::severity(name, near));
            let finding = Finding::new(&RULE, span, format!("the prompt has no input `{name}`"))
                .with_severity(severity.unwrap_or(Severity::Warning));
            findings.push(with_suggestion(context, finding, (name, span), known.iter().copied(), || {
                match known.is_empty() {
                    true => "the prompt has no inputs: remove the value".to_owned(),
                    false => format!("its inputs: {}", listed(known.iter().copied())),
                }
            }));
        }
    }
}

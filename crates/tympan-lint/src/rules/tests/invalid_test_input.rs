//! Values that do not match the declaration of their input.

use tympan_core::diagnostic::Severity;
use tympan_core::format::outline::Field;
use tympan_core::prompt::kinds::mismatches;

use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};
use crate::suite::{SuiteContext, TestedPrompt};

pub(crate) static RULE: Rule = Rule {
    code: "TY506",
    name: "invalid_test_input",
    group: Group::Tests,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports a value that does not match the kind or the enum of its input.",
    why: "The case tests something that callers should never pass.",
    example: "# The prompt declares: inputs: [{name: week, kind: integer}]\ncases:\n  - inputs: {week: soon}\n    \
        expect: [{messages: 1}]",
    how_to_fix: "Write a value of the declared kind, or change the declaration. If an error is what the case is about, \
        expect it.",
    check: None,
};

pub(super) fn check(context: &SuiteContext<'_>, findings: &mut Findings) {
    let Some(prompt) = &context.prompt else { return };
    for written in context.settings() {
        if written.case.is_some_and(|case| context.expects_error(case.case)) {
            continue;
        }
        for value in written.field.get("inputs").into_iter().flat_map(Field::entries) {
            check_value(prompt, value.key, value, findings);
        }
        let matrix = written.field.get("matrix").and_then(|matrix| matrix.get("inputs"));
        for values in matrix.into_iter().flat_map(Field::entries) {
            values.items().for_each(|value| check_value(prompt, values.key, value, findings));
        }
    }
}

fn check_value(prompt: &TestedPrompt<'_>, name: Option<&str>, value: Field<'_>, findings: &mut Findings) {
    let Some(input) = name.and_then(|name| prompt.input(name)) else { return };
    let json = value.to_json();
    // A JSON Schema may allow more than the kind says, and an optional input may be null.
    if input.schema.is_some() || (json.is_null() && input.required != Some(true)) {
        return;
    }
    findings.extend(mismatches(input, &json).into_iter().map(|found| {
        let help = "write a value of the declared kind, or change the declaration in the prompt file";
        Finding::new(&RULE, value.span, found.to_string()).with_help(help)
    }));
}

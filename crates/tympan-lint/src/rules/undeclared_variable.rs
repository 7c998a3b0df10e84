//! Names that a prompt does not declare.

use tympan_core::diagnostic::{Severity, guess_name};

use crate::context::Context;
use crate::finding::{Finding, Findings, Fix};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY101",
    name: "undeclared_variable",
    group: Group::Correctness,
    severity: Severity::Error,
    fix: FixAvailability::Sometimes,
    summary: "Reports a name in a template that the prompt does not declare. In a `.prompty` file, it is a warning, \
        and it is reported only if the file declares inputs.",
    why: "The name is often misspelled, and then the prompt fails when it is rendered.",
    example: "inputs: [{name: ticket, kind: string}]\n---\nuser:\nSummarize {{ tiket }}.",
    how_to_fix: "Correct the name, or declare it.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    // Without any declaration, every name is an input.
    if !context.has_inputs() {
        return;
    }
    for (template, compiled) in context.compiled() {
        for (name, span) in &compiled.undeclared {
            let span = template.locate(*span);
            let message = format!("undeclared {} `{name}`", context.noun());
            // A value can still be passed for it.
            let finding = Finding::new(&RULE, span, message).with_severity(Severity::Warning);
            findings.push(match guess_name(name, context.input_names()) {
                Some(near) => {
                    finding.with_help(format!("did you mean `{near}`?")).with_fix(Fix::needs_review(span, near))
                }
                None => finding.with_help(format!("declare it: `inputs: [{{name: {name}, kind: string}}]`")),
            });
        }
    }
}

//! Untrusted text in system messages.

use std::collections::HashSet;

use tympan_core::diagnostic::Severity;

use super::untrusted::untrusted_text;
use crate::context::{Context, is_instruction};
use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY301",
    name: "untrusted_in_system",
    group: Group::Trust,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports an untrusted input whose text reaches a system or developer message. Inputs are untrusted unless \
        they are declared with `trusted: true`. Numbers, booleans and inputs with an enum are not reported.",
    why: "The model takes that text for instructions from the application, so whoever writes the input can change them.",
    example: "system:\nAnswer from these documents:\n{% for d in docs %}\n{{ d.text }}\n{% endfor %}",
    how_to_fix: "Move the input to a user message. If only your application writes it, declare it with `trusted: true`.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    let mut seen = HashSet::new();
    for found in untrusted_text(context).into_iter().filter(|found| !found.in_marker) {
        let role = found.template.messages[found.message].role;
        let template = found.template.analysis.name();
        // One finding for each input and message is enough.
        if !is_instruction(role) || !seen.insert((template, found.message, found.sink.input)) {
            continue;
        }
        let message = format!("untrusted {} `{}` reaches the {} message", context.noun(), found.name, role.as_str());
        let finding = Finding::new(&RULE, found.template.locate(found.sink.span), message);
        let help = match context.is_definition() {
            true => "move it to a prompt with the user role, or render with the guard",
            false => "move it to a user message; if your application writes it, declare it with `trusted: true`",
        };
        findings.push(finding.with_help(help).with_related(found.template.path(found.sink)));
    }
}

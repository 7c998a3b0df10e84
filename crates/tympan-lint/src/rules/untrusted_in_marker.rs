//! Untrusted text in role markers.

use tympan_core::diagnostic::Severity;

use super::untrusted::untrusted_text;
use crate::context::Context;
use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY302",
    name: "untrusted_in_marker",
    group: Group::Trust,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports an untrusted input in an attribute of a role marker.",
    why: "Attributes are settings of a message, such as its name, and whoever writes the input can choose them.",
    example: "user[name={{ nickname }}]:\n{{ question }}",
    how_to_fix: "Write the value into the text of the message. If only your application writes it, declare it with \
        `trusted: true`.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    for found in untrusted_text(context).into_iter().filter(|found| found.in_marker) {
        let role = found.template.messages[found.message].role.as_str();
        let message = format!("untrusted {} `{}` is in the marker of the {role} message", context.noun(), found.name);
        let finding = Finding::new(&RULE, found.template.locate(found.sink.span), message);
        let help =
            "write it into the text of the message; if your application writes it, declare it with `trusted: true`";
        findings.push(finding.with_help(help).with_related(found.template.path(found.sink)));
    }
}

//! Messages without text.

use tympan_core::diagnostic::Severity;

use crate::context::Context;
use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY204",
    name: "empty_message",
    group: Group::Suspicious,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports a role marker without any text before the next one.",
    why: "The message is empty. Some providers reject empty messages.",
    example: "system:\n\nuser:\n{{ question }}",
    how_to_fix: "Write the text of the message, or remove the marker.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    for template in &context.templates {
        let source = template.analysis.source();
        for message in &template.messages {
            let Some(marker) = message.marker else { continue };
            let content = source.get(message.content.range()).unwrap_or_default();
            if content.contains("{%") || template.has_content(message) {
                continue;
            }
            let finding =
                Finding::new(&RULE, template.locate(marker), format!("the {} message is empty", message.role.as_str()));
            findings.push(finding.with_help("write its text, or remove the marker"));
        }
    }
}

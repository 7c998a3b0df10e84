//! Untrusted inputs that decide about instructions.

use std::collections::HashSet;

use tympan_core::diagnostic::Severity;
use tympan_core::prompt::analysis::marker_role;

use super::untrusted::{decisions, untrusted_text};
use crate::context::{Context, is_instruction};
use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY303",
    name: "untrusted_decision",
    group: Group::Trust,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports an untrusted input that decides which of the author's sentences a system or developer message \
        contains, because a condition or a loop depends on it.",
    why: "Whoever writes the input can switch instructions on and off.",
    example: "system:\n{% if tier == \"gold\" %}You may grant refunds.{% endif %}",
    how_to_fix: "Let the application decide and declare the input with `trusted: true`, or move the text to a user \
        message.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    let texts = untrusted_text(context).into_iter();
    let written: HashSet<_> =
        texts.map(|text| (text.template.analysis.name(), text.message, text.sink.input)).collect();
    for (template, compiled) in context.compiled() {
        let mut seen = HashSet::new();
        for sink in decisions(context, compiled) {
            let Some((index, message)) = template.message_at(sink.span.start) else { continue };
            let inside = sink.lines.iter().filter_map(|line| marker_role(line)).find(|role| is_instruction(*role));
            let Some(role) = Some(message.role).filter(|role| is_instruction(*role)).or(inside) else { continue };
            // If its text is in the message as well, that is the greater problem.
            let is_written = written.contains(&(template.analysis.name(), index, sink.input));
            if is_written || !seen.insert((index, sink.input)) {
                continue;
            }
            let (noun, name, role) = (context.noun(), compiled.input_name(sink.input), role.as_str());
            let message = format!("untrusted {noun} `{name}` decides what the {role} message says");
            let finding = Finding::new(&RULE, template.locate(sink.span), message);
            let help = "if your application decides this, declare the input with `trusted: true`";
            findings.push(finding.with_help(help).with_related(template.path(sink)));
        }
    }
}

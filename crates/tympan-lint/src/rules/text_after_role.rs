//! Roles with text on their line.

use tympan_core::diagnostic::Severity;
use tympan_core::spec::role::Role;
use tympan_core::text::source::Span;

use crate::context::Context;
use crate::finding::{Finding, Findings, Fix};
use crate::lines::lines;
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY106",
    name: "text_after_role",
    group: Group::Correctness,
    severity: Severity::Warning,
    fix: FixAvailability::Always,
    summary: "Reports text on the line of a role, such as `system: Be brief`: at the beginning of a paragraph, or if \
        the prompt has no marker of this role. Lines in code blocks are not reported, and capitalized roles only if the \
        prompt has no markers at all.",
    why: "A role marker must be alone on its line. This line becomes part of the message before it.",
    example: "system: Be brief.\n\nuser:\n{{ question }}",
    how_to_fix: "Put the text on the next line.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    if !context.prompt.spec().template.is_split() {
        return;
    }
    for template in &context.templates {
        let source = template.analysis.source();
        let marked: Vec<_> =
            template.messages.iter().filter(|message| message.marker.is_some()).map(|message| message.role).collect();
        let mut follows_finding = false;
        for line in lines(source).into_iter().filter(|line| !line.in_fence) {
            let label = line.label().filter(|label| !label.rest.is_empty());
            let role = label.and_then(|label| {
                let role = Role::IN_MARKERS.into_iter().find(|role| label.word.eq_ignore_ascii_case(role.as_str()))?;
                // In a transcript, which is text, roles are usually capitalized, and the prompt has markers of its own.
                let is_marker = match label.word == role.as_str() {
                    true => line.begins_paragraph || follows_finding || !marked.contains(&role),
                    false => (line.begins_paragraph || follows_finding) && marked.is_empty(),
                };
                is_marker.then_some(role)
            });
            follows_finding = role.is_some();
            let Some((label, role)) = label.zip(role) else { continue };
            let message = format!("the role `{}` has text on its line, so it does not start a message", role.as_str());
            let end = line.start + line.text.trim_end().len();
            let gap = Span::new(end - label.rest.len(), end);
            let colon = source[..gap.start].rfind(':').map_or(gap.start, |at| at + 1);
            let fix = Fix::needs_review(template.locate(Span::new(colon, gap.start)), "\n");
            let finding = Finding::new(&RULE, template.locate(label.span), message);
            findings.push(finding.with_help("put the text on the next line").with_fix(fix));
        }
    }
}

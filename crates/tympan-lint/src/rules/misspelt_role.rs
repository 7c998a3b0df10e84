//! Lines that are close to a role marker.

use tympan_core::diagnostic::{Severity, guess_name};
use tympan_core::spec::role::Role;
use tympan_core::text::source::Span;

use crate::context::Context;
use crate::finding::{Finding, Findings, Fix};
use crate::lines::{Label, Line, lines};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY105",
    name: "misspelt_role",
    group: Group::Correctness,
    severity: Severity::Error,
    fix: FixAvailability::Always,
    summary: "Reports a line such as `sytem:` that is close to a role marker. Code blocks are left out.",
    why: "The line becomes text of the message before it. If there is none, the whole prompt is one system message.",
    example: "sytem:\nYou answer in one sentence.",
    how_to_fix: "Write the role that the help shows.",
    check: Some(check),
};

/// Words that are close to a role but are common in text.
const WORDS: [&str; 9] =
    ["use", "uses", "used", "users", "systems", "assistants", "developers", "development", "assistance"];

fn check(context: &Context<'_>, findings: &mut Findings) {
    if !context.prompt.spec().template.is_split() {
        return;
    }
    for template in &context.templates {
        for line in lines(template.analysis.source()) {
            if let Some(finding) = misspelt(line) {
                let span = template.locate(finding.0);
                let message = format!("unknown role `{}`: the line is text of the message before it", finding.1);
                let found = Finding::new(&RULE, span, message).with_help(format!("did you mean `{}:`?", finding.2));
                findings.push(found.with_fix(Fix::needs_review(span, finding.2)));
            }
        }
    }
}

/// Returns the position of a misspelled role, the word, and the role that was meant.
fn misspelt(line: Line<'_>) -> Option<(Span, &str, &'static str)> {
    let Label { word, span, rest } = line.label()?;
    let is_alone = rest.is_empty() && !line.in_fence && line.begins_paragraph && !line.text.starts_with([' ', '\t']);
    let lower = word.to_ascii_lowercase();
    let is_role = Role::IN_MARKERS.iter().any(|role| role.as_str() == lower);
    if !is_alone || is_role || WORDS.contains(&lower.as_str()) {
        return None;
    }
    guess_name(word, Role::IN_MARKERS.map(Role::as_str)).map(|near| (span, word, near))
}

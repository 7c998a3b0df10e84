//! Lines that are close to a role marker.

use tympan_core::diagnostic::{Severity, guess_name};
use tympan_core::spec::role::Role;

use crate::context::Context;
use crate::finding::{Finding, Findings, Fix};
use crate::lines::{Label, Line, lines};
use crate::rule::{FixAvailability, Group, Rule};
use crate::typo;

pub(crate) static RULE: Rule = Rule {
    code: "TY105",
    name: "misspelt_role",
    group: Group::Correctness,
    severity: Severity::Error,
    fix: FixAvailability::Always,
    summary: "Reports a line such as `sytem:` that is almost a role marker. Words with two wrong characters are \
        warnings, and are reported only at the beginning of a paragraph, as are indented lines and lines such as `sytem: Be \
        brief`. Lines in code blocks are not reported.",
    why: "The line becomes part of the message before it. Without a role marker, the whole prompt is one system \
        message.",
    example: "sytem:\nYou answer in one sentence.",
    how_to_fix: "Write the role that the help shows.",
    check: Some(check),
};

/// Words that are close to a role but are common in text.
const WORDS: [&str; 15] = [
    "use",
    "uses",
    "used",
    "users",
    "usher",
    "uber",
    "systems",
    "sister",
    "assistants",
    "assistance",
    "assisting",
    "develop",
    "developed",
    "developers",
    "development",
];

fn check(context: &Context<'_>, findings: &mut Findings) {
    if !context.prompt.spec().template.is_split() {
        return;
    }
    for template in &context.templates {
        for line in lines(template.analysis.source()) {
            let Some((label, role, severity)) = misspelt(line) else { continue };
            let span = template.locate(label.span);
            let message = format!("unknown role `{}`: the line is text of the message before it", label.word);
            let finding = Finding::new(&RULE, span, message).with_help(format!("did you mean `{role}:`?"));
            findings.push(finding.with_severity(severity).with_fix(Fix::needs_review(span, role)));
        }
    }
}

/// Returns the word of a line that is close to a role, the role that was meant, and how sure this is.
fn misspelt(line: Line<'_>) -> Option<(Label<'_>, &'static str, Severity)> {
    let label = line.label()?;
    let word = label.word.to_ascii_lowercase();
    let is_role = Role::IN_MARKERS.iter().any(|role| role.as_str() == word);
    if line.in_fence || is_role || WORDS.contains(&word.as_str()) {
        return None;
    }
    let role = guess_name(&word, Role::IN_MARKERS.map(Role::as_str))?;
    let severity = typo::severity(&word, role);
    let is_indented = line.text.starts_with([' ', '\t']);
    if !label.rest.is_empty() || is_indented {
        // Text has many labels. `text_after_role` reports such lines as warnings, too.
        let is_likely = line.begins_paragraph && severity == Severity::Error && label.word == word && role.len() > 4;
        return is_likely.then_some((label, role, Severity::Warning));
    }
    // Many other words are two characters away from a role, such as `Buyer` from `user`.
    let is_likely = line.begins_paragraph && role.len() > 4;
    (severity == Severity::Error || is_likely).then_some((label, role, severity))
}

//! Fixed text that providers cannot cache.

use tympan_core::diagnostic::Severity;

use crate::context::Context;
use crate::finding::{Finding, Findings};
use crate::lines::fixed_text;
use crate::rule::{FixAvailability, Group, Rule};
use crate::tokens::estimate;

pub(crate) static RULE: Rule = Rule {
    code: "TY401",
    name: "uncacheable_text",
    group: Group::Cost,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports an input before at least 4,096 bytes of fixed text.",
    why: "Providers cache the beginning of a request up to the first change. Fixed text after an input is billed in \
        full every time.",
    example: "system:\nToday is {{ date }}.\n\n(several pages of instructions)",
    how_to_fix: "Move the fixed text before the first input, for example by writing the input at the end of the \
        message.",
    check: Some(check),
};

/// Providers do not cache less than about a thousand tokens.
const MIN_BYTES: usize = 4096;

fn check(context: &Context<'_>, findings: &mut Findings) {
    for (template, compiled) in context.compiled() {
        let Some(first) = compiled.flow.sinks.first() else { continue };
        let source = template.analysis.source();
        let bytes = |text: &str| fixed_text(text).map(str::len).sum::<usize>();
        // The rest begins inside of the tag, which ends before any fixed text.
        let rest = &source[first.span.end.min(source.len())..];
        let rest = ["}}", "%}"].iter().filter_map(|close| rest.find(close)).min().map_or("", |end| &rest[end + 2..]);
        let (before, after) = (bytes(&source[..first.span.start]), bytes(rest));
        if after < MIN_BYTES {
            continue;
        }
        let (noun, name) = (context.noun(), compiled.input_name(first.input));
        let message = format!(
            "{noun} `{name}` precedes an estimated {} tokens of fixed text, which cannot be cached (about {} can)",
            estimate(after),
            estimate(before)
        );
        let finding = Finding::new(&RULE, template.locate(first.span), message);
        findings.push(finding.with_help("move the fixed text before the first input"));
    }
}

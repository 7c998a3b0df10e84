//! Prompts that are longer than the context of their model.

use tympan_core::diagnostic::Severity;

use crate::context::Context;
use crate::finding::{Finding, Findings};
use crate::lines::fixed_text;
use crate::rule::{FixAvailability, Group, Rule};
use crate::tokens::estimate;

pub(crate) static RULE: Rule = Rule {
    code: "TY402",
    name: "context_exceeded",
    group: Group::Cost,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports a prompt whose fixed text alone is longer than the context of its model, estimated at 4 bytes \
        per token. Only well-known models and those in `[models]` of `tympan.toml` are checked.",
    why: "The provider rejects the request, or cuts off the prompt.",
    example: "model: {id: gpt-4, provider: openai}\n---\nsystem:\n(a manual of 200 pages)",
    how_to_fix: "Shorten the text, pass only the relevant part as an input, or choose a model with a longer context.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    let id = context.prompt.spec().model.as_ref().and_then(|model| model.id.as_deref());
    let window = |id: &str| usize::try_from(context.options.catalog.get(id).context?).ok();
    let Some((id, window)) = id.and_then(|id| Some((id, window(id)?))) else { return };
    for template in &context.templates {
        let source = template.analysis.source();
        // Most prompts are short enough with all of their tags.
        if estimate(source.len()) <= window {
            continue;
        }
        let tokens = estimate(fixed_text(source).map(str::len).sum());
        if tokens > window {
            let message = format!(
                "the fixed text has an estimated {tokens} tokens, and the context of `{id}` has {window} tokens"
            );
            let span = context.outline.get(&["model", "id"]).map(|field| field.span);
            let finding = Finding::new(&RULE, span, message);
            findings.push(finding.with_help("shorten the text, or choose a model with a longer context"));
        }
    }
}

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
        per token. Only well-known models are checked.",
    why: "The provider rejects the request, or cuts off the prompt.",
    example: "model: {id: gpt-4, provider: openai}\n---\nsystem:\n(a manual of 200 pages)",
    how_to_fix: "Shorten the text, pass only the relevant part as an input, or choose a model with a longer context.",
    check: Some(check),
};

/// The beginnings of the names of well-known models, and their context in tokens. The longest beginning counts.
const CONTEXTS: [(&str, usize); 24] = [
    ("gpt-3.5-turbo", 16_385),
    ("gpt-35-turbo", 16_385),
    ("gpt-4", 8_192),
    ("gpt-4-32k", 32_768),
    ("gpt-4-turbo", 128_000),
    ("gpt-4-1106", 128_000),
    ("gpt-4-0125", 128_000),
    ("gpt-4o", 128_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4.5", 128_000),
    ("gpt-5", 400_000),
    ("o1", 200_000),
    ("o1-mini", 128_000),
    ("o1-preview", 128_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
    ("claude-2.0", 100_000),
    ("claude-3", 200_000),
    ("gemini-1.5-flash", 1_048_576),
    ("gemini-2", 1_048_576),
    ("mistral-large", 131_072),
    ("llama-3.1", 131_072),
    ("llama-3.3", 131_072),
    ("deepseek-chat", 131_072),
];

fn check(context: &Context<'_>, findings: &mut Findings) {
    let id = context.prompt.spec().model.as_ref().and_then(|model| model.id.as_deref());
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

fn window(id: &str) -> Option<usize> {
    let models = CONTEXTS.iter().filter(|(start, _)| {
        // `o3` is not the beginning of `o3x`, but of `o3-mini`.
        id.strip_prefix(start).is_some_and(|rest| !rest.starts_with(|char: char| char.is_ascii_alphabetic()))
    });
    models.max_by_key(|(start, _)| start.len()).map(|(_, tokens)| *tokens)
}

//! Keys that no prompt file has.

use tympan_core::diagnostic::Severity;
use tympan_core::format::outline::Field;
use tympan_core::spec::PromptKind;

use crate::context::Context;
use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY120",
    name: "unknown_key",
    group: Group::Correctness,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports an unknown key at the top level of the front matter, in `model` or in `template`. Keys that are \
        close to a known one are reported as `misspelt_key`. Keys that start with `x-`, `$` or `_` are not reported.",
    why: "The key is preserved but has no effect.",
    example: "temperature: 0.2\nmodel: {id: gpt-4o}",
    how_to_fix: "Move options of the model to `model.options`, and your own data to `metadata`.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    let spec = context.prompt.spec();
    if spec.kind() != PromptKind::Prompty {
        return;
    }
    let top = spec.extra.keys().map(|key| vec![key.as_str()]);
    let model = spec.model.iter().flat_map(|model| model.extra.keys()).map(|key| vec!["model", key]);
    let template = spec.template.extra.keys().map(|key| vec!["template", key]);
    for path in top.chain(model).chain(template) {
        // What is not written under this name is reported under another one.
        let Some(field) = context.outline.get(&path) else { continue };
        let key = path[path.len() - 1];
        let is_reported = context
            .prompt
            .warnings()
            .iter()
            .any(|warning| warning.span.is_some_and(|span| span == field.key_span || span == field.span));
        let is_exempt = key.starts_with("x-") || key.starts_with(['$', '_']) || key == "sample";
        if is_reported || is_exempt || has_anchor(context, field) {
            continue;
        }
        let message = format!("unknown key `{}`, which has no effect", path.join("."));
        let help = match is_option(key) && path[0] != "template" {
            true => format!("move it to `model.options`: `options: {{{key}: …}}`"),
            false => "move data of your own to `metadata`".to_owned(),
        };
        findings.push(Finding::new(&RULE, field.key_span, message).with_help(help));
    }
}

/// Returns whether other values refer to a value.
fn has_anchor(context: &Context<'_>, field: Field<'_>) -> bool {
    let before = context.prompt.source().text().get(field.key_span.end..field.span.start).unwrap_or_default();
    before.contains('&') || context.prompt.source().slice(field.span).starts_with('&')
}

/// Returns whether a key is an option of the model, or one of its older names.
fn is_option(key: &str) -> bool {
    const OPTIONS: [&str; 20] = [
        "temperature",
        "maxOutputTokens",
        "max_tokens",
        "maxTokens",
        "max_output_tokens",
        "max_completion_tokens",
        "topP",
        "top_p",
        "topK",
        "top_k",
        "frequencyPenalty",
        "frequency_penalty",
        "presencePenalty",
        "presence_penalty",
        "seed",
        "stop",
        "stopSequences",
        "allowMultipleToolCalls",
        "additionalProperties",
        "cache",
    ];
    OPTIONS.contains(&key)
}

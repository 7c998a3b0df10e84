//! Tools that no request can use.

use std::collections::HashMap;

use serde_json::Value as Json;
use tympan_core::diagnostic::Severity;
use tympan_core::spec::ToolKind;
use tympan_core::wire::{EncodeOptions, ModelSelection, Protocol, protocol};

use crate::context::Context;
use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY403",
    name: "unneeded_tool",
    group: Group::Cost,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports tools of a prompt that forbids tool calls with `tool_choice: none` or that creates embeddings or \
        images, and a second function with the same parameters and description.",
    why: "The model cannot call them, and every request pays for their descriptions.",
    example: "model: {id: gpt-4o, options: {additionalProperties: {tool_choice: none}}}\ntools:\n  - {name: find, kind: \
        function}",
    how_to_fix: "Remove the tools, or let the model call them.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    let spec = context.prompt.spec();
    if spec.tools.is_empty() {
        return;
    }
    if let Some((reason, help)) = forbidden(context) {
        let span = context.outline.get(&["tools"]).map(|field| field.key_span).or(spec.tools[0].span);
        findings.push(Finding::new(&RULE, span, format!("the tools are never used: {reason}")).with_help(help));
        return;
    }
    let mut seen: HashMap<_, &str> = HashMap::new();
    for tool in &spec.tools {
        let ToolKind::Function { parameters, .. } = &tool.kind else { continue };
        let Some(description) = tool.description.as_deref().filter(|text| !text.is_empty()) else { continue };
        let names: Vec<_> = parameters.iter().map(|parameter| (parameter.name.as_str(), parameter.kind)).collect();
        match seen.get(&(description, names.clone())) {
            Some(first) => {
                let message = format!("tool `{}` has the description and the parameters of `{first}`", tool.name);
                let finding = Finding::new(&RULE, tool.span, message);
                findings.push(finding.with_help("remove one of the two, or describe the difference"));
            }
            None => drop(seen.insert((description, names), &tool.name)),
        }
    }
}

/// Returns why requests never use tools, and what to do.
fn forbidden(context: &Context<'_>) -> Option<(&'static str, &'static str)> {
    let model = context.prompt.spec().model.as_ref()?;
    let options = &model.options.additional_properties;
    let choice = ["tool_choice", "toolChoice"].into_iter().find_map(|key| options.get(key));
    // Anthropic's form is a map.
    let choice = choice.map(|choice| choice.get("type").unwrap_or(choice));
    if choice.and_then(Json::as_str) == Some("none") {
        return Some(("`tool_choice` is `none`", "remove them, or remove `tool_choice`"));
    }
    let selection = ModelSelection::new(context.prompt, &EncodeOptions::default());
    match protocol(selection.provider, selection.api_type?).ok()? {
        Protocol::OpenAiEmbeddings => Some(("the API type is `embedding`", "remove them")),
        Protocol::OpenAiImages => Some(("the API type is `image`", "remove them")),
        _ => None,
    }
}

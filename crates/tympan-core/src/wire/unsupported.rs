//! Options that a prompt sets but its provider does not support.

use std::cell::OnceCell;

use super::encode::options::mapped;
use super::model_selection::ModelSelection;
use super::target::{find_protocol, find_provider};
use super::{EncodeOptions, Protocol};
use crate::diagnostic::{Diagnostic, guess};
use crate::prompt::Prompt;
use crate::spec::ModelOptions;

/// The diagnostic code of the warnings.
const CODE: &str = "unsupported_option";

/// Returns a warning for each option of a prompt that its provider does not support. As the specification requires,
/// requests omit such options silently, so this check is the only place that reports them.
///
/// Returns no warnings if the provider or the API type is unknown.
pub fn unsupported(prompt: &Prompt) -> Vec<Diagnostic> {
    let Some(model) = &prompt.spec().model else { return Vec::new() };
    let selection = ModelSelection::new(prompt, &EncodeOptions::default());
    let Ok(provider) = find_provider(selection.provider) else { return Vec::new() };
    let Ok(protocol) = find_protocol(provider, selection.api_type) else { return Vec::new() };
    let mut findings = Vec::new();
    // Nearly all prompts have nothing to report, so their positions are not needed.
    let outline = OnceCell::new();
    let mut add = |option: &str, help: &str| {
        let (provider, api) = (provider.name, protocol.as_str());
        let message = format!("`model.options.{option}` is ignored: provider `{provider}` ({api}) does not support it");
        let outline = outline.get_or_init(|| prompt.outline());
        let span = outline.get(&["model", "options", option]).map(|field| field.key_span);
        findings.push(Diagnostic::warning(CODE, span, message).with_help(help));
    };
    for option in mapped(&model.options, provider, protocol).filter(|option| option.name.is_none()) {
        add(option.option, "remove it, or choose a provider that supports it");
    }
    let has_tools = !matches!(protocol, Protocol::OpenAiEmbeddings | Protocol::OpenAiImages);
    if model.options.allow_multiple_tool_calls.is_some() && !has_tools {
        add("allowMultipleToolCalls", "remove it, or choose a provider that supports it");
    }
    // Loading the file reports options that are misspelt, with their positions.
    let is_misspelt = |option: &str| guess(option, ModelOptions::KEYS).is_some();
    for option in model.options.extra.keys().filter(|option| !is_misspelt(option)) {
        add(option, "for a provider-specific option, use `model.options.additionalProperties`");
    }
    findings
}

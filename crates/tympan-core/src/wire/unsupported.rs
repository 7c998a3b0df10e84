//! What a prompt asks for that its provider does not have.

use super::encode::options::mapped;
use super::target::{find_protocol, find_provider, named_api, named_provider};
use super::{EncodeOptions, Protocol};
use crate::diagnostic::Diagnostic;
use crate::prompt::Prompt;

/// The code of the findings.
const CODE: &str = "unsupported_option";

/// The options of a prompt that its provider never gets to see. Requests leave them out without a word, as the
/// specification says; whoever checks a prompt wants to know.
///
/// Of a prompt whose provider or interface is not known there is nothing to say here.
pub fn unsupported(prompt: &Prompt) -> Vec<Diagnostic> {
    let Some(model) = &prompt.spec().model else { return Vec::new() };
    let options = EncodeOptions::default();
    let Ok(provider) = find_provider(named_provider(Some(model), &options)) else { return Vec::new() };
    let Ok(protocol) = find_protocol(provider, named_api(Some(model), &options)) else { return Vec::new() };
    let mut findings = Vec::new();
    let mut add = |option: &str, help: &str| {
        let (provider, api) = (provider.name, protocol.as_str());
        let message =
            format!("`model.options.{option}` is left out: the provider `{provider}` ({api}) does not have it");
        findings.push(Diagnostic::warning(CODE, None, message).with_help(help));
    };
    for option in mapped(&model.options, provider, protocol).filter(|option| option.name.is_none()) {
        add(option.option, "remove it, or choose a provider that has it");
    }
    let has_tools = !matches!(protocol, Protocol::OpenAiEmbeddings | Protocol::OpenAiImages);
    if model.options.allow_multiple_tool_calls.is_some() && !has_tools {
        add("allowMultipleToolCalls", "remove it, or choose a provider that has it");
    }
    for option in model.options.extra.keys() {
        add(option, "if it is the provider's own, write it under `model.options.additionalProperties`");
    }
    findings
}

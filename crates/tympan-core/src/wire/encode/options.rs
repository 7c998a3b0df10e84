//! Model options, under each provider's names.

use serde::Serialize;
use serde_json::Number;

use crate::spec::ModelOptions;
use crate::wire::Protocol;
use crate::wire::compatible::Provider;

/// An option that a prompt sets.
pub(in crate::wire) struct Mapped<'a> {
    /// The option's name in prompts.
    pub(in crate::wire) option: &'static str,
    /// The provider's name for the option; `None` if it does not support it.
    pub(in crate::wire) name: Option<&'static str>,
    /// The option's value.
    pub(super) value: OptionValue<'a>,
}

/// The value of an option, as the prompt file has it.
#[derive(Clone, Copy, Serialize)]
#[serde(untagged)]
pub(super) enum OptionValue<'a> {
    Number(&'a Number),
    Integer(i64),
    Texts(&'a [String]),
}

/// Returns the options that a prompt sets, with the provider's names for them.
///
/// `allowMultipleToolCalls` is not among them: it applies only if there are tools, so each protocol encodes it with
/// them.
pub(in crate::wire) fn mapped<'a>(
    options: &'a ModelOptions,
    provider: &'static Provider,
    protocol: Protocol,
) -> impl Iterator<Item = Mapped<'a>> {
    let names = names(provider, protocol);
    let number = |number: &'a Option<Number>| number.as_ref().map(OptionValue::Number);
    let integer = |integer: Option<i64>| integer.map(OptionValue::Integer);
    let values = [
        ("temperature", number(&options.temperature)),
        ("maxOutputTokens", integer(options.max_output_tokens)),
        ("topP", number(&options.top_p)),
        ("topK", integer(options.top_k)),
        ("frequencyPenalty", number(&options.frequency_penalty)),
        ("presencePenalty", number(&options.presence_penalty)),
        ("seed", integer(options.seed)),
        ("stopSequences", options.stop_sequences.as_deref().map(OptionValue::Texts)),
    ];
    let set = values.into_iter().zip(names).filter_map(|((option, value), name)| Some((option, name, value?)));
    set.map(|(option, name, value)| Mapped { option, name, value })
}

/// Returns a protocol's names for the options, in the order of [`mapped`].
fn names(provider: &Provider, protocol: Protocol) -> [Option<&'static str>; 8] {
    let quirks = provider.quirks;
    let top_k = quirks.top_k.then_some("top_k");
    match protocol {
        Protocol::OpenAiChat => [
            Some("temperature"),
            Some(quirks.max_tokens),
            Some("top_p"),
            top_k,
            Some("frequency_penalty"),
            Some("presence_penalty"),
            Some(quirks.seed),
            Some("stop"),
        ],
        Protocol::OpenAiResponses => {
            [Some("temperature"), Some("max_output_tokens"), Some("top_p"), None, None, None, None, None]
        }
        Protocol::OpenAiEmbeddings | Protocol::OpenAiImages => [None; 8],
        Protocol::AnthropicMessages => {
            [Some("temperature"), Some("max_tokens"), Some("top_p"), top_k, None, None, None, Some("stop_sequences")]
        }
    }
}

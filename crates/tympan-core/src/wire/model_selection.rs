//! The provider, API type and model that the options and the prompt select.

use super::EncodeOptions;
use super::compatible::DEFAULT_PROVIDER;
use crate::prompt::Prompt;

/// The names of the provider, the API type and the model to call. They are not checked: the provider may be a custom
/// one that only the caller knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelSelection<'a> {
    /// The provider's name.
    pub provider: &'a str,
    /// The API type. If `None`, the provider's first one is used.
    pub api_type: Option<&'a str>,
    /// The provider's name for the model.
    pub model: Option<&'a str>,
}

impl<'a> ModelSelection<'a> {
    /// Selects each value from the options, or else from the prompt. If neither names a provider, it is `openai`, the
    /// reference provider of the Prompty specification.
    pub fn new(prompt: &'a Prompt, options: &EncodeOptions<'a>) -> Self {
        let model = prompt.spec().model.as_ref();
        Self {
            provider: options.provider.or_else(|| model?.provider.as_deref()).unwrap_or(DEFAULT_PROVIDER),
            api_type: options.api_type.or_else(|| model?.api_type.as_deref()),
            model: options.model.or_else(|| model?.id.as_deref()),
        }
    }
}

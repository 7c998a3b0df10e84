//! The request that would be sent to a provider.

use serde_json::{Value as Json, json};
use tympan_core::prompt::Entropy;
use tympan_core::secret::url::redacted_url;
use tympan_core::wire::{EncodeOptions, HeaderValue, encode, target};
use tympan_core::{Result, spec};

use super::Prompt;
use super::options::{Options, inputs};
use super::render::render_text;

/// Returns the request without its key. A header that carries the key names the environment variable that usually
/// holds it.
///
/// # Errors
/// Returns an error if the file does not load, if an argument is invalid, if rendering fails, or if the prompt and the
/// options do not select a model.
pub(super) fn request(file: &Prompt, inputs_json: &str, options_json: &str, entropy: Entropy<'_>) -> Result<Json> {
    let (values, options) = (inputs(inputs_json)?, Options::parse(options_json)?);
    let prompt = file.loaded()?;
    let rendered = render_text(prompt, &values, &options, entropy)?;
    let guard = rendered.guard();
    let mut messages = prompt.messages(rendered.clone())?;
    if let Some(guard) = guard {
        guard.insert_into(&mut messages);
    }
    let options = EncodeOptions {
        provider: options.provider.as_deref(),
        model: options.model.as_deref(),
        api_type: options.api.as_deref(),
        stream: options.stream,
        ..EncodeOptions::default()
    };
    let destination = target(prompt, &options)?;
    let placeholder = spec::Secret::new("key");
    let api_key = destination.needs_key().then_some(&placeholder);
    let request = encode(prompt, &messages, &EncodeOptions { api_key, ..options })?;
    let variable = destination.provider.key_variables.first();
    let headers = request.headers.iter().map(|header| match &header.value {
        HeaderValue::Plain(value) => json!({"name": header.name, "value": value}),
        HeaderValue::Secret { prefix, .. } => json!({
            "name": header.name,
            "value": header.value.redacted(),
            "secret": {"prefix": prefix, "variable": variable},
        }),
    });
    Ok(json!({
        "method": request.method,
        "url": redacted_url(&request.url),
        "headers": headers.collect::<Json>(),
        "body": serde_json::from_str::<Json>(&request.body).unwrap_or_default(),
        "provider": destination.provider.name,
        "model": destination.model,
        "protocol": request.protocol.as_str(),
    }))
}

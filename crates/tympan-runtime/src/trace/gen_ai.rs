//! Attributes from OpenTelemetry's semantic conventions for generative AI.

use serde_json::Value as Json;
use tympan_core::Response;
use tympan_core::spec::ModelOptions;
use tympan_core::wire::response::Usage;

use crate::trace::span::Span;

/// Providers whose names in the conventions differ from those in prompt files.
const PROVIDERS: [(&str, &str); 7] = [
    ("azure", "azure.ai.openai"),
    ("foundry", "microsoft.foundry"),
    ("gemini", "gcp.gemini"),
    ("mistral", "mistral_ai"),
    ("xai", "x_ai"),
    ("bedrock", "aws.bedrock"),
    ("watsonx", "ibm.watsonx.ai"),
];

/// Returns a provider's name in the conventions.
pub fn provider_name(provider: &str) -> &str {
    PROVIDERS.iter().find(|(name, _)| *name == provider).map_or(provider, |(_, name)| name)
}

/// Returns the name of an API type's operation in the conventions.
pub fn operation_name(api_type: Option<&str>) -> &str {
    match api_type {
        None | Some("chat" | "responses" | "agent") => "chat",
        Some("embedding" | "embeddings") => "embeddings",
        Some("image" | "images") => "generate_content",
        Some(other) => other,
    }
}

impl Span {
    /// Records the attributes of a model request.
    pub fn request(&self, provider: Option<&str>, api_type: Option<&str>, model: Option<&str>, options: &ModelOptions) {
        if !self.is_enabled() {
            return;
        }
        let number = |number: &Option<serde_json::Number>| number.clone().map(Json::Number);
        self.attribute("gen_ai.operation.name", operation_name(api_type));
        self.attribute("gen_ai.provider.name", provider.map(provider_name));
        self.attribute("gen_ai.request.model", model);
        self.attribute("gen_ai.request.temperature", number(&options.temperature));
        self.attribute("gen_ai.request.max_tokens", options.max_output_tokens);
        self.attribute("gen_ai.request.top_p", number(&options.top_p));
        self.attribute("gen_ai.request.top_k", options.top_k);
        self.attribute("gen_ai.request.frequency_penalty", number(&options.frequency_penalty));
        self.attribute("gen_ai.request.presence_penalty", number(&options.presence_penalty));
        self.attribute("gen_ai.request.seed", options.seed);
        self.attribute("gen_ai.request.stop_sequences", options.stop_sequences.clone().map(Json::from));
    }

    /// Records the attributes of a model response: its ID, its model, the finish reason and the token usage.
    pub fn response(&self, response: &Response) {
        if !self.is_enabled() {
            return;
        }
        self.attribute("gen_ai.response.id", response.id.as_deref());
        self.attribute("gen_ai.response.model", response.model.as_deref());
        let reasons = response.finish_reason.as_ref().map(|reason| Json::from(vec![reason.as_str()]));
        self.attribute("gen_ai.response.finish_reasons", reasons);
        if let Some(usage) = &response.usage {
            self.usage(usage);
        }
    }

    /// Records the token usage.
    pub fn usage(&self, usage: &Usage) {
        self.attribute("gen_ai.usage.input_tokens", usage.input_tokens);
        self.attribute("gen_ai.usage.output_tokens", usage.output_tokens);
        let some = |count: u64| Some(count).filter(|count| *count > 0);
        self.attribute("gen_ai.usage.cache_read.input_tokens", some(usage.cached_input_tokens));
        self.attribute("gen_ai.usage.cache_creation.input_tokens", some(usage.cache_write_tokens));
        self.attribute("gen_ai.usage.reasoning.output_tokens", some(usage.reasoning_tokens));
    }

    /// Records the attributes of a turn.
    pub fn turn(&self, agent: Option<&str>) {
        self.attribute("gen_ai.operation.name", "turn");
        self.attribute("gen_ai.agent.name", agent);
    }

    /// Records the attributes of a tool call.
    pub fn tool(&self, name: &str, call_id: Option<&str>) {
        self.attribute("gen_ai.operation.name", "execute_tool");
        self.attribute("gen_ai.tool.name", name);
        self.attribute("gen_ai.tool.call.id", call_id);
    }
}

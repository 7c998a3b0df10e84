//! The names that OpenTelemetry's conventions for generative AI give to things.

use serde_json::Value as Json;
use tympan_core::Response;
use tympan_core::spec::ModelOptions;
use tympan_core::wire::response::Usage;

use crate::trace::span::Span;

/// Providers whose name in the conventions is another than in prompt files.
const PROVIDERS: [(&str, &str); 7] = [
    ("azure", "azure.ai.openai"),
    ("foundry", "microsoft.foundry"),
    ("gemini", "gcp.gemini"),
    ("mistral", "mistral_ai"),
    ("xai", "x_ai"),
    ("bedrock", "aws.bedrock"),
    ("watsonx", "ibm.watsonx.ai"),
];

/// The conventions' name of a provider.
pub fn provider_name(provider: &str) -> &str {
    PROVIDERS.iter().find(|(name, _)| *name == provider).map_or(provider, |(_, name)| name)
}

/// The conventions' name of what one of a provider's interfaces does.
pub fn operation_name(api_type: Option<&str>) -> &str {
    match api_type {
        None | Some("chat" | "responses" | "agent") => "chat",
        Some("embedding" | "embeddings") => "embeddings",
        Some("image" | "images") => "generate_content",
        Some(other) => other,
    }
}

impl Span {
    /// What is asked of a model.
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

    /// What a model answered: who it was, why it stopped, and what it used.
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

    /// What a model used.
    pub fn usage(&self, usage: &Usage) {
        self.attribute("gen_ai.usage.input_tokens", usage.input_tokens);
        self.attribute("gen_ai.usage.output_tokens", usage.output_tokens);
        let some = |count: u64| Some(count).filter(|count| *count > 0);
        self.attribute("gen_ai.usage.cache_read.input_tokens", some(usage.cached_input_tokens));
        self.attribute("gen_ai.usage.cache_creation.input_tokens", some(usage.cache_write_tokens));
        self.attribute("gen_ai.usage.reasoning.output_tokens", some(usage.reasoning_tokens));
    }

    /// A round of an agent.
    pub fn turn(&self, agent: Option<&str>) {
        self.attribute("gen_ai.operation.name", "turn");
        self.attribute("gen_ai.agent.name", agent);
    }

    /// A call of a tool.
    pub fn tool(&self, name: &str, call_id: Option<&str>) {
        self.attribute("gen_ai.operation.name", "execute_tool");
        self.attribute("gen_ai.tool.name", name);
        self.attribute("gen_ai.tool.call.id", call_id);
    }
}

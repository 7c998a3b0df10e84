//! The table of known providers.

use super::Protocol;

/// A provider: its address, its authentication, and its differences from OpenAI.
#[derive(Debug)]
pub struct Provider {
    /// The name that prompts use.
    pub name: &'static str,
    /// Other names that prompts may use.
    pub aliases: &'static [&'static str],
    /// The default base URL; `None` if every customer has a different one.
    pub base_url: Option<&'static str>,
    /// The environment variables that usually hold the key, in order of preference.
    pub key_variables: &'static [&'static str],
    /// The environment variable that usually holds the base URL, if there is one.
    pub base_url_variable: Option<&'static str>,
    /// Hosts that a key from the environment may be sent to, in addition to the host of [`Provider::base_url`]. An
    /// entry that starts with a dot matches the hosts directly below that domain.
    pub hosts: &'static [&'static str],
    /// Whether the provider usually runs on the same machine and does not need a key.
    pub is_local: bool,
    /// The supported protocols. Prompts without an `apiType` use the first.
    pub protocols: &'static [Protocol],
    /// How the key is sent.
    pub auth: Auth,
    /// How URLs are built.
    pub paths: Paths,
    /// Differences from OpenAI.
    pub quirks: Quirks,
}

/// How a provider expects the API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Auth {
    /// `authorization: Bearer …`
    Bearer,
    /// `api-key: …`
    ApiKey,
    /// `x-api-key: …`
    XApiKey,
}

impl Auth {
    /// Returns the name of the header.
    pub const fn header(self) -> &'static str {
        match self {
            Self::Bearer => "authorization",
            Self::ApiKey => "api-key",
            Self::XApiKey => "x-api-key",
        }
    }

    /// Returns the text before the key in the header's value.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Bearer => "Bearer ",
            Self::ApiKey | Self::XApiKey => "",
        }
    }
}

/// How to build a provider's URLs from its base URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Paths {
    /// Append this path if the base URL has none; otherwise use the base URL's path.
    Default(&'static str),
    /// Append this path, unless the base URL already ends in it.
    Under(&'static str),
    /// Azure's scheme: the deployment is part of the path, and the API version is a query parameter.
    Deployments,
}

/// A provider's differences from OpenAI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quirks {
    /// The name of the option that limits the tokens in a response.
    pub max_tokens: &'static str,
    /// The name of the seed option.
    pub seed: &'static str,
    /// Whether the provider supports `top_k`.
    pub top_k: bool,
    /// Whether streams include usage only if `stream_options` requests it.
    pub stream_usage: bool,
    /// How to send the JSON Schema of the response.
    pub json_schema: JsonSchema,
    /// Whether the provider supports the role `developer`. If not, `system` is sent instead.
    pub developer: bool,
    /// Whether the provider accepts messages without content. If not, they are left out.
    pub empty_messages: bool,
    /// Whether the provider accepts the fields `refusal` and `audio` in messages of the assistant.
    pub answer_fields: bool,
}

/// How to send a provider the JSON Schema that responses must follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JsonSchema {
    /// In a dedicated format, like OpenAI.
    Own,
    /// In the `json_object` format.
    InJsonObject,
    /// Not at all. The provider enforces only that the response is JSON.
    Never,
}

const OPENAI: Quirks = Quirks {
    max_tokens: "max_completion_tokens",
    seed: "seed",
    top_k: false,
    stream_usage: true,
    json_schema: JsonSchema::Own,
    developer: true,
    empty_messages: true,
    answer_fields: true,
};

/// The defaults for OpenAI-compatible providers.
const COMPATIBLE: Quirks = Quirks { max_tokens: "max_tokens", developer: false, answer_fields: false, ..OPENAI };

const CHAT: &[Protocol] = &[Protocol::OpenAiChat];
const CHAT_RESPONSES: &[Protocol] = &[Protocol::OpenAiChat, Protocol::OpenAiResponses];
const CHAT_EMBEDDINGS: &[Protocol] = &[Protocol::OpenAiChat, Protocol::OpenAiEmbeddings];
const CHAT_RESPONSES_EMBEDDINGS: &[Protocol] =
    &[Protocol::OpenAiChat, Protocol::OpenAiResponses, Protocol::OpenAiEmbeddings];
const CHAT_EMBEDDINGS_IMAGES: &[Protocol] = &[Protocol::OpenAiChat, Protocol::OpenAiEmbeddings, Protocol::OpenAiImages];
const CHAT_RESPONSES_IMAGES: &[Protocol] = &[Protocol::OpenAiChat, Protocol::OpenAiResponses, Protocol::OpenAiImages];
const ALL_OF_OPENAI: &[Protocol] =
    &[Protocol::OpenAiChat, Protocol::OpenAiResponses, Protocol::OpenAiEmbeddings, Protocol::OpenAiImages];

/// The default values of a provider's fields.
const ROW: Provider = Provider {
    name: "",
    aliases: &[],
    base_url: None,
    key_variables: &[],
    base_url_variable: None,
    hosts: &[],
    is_local: false,
    protocols: CHAT,
    auth: Auth::Bearer,
    paths: Paths::Default("/v1"),
    quirks: COMPATIBLE,
};

/// All known providers.
pub const PROVIDERS: &[Provider] = &[
    Provider {
        name: "openai",
        base_url: Some("https://api.openai.com/v1"),
        key_variables: &["OPENAI_API_KEY"],
        base_url_variable: Some("OPENAI_BASE_URL"),
        protocols: ALL_OF_OPENAI,
        quirks: OPENAI,
        ..ROW
    },
    Provider {
        name: "azure",
        aliases: &["azure_openai", "azure-openai"],
        key_variables: &["AZURE_OPENAI_API_KEY"],
        base_url_variable: Some("AZURE_OPENAI_ENDPOINT"),
        hosts: &[".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com", ".openai.azure.us"],
        protocols: ALL_OF_OPENAI,
        auth: Auth::ApiKey,
        paths: Paths::Deployments,
        quirks: OPENAI,
        ..ROW
    },
    Provider {
        name: "foundry",
        aliases: &["azure_ai", "azure-ai"],
        key_variables: &["AZURE_AI_API_KEY", "AZURE_INFERENCE_CREDENTIAL"],
        base_url_variable: Some("AZURE_AI_PROJECT_ENDPOINT"),
        hosts: &[".services.ai.azure.com", ".openai.azure.com", ".cognitiveservices.azure.com"],
        protocols: ALL_OF_OPENAI,
        auth: Auth::ApiKey,
        paths: Paths::Under("/openai/v1"),
        quirks: OPENAI,
        ..ROW
    },
    Provider {
        name: "anthropic",
        aliases: &["claude"],
        base_url: Some("https://api.anthropic.com/v1"),
        key_variables: &["ANTHROPIC_API_KEY"],
        base_url_variable: Some("ANTHROPIC_BASE_URL"),
        protocols: &[Protocol::AnthropicMessages],
        auth: Auth::XApiKey,
        paths: Paths::Under("/v1"),
        quirks: Quirks { top_k: true, ..COMPATIBLE },
        ..ROW
    },
    Provider {
        name: "ollama",
        base_url: Some("http://localhost:11434/v1"),
        key_variables: &["OLLAMA_API_KEY"],
        base_url_variable: Some("OLLAMA_HOST"),
        is_local: true,
        protocols: CHAT_RESPONSES_EMBEDDINGS,
        ..ROW
    },
    Provider {
        name: "vllm",
        base_url: Some("http://localhost:8000/v1"),
        key_variables: &["VLLM_API_KEY"],
        is_local: true,
        protocols: CHAT_RESPONSES_EMBEDDINGS,
        quirks: Quirks { top_k: true, ..COMPATIBLE },
        ..ROW
    },
    Provider {
        name: "llama.cpp",
        aliases: &["llamacpp", "llama-cpp"],
        base_url: Some("http://localhost:8080/v1"),
        key_variables: &["LLAMA_API_KEY"],
        is_local: true,
        protocols: CHAT_EMBEDDINGS,
        // Its own server accepts both forms; the server of its Python bindings accepts only this one.
        quirks: Quirks { top_k: true, json_schema: JsonSchema::InJsonObject, ..COMPATIBLE },
        ..ROW
    },
    Provider {
        name: "groq",
        base_url: Some("https://api.groq.com/openai/v1"),
        key_variables: &["GROQ_API_KEY"],
        protocols: CHAT_RESPONSES,
        paths: Paths::Default("/openai/v1"),
        quirks: Quirks { max_tokens: "max_completion_tokens", ..COMPATIBLE },
        ..ROW
    },
    Provider {
        name: "mistral",
        base_url: Some("https://api.mistral.ai/v1"),
        key_variables: &["MISTRAL_API_KEY"],
        protocols: CHAT_EMBEDDINGS,
        // Its streams always end with the usage, and it rejects unknown options.
        quirks: Quirks { seed: "random_seed", stream_usage: false, empty_messages: false, ..COMPATIBLE },
        ..ROW
    },
    Provider {
        name: "together",
        base_url: Some("https://api.together.xyz/v1"),
        key_variables: &["TOGETHER_API_KEY"],
        hosts: &["api.together.ai"],
        protocols: CHAT_EMBEDDINGS_IMAGES,
        quirks: Quirks { top_k: true, stream_usage: false, ..COMPATIBLE },
        ..ROW
    },
    Provider {
        name: "openrouter",
        base_url: Some("https://openrouter.ai/api/v1"),
        key_variables: &["OPENROUTER_API_KEY"],
        protocols: CHAT_RESPONSES_EMBEDDINGS,
        paths: Paths::Default("/api/v1"),
        quirks: Quirks { top_k: true, ..COMPATIBLE },
        ..ROW
    },
    Provider {
        name: "deepseek",
        base_url: Some("https://api.deepseek.com/v1"),
        key_variables: &["DEEPSEEK_API_KEY"],
        quirks: Quirks { json_schema: JsonSchema::Never, ..COMPATIBLE },
        ..ROW
    },
    Provider {
        name: "xai",
        aliases: &["grok"],
        base_url: Some("https://api.x.ai/v1"),
        key_variables: &["XAI_API_KEY"],
        protocols: CHAT_RESPONSES_IMAGES,
        quirks: Quirks { max_tokens: "max_completion_tokens", empty_messages: false, ..COMPATIBLE },
        ..ROW
    },
    Provider {
        name: "gemini",
        aliases: &["google"],
        base_url: Some("https://generativelanguage.googleapis.com/v1beta/openai"),
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        protocols: CHAT_EMBEDDINGS_IMAGES,
        paths: Paths::Default("/v1beta/openai"),
        quirks: Quirks { empty_messages: false, ..COMPATIBLE },
        ..ROW
    },
];

/// The provider of prompts that do not name one: the provider whose API the others imitate.
pub const DEFAULT_PROVIDER: &str = "openai";

/// Returns the provider with this name or alias.
pub fn provider(name: &str) -> Option<&'static Provider> {
    PROVIDERS.iter().find(|row| row.name == name || row.aliases.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = PROVIDERS.iter().flat_map(|row| row.aliases.iter().chain([&row.name])).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn every_row_can_be_reached() {
        for row in PROVIDERS {
            assert!(row.base_url.is_some() || row.base_url_variable.is_some(), "{}", row.name);
            assert!(!row.key_variables.is_empty() && !row.protocols.is_empty(), "{}", row.name);
        }
    }
}

//! The providers that Tympan knows: a row each.

use super::Protocol;

/// A provider: where it is, how it is asked, and in what it differs from the others.
#[derive(Debug)]
pub struct Provider {
    /// The name that prompts use.
    pub name: &'static str,
    /// Other names that prompts may use.
    pub aliases: &'static [&'static str],
    /// Its address; `None` if everybody has an address of their own.
    pub base_url: Option<&'static str>,
    /// The environment variables that usually hold the key, the best one first.
    pub key_variables: &'static [&'static str],
    /// The environment variable that usually holds the address, where there is one.
    pub base_url_variable: Option<&'static str>,
    /// Hosts besides that of [`Provider::base_url`] that a key of the environment may go to. What begins with a dot is
    /// the end of a name.
    pub hosts: &'static [&'static str],
    /// Whether it usually runs on the same machine, and does without a key.
    pub is_local: bool,
    /// What it speaks; the first is what prompts without an `apiType` get.
    pub protocols: &'static [Protocol],
    /// How it wants the key.
    pub auth: Auth,
    /// How its addresses are made.
    pub paths: Paths,
    /// In what it differs from OpenAI.
    pub quirks: Quirks,
}

/// How a provider wants the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth {
    /// `authorization: Bearer …`
    Bearer,
    /// `api-key: …`
    ApiKey,
    /// `x-api-key: …`
    XApiKey,
}

impl Auth {
    /// The name of the header.
    pub const fn header(self) -> &'static str {
        match self {
            Self::Bearer => "authorization",
            Self::ApiKey => "api-key",
            Self::XApiKey => "x-api-key",
        }
    }

    /// What stands before the key.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Bearer => "Bearer ",
            Self::ApiKey | Self::XApiKey => "",
        }
    }
}

/// How a provider's addresses are made of the address that it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    /// An address without a path gets this one; a path that was given is kept.
    Default(&'static str),
    /// This path is added, unless the address ends in it.
    Under(&'static str),
    /// Azure's: the deployment is in the path, and the version of the API behind it.
    Deployments,
}

/// In what a provider differs from OpenAI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quirks {
    /// What it calls the most tokens that an answer may have.
    pub max_tokens: &'static str,
    /// What it calls the seed.
    pub seed: &'static str,
    /// Whether it takes `top_k`.
    pub top_k: bool,
    /// Whether a stream tells its usage only if `stream_options` ask for it.
    pub stream_usage: bool,
    /// How it is told the JSON Schema of an answer.
    pub json_schema: JsonSchema,
    /// Whether it knows the role `developer`, which is `system` otherwise.
    pub developer: bool,
}

/// How a provider is told the JSON Schema that an answer is held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonSchema {
    /// As OpenAI is: by a format of its own.
    Own,
    /// In the format that asks for JSON.
    InJsonObject,
    /// Not at all: it holds answers to JSON, and to nothing more.
    Never,
}

const OPENAI: Quirks = Quirks {
    max_tokens: "max_completion_tokens",
    seed: "seed",
    top_k: false,
    stream_usage: true,
    json_schema: JsonSchema::Own,
    developer: true,
};

/// What most of those are like that are compatible with OpenAI.
const COMPATIBLE: Quirks = Quirks { max_tokens: "max_tokens", developer: false, ..OPENAI };

const CHAT: &[Protocol] = &[Protocol::OpenAiChat];
const CHAT_RESPONSES: &[Protocol] = &[Protocol::OpenAiChat, Protocol::OpenAiResponses];
const CHAT_EMBEDDINGS: &[Protocol] = &[Protocol::OpenAiChat, Protocol::OpenAiEmbeddings];
const CHAT_RESPONSES_EMBEDDINGS: &[Protocol] =
    &[Protocol::OpenAiChat, Protocol::OpenAiResponses, Protocol::OpenAiEmbeddings];
const CHAT_EMBEDDINGS_IMAGES: &[Protocol] = &[Protocol::OpenAiChat, Protocol::OpenAiEmbeddings, Protocol::OpenAiImages];
const CHAT_RESPONSES_IMAGES: &[Protocol] = &[Protocol::OpenAiChat, Protocol::OpenAiResponses, Protocol::OpenAiImages];
const ALL_OF_OPENAI: &[Protocol] =
    &[Protocol::OpenAiChat, Protocol::OpenAiResponses, Protocol::OpenAiEmbeddings, Protocol::OpenAiImages];

/// What a row says if it does not say otherwise.
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

/// Every provider.
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
        // Its own server knows both forms, and that of its Python bindings only this one.
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
        // Its streams always end with the usage, and it refuses options that it does not know.
        quirks: Quirks { seed: "random_seed", stream_usage: false, ..COMPATIBLE },
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
        quirks: Quirks { max_tokens: "max_completion_tokens", ..COMPATIBLE },
        ..ROW
    },
    Provider {
        name: "gemini",
        aliases: &["google"],
        base_url: Some("https://generativelanguage.googleapis.com/v1beta/openai"),
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        protocols: CHAT_EMBEDDINGS_IMAGES,
        paths: Paths::Default("/v1beta/openai"),
        ..ROW
    },
];

/// The provider that prompts get which name none: the one whose interface the others imitate.
pub const DEFAULT_PROVIDER: &str = "openai";

/// The provider with this name.
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

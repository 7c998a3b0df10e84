//! The limits of providers' batch APIs, as data.

use tympan_core::wire::Protocol;
use tympan_core::{Error, Kind, Result};

/// The form of the files that a job produces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Target {
    /// Lines for OpenAI's batch API, and those of compatible providers.
    OpenAi,
    /// Lines for Anthropic's message batches.
    Anthropic,
    /// Lines for `vllm run-batch`.
    Vllm,
    /// Tables of messages.
    Parquet,
    /// Messages as JSON Lines.
    JsonLines,
}

impl Target {
    /// Every target.
    pub const ALL: [Self; 5] = [Self::OpenAi, Self::Anthropic, Self::Vllm, Self::Parquet, Self::JsonLines];

    /// Returns the name that options use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Vllm => "vllm",
            Self::Parquet => "parquet",
            Self::JsonLines => "jsonl",
        }
    }

    /// Returns the target with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|target| target.as_str() == name)
    }

    /// Returns whether the files have requests, which a provider answers.
    pub const fn has_requests(self) -> bool {
        matches!(self, Self::OpenAi | Self::Anthropic | Self::Vllm)
    }
}

/// What fits into one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of requests.
    pub requests: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// The number of input tokens. Providers limit how many tokens may wait at once, which differs by account.
    pub tokens: Option<u64>,
}

/// The published limits of a provider's batch API.
struct Published {
    provider: &'static str,
    requests: u64,
    bytes: u64,
}

/// The table of limits. Megabytes are counted as 1,000,000 bytes, which is on the safe side.
const PUBLISHED: &[Published] = &[
    Published { provider: "openai", requests: 50_000, bytes: 200_000_000 },
    Published { provider: "azure", requests: 100_000, bytes: 200_000_000 },
    Published { provider: "anthropic", requests: 100_000, bytes: 256_000_000 },
    Published { provider: "groq", requests: 50_000, bytes: 200_000_000 },
];

/// Files without a limit are easier to handle if they do not grow forever.
const LOCAL: Limits = Limits { requests: 1_000_000, bytes: 2_000_000_000, tokens: None };

/// Returns the path of the requests in a file for OpenAI's batch API and those compatible with it. Azure's documentation
/// names another one.
pub(crate) fn batch_path(provider: &str, protocol: Protocol) -> &'static str {
    match (provider, protocol) {
        ("azure", Protocol::OpenAiChat) => "/chat/completions",
        (_, Protocol::OpenAiResponses) => "/v1/responses",
        (_, Protocol::OpenAiEmbeddings) => "/v1/embeddings",
        _ => "/v1/chat/completions",
    }
}

impl Limits {
    /// Returns the limits for a target: those of the provider, or else those of the API that it is compatible with.
    pub fn of(target: Target, provider: &str) -> Self {
        let name = match target {
            Target::OpenAi if PUBLISHED.iter().any(|row| row.provider == provider) => provider,
            Target::OpenAi => "openai",
            Target::Anthropic => "anthropic",
            Target::Vllm | Target::Parquet | Target::JsonLines => return LOCAL,
        };
        let row = PUBLISHED.iter().find(|row| row.provider == name);
        row.map_or(LOCAL, |row| Self { requests: row.requests, bytes: row.bytes, tokens: None })
    }

    /// Returns an error if a limit is zero.
    pub(crate) fn check(self) -> Result<()> {
        if self.requests == 0 || self.bytes == 0 || self.tokens == Some(0) {
            return Err(Error::new(Kind::InvalidBatch, "a limit of zero leaves no room for a request"));
        }
        Ok(())
    }
}

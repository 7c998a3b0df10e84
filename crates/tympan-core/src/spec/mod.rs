//! What a prompt file says, as plain data: the one shape that all formats become.

pub(crate) mod canonical;
mod credentials;
mod json;
pub mod role;
pub mod schema;

use std::fmt;
use std::ops::{Deref, DerefMut};

use serde_json::{Number, Value as Json};

use crate::json::JsonMap;
use crate::secret::credential::redact;
use crate::secret::url::redacted_url;
use crate::spec::schema::Property;
use crate::text::source::Span;

/// The declarations and the template of a prompt.
#[derive(Clone, Default, PartialEq)]
pub struct PromptSpec {
    /// The prompt's name.
    pub name: Option<String>,
    /// Its name for people.
    pub display_name: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// Whatever the author wants to keep with it.
    pub metadata: JsonMap,
    /// The model it was written for, and how to reach it.
    pub model: Option<Model>,
    /// Declared inputs, in order.
    pub inputs: Vec<Property>,
    /// Declared outputs, in order.
    pub outputs: Vec<Property>,
    /// Tools that the model may call, in order.
    pub tools: Vec<Tool>,
    /// How the template is rendered and split.
    pub template: TemplateSpec,
    /// The template itself, exactly as it stands in the file; of a prompt with variants, the default one's.
    pub instructions: String,
    /// Who says the text, where a prompt says so for all of it: a prompt definition does.
    pub role: Option<Role>,
    /// Other templates for the same prompt, in order.
    pub variants: Vec<Variant>,
    /// A name of the caller's for what the model should answer with; never resolved.
    pub output_model: Option<String>,
    /// Top-level keys that Tympan does not know, kept as they were written.
    pub extra: JsonMap,
}

impl fmt::Debug for PromptSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromptSpec")
            .field("name", &self.name)
            .field("display_name", &self.display_name)
            .field("description", &self.description)
            .field("metadata", &Redacted(&self.metadata))
            .field("model", &self.model)
            .field("inputs", &self.inputs)
            .field("outputs", &self.outputs)
            .field("tools", &self.tools)
            .field("template", &self.template)
            .field("instructions", &self.instructions)
            .field("role", &self.role)
            .field("variants", &self.variants)
            .field("output_model", &self.output_model)
            .field("extra", &Redacted(&self.extra))
            .finish()
    }
}

/// The name of the template that a prompt has if nobody names a variant.
pub const DEFAULT_VARIANT: &str = "default";

/// The parser of prompts that say their role once: all of the text is one message.
pub const ONE_MESSAGE: &str = "message";

/// Another template for the same prompt.
#[derive(Clone, Default, PartialEq)]
pub struct Variant {
    /// Its name; never [`DEFAULT_VARIANT`].
    pub name: String,
    /// The template.
    pub body: String,
    /// Whatever the author wants to keep with it.
    pub metadata: JsonMap,
}

impl fmt::Debug for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Variant")
            .field("name", &self.name)
            .field("body", &self.body)
            .field("metadata", &Redacted(&self.metadata))
            .finish()
    }
}
/// The renderer and the parser of directives: references to inputs in the steps, and one message of the user's.
pub const DIRECTIVE: &str = "directive";

/// Which renderer and which parser a prompt wants.
#[derive(Clone, Debug, PartialEq)]
pub struct TemplateSpec {
    /// The renderer's name: `jinja2`, `mustache`, or one that the host has registered.
    pub format: String,
    /// The parser's name: `prompty`, or one that the host has registered.
    pub parser: String,
    /// Whether text that looks like a role marker in any untrusted input is an error.
    pub strict: bool,
    /// Whether an undefined variable renders as nothing instead of being an error.
    pub lenient: bool,
    /// Further options of the format, for renderers that the host has registered.
    pub format_options: JsonMap,
    /// Further options of the parser, for parsers that the host has registered.
    pub parser_options: JsonMap,
    /// Keys that Tympan does not know, kept as they were written.
    pub extra: JsonMap,
}

impl Default for TemplateSpec {
    fn default() -> Self {
        Self {
            format: "jinja2".into(),
            parser: "prompty".into(),
            strict: false,
            lenient: false,
            format_options: JsonMap::new(),
            parser_options: JsonMap::new(),
            extra: JsonMap::new(),
        }
    }
}

/// A model, and how it wants to be called.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    /// The model's name at its provider; for Azure, the deployment's.
    pub id: Option<String>,
    /// Who serves it: `openai`, `azure`, `anthropic`, …
    pub provider: Option<String>,
    /// Which of the provider's interfaces: `chat`, `responses`, `embedding`, `image`. None means `chat`.
    pub api_type: Option<String>,
    /// How to reach it.
    pub connection: Option<Connection>,
    /// How it should answer.
    pub options: ModelOptions,
    /// Keys that Tympan does not know, kept as they were written.
    pub extra: Extra,
}

/// How a model should answer; numbers are kept as they were written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelOptions {
    /// How freely it chooses words.
    pub temperature: Option<Number>,
    /// The most tokens it may write.
    pub max_output_tokens: Option<i64>,
    /// It chooses among the words that make up this share of probability.
    pub top_p: Option<Number>,
    /// It chooses among this many words.
    pub top_k: Option<i64>,
    /// How much it avoids words that it has used often.
    pub frequency_penalty: Option<Number>,
    /// How much it avoids words that it has used at all.
    pub presence_penalty: Option<Number>,
    /// Where its randomness starts.
    pub seed: Option<i64>,
    /// It stops before it writes one of these.
    pub stop_sequences: Option<Vec<String>>,
    /// Whether it may ask for several tools at once.
    pub allow_multiple_tool_calls: Option<bool>,
    /// Whether the provider should keep what does not change from one request to the next.
    pub cache: Option<CacheMode>,
    /// Options of one provider, passed on as they are.
    pub additional_properties: Extra,
    /// Keys that Tympan does not know, kept as they were written.
    pub extra: Extra,
}

/// Whether a provider should keep what does not change from one request to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheMode {
    /// All that the author wrote before the first input.
    Auto,
    /// Nothing.
    Off,
}

impl CacheMode {
    /// The name that prompt files use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Off => "off",
        }
    }
}

impl ModelOptions {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How a connection proves who is calling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionKind {
    /// With an API key.
    Key,
    /// By a name that the host has registered.
    Reference,
    /// Through a service that holds the credentials.
    Remote,
    /// Not at all.
    Anonymous,
    /// As a Microsoft Foundry project.
    Foundry,
    /// With OAuth.
    OAuth,
    /// In some other way, which the host may know.
    Other(String),
}

impl ConnectionKind {
    /// The name that prompt files use.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Key => "key",
            Self::Reference => "reference",
            Self::Remote => "remote",
            Self::Anonymous => "anonymous",
            Self::Foundry => "foundry",
            Self::OAuth => "oauth",
            Self::Other(name) => name,
        }
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Self {
        match name {
            "key" => Self::Key,
            "reference" => Self::Reference,
            "remote" => Self::Remote,
            "anonymous" => Self::Anonymous,
            "foundry" => Self::Foundry,
            "oauth" => Self::OAuth,
            _ => Self::Other(name.to_owned()),
        }
    }
}

/// How to reach a model or a tool.
#[derive(Clone, PartialEq)]
pub struct Connection {
    /// How it proves who is calling.
    pub kind: ConnectionKind,
    /// The name that the host has registered, for `reference`.
    pub name: Option<String>,
    /// The address.
    pub endpoint: Option<String>,
    /// The API key.
    pub api_key: Option<Secret>,
    /// Every other field, kept as it was written; what looks like a credential is never printed.
    pub extra: Extra,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("kind", &self.kind)
            .field("name", &self.name)
            .field("endpoint", &self.endpoint.as_deref().map(redacted_url))
            .field("api_key", &self.api_key)
            .field("extra", &self.extra)
            .finish()
    }
}

/// A tool that the model may call.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// What it is.
    pub kind: ToolKind,
    /// Parameters that the model neither sees nor sets.
    pub bindings: Vec<Binding>,
    /// Keys that Tympan does not know, kept as they were written.
    pub extra: Extra,
    /// Where it is declared.
    pub span: Option<Span>,
}

/// What a tool is.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolKind {
    /// A function of the host.
    Function {
        /// What it takes, in order.
        parameters: Vec<Property>,
        /// Whether the provider should hold the model to the parameters' schema.
        strict: Option<bool>,
    },
    /// A Model Context Protocol server.
    Mcp {
        /// How to reach it.
        connection: Option<Connection>,
        /// What the server is called.
        server_name: Option<String>,
        /// Which of its calls need a person's consent.
        approval_mode: Option<Json>,
        /// The only tools of the server that may be called.
        allowed_tools: Option<Vec<String>>,
    },
    /// A service that an OpenAPI document describes.
    OpenApi {
        /// How to reach it.
        connection: Option<Connection>,
        /// The document: a path, an address, or the document itself.
        specification: Option<Json>,
    },
    /// Another prompt file.
    Prompty {
        /// The file, relative to this one.
        path: Option<String>,
        /// `single` for one call, `agentic` for a whole loop. None means `single`.
        mode: Option<String>,
    },
    /// Anything else, which the host may know.
    Custom {
        /// The kind as it was written.
        kind: String,
        /// How to reach it.
        connection: Option<Connection>,
        /// Its settings.
        options: Extra,
    },
}

impl ToolKind {
    /// The name that prompt files use.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Function { .. } => "function",
            Self::Mcp { .. } => "mcp",
            Self::OpenApi { .. } => "openapi",
            Self::Prompty { .. } => "prompty",
            Self::Custom { kind, .. } => kind,
        }
    }
}

/// A parameter that is filled in without the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// The parameter's name.
    pub parameter: String,
    /// What fills it.
    pub value: BindingValue,
}

/// What fills a bound parameter.
#[derive(Clone, PartialEq)]
pub enum BindingValue {
    /// The value of this input.
    Input(String),
    /// This value.
    Static(Json),
}

impl fmt::Debug for BindingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(name) => f.debug_tuple("Input").field(name).finish(),
            // People bind session tokens and the like.
            Self::Static(_) => write!(f, "Static({REDACTED})"),
        }
    }
}

pub use crate::secret::credential::is_credential;
pub use crate::secret::{REDACTED, Secret};
pub use role::Role;

/// Keys that are kept as they were written, credentials among them, which are never printed.
#[derive(Clone, Default, PartialEq)]
pub struct Extra(pub JsonMap);

impl Deref for Extra {
    type Target = JsonMap;

    fn deref(&self) -> &JsonMap {
        &self.0
    }
}

impl DerefMut for Extra {
    fn deref_mut(&mut self) -> &mut JsonMap {
        &mut self.0
    }
}

impl From<JsonMap> for Extra {
    fn from(map: JsonMap) -> Self {
        Self(map)
    }
}

impl fmt::Debug for Extra {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Redacted(&self.0).fmt(f)
    }
}

/// Prints a map without its credentials.
struct Redacted<'a>(&'a JsonMap);

impl fmt::Debug for Redacted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut copy = Json::Object(self.0.clone());
        redact(&mut copy);
        copy.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_prints_a_credential() {
        let extra = Extra(serde_json::from_str(r#"{"headers": {"Api-Key": "hidden"}, "n": 1}"#).expect("it is JSON"));
        assert_eq!(format!("{:?} {extra:?}", Secret::new("hidden")).matches("hidden").count(), 0);
    }
}

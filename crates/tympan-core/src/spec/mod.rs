//! The contents of a prompt file as plain data. Prompts in all formats are converted to this shape.

pub(crate) mod canonical;
mod credentials;
pub mod flow;
mod json;
pub(crate) mod json_schema;
pub mod role;
pub mod schema;
pub(crate) mod strict_schema;
pub mod test_suite;

use std::fmt;
use std::ops::{Deref, DerefMut};

use serde_json::{Number, Value as Json};

use crate::json::JsonMap;
use crate::secret::credential::redact;
use crate::secret::url::redacted_url;
use crate::spec::flow::ToolFlow;
use crate::spec::schema::Property;
use crate::text::source::Span;

/// The declarations and the template of a prompt.
#[derive(Clone, Default, PartialEq)]
pub struct PromptSpec {
    /// The name.
    pub name: Option<String>,
    /// The name to show to people.
    pub display_name: Option<String>,
    /// The description.
    pub description: Option<String>,
    /// Arbitrary data that the author stores with the prompt.
    pub metadata: JsonMap,
    /// The model that the prompt was written for, and how to reach it.
    pub model: Option<Model>,
    /// The declared inputs, in order.
    pub inputs: Vec<Property>,
    /// The declared outputs, in order.
    pub outputs: Vec<Property>,
    /// The tools that the model may call, in order.
    pub tools: Vec<Tool>,
    /// Whether the policy for tools treats tools without a declared effect as external.
    pub strict_policy: bool,
    /// How the template is rendered and split into messages.
    pub template: TemplateSpec,
    /// The template, exactly as in the file. If the prompt has variants, this is the default one.
    pub instructions: String,
    /// The role of the whole text, in formats that declare one, such as prompt definitions.
    pub role: Option<Role>,
    /// The other templates of the prompt, in order.
    pub variants: Vec<Variant>,
    /// The caller's name for the type of the model's answer. It is never resolved.
    pub output_model: Option<String>,
    /// Unknown top-level keys, unchanged.
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
            .field("strict_policy", &self.strict_policy)
            .field("template", &self.template)
            .field("instructions", &self.instructions)
            .field("role", &self.role)
            .field("variants", &self.variants)
            .field("output_model", &self.output_model)
            .field("extra", &Redacted(&self.extra))
            .finish()
    }
}

/// The name of the template that is used if no variant is selected.
pub const DEFAULT_VARIANT: &str = "default";

/// The name of the parser for prompts that declare a single role: the whole text is one message.
pub const ONE_MESSAGE: &str = "message";

/// An alternative template of a prompt.
#[derive(Clone, Default, PartialEq)]
pub struct Variant {
    /// The name; never [`DEFAULT_VARIANT`].
    pub name: String,
    /// The template.
    pub body: String,
    /// Arbitrary data that the author stores with the variant.
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
/// The name of the renderer and the parser for directives: the steps may reference inputs, and the result is one user
/// message.
pub const DIRECTIVE: &str = "directive";

/// What kind of prompt it is. The kinds differ in how they are rendered and split into messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PromptKind {
    /// A `.prompty` file, or a prompt that was built in code: role markers split it into messages.
    Prompty,
    /// A prompt definition: one message with a declared role.
    Definition,
    /// A directive: one message for the user, with references to its inputs.
    Directive,
}

impl PromptSpec {
    /// Returns the kind of the prompt.
    pub fn kind(&self) -> PromptKind {
        if self.template.format == DIRECTIVE {
            PromptKind::Directive
        } else if self.role.is_some() {
            PromptKind::Definition
        } else {
            PromptKind::Prompty
        }
    }
}

/// The renderer and the parser of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct TemplateSpec {
    /// The name of the renderer: `jinja2`, `mustache`, or one that the host registered. `jinja`, `nunjucks` and `*` mean
    /// `jinja2`, unless the host registered a renderer with that name.
    pub format: String,
    /// The name of the parser: `prompty`, or one that the host registered. `*` means `prompty`.
    pub parser: String,
    /// Whether text that looks like a role marker in an untrusted input is an error.
    pub strict: bool,
    /// Whether an undefined variable renders as nothing instead of causing an error.
    pub lenient: bool,
    /// Additional options of the format, for custom renderers.
    pub format_options: JsonMap,
    /// Additional options of the parser, for custom parsers.
    pub parser_options: JsonMap,
    /// Unknown keys, unchanged.
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

impl TemplateSpec {
    /// Returns whether role markers split the text into messages.
    pub fn is_split(&self) -> bool {
        matches!(self.parser.as_str(), "prompty" | "*")
    }
}

/// A model, how to reach it, and its options.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    /// The model's name at its provider. For Azure, the name of the deployment.
    pub id: Option<String>,
    /// The provider: `openai`, `azure`, `anthropic`, …
    pub provider: Option<String>,
    /// The provider's API: `chat`, `responses`, `embedding` or `image`. `None` means `chat`.
    pub api_type: Option<String>,
    /// How to reach the model.
    pub connection: Option<Connection>,
    /// The options of the model call.
    pub options: ModelOptions,
    /// Unknown keys, unchanged.
    pub extra: Extra,
}

/// The options of a model call. Numbers are stored as they were written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelOptions {
    /// The sampling temperature.
    pub temperature: Option<Number>,
    /// The maximum number of tokens to generate.
    pub max_output_tokens: Option<i64>,
    /// The probability mass for nucleus sampling.
    pub top_p: Option<Number>,
    /// The number of most likely tokens to sample from.
    pub top_k: Option<i64>,
    /// The penalty for tokens in proportion to how often they have occurred.
    pub frequency_penalty: Option<Number>,
    /// The penalty for tokens that have occurred at all.
    pub presence_penalty: Option<Number>,
    /// The seed for sampling.
    pub seed: Option<i64>,
    /// The sequences at which generation stops.
    pub stop_sequences: Option<Vec<String>>,
    /// Whether the model may call several tools at once.
    pub allow_multiple_tool_calls: Option<bool>,
    /// Whether the provider should cache the constant beginning of requests.
    pub cache: Option<CacheMode>,
    /// Provider-specific options, passed on unchanged.
    pub additional_properties: Extra,
    /// Unknown keys, unchanged.
    pub extra: Extra,
}

/// What a provider should cache between requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheMode {
    /// Everything that the author wrote before the first input.
    Auto,
    /// Nothing.
    Off,
}

impl CacheMode {
    /// Returns the name that prompt files use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Off => "off",
        }
    }
}

impl ModelOptions {
    /// The keys of the options in prompt files.
    pub(crate) const KEYS: [&'static str; 11] = [
        "temperature",
        "maxOutputTokens",
        "topP",
        "topK",
        "frequencyPenalty",
        "presencePenalty",
        "seed",
        "stopSequences",
        "allowMultipleToolCalls",
        "cache",
        "additionalProperties",
    ];

    /// Returns whether no option is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How a connection authenticates.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionKind {
    /// With an API key.
    Key,
    /// With a connection that the host registered under a name.
    Reference,
    /// Through a service that holds the credentials.
    Remote,
    /// Without authentication.
    Anonymous,
    /// As a Microsoft Foundry project.
    Foundry,
    /// With OAuth.
    OAuth,
    /// In another way, which the host may support.
    Other(String),
}

impl ConnectionKind {
    /// Returns the name that prompt files use.
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

    /// Returns the kind with this name. Unknown names become [`ConnectionKind::Other`].
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
    /// How the connection authenticates.
    pub kind: ConnectionKind,
    /// The name that the host registered, for `reference`.
    pub name: Option<String>,
    /// The URL of the endpoint.
    pub endpoint: Option<String>,
    /// The API key.
    pub api_key: Option<Secret>,
    /// All other fields, unchanged. Values that look like credentials are never printed.
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
    /// The name.
    pub name: String,
    /// The description that the model sees.
    pub description: Option<String>,
    /// The kind, with its settings.
    pub kind: ToolKind,
    /// The parameters that the model neither sees nor sets.
    pub bindings: Vec<Binding>,
    /// The effect of the tool, and how its parameters and results are treated. A prompt cannot declare results as
    /// trusted.
    pub flow: ToolFlow,
    /// Unknown keys, unchanged.
    pub extra: Extra,
    /// The position of the declaration.
    pub span: Option<Span>,
}

impl Tool {
    /// Returns what the tool declares about the flow of information, including its parameters.
    pub fn declared_flow(&self) -> ToolFlow {
        let mut flow = self.flow.clone();
        if let ToolKind::Function { parameters, .. } = &self.kind {
            let declared = parameters.iter().filter(|parameter| !parameter.flow.is_empty());
            flow.parameters.extend(declared.map(|parameter| (parameter.name.clone(), parameter.flow)));
        }
        flow
    }
}

/// The kind of a tool, with its settings.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ToolKind {
    /// A function that the host provides.
    Function {
        /// The parameters, in order.
        parameters: Vec<Property>,
        /// Whether the provider should enforce the schema of the parameters.
        strict: Option<bool>,
    },
    /// A Model Context Protocol server.
    Mcp {
        /// How to reach the server.
        connection: Option<Connection>,
        /// The name of the server.
        server_name: Option<String>,
        /// Which calls need approval.
        approval_mode: Option<Json>,
        /// The tools of the server that may be called. `None` means all of them.
        allowed_tools: Option<Vec<String>>,
    },
    /// A service that an OpenAPI document describes.
    OpenApi {
        /// How to reach the service.
        connection: Option<Connection>,
        /// The OpenAPI document: a path, a URL or the document itself.
        specification: Option<Json>,
    },
    /// Another prompt file.
    Prompty {
        /// The path of the file, relative to this one.
        path: Option<String>,
        /// `single` for one model call, `agentic` for a whole agent loop. `None` means `single`.
        mode: Option<String>,
    },
    /// Any other kind, which the host may support.
    Custom {
        /// The kind as written.
        kind: String,
        /// How to reach the tool.
        connection: Option<Connection>,
        /// The settings.
        options: Extra,
    },
}

impl ToolKind {
    /// Returns the name that prompt files use.
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

/// A parameter whose value does not come from the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// The name of the parameter.
    pub parameter: String,
    /// The value of the parameter.
    pub value: BindingValue,
}

/// The value of a bound parameter.
#[derive(Clone, PartialEq)]
pub enum BindingValue {
    /// The value of this input.
    Input(String),
    /// A fixed value.
    Static(Json),
}

impl BindingValue {
    /// Returns the name of the input that the parameter gets its value from, if it does.
    pub fn input(&self) -> Option<&str> {
        match self {
            Self::Input(name) => Some(name),
            Self::Static(_) => None,
        }
    }
}

impl fmt::Debug for BindingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(name) => f.debug_tuple("Input").field(name).finish(),
            // Bindings often hold session tokens and the like.
            Self::Static(_) => write!(f, "Static({REDACTED})"),
        }
    }
}

pub use crate::secret::credential::is_credential;
pub use crate::secret::{REDACTED, Secret};
pub use role::Role;

/// A map of keys that Tympan does not interpret. Credentials in it are never printed.
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

/// Formats a map with its credentials redacted.
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

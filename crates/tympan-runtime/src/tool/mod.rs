//! Tools that a model may call.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use tympan_core::spec::flow::ToolFlow;
use tympan_core::turn::ToolRun;
use tympan_core::{Content, JsonMap};

use crate::host::runtime::Runtime;
use crate::net::io;

mod bind;
mod child;
mod command;
mod credential_command;
mod destination;
mod handler;
pub(crate) mod http;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(feature = "openapi")]
pub mod openapi;
mod program;
mod prompt;
mod schema_check;

pub use bind::bind_tools;
pub use child::end_programs;
pub use command::{command, command_with_env};
pub use credential_command::CredentialCommand;
pub use destination::ToolAddresses;
pub use handler::{OpenTool, Opening, ToolHandler};
#[cfg(feature = "mcp")]
pub(crate) use mcp::Connections as McpConnections;
#[cfg(feature = "mcp")]
pub use mcp::McpServer;
pub use program::{ProgramOutput, ProgramRun, run_program};

pub(crate) use handler::OpenTools;

/// The error of a failed tool. Its message is sent to the model.
pub type ToolError = Box<dyn StdError + Send + Sync>;

/// A tool that a model may call.
///
/// If it fails, panics or times out, the model receives an error, and the turn continues.
pub trait Tool: Send + Sync {
    /// Calls the tool.
    ///
    /// # Errors
    /// Returns an error with a message for the model if the call fails.
    fn call(&self, invocation: Invocation) -> BoxFuture<'static, Result<ToolOutput, ToolError>>;

    /// Returns the time limit of a call, if it differs from that of the turn.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// Returns the JSON Schema of the parameters, if known. A prompt whose declaration does not match it is rejected
    /// before its model is called.
    fn parameters(&self) -> Option<&Json> {
        None
    }

    /// Returns whether a call requires approval before it runs.
    fn needs_approval(&self, _run: &ToolRun) -> bool {
        false
    }

    /// Returns whether a call can be repeated with the same [`Invocation::idempotency_key`] if its outcome is unknown.
    /// If not, the model is informed that the outcome is unknown.
    fn is_idempotent(&self) -> bool {
        false
    }

    /// Returns what the host declares about the flow of information through the tool: its effect, and how its
    /// parameters and results are treated.
    fn flow(&self) -> ToolFlow {
        ToolFlow::default()
    }
}

/// A call of a tool.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Invocation {
    /// The tool run, with its arguments.
    pub run: ToolRun,
    /// A key that is unique to this call, and the same when the call is repeated, even after a crash.
    pub idempotency_key: String,
    /// The runtime that makes the call. Everything done with it is traced as part of the call.
    pub runtime: Runtime,
}

/// The output of a tool.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolOutput {
    /// The content for the model.
    pub content: Content,
    /// Whether the output is confidential, even if the tool is not declared so.
    pub confidential: bool,
    /// Whether the output contains untrusted content, even if the tool is declared as trusted.
    pub untrusted: bool,
}

impl ToolOutput {
    /// Marks the output as confidential.
    #[must_use]
    pub fn confidential(self) -> Self {
        Self { confidential: true, ..self }
    }

    /// Marks the output as untrusted, for a tool whose results are usually trusted.
    #[must_use]
    pub fn untrusted(self) -> Self {
        Self { untrusted: true, ..self }
    }
}

impl From<Content> for ToolOutput {
    fn from(content: Content) -> Self {
        Self { content, confidential: false, untrusted: false }
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Content::text(text).into()
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Content::text(text).into()
    }
}

impl From<Json> for ToolOutput {
    /// Converts a string to text, and any other value to JSON.
    fn from(value: Json) -> Self {
        match value {
            Json::String(text) => text.into(),
            other => other.to_string().into(),
        }
    }
}

/// Creates a tool from a function. The function may block, because it runs on a thread for blocking work.
pub fn function<F, O, E>(function: F) -> Arc<dyn Tool>
where
    F: Fn(JsonMap) -> Result<O, E> + Send + Sync + 'static,
    O: Into<ToolOutput>,
    E: Into<ToolError>,
{
    let function: Arc<Function> = Arc::new(move |arguments| function(arguments).map(Into::into).map_err(Into::into));
    Arc::new(Blocking { function, parameters: None })
}

/// Creates a tool from a function whose arguments are deserialized into a type. The type's schema must match the
/// prompt's declaration. Like [`function()`], the function may block.
///
/// ```
/// use tympan_runtime::tool;
/// use tympan_runtime::schemars::{self, JsonSchema};
///
/// #[derive(serde::Deserialize, JsonSchema)]
/// struct Place {
///     city: String,
/// }
///
/// let weather = tool::typed(|place: Place| Ok::<_, String>(format!("{}: clear", place.city)));
/// assert_eq!(weather.parameters().expect("it has a schema")["required"][0], "city");
/// ```
pub fn typed<A, F, O, E>(function: F) -> Arc<dyn Tool>
where
    A: DeserializeOwned + JsonSchema,
    F: Fn(A) -> Result<O, E> + Send + Sync + 'static,
    O: Into<ToolOutput>,
    E: Into<ToolError>,
{
    let function: Arc<Function> = Arc::new(move |arguments| {
        let arguments = serde_json::from_value(Json::Object(arguments))?;
        function(arguments).map(Into::into).map_err(Into::into)
    });
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<A>().to_value();
    Arc::new(Blocking { function, parameters: Some(schema) })
}

/// Creates a tool from an async function. It must not block.
pub fn function_async<F, W, O, E>(function: F) -> Arc<dyn Tool>
where
    F: Fn(JsonMap) -> W + Send + Sync + 'static,
    W: Future<Output = Result<O, E>> + Send + 'static,
    O: Into<ToolOutput>,
    E: Into<ToolError>,
{
    Arc::new(Waiting(move |arguments| -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let running = function(arguments);
        Box::pin(async move { running.await.map(Into::into).map_err(Into::into) })
    }))
}

/// Marks a tool as idempotent, so that a call can be repeated with the same [`Invocation::idempotency_key`]; see
/// [`Tool::is_idempotent`].
pub fn idempotent(tool: impl Tool + 'static) -> Arc<dyn Tool> {
    Arc::new(Idempotent(Arc::new(tool)))
}

/// Declares the effect of a tool, and how its parameters and results are treated. The policy for tools needs this; see
/// [`Tool::flow`].
///
/// ```
/// use tympan_core::spec::flow::{Effect, ToolFlow};
/// use tympan_runtime::tool::{self, Tool as _};
///
/// let send = tool::function(|_| Ok::<_, String>("sent"));
/// let send = tool::with_flow(ToolFlow::new(Effect::External).trusted_only("to").destination("to"), send);
/// assert_eq!(send.flow().effect, Some(Effect::External));
/// ```
pub fn with_flow(flow: ToolFlow, tool: impl Tool + 'static) -> Arc<dyn Tool> {
    Arc::new(WithFlow(flow, Arc::new(tool)))
}

type Function = dyn Fn(JsonMap) -> Result<ToolOutput, ToolError> + Send + Sync;

struct Blocking {
    function: Arc<Function>,
    parameters: Option<Json>,
}

impl Tool for Blocking {
    fn call(&self, invocation: Invocation) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let function = self.function.clone();
        let arguments = Arc::unwrap_or_clone(invocation.run.arguments);
        Box::pin(async move {
            io::blocking(move || function(arguments)).await.unwrap_or_else(|_| Err("the function panicked".into()))
        })
    }

    fn parameters(&self) -> Option<&Json> {
        self.parameters.as_ref()
    }
}

struct Waiting<F>(F);

impl<F> Tool for Waiting<F>
where
    F: Fn(JsonMap) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync,
{
    fn call(&self, invocation: Invocation) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        (self.0)(Arc::unwrap_or_clone(invocation.run.arguments))
    }
}

struct Idempotent(Arc<dyn Tool>);

impl Tool for Idempotent {
    fn call(&self, invocation: Invocation) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        self.0.call(invocation)
    }

    fn timeout(&self) -> Option<Duration> {
        self.0.timeout()
    }

    fn parameters(&self) -> Option<&Json> {
        self.0.parameters()
    }

    fn needs_approval(&self, run: &ToolRun) -> bool {
        self.0.needs_approval(run)
    }

    fn is_idempotent(&self) -> bool {
        true
    }

    fn flow(&self) -> ToolFlow {
        self.0.flow()
    }
}

struct WithFlow(ToolFlow, Arc<dyn Tool>);

impl Tool for WithFlow {
    fn call(&self, invocation: Invocation) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        self.1.call(invocation)
    }

    fn timeout(&self) -> Option<Duration> {
        self.1.timeout()
    }

    fn parameters(&self) -> Option<&Json> {
        self.1.parameters()
    }

    fn needs_approval(&self, run: &ToolRun) -> bool {
        self.1.needs_approval(run)
    }

    fn is_idempotent(&self) -> bool {
        self.1.is_idempotent()
    }

    fn flow(&self) -> ToolFlow {
        let inner = self.1.flow();
        ToolFlow { trusted: self.0.trusted.or(inner.trusted), ..self.0.over(&inner) }
    }
}

impl<T: Tool + ?Sized> Tool for Arc<T> {
    fn call(&self, invocation: Invocation) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        (**self).call(invocation)
    }

    fn timeout(&self) -> Option<Duration> {
        (**self).timeout()
    }

    fn parameters(&self) -> Option<&Json> {
        (**self).parameters()
    }

    fn needs_approval(&self, run: &ToolRun) -> bool {
        (**self).needs_approval(run)
    }

    fn is_idempotent(&self) -> bool {
        (**self).is_idempotent()
    }

    fn flow(&self) -> ToolFlow {
        (**self).flow()
    }
}

impl fmt::Debug for dyn Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tool")
    }
}

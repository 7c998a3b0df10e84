//! The runtime: its options, and the renderers, parsers, providers and tools that a host has registered.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
#[cfg(feature = "providers")]
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tympan_core::chat::policy::Policy;
use tympan_core::chat::thread::ThreadRoles;
use tympan_core::spec::Connection;
use tympan_core::template::Limits;
use tympan_core::template::functions::TemplateFunctions;
#[cfg(feature = "agent")]
use tympan_core::turn::ToolPolicy;
use tympan_core::{Error, Guard, Inputs, Kind, KindCheck, Message, Prompt, Rendered, Result};

use crate::load::LoadOptions;
#[cfg(feature = "providers")]
use crate::model::budget::Budget;
#[cfg(feature = "providers")]
use crate::model::cassette::Cassette;
#[cfg(feature = "providers")]
use crate::model::provider::Provider;
#[cfg(feature = "providers")]
use crate::model::spending::SpendLimit;
#[cfg(feature = "providers")]
use crate::model::token::{CredentialProvider, Tokens};
#[cfg(feature = "providers")]
use crate::net::client::{HttpClient, HttpOptions};
#[cfg(feature = "providers")]
use crate::net::reach::TurnValues;
#[cfg(feature = "mcp")]
use crate::tool::McpConnections;
#[cfg(feature = "agent")]
use crate::tool::http::ToolClient;
#[cfg(feature = "agent")]
use crate::tool::{Tool, ToolAddresses, ToolHandler};
use crate::trace::{Span, TraceOptions, Tracer};

/// A custom template engine.
///
/// A renderer receives the template and the inputs and returns text. The origin of that text is unknown, so only role
/// markers in the template itself start a message: they are marked with a nonce before the renderer sees them.
pub trait Renderer: Send + Sync {
    /// Renders a template.
    ///
    /// # Errors
    /// Returns an error if the renderer cannot render the template.
    fn render(&self, template: &str, inputs: &Inputs) -> Result<String>;

    /// Renders a template for an async function of the runtime: [`Runtime::render_async`], [`Runtime::prepare_async`],
    /// and those that call a model. The default implementation calls [`Renderer::render`].
    fn render_async<'a>(&'a self, template: &'a str, inputs: &'a Inputs) -> RenderFuture<'a> {
        Box::pin(async move { self.render(template, inputs) })
    }
}

/// The future that [`Renderer::render_async`] returns.
pub type RenderFuture<'a> = Pin<Box<dyn Future<Output = Result<String>> + Send + 'a>>;

/// A custom parser, which converts rendered text to messages.
pub trait Parser: Send + Sync {
    /// Converts rendered text to messages.
    ///
    /// # Errors
    /// Returns an error if the parser cannot parse the text.
    fn parse(&self, prompt: &Prompt, rendered: &Rendered) -> Result<Vec<Message>>;
}

impl<T: Renderer + ?Sized> Renderer for Arc<T> {
    fn render(&self, template: &str, inputs: &Inputs) -> Result<String> {
        (**self).render(template, inputs)
    }

    fn render_async<'a>(&'a self, template: &'a str, inputs: &'a Inputs) -> RenderFuture<'a> {
        (**self).render_async(template, inputs)
    }
}

impl<T: Parser + ?Sized> Parser for Arc<T> {
    fn parse(&self, prompt: &Prompt, rendered: &Rendered) -> Result<Vec<Message>> {
        (**self).parse(prompt, rendered)
    }
}

/// The options of a [`Runtime`]. They apply to all prompts.
#[derive(Clone, Debug, Default)]
pub struct RuntimeOptions {
    /// The limits on a render.
    pub limits: Limits,
    /// The roles that messages of thread inputs may have.
    pub thread_roles: ThreadRoles,
    /// Whether undefined variables render as empty text. With `None`, the prompt decides.
    pub lenient: Option<bool>,
    /// Whether role markers in untrusted inputs are errors. With `None`, the prompt decides.
    pub strict: Option<bool>,
    /// The guard, which wraps text from untrusted inputs in `<untrusted>…</untrusted>`. With `None`, the text is not
    /// wrapped.
    pub guard: Option<Guard>,
    /// Whether the values of inputs must match their declared kinds and enums. With [`KindCheck::Warn`], mismatches are
    /// logged.
    pub kinds: KindCheck,
    /// Whether an optional input without a value is an error if the template uses it.
    pub strict_inputs: bool,
    /// The roles whose messages may contain text of untrusted inputs, in all prompts and threads. With `None`, all may.
    pub policy: Option<Policy>,
    /// The seed of the filter `random`. Without one, a template that uses the filter is an error.
    pub seed: Option<u64>,
    /// What prompt files may access while they are loaded.
    pub load: LoadOptions,
    #[cfg(feature = "providers")]
    /// The HTTP options for calls to providers.
    pub http: HttpOptions,
    #[cfg(feature = "providers")]
    /// Records or replays the exchanges with providers.
    pub cassette: Option<Cassette>,
    /// What traces contain, and what they leave out.
    pub trace: TraceOptions,
    #[cfg(feature = "agent")]
    /// The policy for tool calls. A turn can have a policy of its own.
    pub tool_policy: ToolPolicy,
    #[cfg(feature = "agent")]
    /// The addresses that tools may call.
    pub tool_addresses: ToolAddresses,
    #[cfg(feature = "providers")]
    /// Addresses that API keys and other values from the environment may be sent to, even if only a prompt file or a
    /// `.env` file names the address. `https://proxy.example.com/v1` includes all paths below it. The list applies to
    /// both models and tools.
    pub allow_endpoints: Vec<String>,
}

/// Holds options and registries, and runs prompts with them.
///
/// A runtime is cheap to create and safe to share between threads. Clones share the same options and registries.
#[derive(Clone, Default)]
pub struct Runtime {
    pub(super) shared: Arc<Shared>,
    pub(super) tracer: Tracer,
    /// The options for loading prompts that replace those in the options.
    load: Option<Arc<LoadOptions>>,
    #[cfg(feature = "agent")]
    /// The depth of nested tool calls.
    depth: u32,
    #[cfg(feature = "providers")]
    /// The budget of the enclosing turn.
    budget: Option<Arc<Budget>>,
    #[cfg(feature = "providers")]
    /// The values from the environment that may be part of the turn's conversation; `None` outside of turns.
    turn_values: Option<TurnValues>,
    #[cfg(feature = "providers")]
    /// The cassette that replaces the one in the options.
    cassette: Option<Arc<Cassette>>,
    #[cfg(feature = "providers")]
    /// The limit on what model calls may cost.
    spend_limit: Option<SpendLimit>,
}

#[derive(Default)]
pub(super) struct Shared {
    pub(super) options: RuntimeOptions,
    pub(super) renderers: Registry<dyn Renderer>,
    pub(super) parsers: Registry<dyn Parser>,
    pub(super) functions: TemplateFunctions,
    #[cfg(feature = "providers")]
    pub(super) providers: Registry<dyn Provider>,
    #[cfg(feature = "providers")]
    pub(super) credential_providers: Registry<dyn CredentialProvider>,
    #[cfg(feature = "providers")]
    pub(super) tokens: Tokens,
    pub(super) connections: Registry<Connection>,
    #[cfg(feature = "agent")]
    pub(super) tools: Registry<dyn Tool>,
    #[cfg(feature = "agent")]
    pub(super) tool_handlers: Registry<dyn ToolHandler>,
    #[cfg(feature = "mcp")]
    mcp: McpConnections,
    #[cfg(feature = "providers")]
    /// Created on first use, because most runtimes never make a request.
    client: OnceLock<Result<HttpClient>>,
    #[cfg(feature = "agent")]
    /// Created on first use, like `client`.
    tool_client: OnceLock<Arc<ToolClient>>,
}

/// A map from names to registered entries.
pub(super) struct Registry<T: ?Sized> {
    entries: RwLock<HashMap<String, Arc<T>>>,
    /// Whether anything was ever registered. Most hosts register nothing and should not pay for a lock in every render.
    is_used: AtomicBool,
}

impl<T: ?Sized> Default for Registry<T> {
    fn default() -> Self {
        Self { entries: RwLock::default(), is_used: AtomicBool::new(false) }
    }
}

impl<T: ?Sized> Registry<T> {
    pub(super) fn insert(&self, kind: String, entry: Arc<T>) {
        self.entries.write().unwrap_or_else(PoisonError::into_inner).insert(kind, entry);
        self.is_used.store(true, Ordering::Release);
    }

    pub(super) fn get(&self, kind: &str) -> Option<Arc<T>> {
        if !self.is_used.load(Ordering::Acquire) {
            return None;
        }
        self.entries.read().unwrap_or_else(PoisonError::into_inner).get(kind).cloned()
    }

    pub(super) fn clear(&self) {
        self.entries.write().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

impl Runtime {
    /// Creates a runtime with these options. Only the built-in renderers, parsers and providers are available at first.
    pub fn new(options: RuntimeOptions) -> Self {
        let tracer = Tracer::new(options.trace.clone());
        let shared = Arc::new(Shared { options, ..Shared::default() });
        Self { shared, tracer, ..Self::default() }
    }

    /// Returns the options.
    pub fn options(&self) -> &RuntimeOptions {
        &self.shared.options
    }

    /// Returns the tracer, which reports events to trace backends. Without a backend, it does nothing.
    pub fn tracer(&self) -> &Tracer {
        &self.tracer
    }

    /// Returns a runtime whose operations are recorded as children of this span instead of as new traces.
    #[must_use]
    pub fn under(&self, span: &Span) -> Self {
        Self { tracer: self.tracer.under(span), ..self.clone() }
    }

    /// Returns a runtime that loads prompts with references to environment variables unresolved, so that prompts render
    /// without the variables that only a call needs. It shares everything else with this runtime.
    #[must_use]
    pub fn with_deferred_env(&self) -> Self {
        let load = LoadOptions { defer_env: true, ..self.load_options().clone() };
        Self { load: Some(Arc::new(load)), ..self.clone() }
    }

    /// Returns the options for loading prompts.
    pub(crate) fn load_options(&self) -> &LoadOptions {
        self.load.as_deref().unwrap_or(&self.options().load)
    }

    #[cfg(feature = "providers")]
    /// Returns a runtime that records or replays exchanges with this cassette instead of the one in the options. It
    /// shares everything else with this runtime.
    #[must_use]
    pub fn with_cassette(&self, cassette: Cassette) -> Self {
        Self { cassette: Some(Arc::new(cassette)), ..self.clone() }
    }

    #[cfg(feature = "providers")]
    /// Returns a runtime whose model calls, including those of its turns and tools, count against this limit. It shares
    /// everything else with this runtime. Replayed calls and the provider `echo` cost nothing.
    #[must_use]
    pub fn with_spend_limit(&self, limit: SpendLimit) -> Self {
        Self { spend_limit: Some(limit), ..self.clone() }
    }

    #[cfg(feature = "providers")]
    /// Returns the limit on what model calls may cost.
    pub(crate) fn spend_limit(&self) -> Option<&SpendLimit> {
        self.spend_limit.as_ref()
    }

    #[cfg(feature = "providers")]
    /// Returns the cassette.
    pub(crate) fn cassette(&self) -> Option<&Cassette> {
        self.cassette.as_deref().or(self.options().cassette.as_ref())
    }

    #[cfg(feature = "agent")]
    /// Returns the runtime for a tool call, one level deeper.
    pub(crate) fn deeper(&self, span: &Span) -> Self {
        Self { depth: self.depth + 1, ..self.under(span) }
    }

    #[cfg(feature = "agent")]
    /// Returns a runtime whose calls count against this budget.
    pub(crate) fn within(&self, budget: Arc<Budget>) -> Self {
        Self { budget: Some(budget), ..self.clone() }
    }

    #[cfg(feature = "providers")]
    /// Returns the budget of the enclosing turn.
    pub(crate) fn budget(&self) -> Option<&Arc<Budget>> {
        self.budget.as_ref()
    }

    #[cfg(feature = "agent")]
    /// Returns the runtime for a turn. A nested turn shares the values of the enclosing turn.
    pub(crate) fn in_turn(&self) -> Self {
        Self { turn_values: Some(self.turn_values.clone().unwrap_or_default()), ..self.clone() }
    }

    #[cfg(feature = "providers")]
    /// Returns the values from the environment that may be part of the turn's conversation.
    pub(crate) fn turn_values(&self) -> Option<&TurnValues> {
        self.turn_values.as_ref()
    }

    #[cfg(feature = "agent")]
    /// Returns the depth of nested tool calls.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    #[cfg(feature = "providers")]
    /// Returns the access tokens of this runtime.
    pub(crate) fn tokens(&self) -> &Tokens {
        &self.shared.tokens
    }

    #[cfg(feature = "mcp")]
    /// Returns the connections to MCP servers.
    pub(crate) fn mcp(&self) -> &McpConnections {
        &self.shared.mcp
    }

    #[cfg(feature = "providers")]
    /// Returns the HTTP client, which holds the open connections.
    ///
    /// # Errors
    /// Returns an error if the HTTP options are invalid.
    pub(crate) fn client(&self) -> Result<HttpClient> {
        self.shared.client.get_or_init(|| HttpClient::new(self.options().http.clone())).clone()
    }

    #[cfg(feature = "agent")]
    /// Returns the HTTP client of tools.
    pub(crate) fn tool_client(&self) -> Arc<ToolClient> {
        let RuntimeOptions { http, tool_addresses, .. } = self.options();
        let make = || Arc::new(ToolClient::new(http.clone(), tool_addresses.clone()));
        self.shared.tool_client.get_or_init(make).clone()
    }
}

/// Returns random bits from the operating system's secure source.
pub(crate) fn system_entropy() -> Result<u64> {
    getrandom::u64().map_err(|error| Error::new(Kind::NoEntropy, error))
}

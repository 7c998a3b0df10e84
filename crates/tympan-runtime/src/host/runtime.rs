//! The runtime: its options, and the renderers, parsers, providers and tools that a host has registered.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
#[cfg(feature = "providers")]
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
#[cfg(feature = "agent")]
use std::time::Duration;

use serde_json::{Value as Json, json};
use tympan_core::chat::thread::ThreadRoles;
use tympan_core::prompt::RenderOptions;
use tympan_core::prompt::inputs::IntoInputs;
use tympan_core::spec::Connection;
use tympan_core::template::Limits;
use tympan_core::template::functions::{FunctionArgs, FunctionError, TemplateFunctions};
use tympan_core::template::input::InputMap;
use tympan_core::{Error, Guard, Inputs, Kind, KindCheck, Message, Prompt, Rendered, Result};

use crate::host::custom_renderer::Job;
use crate::load::LoadOptions;
#[cfg(feature = "providers")]
use crate::model::budget::Budget;
#[cfg(feature = "providers")]
use crate::model::cassette::Cassette;
#[cfg(feature = "providers")]
use crate::model::provider::Provider;
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
use crate::tool::{CredentialCommand, Tool, ToolAddresses, ToolHandler};
use crate::trace::event;
use crate::trace::{Span, TraceOptions, Tracer, mask_messages};

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
    shared: Arc<Shared>,
    tracer: Tracer,
    #[cfg(feature = "agent")]
    /// The depth of nested tool calls.
    depth: u32,
    #[cfg(feature = "providers")]
    /// The budget of the enclosing turn.
    budget: Option<Arc<Budget>>,
    #[cfg(feature = "providers")]
    /// The values from the environment that may be part of the turn's conversation; `None` outside of turns.
    turn_values: Option<TurnValues>,
}

#[derive(Default)]
struct Shared {
    options: RuntimeOptions,
    renderers: Registry<dyn Renderer>,
    parsers: Registry<dyn Parser>,
    functions: TemplateFunctions,
    #[cfg(feature = "providers")]
    providers: Registry<dyn Provider>,
    #[cfg(feature = "providers")]
    credential_providers: Registry<dyn CredentialProvider>,
    #[cfg(feature = "providers")]
    tokens: Tokens,
    connections: Registry<Connection>,
    #[cfg(feature = "agent")]
    tools: Registry<dyn Tool>,
    #[cfg(feature = "agent")]
    tool_handlers: Registry<dyn ToolHandler>,
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
struct Registry<T: ?Sized> {
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
    fn insert(&self, kind: String, entry: Arc<T>) {
        self.entries.write().unwrap_or_else(PoisonError::into_inner).insert(kind, entry);
        self.is_used.store(true, Ordering::Release);
    }

    fn get(&self, kind: &str) -> Option<Arc<T>> {
        if !self.is_used.load(Ordering::Acquire) {
            return None;
        }
        self.entries.read().unwrap_or_else(PoisonError::into_inner).get(kind).cloned()
    }

    fn clear(&self) {
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

    /// Registers a renderer for templates of this format, replacing any existing one.
    pub fn register_renderer(&self, kind: impl Into<String>, renderer: impl Renderer + 'static) {
        self.shared.renderers.insert(kind.into(), Arc::new(renderer));
    }

    /// Registers a parser of this kind, replacing any existing one.
    pub fn register_parser(&self, kind: impl Into<String>, parser: impl Parser + 'static) {
        self.shared.parsers.insert(kind.into(), Arc::new(parser));
    }

    /// Registers a filter for the templates of this runtime, `{{ value|name(…) }}`, replacing any existing one of this
    /// name. The first argument is the value. The origin of the result is the union of the origins of all arguments.
    ///
    /// ```
    /// use serde_json::json;
    /// use tympan_core::Prompt;
    /// use tympan_runtime::Runtime;
    ///
    /// let runtime = Runtime::default();
    /// runtime.register_filter("initials", |args| {
    ///     let name = args.value().as_str().ok_or("expected a name")?;
    ///     Ok(name.split(' ').filter_map(|word| word.chars().next()).collect::<String>().into())
    /// })?;
    /// let source = "{name: a, role: user, body: '{{ who|initials }}', variables: {who: {type: string, trusted: false}}}";
    /// let prompt = Prompt::from_yaml(source)?;
    /// assert_eq!(runtime.render(&prompt, &json!({"who": "Ada Lovelace"}))?.text(), "AL");
    /// # Ok::<(), tympan_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the name is not an identifier or is that of a built-in filter.
    pub fn register_filter(
        &self,
        name: impl Into<String>,
        filter: impl Fn(&FunctionArgs) -> Result<Json, FunctionError> + Send + Sync + 'static,
    ) -> Result<()> {
        self.shared.functions.add_filter(name, filter)
    }

    /// Registers a test for the templates of this runtime, `{% if value is name(…) %}`, replacing any existing one of
    /// this name. The first argument is the value.
    ///
    /// # Errors
    /// Returns an error if the name is not an identifier or is that of a built-in test.
    pub fn register_test(
        &self,
        name: impl Into<String>,
        test: impl Fn(&FunctionArgs) -> Result<bool, FunctionError> + Send + Sync + 'static,
    ) -> Result<()> {
        self.shared.functions.add_test(name, test)
    }

    /// Registers a function for the templates of this runtime, `{{ name(…) }}`, replacing any existing one of this
    /// name. A macro or a declared input of the same name hides it.
    ///
    /// # Errors
    /// Returns an error if the name is not an identifier or is that of a built-in function.
    pub fn register_function(
        &self,
        name: impl Into<String>,
        function: impl Fn(&FunctionArgs) -> Result<Json, FunctionError> + Send + Sync + 'static,
    ) -> Result<()> {
        self.shared.functions.add_function(name, function)
    }

    #[cfg(feature = "providers")]
    /// Registers a provider of this name, replacing any existing one, including a built-in one.
    pub fn register_provider(&self, name: impl Into<String>, provider: impl Provider + 'static) {
        self.shared.providers.insert(name.into(), Arc::new(provider));
    }

    #[cfg(feature = "providers")]
    /// Returns the provider that the host has registered under this name.
    pub fn get_provider(&self, name: &str) -> Option<Arc<dyn Provider>> {
        self.shared.providers.get(name)
    }

    #[cfg(feature = "providers")]
    /// Registers a credential provider for connections of this kind, such as `foundry`, `oauth` or `anonymous`,
    /// replacing any existing one. `*` matches all kinds without a provider of their own, except `key` and `anonymous`.
    pub fn register_credential_provider(&self, kind: impl Into<String>, provider: impl CredentialProvider + 'static) {
        self.shared.credential_providers.insert(kind.into(), Arc::new(provider));
        self.shared.tokens.clear();
    }

    #[cfg(feature = "agent")]
    /// Registers a program that prints an access token, as a credential provider for connections of this kind; see
    /// [`CredentialCommand`](crate::tool::CredentialCommand).
    ///
    /// # Errors
    /// Returns an error if the command is empty, or if its program is a relative path.
    pub fn register_credential_command(
        &self,
        kind: impl Into<String>,
        command: Vec<String>,
        timeout: Option<Duration>,
    ) -> Result<()> {
        self.register_credential_provider(kind, CredentialCommand::new(command, timeout)?);
        Ok(())
    }

    #[cfg(feature = "providers")]
    /// Returns the credential provider that the host has registered for a kind of connections.
    pub fn get_credential_provider(&self, kind: &str) -> Option<Arc<dyn CredentialProvider>> {
        self.shared.credential_providers.get(kind)
    }

    #[cfg(feature = "providers")]
    /// Removes all credential providers and the tokens that they returned.
    pub fn clear_credential_providers(&self) {
        self.shared.credential_providers.clear();
        self.shared.tokens.clear();
    }

    #[cfg(feature = "providers")]
    /// Returns the access tokens of this runtime.
    pub(crate) fn tokens(&self) -> &Tokens {
        &self.shared.tokens
    }

    /// Registers a connection for prompts that refer to it with `{kind: reference, name: …}`.
    pub fn register_connection(&self, name: impl Into<String>, connection: Connection) {
        self.shared.connections.insert(name.into(), Arc::new(connection));
    }

    /// Returns the connection that the host has registered under this name.
    pub fn get_connection(&self, name: &str) -> Option<Arc<Connection>> {
        self.shared.connections.get(name)
    }

    /// Removes all registered connections.
    pub fn clear_connections(&self) {
        self.shared.connections.clear();
    }

    #[cfg(feature = "agent")]
    /// Registers the implementation of the tool of this name, replacing any existing one. Only prompts that declare the
    /// tool can use it.
    pub fn register_tool(&self, name: impl Into<String>, tool: impl Tool + 'static) {
        self.shared.tools.insert(name.into(), Arc::new(tool));
    }

    #[cfg(feature = "agent")]
    /// Returns the implementation that the host has registered for the tool of this name.
    pub fn get_tool(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.shared.tools.get(name)
    }

    #[cfg(feature = "agent")]
    /// Removes all registered tools.
    pub fn clear_tools(&self) {
        self.shared.tools.clear();
    }

    #[cfg(feature = "agent")]
    /// Registers a handler, which converts all tools of a kind to functions. It replaces any existing handler,
    /// including a built-in one. `*` matches all custom kinds without a handler of their own.
    pub fn register_tool_handler(&self, kind: impl Into<String>, handler: impl ToolHandler + 'static) {
        self.shared.tool_handlers.insert(kind.into(), Arc::new(handler));
    }

    #[cfg(feature = "agent")]
    /// Returns the handler that the host has registered for a kind of tools.
    pub fn get_tool_handler(&self, kind: &str) -> Option<Arc<dyn ToolHandler>> {
        self.shared.tool_handlers.get(kind)
    }

    #[cfg(feature = "agent")]
    /// Removes all registered tool handlers.
    pub fn clear_tool_handlers(&self) {
        self.shared.tool_handlers.clear();
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

    /// Fills in defaults and checks that no required input is missing.
    ///
    /// # Errors
    /// Returns an error if a required input is missing and has no default, or if the option `kinds` is
    /// [`KindCheck::Error`] and a value does not match its declaration.
    pub fn validate_inputs<'i>(&self, prompt: &Prompt, inputs: impl IntoInputs<'i>) -> Result<Inputs> {
        let inputs = inputs.into_inputs()?;
        check_kinds(prompt, inputs.as_map(), self.shared.options.kinds)?;
        prompt.validate_inputs(inputs)
    }

    /// Renders a prompt.
    ///
    /// # Errors
    /// Returns an error if an input is missing or invalid, if the template fails, if a limit is exceeded, if no
    /// renderer is registered for the template's format, or if the guard is on and the format has a custom renderer.
    pub fn render<'i>(&self, prompt: &Prompt, inputs: impl IntoInputs<'i>) -> Result<Rendered> {
        self.render_with(prompt, inputs, &self.render_options())
    }

    /// Renders a prompt with custom options. [`Runtime::render_options`] returns those of this runtime.
    ///
    /// # Errors
    /// Returns an error if [`Runtime::render`] does, or if the prompt does not have the requested variant.
    pub fn render_with<'i>(
        &self,
        prompt: &Prompt,
        inputs: impl IntoInputs<'i>,
        options: &RenderOptions<'_>,
    ) -> Result<Rendered> {
        self.render_borrowed(prompt, inputs.into_inputs()?.as_map(), options)
    }

    /// Renders a prompt with custom options, from borrowed inputs that need not be JSON.
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::render_with`].
    pub fn render_borrowed(
        &self,
        prompt: &Prompt,
        inputs: InputMap<'_>,
        options: &RenderOptions<'_>,
    ) -> Result<Rendered> {
        self.render_as(&self.tracer.start("render"), prompt, inputs, options)
    }

    /// Renders a prompt and records the render in this span.
    fn render_as(
        &self,
        span: &Span,
        prompt: &Prompt,
        inputs: InputMap<'_>,
        options: &RenderOptions<'_>,
    ) -> Result<Rendered> {
        event::record_inputs(span, prompt, inputs);
        let rendered = self.do_render(prompt, inputs, options);
        event::record_render(span, &rendered);
        rendered
    }

    #[tracing::instrument(name = "render", level = "info", skip_all, fields(prompt = prompt.spec().name))]
    fn do_render(&self, prompt: &Prompt, inputs: InputMap<'_>, options: &RenderOptions<'_>) -> Result<Rendered> {
        check_kinds(prompt, inputs, options.kinds)?;
        // The inputs were just checked, for built-in and custom renderers alike.
        let options = &RenderOptions { kinds: KindCheck::Off, ..*options };
        match self.shared.renderers.get(&prompt.spec().template.format) {
            None => prompt.render_borrowed(inputs, options),
            Some(renderer) => {
                let job = Job::new(prompt, &inputs.to_json(), options)?;
                let text = renderer.render(&job.template, &job.inputs)?;
                job.finish(text)
            }
        }
    }

    /// Renders a prompt, or prepares the job for a custom renderer. This is the synchronous part of an async render.
    fn start_render(
        &self,
        span: &Span,
        prompt: &Prompt,
        inputs: InputMap<'_>,
        options: &RenderOptions<'_>,
    ) -> Result<Started> {
        let Some(renderer) = self.shared.renderers.get(&prompt.spec().template.format) else {
            return self.render_as(span, prompt, inputs, options).map(Started::Done);
        };
        event::record_inputs(span, prompt, inputs);
        let job = check_kinds(prompt, inputs, options.kinds);
        let job = job.and_then(|()| Job::new(prompt, &inputs.to_json(), options)).inspect_err(|error| {
            let failed = Err(error.clone());
            event::record_render(span, &failed);
        })?;
        Ok(Started::Custom(renderer, Box::new(job)))
    }

    /// Splits a rendered prompt into messages.
    ///
    /// # Errors
    /// Returns an error if no parser is registered under the prompt's parser name, or if the parser fails.
    pub fn parse(&self, prompt: &Prompt, rendered: &Rendered) -> Result<Vec<Message>> {
        self.parse_as(&self.tracer.start("parse"), prompt, rendered.clone())
    }

    /// Splits a rendered prompt into messages and records them in this span.
    fn parse_as(&self, span: &Span, prompt: &Prompt, rendered: Rendered) -> Result<Vec<Message>> {
        event::hide(span, prompt);
        // Masking must come before parsing, because the origin of the text is not known afterwards.
        let masked = span.masks_untrusted().then(|| mask_messages(prompt, &rendered));
        let messages = self.do_parse(prompt, rendered);
        span.outcome(&messages, |messages| match masked {
            Some(masked) => masked.unwrap_or_default(),
            None => json!(messages),
        });
        messages
    }

    #[tracing::instrument(name = "parse", level = "info", skip_all, fields(prompt = prompt.spec().name))]
    fn do_parse(&self, prompt: &Prompt, rendered: Rendered) -> Result<Vec<Message>> {
        match self.shared.parsers.get(prompt.spec().template.parser.as_str()) {
            Some(parser) => parser.parse(prompt, &rendered),
            None => prompt.messages(rendered),
        }
    }

    /// Renders a prompt and splits it into messages, ready for a model.
    ///
    /// # Errors
    /// Returns an error if [`Runtime::render`] or [`Runtime::parse`] does.
    pub fn prepare<'i>(&self, prompt: &Prompt, inputs: impl IntoInputs<'i>) -> Result<Vec<Message>> {
        self.prepare_borrowed(prompt, inputs.into_inputs()?.as_map())
    }

    /// Renders a prompt and splits it into messages, from borrowed inputs that need not be JSON.
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::prepare`].
    #[tracing::instrument(name = "prepare", level = "info", skip_all, fields(prompt = prompt.spec().name))]
    pub fn prepare_borrowed(&self, prompt: &Prompt, inputs: InputMap<'_>) -> Result<Vec<Message>> {
        // Most hosts do not trace and should not pay for spans.
        if !self.tracer.is_enabled() {
            let rendered = self.do_render(prompt, inputs, &self.render_options())?;
            let is_guarded = rendered.guard().is_some();
            return self.with_advisory(is_guarded, self.do_parse(prompt, rendered));
        }
        self.prepare_as(&self.tracer.start("prepare"), prompt, inputs)
    }

    /// Renders a prompt, splits it into messages, and records both stages in this span.
    pub(crate) fn prepare_as(&self, span: &Span, prompt: &Prompt, inputs: InputMap<'_>) -> Result<Vec<Message>> {
        event::record_inputs(span, prompt, inputs);
        let mut is_guarded = false;
        let prepared =
            self.render_as(&span.child("render"), prompt, inputs, &self.render_options()).and_then(|rendered| {
                is_guarded = rendered.guard().is_some();
                self.parse_as(&span.child("parse"), prompt, rendered)
            });
        let prepared = self.with_advisory(is_guarded, prepared);
        span.outcome(&prepared, |messages| json!({ "messages": messages.len() }));
        prepared
    }

    /// Adds the guard's advisory if the text is guarded. Without it, a model does not know what the markers mean.
    fn with_advisory(&self, is_guarded: bool, messages: Result<Vec<Message>>) -> Result<Vec<Message>> {
        let Some(guard) = self.options().guard.as_ref().filter(|_| is_guarded) else { return messages };
        messages.map(|mut messages| {
            guard.info().insert_into(&mut messages);
            messages
        })
    }

    /// Renders a prompt: the async variant of [`Runtime::render`]. It waits only for a custom renderer, because the
    /// limits already bound the time of a built-in one.
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::render`].
    pub async fn render_async<'i>(&self, prompt: &Prompt, inputs: impl IntoInputs<'i>) -> Result<Rendered> {
        // The options must not be held across the await: they are not `Send`, and the future must be.
        let rendering = self.render_with_async(prompt, inputs, &self.render_options());
        rendering.await
    }

    /// Renders a prompt with custom options: the async variant of [`Runtime::render_with`].
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::render_with`].
    pub fn render_with_async<'a, 'i>(
        &'a self,
        prompt: &'a Prompt,
        inputs: impl IntoInputs<'i>,
        options: &RenderOptions<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<Rendered>> + Send + 'a>> {
        let span = self.tracer.start("render");
        let started =
            inputs.into_inputs().and_then(|inputs| self.start_render(&span, prompt, inputs.as_map(), options));
        Box::pin(async move { started?.finish(&span).await })
    }

    /// Splits a rendered prompt into messages: the async variant of [`Runtime::parse`]. It completes immediately.
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::parse`].
    pub async fn parse_async(&self, prompt: &Prompt, rendered: &Rendered) -> Result<Vec<Message>> {
        self.parse(prompt, rendered)
    }

    /// Renders a prompt and splits it into messages: the async variant of [`Runtime::prepare`].
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::prepare`].
    pub async fn prepare_async<'i>(&self, prompt: &Prompt, inputs: impl IntoInputs<'i>) -> Result<Vec<Message>> {
        let inputs = inputs.into_inputs()?;
        if !self.has_renderer(prompt) {
            return self.prepare_borrowed(prompt, inputs.as_map());
        }
        self.prepare_as_async(&self.tracer.start("prepare"), prompt, inputs.as_map()).await
    }

    /// Returns whether the host has registered a renderer for the prompt's format.
    pub fn has_renderer(&self, prompt: &Prompt) -> bool {
        self.shared.renderers.get(&prompt.spec().template.format).is_some()
    }

    /// Renders a prompt and splits it into messages in this span: the async variant of [`Runtime::prepare_as`].
    pub(crate) async fn prepare_as_async(
        &self,
        span: &Span,
        prompt: &Prompt,
        inputs: InputMap<'_>,
    ) -> Result<Vec<Message>> {
        event::record_inputs(span, prompt, inputs);
        let stage = span.child("render");
        let started = self.start_render(&stage, prompt, inputs, &self.render_options());
        let rendered = match started {
            Ok(started) => started.finish(&stage).await,
            Err(error) => Err(error),
        };
        let is_guarded = rendered.as_ref().is_ok_and(|rendered| rendered.guard().is_some());
        let prepared = rendered.and_then(|rendered| self.parse_as(&span.child("parse"), prompt, rendered));
        let prepared = self.with_advisory(is_guarded, prepared);
        span.outcome(&prepared, |messages| json!({ "messages": messages.len() }));
        prepared
    }

    /// Returns the options that this runtime renders with. Randomness comes from the operating system.
    pub fn render_options(&self) -> RenderOptions<'_> {
        let RuntimeOptions { limits, thread_roles, lenient, strict, ref guard, kinds, strict_inputs, seed, .. } =
            self.shared.options;
        RenderOptions {
            lenient,
            strict,
            limits,
            thread_roles,
            entropy: Some(&system_entropy),
            guard: guard.as_ref(),
            kinds,
            variant: None,
            strict_inputs,
            functions: Some(&self.shared.functions),
            seed,
        }
    }
}

/// Checks the values of inputs against their declarations, as `kinds` specifies.
fn check_kinds(prompt: &Prompt, inputs: InputMap<'_>, kinds: KindCheck) -> Result<()> {
    match kinds {
        KindCheck::Off => Ok(()),
        KindCheck::Error => prompt.check_kinds(inputs),
        KindCheck::Warn => {
            for warning in prompt.kind_warnings(inputs) {
                tracing::warn!(code = warning.code, "{}", warning.message);
            }
            Ok(())
        }
    }
}

/// An async render after its synchronous part.
enum Started {
    Done(Rendered),
    Custom(Arc<dyn Renderer>, Box<Job>),
}

impl Started {
    async fn finish(self, span: &Span) -> Result<Rendered> {
        let (renderer, job) = match self {
            Self::Done(rendered) => return Ok(rendered),
            Self::Custom(renderer, job) => (renderer, job),
        };
        let text = renderer.render_async(&job.template, &job.inputs).await;
        let rendered = text.and_then(|text| job.finish(text));
        event::record_render(span, &rendered);
        rendered
    }
}

/// Returns random bits from the operating system's secure source.
pub(crate) fn system_entropy() -> Result<u64> {
    getrandom::u64().map_err(|error| Error::new(Kind::NoEntropy, error))
}

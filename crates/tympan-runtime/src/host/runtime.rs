//! A runtime: what a host has registered, and how it wants things done.

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

/// A template engine that the host brings.
///
/// It gets the template and the inputs and returns text. Where the text came from is not known
/// then, so only role markers that stand in the template begin a message: they are marked with a
/// nonce before the renderer sees them.
pub trait Renderer: Send + Sync {
    /// Renders a template.
    ///
    /// # Errors
    /// Whatever the renderer finds wrong.
    fn render(&self, template: &str, inputs: &Inputs) -> Result<String>;

    /// Renders a template in an async function of the runtime: [`Runtime::render_async`], [`Runtime::prepare_async`],
    /// and those that call a model. Unless it is implemented, it calls [`Renderer::render`].
    fn render_async<'a>(&'a self, template: &'a str, inputs: &'a Inputs) -> RenderFuture<'a> {
        Box::pin(async move { self.render(template, inputs) })
    }
}

/// The text that a custom renderer returns from an async function.
pub type RenderFuture<'a> = Pin<Box<dyn Future<Output = Result<String>> + Send + 'a>>;

/// A way to turn rendered text into messages that the host brings.
pub trait Parser: Send + Sync {
    /// Makes messages of rendered text.
    ///
    /// # Errors
    /// Whatever the parser finds wrong.
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

/// What a host decides for all prompts.
#[derive(Clone, Debug, Default)]
pub struct RuntimeOptions {
    /// What a render may cost.
    pub limits: Limits,
    /// Which roles the messages of thread inputs may have.
    pub thread_roles: ThreadRoles,
    /// Whether undefined variables render as nothing; `None` leaves it to the prompt.
    pub lenient: Option<bool>,
    /// Whether role markers in untrusted inputs are errors; `None` leaves it to the prompt.
    pub strict: Option<bool>,
    /// Puts `<untrusted>` and `</untrusted>` around what untrusted inputs wrote; `None` leaves it as
    /// it is.
    pub guard: Option<Guard>,
    /// Whether the values of inputs must match their declared kinds and enums. With [`KindCheck::Warn`], mismatches are
    /// logged.
    pub kinds: KindCheck,
    /// Whether an optional input without a value is an error if the template uses it.
    pub strict_inputs: bool,
    /// The seed of the filter `random`. Without one, a template that uses the filter is an error.
    pub seed: Option<u64>,
    /// What prompt files may reach while they are loaded.
    pub load: LoadOptions,
    #[cfg(feature = "providers")]
    /// How providers are reached over HTTP.
    pub http: HttpOptions,
    #[cfg(feature = "providers")]
    /// Whether exchanges with providers are recorded, or replayed.
    pub cassette: Option<Cassette>,
    /// What traces say, and what they leave out.
    pub trace: TraceOptions,
    #[cfg(feature = "agent")]
    /// Which addresses tools may call.
    pub tool_addresses: ToolAddresses,
    #[cfg(feature = "providers")]
    /// Addresses that keys and other values of the environment may go to, also where only a prompt file or a `.env` file
    /// names them: `https://proxy.example.com/v1` and all below it. Models and tools are meant.
    pub allow_endpoints: Vec<String>,
}

/// Registries and options. Cheap to make, safe to share between threads, and clones are the same runtime.
#[derive(Clone, Default)]
pub struct Runtime {
    shared: Arc<Shared>,
    tracer: Tracer,
    #[cfg(feature = "agent")]
    /// How many tools called each other until here.
    depth: u32,
    #[cfg(feature = "providers")]
    /// What the turn may use up that this is a part of.
    budget: Option<Arc<Budget>>,
    #[cfg(feature = "providers")]
    /// What the turn that this is for got from the environment; `None` outside of turns.
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
    /// Made when it is first needed: most runtimes never call anybody.
    client: OnceLock<Result<HttpClient>>,
    #[cfg(feature = "agent")]
    /// As above.
    tool_client: OnceLock<Arc<ToolClient>>,
}

/// What is registered under which name.
struct Registry<T: ?Sized> {
    entries: RwLock<HashMap<String, Arc<T>>>,
    /// Most hosts register nothing, and should not pay for a lock at every render.
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
    /// A runtime with these options and nothing registered but what is built in.
    pub fn new(options: RuntimeOptions) -> Self {
        let tracer = Tracer::new(options.trace.clone());
        let shared = Arc::new(Shared { options, ..Shared::default() });
        Self { shared, tracer, ..Self::default() }
    }

    /// The options.
    pub fn options(&self) -> &RuntimeOptions {
        &self.shared.options
    }

    /// Who is told what this runtime does. Without a backend, nobody is.
    pub fn tracer(&self) -> &Tracer {
        &self.tracer
    }

    /// The same runtime, where whatever it does is a stage of this span, and no trace of its own.
    #[must_use]
    pub fn under(&self, span: &Span) -> Self {
        Self { tracer: self.tracer.under(span), ..self.clone() }
    }

    #[cfg(feature = "agent")]
    /// The runtime for a tool that this one calls.
    pub(crate) fn deeper(&self, span: &Span) -> Self {
        Self { depth: self.depth + 1, ..self.under(span) }
    }

    #[cfg(feature = "agent")]
    /// The same runtime within a turn, where whatever it does is counted.
    pub(crate) fn within(&self, budget: Arc<Budget>) -> Self {
        Self { budget: Some(budget), ..self.clone() }
    }

    #[cfg(feature = "providers")]
    /// What the turn may use up that this is a part of.
    pub(crate) fn budget(&self) -> Option<&Arc<Budget>> {
        self.budget.as_ref()
    }

    #[cfg(feature = "agent")]
    /// The runtime for a turn: the same one if it is for a turn already, which this one is a part of then.
    pub(crate) fn in_turn(&self) -> Self {
        Self { turn_values: Some(self.turn_values.clone().unwrap_or_default()), ..self.clone() }
    }

    #[cfg(feature = "providers")]
    /// What the turn that this is for got from the environment.
    pub(crate) fn turn_values(&self) -> Option<&TurnValues> {
        self.turn_values.as_ref()
    }

    #[cfg(feature = "agent")]
    /// How many tools called each other until here.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// Registers a renderer for templates of this kind, in place of any other.
    pub fn register_renderer(&self, kind: impl Into<String>, renderer: impl Renderer + 'static) {
        self.shared.renderers.insert(kind.into(), Arc::new(renderer));
    }

    /// Registers a parser of this kind, in place of any other.
    pub fn register_parser(&self, kind: impl Into<String>, parser: impl Parser + 'static) {
        self.shared.parsers.insert(kind.into(), Arc::new(parser));
    }

    /// Registers a filter for the templates of this runtime, `{{ value|name(…) }}`, replacing any registered one of this
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

    /// Registers a test for the templates of this runtime, `{% if value is name(…) %}`, replacing any registered one of
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

    /// Registers a function for the templates of this runtime, `{{ name(…) }}`, replacing any registered one of this
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
    /// Registers a provider of this name, in place of any other, one that is built in included.
    pub fn register_provider(&self, name: impl Into<String>, provider: impl Provider + 'static) {
        self.shared.providers.insert(name.into(), Arc::new(provider));
    }

    #[cfg(feature = "providers")]
    /// The provider that the host has registered under this name.
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

    /// Registers a connection for prompts whose own is `{kind: reference, name: …}`.
    pub fn register_connection(&self, name: impl Into<String>, connection: Connection) {
        self.shared.connections.insert(name.into(), Arc::new(connection));
    }

    /// The connection that the host has registered under this name.
    pub fn get_connection(&self, name: &str) -> Option<Arc<Connection>> {
        self.shared.connections.get(name)
    }

    /// Forgets all connections.
    pub fn clear_connections(&self) {
        self.shared.connections.clear();
    }

    #[cfg(feature = "agent")]
    /// Registers what runs the tool of this name, in place of any other. Only prompts that declare the tool get it.
    pub fn register_tool(&self, name: impl Into<String>, tool: impl Tool + 'static) {
        self.shared.tools.insert(name.into(), Arc::new(tool));
    }

    #[cfg(feature = "agent")]
    /// What the host has registered to run the tool of this name.
    pub fn get_tool(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.shared.tools.get(name)
    }

    #[cfg(feature = "agent")]
    /// Forgets all tools.
    pub fn clear_tools(&self) {
        self.shared.tools.clear();
    }

    #[cfg(feature = "agent")]
    /// Registers what makes functions of all tools of a kind, in place of any other, one that is built in included. `*`
    /// stands for all custom kinds that have no handler of their own.
    pub fn register_tool_handler(&self, kind: impl Into<String>, handler: impl ToolHandler + 'static) {
        self.shared.tool_handlers.insert(kind.into(), Arc::new(handler));
    }

    #[cfg(feature = "agent")]
    /// The handler that the host has registered for a kind of tools.
    pub fn get_tool_handler(&self, kind: &str) -> Option<Arc<dyn ToolHandler>> {
        self.shared.tool_handlers.get(kind)
    }

    #[cfg(feature = "agent")]
    /// Forgets all handlers.
    pub fn clear_tool_handlers(&self) {
        self.shared.tool_handlers.clear();
    }

    #[cfg(feature = "mcp")]
    /// The servers of tools.
    pub(crate) fn mcp(&self) -> &McpConnections {
        &self.shared.mcp
    }

    #[cfg(feature = "providers")]
    /// The HTTP client, with its connections.
    ///
    /// # Errors
    /// The options cannot be used.
    pub(crate) fn client(&self) -> Result<HttpClient> {
        self.shared.client.get_or_init(|| HttpClient::new(self.options().http.clone())).clone()
    }

    #[cfg(feature = "agent")]
    /// The HTTP client of tools.
    pub(crate) fn tool_client(&self) -> Arc<ToolClient> {
        let RuntimeOptions { http, tool_addresses, .. } = self.options();
        let make = || Arc::new(ToolClient::new(http.clone(), tool_addresses.clone()));
        self.shared.tool_client.get_or_init(make).clone()
    }

    /// Fills in defaults and checks that nothing required is missing.
    ///
    /// # Errors
    /// A required input is missing and has no default; or the option `kinds` is [`KindCheck::Error`], and a value does
    /// not match its declaration.
    pub fn validate_inputs<'i>(&self, prompt: &Prompt, inputs: impl IntoInputs<'i>) -> Result<Inputs> {
        let inputs = inputs.into_inputs()?;
        check_kinds(prompt, inputs.as_map(), self.shared.options.kinds)?;
        prompt.validate_inputs(inputs)
    }

    /// Renders a prompt.
    ///
    /// # Errors
    /// An input is missing or cannot be used, the template is at fault, a limit is exceeded, or
    /// nobody knows the template's format; or the guard is on, and the template's renderer is one
    /// that the host brought.
    pub fn render<'i>(&self, prompt: &Prompt, inputs: impl IntoInputs<'i>) -> Result<Rendered> {
        self.render_with(prompt, inputs, &self.render_options())
    }

    /// Renders a prompt with options of its own; [`Runtime::render_options`] has those of this runtime.
    ///
    /// # Errors
    /// As [`Runtime::render`]; or the prompt has no such variant.
    pub fn render_with<'i>(
        &self,
        prompt: &Prompt,
        inputs: impl IntoInputs<'i>,
        options: &RenderOptions<'_>,
    ) -> Result<Rendered> {
        self.render_borrowed(prompt, inputs.into_inputs()?.as_map(), options)
    }

    /// As [`Runtime::render_with`], with inputs that need not be JSON.
    ///
    /// # Errors
    /// As [`Runtime::render_with`].
    pub fn render_borrowed(
        &self,
        prompt: &Prompt,
        inputs: InputMap<'_>,
        options: &RenderOptions<'_>,
    ) -> Result<Rendered> {
        self.render_as(&self.tracer.start("render"), prompt, inputs, options)
    }

    /// Renders as the stage that a span stands for.
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
        // The check is done, for renderers of all kinds.
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

    /// Renders, or prepares the work of a custom renderer. This part of an async render does not wait.
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
    /// Nobody knows the prompt's parser, or it fails.
    pub fn parse(&self, prompt: &Prompt, rendered: &Rendered) -> Result<Vec<Message>> {
        self.parse_as(&self.tracer.start("parse"), prompt, rendered.clone())
    }

    /// Splits as the stage that a span stands for.
    fn parse_as(&self, span: &Span, prompt: &Prompt, rendered: Rendered) -> Result<Vec<Message>> {
        event::hide(span, prompt);
        // The messages are told of before they are made, while it is still known who wrote what.
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
    /// As [`Runtime::render`] and [`Runtime::parse`].
    pub fn prepare<'i>(&self, prompt: &Prompt, inputs: impl IntoInputs<'i>) -> Result<Vec<Message>> {
        self.prepare_borrowed(prompt, inputs.into_inputs()?.as_map())
    }

    /// As [`Runtime::prepare`], with inputs that need not be JSON.
    ///
    /// # Errors
    /// As [`Runtime::prepare`].
    #[tracing::instrument(name = "prepare", level = "info", skip_all, fields(prompt = prompt.spec().name))]
    pub fn prepare_borrowed(&self, prompt: &Prompt, inputs: InputMap<'_>) -> Result<Vec<Message>> {
        // Most hosts trace nothing, and should not pay for spans.
        if !self.tracer.is_enabled() {
            let rendered = self.do_render(prompt, inputs, &self.render_options())?;
            let is_guarded = rendered.guard().is_some();
            return self.with_advisory(is_guarded, self.do_parse(prompt, rendered));
        }
        self.prepare_as(&self.tracer.start("prepare"), prompt, inputs)
    }

    /// Renders and splits as the stage that a span stands for.
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

    /// Adds the guard's advisory, if the text is guarded: without it, a model does not know what the markers mean.
    fn with_advisory(&self, is_guarded: bool, messages: Result<Vec<Message>>) -> Result<Vec<Message>> {
        let Some(guard) = self.options().guard.as_ref().filter(|_| is_guarded) else { return messages };
        messages.map(|mut messages| {
            guard.info().insert_into(&mut messages);
            messages
        })
    }

    /// The async variant of [`Runtime::render`]. A render is bounded by its limits, so it only waits for a custom
    /// renderer.
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::render`].
    pub async fn render_async<'i>(&self, prompt: &Prompt, inputs: impl IntoInputs<'i>) -> Result<Rendered> {
        // The options must not be kept while it waits: the future can move between threads, and they cannot.
        let rendering = self.render_with_async(prompt, inputs, &self.render_options());
        rendering.await
    }

    /// The async variant of [`Runtime::render_with`].
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

    /// The async twin of [`Runtime::parse`].
    ///
    /// # Errors
    /// As [`Runtime::parse`].
    pub async fn parse_async(&self, prompt: &Prompt, rendered: &Rendered) -> Result<Vec<Message>> {
        self.parse(prompt, rendered)
    }

    /// The async twin of [`Runtime::prepare`].
    ///
    /// # Errors
    /// As [`Runtime::prepare`].
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

    /// The async variant of [`Runtime::prepare_as`].
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

    /// How this runtime renders: what its options say, with randomness from the operating system.
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

/// Checks the values of inputs against their declarations, as far as the options say so.
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

/// An async render after the part that does not wait.
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

/// Random bits from the operating system's secure source.
pub(crate) fn system_entropy() -> Result<u64> {
    getrandom::u64().map_err(|error| Error::new(Kind::NoEntropy, error))
}

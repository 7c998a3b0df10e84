//! A runtime: what a host has registered, and how it wants things done.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tympan::prompt::RenderOptions;
use tympan::spec::DIRECTIVE;
use tympan::template::Limits;
use tympan::thread::ThreadRoles;
use tympan::{Error, Guard, Inputs, Kind, Message, Prompt, Rendered, Result, Role, chat};

use crate::foreign;
use crate::load::LoadOptions;

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
}

/// A way to turn rendered text into messages that the host brings.
pub trait Parser: Send + Sync {
    /// Makes messages of rendered text.
    ///
    /// # Errors
    /// Whatever the parser finds wrong.
    fn parse(&self, prompt: &Prompt, rendered: &Rendered) -> Result<Vec<Message>>;
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
    /// What prompt files may reach while they are loaded.
    pub load: LoadOptions,
}

/// Registries and options. Cheap to make, and safe to share between threads.
#[derive(Default)]
pub struct Runtime {
    options: RuntimeOptions,
    renderers: Registry<dyn Renderer>,
    parsers: Registry<dyn Parser>,
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
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Runtime {
    /// A runtime with these options and nothing registered but what is built in.
    pub fn new(options: RuntimeOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// The options.
    pub fn options(&self) -> &RuntimeOptions {
        &self.options
    }

    /// Registers a renderer for templates of this kind, in place of any other.
    pub fn register_renderer(&self, kind: impl Into<String>, renderer: Arc<dyn Renderer>) {
        self.renderers.insert(kind.into(), renderer);
    }

    /// Registers a parser of this kind, in place of any other.
    pub fn register_parser(&self, kind: impl Into<String>, parser: Arc<dyn Parser>) {
        self.parsers.insert(kind.into(), parser);
    }

    /// Fills in defaults and checks that nothing required is missing.
    ///
    /// # Errors
    /// A required input is missing and has no default.
    pub fn validate_inputs(&self, prompt: &Prompt, inputs: &Inputs) -> Result<Inputs> {
        prompt.validate_inputs(inputs)
    }

    /// Renders a prompt.
    ///
    /// # Errors
    /// An input is missing or cannot be used, the template is at fault, a limit is exceeded, or
    /// nobody knows the template's format; or the guard is on, and the template's renderer is one
    /// that the host brought.
    #[tracing::instrument(name = "render", level = "info", skip_all, fields(prompt = prompt.spec().name))]
    pub fn render(&self, prompt: &Prompt, inputs: &Inputs) -> Result<Rendered> {
        match self.renderers.get(&prompt.spec().template.format) {
            None => prompt.render_with(inputs, &self.render_options()),
            Some(renderer) => foreign::render(&*renderer, prompt, inputs, &self.render_options()),
        }
    }

    /// Splits a rendered prompt into messages.
    ///
    /// # Errors
    /// Nobody knows the prompt's parser, or it fails.
    pub fn parse(&self, prompt: &Prompt, rendered: &Rendered) -> Result<Vec<Message>> {
        self.parse_owned(prompt, rendered.clone())
    }

    #[tracing::instrument(name = "parse", level = "info", skip_all, fields(prompt = prompt.spec().name))]
    fn parse_owned(&self, prompt: &Prompt, rendered: Rendered) -> Result<Vec<Message>> {
        let kind = prompt.spec().template.parser.as_str();
        match self.parsers.get(kind) {
            Some(parser) => parser.parse(prompt, &rendered),
            None if kind == "prompty" => Ok(chat::split(rendered)),
            None if kind == DIRECTIVE => Ok(vec![chat::whole(rendered, Role::User)]),
            None => Err(Error::not_registered("parser", kind)),
        }
    }

    /// Renders a prompt and splits it into messages, ready for a model.
    ///
    /// # Errors
    /// As [`Runtime::render`] and [`Runtime::parse`].
    #[tracing::instrument(name = "prepare", level = "info", skip_all, fields(prompt = prompt.spec().name))]
    pub fn prepare(&self, prompt: &Prompt, inputs: &Inputs) -> Result<Vec<Message>> {
        let rendered = self.render(prompt, inputs)?;
        self.parse_owned(prompt, rendered)
    }

    /// The async twin of [`Runtime::render`]. A render is bounded by its limits, so it never waits.
    ///
    /// # Errors
    /// As [`Runtime::render`].
    pub async fn render_async(&self, prompt: &Prompt, inputs: &Inputs) -> Result<Rendered> {
        self.render(prompt, inputs)
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
    pub async fn prepare_async(&self, prompt: &Prompt, inputs: &Inputs) -> Result<Vec<Message>> {
        self.prepare(prompt, inputs)
    }

    fn render_options(&self) -> RenderOptions<'_> {
        let RuntimeOptions { limits, thread_roles, lenient, strict, ref guard, .. } = self.options;
        let guard = guard.as_ref();
        RenderOptions { lenient, strict, limits, thread_roles, entropy: Some(&system_entropy), guard }
    }
}

/// Random bits from the operating system's secure source.
pub(crate) fn system_entropy() -> Result<u64> {
    getrandom::u64().map_err(|error| Error::new(Kind::NoEntropy, error))
}

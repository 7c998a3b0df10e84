//! Runtimes: the options and registries for all prompts, and the operations on prompts.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use tympan::RunOptions;
use tympan::host::config;
use tympan::host::data;
use tympan::template::functions::FunctionArgs;

use crate::arrow::{self, ArrowStream};
use crate::errors::{engine, exception, invalid};
use crate::hooks::settings;
use crate::inputs::Room;
use crate::message::{self, Message, to_list};
use crate::prompt::{Prompt, Source, render_settings};
use crate::registry::{Callback, Named};
use crate::rendered;
use crate::results::{ModelInfo, Run, TurnRun};
use crate::stream::Stream;
use crate::tool::Function;
use crate::validator::Validator;
use crate::values::{from_python, map_to_python, to_python};
use crate::work::{self, Caller};

/// Options and registries. The package's class `Runtime` adds model calls and async variants.
#[pyclass(frozen, subclass, module = "tympan._native")]
pub(crate) struct Runtime {
    inner: tympan::Runtime,
    tools: Named,
    tool_handlers: Named,
    providers: Named,
    credential_providers: Named,
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let inner = std::mem::take(&mut self.inner);
        // Dropping the runtime waits for the trace backends, which may need the interpreter.
        Python::try_attach(|py| py.detach(move || drop(inner)));
    }
}

/// The runtime of the functions that name none, once the package has made it.
static DEFAULT: OnceLock<tympan::Runtime> = OnceLock::new();

/// The runtime of the functions that name none.
pub(crate) fn default_runtime() -> &'static tympan::Runtime {
    DEFAULT.get_or_init(|| tympan::default_runtime().clone())
}

/// Sets the default runtime.
#[pyfunction]
pub(crate) fn _set_default(runtime: &Bound<'_, Runtime>) {
    let _ = DEFAULT.set(runtime.get().inner.clone());
}

fn run_options(options: &Bound<'_, PyDict>) -> PyResult<RunOptions> {
    config::run_options(from_python(options.as_any())?).map_err(|error| exception(options.py(), &error))
}

#[pymethods]
impl Runtime {
    /// Creates a runtime with these options.
    #[new]
    #[pyo3(signature = (**options))]
    fn new(py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let options = options.map(|options| from_python(options.as_any())).transpose()?.unwrap_or_default();
        let options = engine(py, || config::runtime_options(options))?;
        let inner = tympan::Runtime::new(options);
        Ok(Self {
            inner,
            tools: Named::default(),
            tool_handlers: Named::default(),
            providers: Named::default(),
            credential_providers: Named::default(),
        })
    }

    /// Loads a prompt file: `.prompty`, a definition (`.yaml`, `.yml`, `.json`, `.toml`) or a directive (`.md`).
    #[pyo3(signature = (path, /, *, validator = None))]
    fn load(&self, py: Python<'_>, path: PathBuf, validator: Option<Bound<'_, PyAny>>) -> PyResult<Prompt> {
        Prompt::new(py, engine(py, || self.inner.load(path))?, Validator::new(validator))
    }

    /// Loads a prompt from the text of a prompt file.
    #[pyo3(signature = (text, name = "<string>.prompty", base_dir = PathBuf::from("."), *, validator = None))]
    fn load_str(
        &self,
        py: Python<'_>,
        text: &str,
        name: &str,
        base_dir: PathBuf,
        validator: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Prompt> {
        Prompt::new(py, engine(py, || self.inner.load_str(text, name, base_dir))?, Validator::new(validator))
    }

    /// Fills in default values and checks that no required input is missing.
    #[pyo3(signature = (prompt, inputs = None))]
    fn validate_inputs<'py>(
        &self,
        py: Python<'py>,
        prompt: &Bound<'py, Prompt>,
        inputs: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let known = prompt.get();
        let (prompt, inputs) = (known.inner(), known.validated(py, inputs)?);
        known.warn_about(py, (&inputs).into(), self.inner.options().kinds)?;
        map_to_python(py, &engine(py, || self.inner.validate_inputs(&prompt, &inputs))?)
    }

    /// Renders the template.
    #[pyo3(signature = (
        prompt, inputs = None, *, variant = None, guard = None, policy = None, strict = None, lenient = None,
        kinds = None, strict_inputs = None, seed = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
    fn render<'py>(
        &self,
        py: Python<'py>,
        prompt: &Bound<'py, Prompt>,
        inputs: Option<&Bound<'py, PyAny>>,
        variant: Option<&str>,
        guard: Option<&Bound<'py, PyAny>>,
        policy: Option<&Bound<'py, PyAny>>,
        strict: Option<bool>,
        lenient: Option<bool>,
        kinds: Option<&str>,
        strict_inputs: Option<bool>,
        seed: Option<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let settings = render_settings(py, variant, guard, policy, strict, lenient, kinds, strict_inputs, seed)?;
        let (room, known) = (Room::default(), prompt.get());
        let (prompt, inputs) = (known.inner(), known.taken(py, inputs, &room)?);
        known.warn_about(py, inputs.map(), settings.over(self.inner.render_options()).kinds)?;
        let render = || self.inner.render_borrowed(&prompt, inputs.map(), &settings.over(self.inner.render_options()));
        rendered::to_python(py, engine(py, render)?)
    }

    /// Splits the result of `render` into messages.
    #[pyo3(signature = (prompt, rendered))]
    fn parse(&self, py: Python<'_>, prompt: &Bound<'_, Prompt>, rendered: &Bound<'_, PyAny>) -> PyResult<Vec<Message>> {
        let (prompt, rendered) = (prompt.get().inner(), rendered::from_python(rendered)?);
        engine(py, || self.inner.parse(&prompt, &rendered).and_then(to_list))
    }

    /// Renders the template and splits it into messages.
    #[pyo3(signature = (prompt, inputs = None))]
    fn prepare(
        &self,
        py: Python<'_>,
        prompt: &Bound<'_, Prompt>,
        inputs: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Message>> {
        let (room, known) = (Room::default(), prompt.get());
        let (prompt, inputs) = (known.inner(), known.taken(py, inputs, &room)?);
        known.warn_about(py, inputs.map(), self.inner.options().kinds)?;
        engine(py, || self.inner.prepare_borrowed(&prompt, inputs.map()).and_then(to_list))
    }

    /// Renders the prompt for every row of a table, on all cores and without the interpreter's lock. The columns of the
    /// table become the inputs of the same names. A row that cannot be rendered has only the column `error`.
    #[pyo3(signature = (prompt, table, /, **options))]
    fn map_arrow(
        &self,
        prompt: &Bound<'_, Prompt>,
        table: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<ArrowStream> {
        arrow::map(&self.inner, prompt.get(), table, options)
    }

    /// Registers the function for a tool, for all prompts that declare a tool of this name.
    #[pyo3(signature = (name, function))]
    fn register_tool(&self, name: &str, function: &Bound<'_, PyAny>) -> PyResult<()> {
        self.inner.register_tool(name, Arc::new(Function::new(function, Caller::nobody())?));
        self.tools.insert(name, function);
        Ok(())
    }

    /// Returns the function that is registered for a tool.
    #[pyo3(signature = (name, /))]
    fn get_tool(&self, py: Python<'_>, name: &str) -> Option<Py<PyAny>> {
        self.tools.get(py, name)
    }

    /// Removes all tools.
    fn clear_tools(&self) {
        self.inner.clear_tools();
        self.tools.clear();
    }

    /// Registers a handler for all tools of a kind. It receives the declaration and the inputs as data, and returns a
    /// list of `Tool`. It may be async. The kind `*` matches all tools without a handler of their own.
    #[pyo3(signature = (kind, handler, /))]
    fn register_tool_handler(&self, kind: &str, handler: &Bound<'_, PyAny>) -> PyResult<()> {
        self.inner.register_tool_handler(kind, Arc::new(Callback::new(handler, "tool handler")?));
        self.tool_handlers.insert(kind, handler);
        Ok(())
    }

    /// Returns the handler that is registered for a kind of tools.
    #[pyo3(signature = (kind, /))]
    fn get_tool_handler(&self, py: Python<'_>, kind: &str) -> Option<Py<PyAny>> {
        self.tool_handlers.get(py, kind)
    }

    /// Removes all tool handlers.
    fn clear_tool_handlers(&self) {
        self.inner.clear_tool_handlers();
        self.tool_handlers.clear();
    }

    /// Registers a renderer for a template format. It receives the template and the inputs, and returns text. The
    /// origins in this text are unknown, so all of it is untrusted except for the role markers. It may be async: then
    /// use `render_async` and `prepare_async`.
    #[pyo3(signature = (kind, renderer, /))]
    fn register_renderer(&self, kind: &str, renderer: &Bound<'_, PyAny>) -> PyResult<()> {
        self.inner.register_renderer(kind, Arc::new(Callback::new(renderer, "renderer")?));
        Ok(())
    }

    /// Registers a filter for templates. It receives the value and the arguments, and returns plain data. The result
    /// counts as written by all inputs that contributed to the arguments.
    #[pyo3(signature = (name, filter, /))]
    fn register_filter(&self, py: Python<'_>, name: &str, filter: &Bound<'_, PyAny>) -> PyResult<()> {
        let function = Callback::new(filter, "filter")?;
        let filter = move |args: &FunctionArgs| function.call_in_template(args, from_python);
        self.inner.register_filter(name, filter).map_err(|error| exception(py, &error))
    }

    /// Registers a test for templates. It receives the value and the arguments, and returns whether it holds.
    #[pyo3(signature = (name, test, /))]
    fn register_test(&self, py: Python<'_>, name: &str, test: &Bound<'_, PyAny>) -> PyResult<()> {
        let function = Callback::new(test, "test")?;
        let test = move |args: &FunctionArgs| function.call_in_template(args, |result| result.is_truthy());
        self.inner.register_test(name, test).map_err(|error| exception(py, &error))
    }

    /// Registers a function for templates. It receives the arguments, and returns plain data. The result counts as
    /// written by all inputs that contributed to the arguments.
    #[pyo3(signature = (name, function, /))]
    fn register_function(&self, py: Python<'_>, name: &str, function: &Bound<'_, PyAny>) -> PyResult<()> {
        let callback = Callback::new(function, "function")?;
        let function = move |args: &FunctionArgs| callback.call_in_template(args, from_python);
        self.inner.register_function(name, function).map_err(|error| exception(py, &error))
    }

    /// Registers a parser for rendered text. It receives the prompt and the result of `render`, and returns messages or
    /// plain data of the same form.
    #[pyo3(signature = (kind, parser, /))]
    fn register_parser(&self, kind: &str, parser: &Bound<'_, PyAny>) -> PyResult<()> {
        self.inner.register_parser(kind, Arc::new(Callback::new(parser, "parser")?));
        Ok(())
    }

    /// Registers a custom provider. It receives a `ModelCall`, and returns a text, a dict, or an iterator over the
    /// deltas of the answer. It may be async.
    #[pyo3(signature = (name, provider, /))]
    fn register_provider(&self, name: &str, provider: &Bound<'_, PyAny>) -> PyResult<()> {
        self.inner.register_provider(name, Arc::new(Callback::new(provider, "provider")?));
        self.providers.insert(name, provider);
        Ok(())
    }

    /// Returns the provider that is registered under a name.
    #[pyo3(signature = (name, /))]
    fn get_provider(&self, py: Python<'_>, name: &str) -> Option<Py<PyAny>> {
        self.providers.get(py, name)
    }

    /// Registers a credential provider for connections without a key, by their kind: `foundry`, `oauth`, `anonymous`.
    /// It receives the connection as data, and returns an access token, or a dict with `token` and `expires_in`. It may
    /// be async. The kind `*` matches all kinds without a provider of their own, except `key` and `anonymous`.
    #[pyo3(signature = (kind, provider, /))]
    fn register_credential_provider(&self, kind: &str, provider: &Bound<'_, PyAny>) -> PyResult<()> {
        self.inner.register_credential_provider(kind, Callback::new(provider, "credential provider")?);
        self.credential_providers.insert(kind, provider);
        Ok(())
    }

    /// Registers a program that prints an access token, as a credential provider for connections of this kind. It runs
    /// without a shell, for at most `timeout` seconds.
    #[pyo3(signature = (kind, command, timeout = 30.0))]
    fn register_credential_command(
        &self,
        py: Python<'_>,
        kind: &str,
        command: Vec<String>,
        timeout: f64,
    ) -> PyResult<()> {
        let timeout =
            Duration::try_from_secs_f64(timeout).map_err(|_| invalid(py, "timeout: expected a number of seconds"))?;
        engine(py, || self.inner.register_credential_command(kind, command, Some(timeout)))
    }

    /// Returns the function that is registered as the credential provider for a kind of connections.
    #[pyo3(signature = (kind, /))]
    fn get_credential_provider(&self, py: Python<'_>, kind: &str) -> Option<Py<PyAny>> {
        self.credential_providers.get(py, kind)
    }

    /// Removes all credential providers, and the tokens that they returned.
    fn clear_credential_providers(&self) {
        self.inner.clear_credential_providers();
        self.credential_providers.clear();
    }

    /// Registers a connection for prompts that refer to it with `{kind: reference, name: …}`.
    #[pyo3(signature = (name, connection, /))]
    fn register_connection(&self, name: &str, connection: &Bound<'_, PyAny>) -> PyResult<()> {
        let data = from_python(connection)?;
        self.inner.register_connection(name, engine(connection.py(), || data::connection(data))?);
        Ok(())
    }

    /// Returns the connection that is registered under a name. Credentials are replaced by `[REDACTED]`.
    #[pyo3(signature = (name, /))]
    fn get_connection<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let connection = self.inner.get_connection(name);
        connection.map(|connection| to_python(py, &connection.to_json_redacted())).transpose()
    }

    /// Removes all connections.
    fn clear_connections(&self) {
        self.inner.clear_connections();
    }

    /// Adds a trace backend, replacing any existing one of this name: `{"tracy": folder}`, `{"console": True}` for
    /// standard error, `{"otel": {"endpoint": address}}`, or a function that receives each finished trace as data, on a
    /// separate thread.
    #[pyo3(signature = (name, backend, /))]
    fn add_trace_backend(&self, py: Python<'_>, name: &str, backend: &Bound<'_, PyAny>) -> PyResult<()> {
        let tracer = self.inner.tracer();
        if backend.is_callable() {
            let backend = Callback::new(backend, "trace backend")?;
            return engine(py, || tracer.add(name, backend));
        }
        let backend = from_python(backend)?;
        engine(py, || data::add_backend(tracer, name, backend))
    }

    /// Removes a trace backend. Returns whether there was one.
    #[pyo3(signature = (name, /))]
    fn remove_trace_backend(&self, py: Python<'_>, name: &str) -> bool {
        py.detach(|| self.inner.tracer().remove(name))
    }

    /// Waits until all traces so far are delivered, for at most `timeout` seconds. Returns whether they were.
    #[pyo3(signature = (timeout = 5.0))]
    fn flush_traces(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let timeout =
            Duration::try_from_secs_f64(timeout).map_err(|_| invalid(py, "timeout: expected a number of seconds"))?;
        Ok(py.detach(|| self.inner.tracer().flush(timeout)))
    }

    /// Returns the status of the trace backends: `name`, `dropped`, `failed` and `last_error` of each.
    fn trace_status<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let status = self.inner.tracer().status();
        status.iter().map(|status| to_python(py, &data::backend_status(status))).collect()
    }

    #[pyo3(signature = (path, validator = None))]
    fn _load(&self, py: Python<'_>, path: PathBuf, validator: Option<Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        let load = |_| {
            let (runtime, path, validator) = (self.inner.clone(), path.clone(), Validator::new(validator.clone()));
            Ok(Box::pin(async move { Ok((runtime.load_async(path).await?, validator)) }) as _)
        };
        work::go(py, true, load, |py, (prompt, validator)| {
            Ok(Py::new(py, Prompt::new(py, prompt, validator)?)?.into_any())
        })
    }

    fn _has_renderer(&self, prompt: &Bound<'_, Prompt>) -> bool {
        self.inner.has_renderer(&prompt.get().inner())
    }

    #[pyo3(signature = (prompt, inputs, variant, guard, policy, strict, lenient, kinds, strict_inputs, seed))]
    #[expect(clippy::too_many_arguments, reason = "they are the options of `render`")]
    fn _render(
        &self,
        py: Python<'_>,
        prompt: &Bound<'_, Prompt>,
        inputs: Option<&Bound<'_, PyAny>>,
        variant: Option<&str>,
        guard: Option<&Bound<'_, PyAny>>,
        policy: Option<&Bound<'_, PyAny>>,
        strict: Option<bool>,
        lenient: Option<bool>,
        kinds: Option<&str>,
        strict_inputs: Option<bool>,
        seed: Option<u64>,
    ) -> PyResult<Py<PyAny>> {
        let settings = render_settings(py, variant, guard, policy, strict, lenient, kinds, strict_inputs, seed)?;
        let inputs = prompt.get().validated(py, inputs)?;
        prompt.get().warn_about(py, (&inputs).into(), settings.over(self.inner.render_options()).kinds)?;
        let render = |_| {
            let (runtime, prompt) = (self.inner.clone(), prompt.get().inner());
            let (inputs, settings) = (inputs.clone(), settings.clone());
            Ok(Box::pin(async move {
                let rendering = runtime.render_with_async(&prompt, &inputs, &settings.over(runtime.render_options()));
                rendering.await
            }) as _)
        };
        work::go(py, true, render, |py, rendered| Ok(rendered::to_python(py, rendered)?.unbind()))
    }

    #[pyo3(signature = (prompt, inputs))]
    fn _prepare(
        &self,
        py: Python<'_>,
        prompt: &Bound<'_, Prompt>,
        inputs: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let inputs = prompt.get().validated(py, inputs)?;
        prompt.get().warn_about(py, (&inputs).into(), self.inner.options().kinds)?;
        let prepare = |_| {
            let (runtime, prompt, inputs) = (self.inner.clone(), prompt.get().inner(), inputs.clone());
            Ok(Box::pin(async move { to_list(runtime.prepare_async(&prompt, &inputs).await?) }) as _)
        };
        work::go(py, true, prepare, |py, messages: Vec<Message>| Ok(messages.into_pyobject(py)?.into_any().unbind()))
    }

    fn _run(
        &self,
        py: Python<'_>,
        prompt: &Bound<'_, Prompt>,
        messages: &Bound<'_, PyAny>,
        options: &Bound<'_, PyDict>,
        is_async: bool,
    ) -> PyResult<Py<PyAny>> {
        let run = |_| {
            let (runtime, prompt) = (self.inner.clone(), prompt.get().inner());
            let (messages, options) = (message::from_list(messages)?, run_options(options)?);
            Ok(Box::pin(async move { runtime.run_with_async(&prompt, &messages, &options).await }) as _)
        };
        work::go(py, is_async, run, run_to_python)
    }

    fn _stream(
        &self,
        py: Python<'_>,
        prompt: &Bound<'_, Prompt>,
        messages: &Bound<'_, PyAny>,
        options: &Bound<'_, PyDict>,
        is_async: bool,
    ) -> PyResult<Py<PyAny>> {
        let stream = |_| {
            let (runtime, prompt) = (self.inner.clone(), prompt.get().inner());
            let (messages, options) = (message::from_list(messages)?, run_options(options)?);
            Ok(Box::pin(async move { runtime.stream_async(&prompt, &messages, &options).await }) as _)
        };
        work::go(py, is_async, stream, |py, stream| Ok(Py::new(py, Stream::from(stream))?.into_any()))
    }

    #[pyo3(signature = (prompt, options, is_async))]
    fn _list_models(
        &self,
        py: Python<'_>,
        prompt: Option<&Bound<'_, Prompt>>,
        options: &Bound<'_, PyDict>,
        is_async: bool,
    ) -> PyResult<Py<PyAny>> {
        let list = |_| {
            let (runtime, options) = (self.inner.clone(), run_options(options)?);
            let prompt = prompt.map(|prompt| prompt.get().inner());
            Ok(Box::pin(async move { runtime.list_models_async(prompt.as_deref(), &options).await }) as _)
        };
        work::go(py, is_async, list, models_to_python)
    }

    fn _process(
        &self,
        py: Python<'_>,
        prompt: &Bound<'_, Prompt>,
        body: &Bound<'_, PyAny>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Run> {
        let (prompt, options) = (prompt.get().inner(), run_options(options)?);
        let body = if let Ok(bytes) = body.cast::<PyBytes>() {
            bytes.as_bytes().to_vec()
        } else if let Ok(text) = body.cast::<PyString>() {
            text.to_cow()?.into_owned().into_bytes()
        } else {
            from_python(body)?.to_string().into_bytes()
        };
        engine(py, || self.inner.process_with(&prompt, &body, &options)).map(Into::into)
    }

    fn _invoke(
        &self,
        py: Python<'_>,
        prompt: &Bound<'_, PyAny>,
        inputs: Option<&Bound<'_, PyAny>>,
        options: &Bound<'_, PyDict>,
        is_async: bool,
    ) -> PyResult<Py<PyAny>> {
        let invoke = |caller: Caller| {
            let (runtime, options) = (self.inner.clone(), run_options(options)?);
            let (prompt, inputs) = Source::with_inputs(prompt, inputs, self.inner.options().kinds, &caller)?;
            Ok(Box::pin(async move { runtime.invoke_with_async(prompt.get(), &*inputs, &options).await }) as _)
        };
        work::go(py, is_async, invoke, run_to_python)
    }

    fn _turn(
        &self,
        py: Python<'_>,
        prompt: &Bound<'_, PyAny>,
        inputs: Option<&Bound<'_, PyAny>>,
        options: &Bound<'_, PyDict>,
        hooks: &Bound<'_, PyDict>,
        is_async: bool,
    ) -> PyResult<Py<PyAny>> {
        let turn = |caller: Caller| {
            let (runtime, settings) = (self.inner.clone(), settings(options, hooks, &self.tools, &caller)?);
            let (prompt, inputs) = Source::with_inputs(prompt, inputs, self.inner.options().kinds, &caller)?;
            let messages = prepared_messages(hooks)?;
            Ok(Box::pin(async move {
                match messages {
                    Some(messages) => runtime.turn_messages_async(prompt.get(), &*inputs, messages, &settings).await,
                    None => runtime.turn_async(prompt.get(), &*inputs, &settings).await,
                }
            }) as _)
        };
        work::go(py, is_async, turn, turn_to_python)
    }

    fn _resume(
        &self,
        py: Python<'_>,
        prompt: &Bound<'_, PyAny>,
        options: &Bound<'_, PyDict>,
        hooks: &Bound<'_, PyDict>,
        is_async: bool,
    ) -> PyResult<Py<PyAny>> {
        let resume = |caller: Caller| {
            let (runtime, settings) = (self.inner.clone(), settings(options, hooks, &self.tools, &caller)?);
            // The inputs are in the journal and were validated before they were saved.
            let (prompt, messages) = (Source::new(prompt)?, prepared_messages(hooks)?);
            Ok(Box::pin(async move {
                match messages {
                    Some(messages) => runtime.resume_messages_async(prompt.get(), messages, &settings).await,
                    None => runtime.resume_async(prompt.get(), &settings).await,
                }
            }) as _)
        };
        work::go(py, is_async, resume, turn_to_python)
    }
}

/// Returns the messages that a turn starts with, if the prompt is not rendered.
fn prepared_messages(hooks: &Bound<'_, PyDict>) -> PyResult<Option<Vec<tympan::Message>>> {
    let messages = hooks.get_item("messages")?.filter(|messages| !messages.is_none());
    messages.map(|messages| message::from_list(&messages)).transpose()
}

fn run_to_python(py: Python<'_>, run: tympan::Run) -> PyResult<Py<PyAny>> {
    Ok(Py::new(py, Run::from(run))?.into_any())
}

fn models_to_python(py: Python<'_>, models: Vec<tympan::wire::ModelInfo>) -> PyResult<Py<PyAny>> {
    let models: Vec<_> = models.into_iter().map(ModelInfo::from).collect();
    Ok(models.into_pyobject(py)?.into_any().unbind())
}

fn turn_to_python(py: Python<'_>, run: tympan::TurnRun) -> PyResult<Py<PyAny>> {
    Ok(Py::new(py, TurnRun::from(run))?.into_any())
}

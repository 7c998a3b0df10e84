//! Python functions that are registered with a runtime and called by the engine.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, StreamExt, unfold};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use tympan::host::data;
use tympan::template::functions::{FunctionArgs, FunctionError};
use tympan::tool::{OpenTool, Opening};
use tympan::trace::{Backend, BackendError, Trace};
use tympan::wire::response::Delta;
use tympan::{AccessToken, CredentialProvider, Provider, Reply, TokenRequest, ToolHandler};
use tympan::{Inputs, Kind, Rendered, Result};

use crate::errors::{called, exception, in_template, invalid, settled};
use crate::hooks::words;
use crate::message;
use crate::prompt::Prompt;
use crate::rendered;
use crate::stream;
use crate::threads::attach;
use crate::tool::Function;
use crate::values::{from_python, map_to_python, to_python};
use crate::work::{self, Caller, OwnLoop};

/// Python objects by name, so that they can be returned again.
#[derive(Default)]
pub(crate) struct Named(Mutex<HashMap<String, Py<PyAny>>>);

impl Named {
    pub(crate) fn insert(&self, name: &str, object: &Bound<'_, PyAny>) {
        // Dropping an object can run Python code, so drop it after releasing the lock.
        let gone = self.lock().insert(name.to_owned(), object.clone().unbind());
        drop(gone);
    }

    pub(crate) fn get(&self, py: Python<'_>, name: &str) -> Option<Py<PyAny>> {
        self.lock().get(name).map(|object| object.clone_ref(py))
    }

    pub(crate) fn all<'py>(&self, py: Python<'py>) -> Vec<(String, Bound<'py, PyAny>)> {
        self.lock().iter().map(|(name, object)| (name.clone(), object.bind(py).clone())).collect()
    }

    pub(crate) fn clear(&self) {
        let gone = std::mem::take(&mut *self.lock());
        drop(gone);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Py<PyAny>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A Python function.
pub(crate) struct Callback(Py<PyAny>);

impl Callback {
    pub(crate) fn new(function: &Bound<'_, PyAny>, what: &str) -> PyResult<Self> {
        match function.is_callable() {
            true => Ok(Self(function.clone().unbind())),
            false => Err(invalid(function.py(), format_args!("{what}: expected a function"))),
        }
    }

    /// Calls the function, which may block or be async.
    async fn call(&self, arguments: work::Arguments, caller: Caller) -> PyResult<Py<PyAny>> {
        let function = attach(|py| self.0.clone_ref(py)).ok_or_else(work::gone)?;
        work::call(function, arguments, caller).await
    }
}

impl tympan::Renderer for Callback {
    fn render(&self, template: &str, inputs: &Inputs) -> Result<String> {
        called(Kind::InvalidOperation, "the renderer", |py| {
            let text = self.0.bind(py).call1((template, map_to_python(py, inputs)?))?;
            let text = text.cast::<PyString>().map_err(|_| {
                invalid(
                    py,
                    "renderer: expected a string as the return \
                value",
                )
            })?;
            Ok(text.to_cow()?.into_owned())
        })
    }

    fn render_async<'a>(&'a self, template: &'a str, inputs: &'a Inputs) -> tympan::RenderFuture<'a> {
        Box::pin(async move {
            let (own, template, inputs) = (OwnLoop::new(), template.to_owned(), inputs.clone());
            let arguments: work::Arguments = Box::new(move |py| {
                let arguments = [template.into_pyobject(py)?.into_any(), map_to_python(py, &inputs)?.into_any()];
                Ok((PyTuple::new(py, arguments)?, None))
            });
            let returned = Callback::call(self, arguments, Caller::current().or_own(&own)).await;
            let text = returned.and_then(|text| {
                attach(|py| {
                    let text = text.bind(py).cast::<PyString>();
                    let text = text.map_err(|_| invalid(py, "renderer: expected a string as the return value"))?;
                    Ok(text.to_cow()?.into_owned())
                })
                .ok_or_else(work::gone)?
            });
            settled(Kind::InvalidOperation, "the renderer", text).await
        })
    }
}

impl Callback {
    /// Calls a function of a template with its arguments. An exception becomes the text of a template error, which has
    /// the position in the template.
    pub(crate) fn call_in_template<T>(
        &self,
        args: &FunctionArgs,
        convert: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    ) -> std::result::Result<T, FunctionError> {
        in_template(|py| {
            let positional = args.positional.iter().map(|value| to_python(py, value)).collect::<PyResult<Vec<_>>>()?;
            let named = map_to_python(py, &args.named)?;
            convert(&self.0.bind(py).call(PyTuple::new(py, positional)?, Some(&named))?)
        })
        .map_err(Into::into)
    }
}

impl tympan::Parser for Callback {
    fn parse(&self, prompt: &tympan::Prompt, rendered: &Rendered) -> Result<Vec<tympan::Message>> {
        called(Kind::InvalidOperation, "the parser", |py| {
            let rendered = rendered::to_python(py, rendered.clone())?;
            let messages = self.0.bind(py).call1((Prompt::validated_before(prompt), rendered))?;
            message::from_list(&messages)
        })
    }
}

/// A call to a custom provider.
#[pyclass(frozen, get_all, module = "tympan")]
pub(crate) struct ModelCall {
    /// The prompt, with its model, its tools and its outputs.
    prompt: Py<Prompt>,
    /// The conversation.
    messages: Py<PyAny>,
    /// The caller's overrides of the prompt: `provider`, `model`, `api_type`, `base_url` and `api_key`; and `functions`
    /// in addition to those that the prompt declares.
    options: Py<PyAny>,
    /// Whether the caller prefers a streamed answer. A complete answer is also accepted.
    stream: bool,
}

impl Provider for Callback {
    fn call<'a>(&'a self, call: tympan::ModelCall<'a>) -> BoxFuture<'a, Result<Reply>> {
        Box::pin(async move {
            let (own, prompt, stream) = (OwnLoop::new(), call.prompt.clone(), call.stream);
            let (options, messages) = (data::call_options(call.options), message::to_list(call.messages.to_vec())?);
            let arguments: work::Arguments = Box::new(move |py| {
                let call = ModelCall {
                    prompt: Py::new(py, Prompt::validated_before(&prompt))?,
                    messages: messages.into_pyobject(py)?.into_any().unbind(),
                    options: to_python(py, &options)?.unbind(),
                    stream,
                };
                Ok((PyTuple::new(py, [Py::new(py, call)?])?, None))
            });
            let returned = Callback::call(self, arguments, Caller::current().or_own(&own)).await;
            let reply =
                returned.and_then(|reply| attach(|py| read_reply(reply.bind(py), own)).ok_or_else(work::gone)?);
            settled(Kind::Provider, "it", reply).await?
        })
    }
}

/// Converts an answer: data, or an iterator over its deltas. Data is validated by the runtime, not by Python.
fn read_reply(reply: &Bound<'_, PyAny>, own: Arc<OwnLoop>) -> PyResult<Result<Reply>> {
    if reply.hasattr("__next__")? {
        return Ok(Ok(data::streamed(steps(reply.clone().unbind(), "next_step", own))));
    }
    if reply.hasattr("__aiter__")? {
        let iterator = reply.call_method0("__aiter__")?.unbind();
        return Ok(Ok(data::streamed(steps(iterator, "next_step_async", own))));
    }
    from_python(reply).map(|data| data::response(data).map(Reply::Whole))
}

/// Converts an iterator to a stream of deltas. Each delta is awaited when it is requested.
fn steps(iterator: Py<PyAny>, next: &'static str, own: Arc<OwnLoop>) -> BoxStream<'static, Result<Delta>> {
    let begin = Some((Arc::new(iterator), own));
    let steps = unfold(begin, move |state| async move {
        let (iterator, own) = state?;
        match step(iterator.clone(), next, &own).await {
            Ok(None) => None,
            Ok(Some(step)) => Some((Ok(step), Some((iterator, own)))),
            Err(error) => Some((Err(error), None)),
        }
    });
    steps.boxed()
}

async fn step(iterator: Arc<Py<PyAny>>, next: &'static str, own: &Arc<OwnLoop>) -> Result<Option<Delta>> {
    let function = attach(|py| py.import("tympan._aio")?.getattr(next).map(Bound::unbind));
    let taken = match function.ok_or_else(work::gone).flatten() {
        Ok(function) => {
            let arguments: work::Arguments = Box::new(move |py| Ok((PyTuple::new(py, [iterator.bind(py)])?, None)));
            work::call(function, arguments, Caller::current().or_own(own)).await
        }
        Err(error) => Err(error),
    };
    let taken = taken.and_then(|taken| attach(|py| read_step(taken.bind(py))).ok_or_else(work::gone)?);
    settled(Kind::Provider, "it", taken).await?.transpose()
}

/// Converts a step of the iterator: `None` at the end, or a tuple with a delta.
fn read_step(taken: &Bound<'_, PyAny>) -> PyResult<Option<Result<Delta>>> {
    if taken.is_none() {
        return Ok(None);
    }
    let step = taken.get_item(0)?;
    match step.cast::<stream::Delta>() {
        Ok(step) => Ok(Some(Ok(step.get().inner()))),
        Err(_) => from_python(&step).map(|step| Some(data::read_delta(step))),
    }
}

impl CredentialProvider for Callback {
    fn token<'a>(&'a self, request: &'a TokenRequest) -> BoxFuture<'a, Result<AccessToken>> {
        Box::pin(async move {
            let (own, request) = (OwnLoop::new(), request.to_json());
            let arguments: work::Arguments =
                Box::new(move |py| Ok((PyTuple::new(py, [to_python(py, &request)?])?, None)));
            let returned = Callback::call(self, arguments, Caller::current().or_own(&own)).await;
            let returned =
                returned.and_then(|token| attach(|py| from_python(token.bind(py))).ok_or_else(work::gone)?);
            data::access_token(settled(Kind::CredentialFailed, "the credential provider", returned).await?)
        })
    }
}

impl ToolHandler for Callback {
    fn open<'a>(&'a self, opening: Opening<'a>) -> BoxFuture<'a, Result<Vec<OpenTool>>> {
        Box::pin(async move {
            let (declared, inputs) = (data::tool(opening.prompt, opening.tool), opening.inputs.clone());
            let arguments: work::Arguments = Box::new(move |py| {
                let inputs = map_to_python(py, &inputs)?.into_any();
                Ok((PyTuple::new(py, [to_python(py, &declared)?, inputs])?, None))
            });
            let caller = Caller::current();
            let made = Callback::call(self, arguments, caller.clone()).await;
            let made = made.and_then(|made| attach(|py| read_tools(made.bind(py), &caller)).ok_or_else(work::gone)?);
            settled(Kind::ToolUnavailable, "the tool handler", made).await
        })
    }
}

fn read_tools(made: &Bound<'_, PyAny>, caller: &Caller) -> PyResult<Vec<OpenTool>> {
    let py = made.py();
    let mut tools = Vec::new();
    for tool in made.try_iter().map_err(|_| invalid(py, "tool handler: expected a list as the return value"))? {
        let tool = tool?;
        let run = Function::new(&tool, caller.clone())?;
        let Some(function) = run.described(&tool)? else {
            return Err(invalid(py, "tool handler: expected a list of tools; create them from functions with `tool`"));
        };
        let function = data::function(function).map_err(|error| exception(py, &error))?;
        tools.push(run.open(function));
    }
    Ok(tools)
}

impl Backend for Callback {
    fn trace(&mut self, trace: &Trace) -> std::result::Result<(), BackendError> {
        let outcome = attach(|py| {
            let outcome = to_python(py, &trace.to_json()).and_then(|trace| self.0.call1(py, (trace,)));
            outcome.map(drop).map_err(|error| words(py, &error))
        });
        outcome.unwrap_or_else(|| Err("the interpreter is shutting down".to_owned())).map_err(Into::into)
    }
}

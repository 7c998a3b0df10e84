//! Python functions as tools.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyMapping, PyString, PyTuple, PyType};
use serde_json::{Value as Json, json};
use tympan::JsonMap;
use tympan::host::data;
use tympan::spec::flow::ToolFlow;
use tympan::tool::{OpenTool, ToolError};
use tympan::turn::ToolRun;
use tympan::{Invocation, Tool, ToolOutput};

use crate::errors::{engine, exception, invalid};
use crate::hooks::{is_ordinary, words};
use crate::message;
use crate::prompt::Prompt;
use crate::threads::attach;
use crate::values::{self, map_to_python};
use crate::work::{self, Caller};

/// A function, with what the decorator `tool` declares about it.
pub(crate) struct Function {
    function: Py<PyAny>,
    /// Whether the function is decorated and receives its arguments unchanged.
    is_decorated: bool,
    parameters: Option<Json>,
    timeout: Option<Duration>,
    is_idempotent: bool,
    needs_approval: bool,
    flow: ToolFlow,
    /// The server that provides the tool, and what it says about it.
    server: Option<String>,
    server_flow: ToolFlow,
    caller: Caller,
}

impl Function {
    pub(crate) fn new(function: &Bound<'_, PyAny>, caller: Caller) -> PyResult<Self> {
        let py = function.py();
        if !function.is_callable() {
            return Err(invalid(py, "tool: expected a function"));
        }
        let mut made = Self {
            function: function.clone().unbind(),
            is_decorated: function.is_instance(decorated(py)?)?,
            parameters: None,
            timeout: None,
            is_idempotent: false,
            needs_approval: false,
            flow: ToolFlow::default(),
            server: None,
            server_flow: ToolFlow::default(),
            caller,
        };
        if made.is_decorated {
            made.function = function.getattr("call")?.unbind();
            made.parameters = Some(values::from_python(&function.getattr("parameters")?)?);
            made.is_idempotent = function.getattr("idempotent")?.extract()?;
            made.needs_approval = function.getattr("needs_approval")?.extract()?;
            made.flow = flow(&function.getattr("flow")?)?;
            made.server = function.getattr("server")?.extract()?;
            made.server_flow = flow(&function.getattr("server_flow")?)?;
            let seconds: Option<f64> = function.getattr("timeout")?.extract()?;
            let timeout = seconds.map(Duration::try_from_secs_f64).transpose();
            made.timeout = timeout.map_err(|_| invalid(py, "tool timeout: expected a number of seconds"))?;
        }
        Ok(made)
    }

    /// Returns the description of a decorated function for a model, as data.
    pub(crate) fn described(&self, tool: &Bound<'_, PyAny>) -> PyResult<Option<Json>> {
        let Some(parameters) = &self.parameters else { return Ok(None) };
        let name: String = tool.getattr("name")?.extract()?;
        let description: Option<String> = tool.getattr("description")?.extract()?;
        Ok(Some(json!({ "name": name, "description": description, "parameters": parameters })))
    }

    /// Converts a tool that a handler created. `described` is its description for a model.
    pub(crate) fn open(mut self, described: tympan::wire::Function) -> OpenTool {
        let (server, flow) = (self.server.take(), std::mem::take(&mut self.server_flow));
        OpenTool { flow, server, ..OpenTool::new(described, Arc::new(self)) }
    }

    fn arguments(&self, arguments: Arc<JsonMap>) -> work::Arguments {
        let is_decorated = self.is_decorated;
        Box::new(move |py| {
            let named = map_to_python(py, &arguments)?;
            match is_decorated {
                true => Ok((PyTuple::new(py, [named])?, None)),
                false => Ok((PyTuple::empty(py), Some(named))),
            }
        })
    }
}

impl Tool for Function {
    fn call(&self, invocation: Invocation) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let caller = self.caller.clone();
        let arguments = self.arguments(invocation.run.arguments.clone());
        let function = attach(|py| self.function.clone_ref(py));
        Box::pin(async move {
            let returned = work::call(function.ok_or(GONE)?, arguments, caller.clone()).await;
            let outcome = attach(|py| match returned.and_then(|value| output(value.bind(py))) {
                Ok(output) => Some(Ok(output)),
                Err(error) if is_ordinary(py, &error) => Some(Err(words(py, &error).into())),
                // Without a caller to raise the exception in, report it to the model.
                Err(error) => caller.raise(error).map(|error| Err(words(py, &error).into())),
            });
            match outcome.ok_or(GONE)? {
                Some(outcome) => outcome,
                // The turn is about to be cancelled and must not continue until then.
                None => std::future::pending().await,
            }
        })
    }

    fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    fn parameters(&self) -> Option<&Json> {
        self.parameters.as_ref()
    }

    fn needs_approval(&self, _run: &ToolRun) -> bool {
        self.needs_approval
    }

    fn is_idempotent(&self) -> bool {
        self.is_idempotent
    }

    fn flow(&self) -> ToolFlow {
        self.flow.clone()
    }
}

const GONE: &str = "the interpreter is shutting down";

/// Converts what is declared about a tool.
fn flow(declared: &Bound<'_, PyAny>) -> PyResult<ToolFlow> {
    data::tool_flow(values::from_python(declared)?).map_err(|error| exception(declared.py(), &error))
}

/// Converts the result of a tool: text unchanged, parts of a message as parts, and everything else as JSON. It may be
/// marked as confidential.
fn output(value: &Bound<'_, PyAny>) -> PyResult<ToolOutput> {
    static CONFIDENTIAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    if value.is_instance(CONFIDENTIAL.import(value.py(), "tympan._tool", "Confidential")?)? {
        return output(&value.getattr("value")?).map(ToolOutput::confidential);
    }
    match message::parts(value) {
        Some(parts) => Ok(parts.into()),
        None => values::from_python(value).map(Into::into),
    }
}

fn decorated(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static TOOL: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    TOOL.import(py, "tympan._tool", "Tool")
}

/// Converts tools: a mapping by name, or a list of named functions.
pub(crate) fn from_python(tools: &Bound<'_, PyAny>, caller: &Caller) -> PyResult<Vec<(String, Arc<dyn Tool>)>> {
    let tools = named(tools)?.into_iter();
    let tool = |(name, function): (String, Bound<'_, PyAny>)| -> PyResult<(String, Arc<dyn Tool>)> {
        Ok((name, Arc::new(Function::new(&function, caller.clone())?)))
    };
    tools.map(tool).collect()
}

fn named<'py>(tools: &Bound<'py, PyAny>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    if let Ok(tools) = tools.cast::<PyMapping>() {
        return tools.items()?.iter().map(|pair| pair.extract()).collect();
    }
    let mut named = Vec::new();
    for function in tools.try_iter()? {
        let function = function?;
        let name = function.getattr("__name__").ok().and_then(|name| name.cast_into::<PyString>().ok());
        let name = name.ok_or_else(|| invalid(tools.py(), "tools: expected functions with a name"))?;
        named.push((name.to_cow()?.into_owned(), function));
    }
    Ok(named)
}

/// Matches functions with the tools that a prompt declares. Each function needs a declaration of the same name, and
/// must accept the declared parameters.
#[pyfunction]
#[pyo3(signature = (prompt, tools))]
pub(crate) fn bind_tools<'py>(
    py: Python<'py>,
    prompt: &Bound<'py, Prompt>,
    tools: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    let functions: HashMap<_, _> = named(tools)?.into_iter().collect();
    let (prompt, tools) = (prompt.get().inner(), from_python(tools, &Caller::nobody())?);
    let bound = engine(py, || tympan::bind_tools(&prompt, tools).map(|bound| bound.into_keys().collect()));
    let names: Vec<String> = bound?;
    let dict = PyDict::new(py);
    for name in names {
        match functions.get(&name) {
            Some(function) => dict.set_item(&name, function)?,
            None => return Err(exception(py, &tympan::Error::new(tympan::Kind::Internal, "a tool is missing"))),
        }
    }
    Ok(dict)
}

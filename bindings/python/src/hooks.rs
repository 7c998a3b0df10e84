//! Settings of a turn: options that are data, and hooks that are functions.

use std::sync::Arc;

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString, PyTuple};
use tympan::host::{config, data};
use tympan::turn::{Approval, Verdict};
use tympan::{Compact, TurnSettings};
use tympan::{Error, Kind, Result};

use crate::errors::{engine, exception, invalid};
use crate::events::Event;
use crate::message::{self, Message};
use crate::prompt::Prompt;
use crate::registry::Named;
use crate::threads::attach;
use crate::tool::{self, Function};
use crate::values::{from_python, to_python};
use crate::work::{self, Caller};

/// Cancels a turn, from any thread.
#[pyclass(frozen, module = "tympan")]
#[derive(Default)]
pub(crate) struct CancelToken(tympan::CancelToken);

#[pymethods]
impl CancelToken {
    /// Creates a token that is not cancelled.
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Cancels everything that uses this token, immediately and permanently.
    fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether the token is cancelled.
    #[getter]
    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}

/// A queue of user messages for a running turn.
#[pyclass(frozen, module = "tympan")]
#[derive(Default)]
pub(crate) struct Steering(tympan::Steering);

#[pymethods]
impl Steering {
    /// Creates an empty queue.
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Adds a message, which the model receives in the next round.
    #[pyo3(signature = (message, /))]
    fn send(&self, message: String) {
        self.0.send(message);
    }

    /// Whether a message is pending.
    #[getter]
    fn has_pending(&self) -> bool {
        self.0.has_pending()
    }
}

/// Builds the settings of a turn. `hooks` contains functions and the objects above, which are not data.
pub(crate) fn settings(
    options: &Bound<'_, PyDict>,
    hooks: &Bound<'_, PyDict>,
    registered: &Named,
    caller: &Caller,
) -> PyResult<TurnSettings> {
    let py = options.py();
    let mut settings = config::turn_settings(from_python(options.as_any())?).map_err(|error| exception(py, &error))?;
    let hook = |name: &str| hooks.get_item(name).map(|hook| hook.filter(|hook| !hook.is_none()));
    // Registered tools run where the turn was started, like the turn's own tools, which take precedence.
    for (name, function) in registered.all(py) {
        settings.tools.insert(name, Arc::new(Function::new(&function, caller.clone())?));
    }
    if let Some(tools) = hook("tools")? {
        settings.tools.extend(tool::from_python(&tools, caller)?);
    }
    if let Some(compact) = hook("compact")? {
        settings.compact = compact_from(&compact, caller)?;
    }
    if let Some(cancel) = hook("cancel")? {
        let cancel = cancel.cast::<CancelToken>().map_err(|_| invalid(py, "cancel: expected a `CancelToken`"))?;
        settings.cancel = cancel.get().0.clone();
    }
    if let Some(steering) = hook("steering")? {
        let steering = steering.cast::<Steering>().map_err(|_| invalid(py, "steering: expected a `Steering`"))?;
        settings.steering = steering.get().0.clone();
    }
    if let Some(on_event) = hook("on_event")? {
        let (on_event, caller) = (Arc::new(on_event.unbind()), caller.clone());
        settings.on_event = Some(Arc::new(move |event| {
            let (on_event, event) = (on_event.clone(), event.clone());
            caller.post(move |py| on_event.call1(py, (Event::new(py, &event)?,)).map(drop));
        }));
    }
    if let Some(judge) = hook("judge_input")? {
        let judge = Judge::new(judge, caller);
        settings.judge_input = Some(Arc::new(move |messages| {
            judge
                .ask(|py, judge| judge.call1((engine(py, || message::to_list(messages.to_vec()))?.into_pyobject(py)?,)))
        }));
    }
    if let Some(judge) = hook("judge_output")? {
        let judge = Judge::new(judge, caller);
        settings.judge_output =
            Some(Arc::new(move |message| judge.ask(|_, judge| judge.call1((Message::from(message.clone()),)))));
    }
    if let Some(judge) = hook("judge_tool")? {
        let judge = Judge::new(judge, caller);
        settings.judge_tool =
            Some(Arc::new(move |run| judge.ask(|py, judge| judge.call1((to_python(py, &data::tool_run(run))?,)))));
    }
    if let Some(approve) = hook("approve")? {
        let (approve, caller) = (Arc::new(approve.unbind()), caller.clone());
        settings.approve =
            Some(Arc::new(move |approval| Box::pin(ask_person(approve.clone(), approval, caller.clone()))));
    }
    Ok(settings)
}

/// Converts the summarizer: `True` for the turn's model, a prompt, or a function that receives the messages that no
/// longer fit and returns a summary.
fn compact_from(compact: &Bound<'_, PyAny>, caller: &Caller) -> PyResult<Option<Compact>> {
    if let Ok(compact) = compact.cast::<PyBool>() {
        return Ok(compact.is_true().then_some(Compact::Model));
    }
    if let Ok(prompt) = compact.cast::<Prompt>() {
        return Ok(Some(Compact::Prompt(prompt.get().inner())));
    }
    if !compact.is_callable() {
        return Err(invalid(compact.py(), "compact: expected True, False, a function or a prompt"));
    }
    let (function, caller) = (Arc::new(compact.clone().unbind()), caller.clone());
    let summary = move |messages| Box::pin(summary(function.clone(), messages, caller.clone())) as _;
    Ok(Some(Compact::With(Arc::new(summary))))
}

/// Calls a summarizer function. If it fails, the turn makes the summary itself. An exception that should end the
/// program ends the turn.
async fn summary(function: Arc<Py<PyAny>>, messages: Vec<tympan::Message>, caller: Caller) -> Result<String> {
    let messages = message::to_list(messages)?;
    let function = attach(|py| function.clone_ref(py));
    let arguments: work::Arguments = Box::new(move |py| Ok((PyTuple::new(py, [messages.into_pyobject(py)?])?, None)));
    let said = match function {
        Some(function) => work::call(function, arguments, caller.clone()).await,
        None => Err(work::gone()),
    };
    let failed = |details: &str| Error::new(Kind::InvalidOperation, details);
    let said = attach(|py| match said.and_then(|said| said.extract::<String>(py)) {
        Ok(said) => Some(Ok(said)),
        Err(error) if is_ordinary(py, &error) => Some(Err(failed("the summarizer failed"))),
        Err(error) => caller.raise(error).map(|_| Err(failed("the summarizer failed"))),
    });
    match said.unwrap_or_else(|| Some(Err(failed("the interpreter is shutting down")))) {
        Some(said) => said,
        None => std::future::pending().await,
    }
}

/// A function that decides whether something is allowed.
struct Judge {
    function: Py<PyAny>,
    caller: Caller,
}

impl Judge {
    fn new(function: Bound<'_, PyAny>, caller: &Caller) -> Self {
        Self { function: function.unbind(), caller: caller.clone() }
    }

    /// Calls the function immediately. Other tasks of the driver continue in the meantime.
    fn ask(
        &self,
        call: impl for<'py> FnOnce(Python<'py>, &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
    ) -> Verdict {
        tokio::task::block_in_place(|| {
            attach(|py| {
                let verdict = call(py, self.function.bind(py)).and_then(|verdict| verdict_of(&verdict));
                verdict.unwrap_or_else(|error| failed(&self.caller, error))
            })
            .unwrap_or_else(|| Verdict::Deny("the interpreter is shutting down".to_owned()))
        })
    }
}

async fn ask_person(approve: Arc<Py<PyAny>>, approval: Approval, caller: Caller) -> Verdict {
    let Some(approve) = attach(|py| approve.clone_ref(py)) else {
        return Verdict::Deny("the interpreter is shutting down".to_owned());
    };
    let arguments: work::Arguments =
        Box::new(move |py| Ok((PyTuple::new(py, [to_python(py, &data::approval(&approval))?])?, None)));
    let verdict = work::call(approve, arguments, caller.clone()).await;
    let verdict = verdict.and_then(|verdict| {
        // A missing answer is not an approval.
        let read = attach(|py| match verdict.is_none(py) {
            true => Ok(Verdict::Deny("the approver did not approve it".to_owned())),
            false => verdict_of(verdict.bind(py)),
        });
        read.unwrap_or(Ok(Verdict::Deny("the interpreter is shutting down".to_owned())))
    });
    match verdict {
        Ok(verdict) => verdict,
        Err(error) => {
            caller.raise(error);
            // The turn is about to be cancelled and must not continue until then.
            std::future::pending().await
        }
    }
}

/// Raises the exception of a callback in the caller. Until then, nothing is allowed.
fn failed(caller: &Caller, error: PyErr) -> Verdict {
    caller.raise(error);
    Verdict::Deny("a callback failed".to_owned())
}

/// Converts a verdict: `True` and `None` allow, `False` and a text deny. The text is the reason.
fn verdict_of(value: &Bound<'_, PyAny>) -> PyResult<Verdict> {
    if value.is_none() {
        return Ok(Verdict::Allow);
    }
    if let Ok(reason) = value.cast::<PyString>() {
        return Ok(Verdict::Deny(reason.to_cow()?.into_owned()));
    }
    match value.extract::<bool>() {
        Ok(true) => Ok(Verdict::Allow),
        Ok(false) => Ok(Verdict::Deny("denied by the application".to_owned())),
        Err(_) => Err(invalid(value.py(), "verdict: expected True, False, None, or a string with the reason")),
    }
}

/// Formats an exception for a model.
pub(crate) fn words(py: Python<'_>, error: &PyErr) -> String {
    let name = error.get_type(py).name().map_or_else(|_| "Exception".to_owned(), |name| name.to_string());
    match error.value(py).str() {
        Ok(text) if !text.is_empty().unwrap_or(true) => format!("{name}: {text}"),
        _ => name,
    }
}

/// Returns whether an exception is an ordinary one, as opposed to one that should end the program.
pub(crate) fn is_ordinary(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyException>(py)
}

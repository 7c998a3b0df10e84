//! Events of a turn.

use pyo3::prelude::*;
use tympan::AgentEvent;
use tympan::host::data;

use crate::values::to_python;

/// An event of a turn.
#[pyclass(frozen, get_all, module = "tympan")]
pub(crate) struct Event {
    /// The kind of event: `token`, `thinking`, `status`, `tool_call_start`, `policy`, `tool_result`, `messages_updated`,
    /// `error`, `done`, `cancelled`, `compaction_start`, `compaction_complete` or `compaction_failed`.
    kind: String,
    /// The data of the event, as listed in the guide.
    data: Py<PyAny>,
}

impl Event {
    pub(crate) fn new(py: Python<'_>, event: &AgentEvent) -> PyResult<Self> {
        let mut data = data::event(event);
        let kind = data.as_object_mut().and_then(|data| data.shift_remove("type"));
        let kind = kind.and_then(|kind| kind.as_str().map(str::to_owned)).unwrap_or_default();
        Ok(Self { kind, data: to_python(py, &data)?.unbind() })
    }
}

#[pymethods]
impl Event {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Event(kind='{}', data={})", self.kind, self.data.bind(py).repr()?))
    }
}

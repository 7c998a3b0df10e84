//! Rendered text: the native part of the class `Rendered`, which is a `str` and therefore written in Python.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyMapping, PyMappingMethods, PyType};
use tympan::ParseTextOptions;

use crate::errors::{engine, invalid};
use crate::message::{self, Message};

/// The origins and hashes of a rendered text.
#[pyclass(frozen, module = "tympan._native")]
pub(crate) struct RenderedCore {
    inner: Arc<tympan::Rendered>,
}

/// A part of a rendered text that was written by one interpolation or by the author.
#[pyclass(frozen, eq, get_all, module = "tympan")]
#[derive(PartialEq)]
pub(crate) struct Segment {
    /// The text.
    text: String,
    /// The names of the inputs that wrote it. Empty if the author did.
    origins: Vec<String>,
    /// Whether it is trusted like the author's text.
    trusted: bool,
}

#[pymethods]
impl Segment {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let text = self.text.as_str().into_pyobject(py)?;
        let origins = self.origins.as_slice().into_pyobject(py)?;
        let trusted = if self.trusted { "True" } else { "False" };
        Ok(format!("Segment(text={}, origins={}, trusted={trusted})", text.repr()?, origins.repr()?))
    }
}

#[pymethods]
impl RenderedCore {
    /// The segments of the text, each with its origins.
    #[getter]
    fn segments(&self) -> Vec<Segment> {
        let inputs = self.inner.inputs();
        let segment = |segment: tympan::chat::rendered::Segment<'_>| Segment {
            text: segment.text.to_owned(),
            origins: inputs.names(segment.origin).map(str::to_owned).collect(),
            trusted: self.inner.is_trusted(&segment),
        };
        self.inner.segments().map(segment).collect()
    }

    /// The name of the prompt.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.inner.name()
    }

    /// The variant that was rendered.
    #[getter]
    fn variant(&self) -> &str {
        self.inner.variant()
    }

    /// Whether the default variant was rendered.
    #[getter]
    fn is_default(&self) -> bool {
        self.inner.is_default()
    }

    /// The SHA-256 hash of the template's source.
    #[getter]
    fn template_hash(&self) -> &str {
        self.inner.template_hash()
    }

    /// The SHA-256 hash of the text.
    #[getter]
    fn render_hash(&self) -> String {
        self.inner.render_hash()
    }

    /// The guard's advisory for the model, if the guard was on and the prompt has an untrusted input.
    #[getter]
    fn advisory(&self) -> Option<&str> {
        self.inner.guard().map(|guard| guard.advisory)
    }
}

/// Converts a rendered text to Python.
pub(crate) fn to_python<'py>(py: Python<'py>, rendered: tympan::Rendered) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.import(py, "tympan._rendered", "Rendered")?;
    let inner = Arc::new(rendered);
    let core = RenderedCore { inner: inner.clone() };
    class.call1((inner.text(), core))
}

/// Converts a rendered text from Python.
pub(crate) fn from_python(rendered: &Bound<'_, PyAny>) -> PyResult<Arc<tympan::Rendered>> {
    let core = rendered.getattr("_core").ok();
    match core.as_ref().and_then(|core| core.cast::<RenderedCore>().ok()) {
        Some(core) => Ok(core.get().inner.clone()),
        None => Err(invalid(rendered.py(), "expected the result of `render`; the origin of other text is not known")),
    }
}

/// Splits a text that was rendered elsewhere into messages. All of the text counts as the author's, so this is only
/// safe with a `nonce` that `pre_render` wrote into the markers, or with text that contains no input. `threads` maps
/// the placeholder of a thread in the text, or the name of its input, to messages. With names, the 16 digits in the
/// placeholder must match the `nonce`, if there is one.
#[pyfunction]
#[pyo3(signature = (text, *, nonce = None, threads = None))]
pub(crate) fn parse_text(
    py: Python<'_>,
    text: &str,
    nonce: Option<String>,
    threads: Option<&Bound<'_, PyMapping>>,
) -> PyResult<Vec<Message>> {
    let mut options = ParseTextOptions { nonce, threads: Vec::new() };
    for pair in threads.map(PyMappingMethods::items).transpose()?.into_iter().flatten() {
        let (name, messages): (String, Bound<'_, PyAny>) = pair.extract()?;
        options.threads.push((name, message::from_list(&messages)?));
    }
    engine(py, || tympan::parse_text(text, &options).and_then(message::to_list))
}

/// Writes a nonce into every role marker of a template, for callers who render it elsewhere.
#[pyfunction]
#[pyo3(signature = (template, nonce))]
pub(crate) fn pre_render(template: &str, nonce: &str) -> String {
    tympan::pre_render(template, nonce)
}

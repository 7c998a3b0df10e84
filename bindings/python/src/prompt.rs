//! Prompts, and what is found in them.

use std::collections::BTreeMap;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde_json::Value as Json;
use tympan::definition::Overlay;
use tympan::diagnostic::Diagnostic;
use tympan::source::SourceFile;
use tympan::{Guard, RenderOptions};
use tympan_runtime::default_runtime;

use crate::errors::{engine, exception, invalid};
use crate::message::{Message, to_list};
use crate::rendered;
use crate::values::{self, map_to_python, to_python};

/// A prompt: its declarations and its template. It can be used from any thread, and is best loaded once.
#[pyclass(frozen, module = "tympan")]
pub(crate) struct Prompt(Arc<tympan::Prompt>);

impl From<tympan::Prompt> for Prompt {
    fn from(prompt: tympan::Prompt) -> Self {
        Self(Arc::new(prompt))
    }
}

impl Prompt {
    pub(crate) fn inner(&self) -> Arc<tympan::Prompt> {
        self.0.clone()
    }

    fn findings(&self, findings: &[Diagnostic]) -> Vec<Finding> {
        findings.iter().map(|finding| Finding::new(finding, Some(self.0.source()))).collect()
    }
}

/// How a text is rendered, where the caller has a say.
pub(crate) struct Manner {
    variant: Option<String>,
    guard: Option<Guard>,
    strict: Option<bool>,
    lenient: Option<bool>,
}

impl Manner {
    /// The guard is `True`, `False`, or the text of an advisory.
    pub(crate) fn new(
        variant: Option<String>,
        guard: Option<&Bound<'_, PyAny>>,
        strict: Option<bool>,
        lenient: Option<bool>,
    ) -> PyResult<Self> {
        let guard = match guard {
            None => None,
            Some(guard) => match guard.cast::<PyString>() {
                Ok(advisory) => {
                    let advisory = advisory.to_cow()?.into_owned();
                    Some(Guard::with_advisory(advisory).map_err(|error| exception(guard.py(), &error))?)
                }
                Err(_) => guard.extract::<bool>()?.then(Guard::default),
            },
        };
        Ok(Self { variant, guard, strict, lenient })
    }

    pub(crate) fn over<'a>(&'a self, options: RenderOptions<'a>) -> RenderOptions<'a> {
        RenderOptions {
            variant: self.variant.as_deref(),
            guard: self.guard.as_ref().or(options.guard),
            strict: self.strict.or(options.strict),
            lenient: self.lenient.or(options.lenient),
            ..options
        }
    }
}

#[pymethods]
impl Prompt {
    /// A prompt from a definition in YAML.
    #[staticmethod]
    #[pyo3(signature = (text, /))]
    fn from_yaml(py: Python<'_>, text: &str) -> PyResult<Self> {
        engine(py, || tympan::Prompt::from_yaml(text)).map(Into::into)
    }

    /// A prompt from a definition in JSON.
    #[staticmethod]
    #[pyo3(signature = (text, /))]
    fn from_json(py: Python<'_>, text: &str) -> PyResult<Self> {
        engine(py, || tympan::Prompt::from_json(text)).map(Into::into)
    }

    /// A prompt from a definition in TOML.
    #[staticmethod]
    #[pyo3(signature = (text, /))]
    fn from_toml(py: Python<'_>, text: &str) -> PyResult<Self> {
        engine(py, || tympan::Prompt::from_toml(text)).map(Into::into)
    }

    /// The prompt's name.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.0.name()
    }

    /// What the prompt is for.
    #[getter]
    fn description(&self) -> Option<&str> {
        self.0.spec().description.as_deref()
    }

    /// Who says the text, where the prompt says so for all of it.
    #[getter]
    fn role(&self) -> Option<&'static str> {
        self.0.role().map(tympan::Role::as_str)
    }

    /// The default template.
    #[getter]
    fn body(&self) -> &str {
        self.0.body()
    }

    /// The declared inputs, in order.
    #[getter]
    fn inputs(&self) -> Vec<Property> {
        self.0.variables().iter().cloned().map(Property).collect()
    }

    /// The declared outputs, in order.
    #[getter]
    fn outputs(&self) -> Vec<Property> {
        self.0.spec().outputs.iter().cloned().map(Property).collect()
    }

    /// What the author keeps with the prompt.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        map_to_python(py, self.0.metadata())
    }

    /// The names of the templates: `default`, then the variants.
    #[getter]
    fn variants(&self) -> Vec<&str> {
        self.0.arms().collect()
    }

    /// The names of the inputs that callers have to validate before they render.
    #[getter]
    fn validation_required(&self) -> Vec<&str> {
        self.0.validation_required().collect()
    }

    /// A name of the caller's for what the model should answer with.
    #[getter]
    fn output_model(&self) -> Option<&str> {
        self.0.output_model()
    }

    /// The SHA-256 of the default template's source.
    #[getter]
    fn template_hash(&self) -> &str {
        self.0.template_hash()
    }

    /// The SHA-256 of everything that decides what a model sees.
    #[getter]
    fn definition_hash(&self) -> &str {
        self.0.definition_hash()
    }

    /// What was worth knowing when the prompt was read.
    #[getter]
    fn warnings(&self) -> Vec<Finding> {
        self.findings(self.0.warnings())
    }

    /// The SHA-256 of the source of a variant's template.
    #[pyo3(signature = (variant = None))]
    fn variant_hash(&self, py: Python<'_>, variant: Option<&str>) -> PyResult<&str> {
        self.0.variant_hash(variant).map_err(|error| exception(py, &error))
    }

    /// The template of a variant.
    #[pyo3(signature = (variant = None))]
    fn get_source(&self, py: Python<'_>, variant: Option<&str>) -> PyResult<&str> {
        self.0.get_source(variant).map_err(|error| exception(py, &error))
    }

    /// Renders the prompt.
    #[pyo3(signature = (inputs = None, *, variant = None, guard = None, strict = None, lenient = None))]
    fn render<'py>(
        &self,
        py: Python<'py>,
        inputs: Option<&Bound<'py, PyAny>>,
        variant: Option<String>,
        guard: Option<&Bound<'py, PyAny>>,
        strict: Option<bool>,
        lenient: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (inputs, manner) = (values::inputs(inputs)?, Manner::new(variant, guard, strict, lenient)?);
        let rendered = engine(py, || self.0.render_with(&inputs, &manner.over(default_runtime().render_options())))?;
        rendered::to_python(py, rendered)
    }

    /// Makes messages of a rendered text.
    #[pyo3(signature = (rendered, /))]
    fn messages(&self, py: Python<'_>, rendered: &Bound<'_, PyAny>) -> PyResult<Vec<Message>> {
        let rendered = rendered::from_python(rendered)?;
        engine(py, || self.0.messages(Arc::unwrap_or_clone(rendered))).map(to_list)
    }

    /// Looks for what is worth knowing: variables that nothing uses, untrusted text in a system message, …
    fn check(&self, py: Python<'_>) -> PyResult<Vec<Finding>> {
        engine(py, || self.0.check()).map(|findings| self.findings(&findings))
    }

    /// A prompt that differs from this one by some fields of its definition. With `merge`, maps keep the entries that
    /// are not named, and `None` removes an entry.
    #[pyo3(signature = (fields, /, *, merge = true))]
    fn derive(&self, py: Python<'_>, fields: &Bound<'_, PyAny>, merge: bool) -> PyResult<Self> {
        let fields = values::inputs(Some(fields))?;
        let overlay = if merge { Overlay::merge(fields) } else { Overlay::replace(fields) };
        engine(py, || self.0.derive(&overlay)).map(Into::into)
    }

    /// What telemetry wants to know of a render.
    #[pyo3(signature = (rendered, /))]
    fn provenance_attributes(&self, rendered: &Bound<'_, PyAny>) -> PyResult<BTreeMap<&'static str, String>> {
        Ok(self.0.provenance_attributes(&*rendered::from_python(rendered)?))
    }

    /// The prompt as data, under the names of the Prompty specification. Credentials read `[REDACTED]`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0.spec().to_json_redacted())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name = self.name().into_pyobject(py)?;
        Ok(format!("Prompt(name={})", name.repr()?))
    }
}

/// The declaration of an input or an output.
#[pyclass(frozen, module = "tympan")]
pub(crate) struct Property(tympan::schema::Property);

#[pymethods]
impl Property {
    /// Its name; empty for what is in a list.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// Its kind: `string`, `integer`, `float`, `boolean`, `array`, `object`, `thread`, `image`, `file` or `audio`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind.as_str()
    }

    /// All of its kinds, where it has several.
    #[getter]
    fn kinds(&self) -> Vec<&'static str> {
        self.0.kinds.iter().map(|kind| kind.as_str()).collect()
    }

    /// What it is.
    #[getter]
    fn description(&self) -> Option<&str> {
        self.0.description.as_deref()
    }

    /// Whether it has to be given; `None` if nobody says.
    #[getter]
    fn required(&self) -> Option<bool> {
        self.0.required
    }

    /// What it is if it is not given.
    #[getter]
    fn default<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, self.0.default.as_ref().unwrap_or(&Json::Null))
    }

    /// An example of it.
    #[getter]
    fn example<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, self.0.example.as_ref().unwrap_or(&Json::Null))
    }

    /// The values that it can have, if they are listed.
    #[getter]
    fn enum_values<'py>(&self, py: Python<'py>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let values = self.0.enum_values.as_ref();
        values.map(|values| values.iter().map(|value| to_python(py, value)).collect()).transpose()
    }

    /// What the items of a list are.
    #[getter]
    fn items(&self) -> Option<Self> {
        self.0.items.as_deref().cloned().map(Self)
    }

    /// What is in a map.
    #[getter]
    fn properties(&self) -> Vec<Self> {
        self.0.properties.iter().cloned().map(Self).collect()
    }

    /// Whether its text counts as the author's own.
    #[getter]
    fn trusted(&self) -> bool {
        self.0.trusted
    }

    /// Whether text in it that looks like a role marker is an error.
    #[getter]
    fn strict(&self) -> bool {
        self.0.strict
    }

    /// Whether callers have to validate it before they render.
    #[getter]
    fn validation_required(&self) -> bool {
        self.0.validation_required
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name = self.name().into_pyobject(py)?;
        Ok(format!("Property(name={}, kind='{}')", name.repr()?, self.kind()))
    }
}

/// Something that is worth knowing about a prompt, or wrong with it.
#[pyclass(frozen, eq, get_all, module = "tympan")]
#[derive(PartialEq)]
pub(crate) struct Finding {
    /// A short stable name.
    code: &'static str,
    /// `warning` or `error`.
    severity: &'static str,
    /// What was expected and what was found.
    message: String,
    /// What to do about it.
    help: Option<String>,
    /// The line, from 1.
    line: Option<usize>,
    /// The column, from 1.
    column: Option<usize>,
}

impl Finding {
    pub(crate) fn new(finding: &Diagnostic, source: Option<&SourceFile>) -> Self {
        let place = finding.span.zip(source).map(|(span, source)| source.line_column(span.start));
        Self {
            code: finding.code,
            severity: finding.severity.as_str(),
            message: finding.message.clone(),
            help: finding.help.clone(),
            line: place.map(|place| place.line),
            column: place.map(|place| place.column),
        }
    }
}

#[pymethods]
impl Finding {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let message = self.message.as_str().into_pyobject(py)?;
        Ok(format!("Finding(code='{}', message={})", self.code, message.repr()?))
    }
}

/// A prompt, or the path of a prompt file.
pub(crate) enum Source {
    Prompt(Arc<tympan::Prompt>),
    File(std::path::PathBuf),
}

impl Source {
    pub(crate) fn new(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(prompt) = value.cast::<Prompt>() {
            return Ok(Self::Prompt(prompt.get().inner()));
        }
        value
            .extract()
            .map(Self::File)
            .map_err(|_| invalid(value.py(), "expected a prompt, or the path of a prompt file"))
    }

    pub(crate) fn get(&self) -> tympan_runtime::PromptSource<'_> {
        match self {
            Self::Prompt(prompt) => (&**prompt).into(),
            Self::File(path) => path.as_path().into(),
        }
    }
}

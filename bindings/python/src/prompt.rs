//! Prompts, their properties and their findings.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::future::ready;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use serde_json::{Value as Json, json};
use tympan::diagnostic::Diagnostic;
use tympan::format::definition::Syntax;
use tympan::host::config;
use tympan::host::config::RenderSettings;
use tympan::prompt::definition::Overlay;
use tympan::spec::flow::Speaker;
use tympan::template::input::InputMap;
use tympan::text::source::SourceFile;
use tympan::{Inputs, KindCheck, PromptCheck, PromptSource};

use crate::errors::{engine, exception, invalid};
use crate::inputs::{PromptInputs, Room};
use crate::message::{Message, to_list};
use crate::rendered;
use crate::runtime::default_runtime;
use crate::validator::{Validator, covered_by_nothing};
use crate::values::{self, map_to_python, to_python};
use crate::work::Caller;

/// A prompt: its declarations and its template. It can be used from any thread; load it once and reuse it.
#[pyclass(frozen, module = "tympan")]
pub(crate) struct Prompt {
    inner: Arc<tympan::Prompt>,
    validator: Validator,
}

impl Prompt {
    /// Creates a prompt. Fails unless the validator covers all inputs that require validation.
    pub(crate) fn new(py: Python<'_>, inner: tympan::Prompt, validator: Validator) -> PyResult<Self> {
        Self::shared(py, Arc::new(inner), validator)
    }

    /// Creates a prompt like [`Prompt::new`], from one that others use as well.
    pub(crate) fn shared(py: Python<'_>, inner: Arc<tympan::Prompt>, validator: Validator) -> PyResult<Self> {
        validator.check(py, &inner)?;
        Ok(Self { inner, validator })
    }

    /// Creates a prompt for a callback. Its inputs were validated earlier.
    pub(crate) fn validated_before(inner: &tympan::Prompt) -> Self {
        Self { inner: Arc::new(inner.clone()), validator: Validator::Elsewhere }
    }

    pub(crate) fn inner(&self) -> Arc<tympan::Prompt> {
        self.inner.clone()
    }

    /// Validates inputs and returns what the validator produces.
    pub(crate) fn validated(&self, py: Python<'_>, inputs: Option<&Bound<'_, PyAny>>) -> PyResult<Inputs> {
        self.validator.inputs(py, inputs)
    }

    /// Validates inputs like [`Prompt::validated`], without copying plain data.
    pub(crate) fn taken<'a>(
        &self,
        py: Python<'_>,
        inputs: Option<&Bound<'_, PyAny>>,
        room: &'a Room,
    ) -> PyResult<PromptInputs<'a>> {
        let plain = if self.validator.is_class() { None } else { inputs.and_then(|inputs| room.take(inputs)) };
        plain.map_or_else(
            || self.validated(py, inputs).map(PromptInputs::Copied),
            |plain| Ok(PromptInputs::Plain(plain)),
        )
    }

    /// Emits an `InputWarning` for each unknown input and, if the options say so, for each value that does not match its
    /// declaration.
    pub(crate) fn warn_about(&self, py: Python<'_>, inputs: InputMap<'_>, kinds: KindCheck) -> PyResult<()> {
        warn(py, &input_warnings(&self.inner, inputs, kinds))
    }

    pub(crate) fn validator_of(&self) -> &Validator {
        &self.validator
    }

    fn findings(&self, findings: &[Diagnostic]) -> Vec<Finding> {
        findings.iter().map(|finding| Finding::new(finding, Some(self.inner.source()))).collect()
    }
}

/// Returns the warnings about unknown inputs and, if the options say so, about values that do not match their
/// declaration.
fn input_warnings(prompt: &tympan::Prompt, inputs: InputMap<'_>, kinds: KindCheck) -> Vec<Diagnostic> {
    let mut findings = prompt.unknown_inputs(inputs);
    if kinds == KindCheck::Warn {
        findings.extend(prompt.kind_warnings(inputs));
    }
    findings
}

/// Emits warnings. If the caller's filters turn one into an exception, returns it.
fn warn(py: Python<'_>, findings: &[Diagnostic]) -> PyResult<()> {
    static CATEGORY: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    for finding in findings {
        let hint = finding.help.as_ref().map_or_else(String::new, |help| format!("; {help}"));
        let message = format!("{}{hint}", finding.message).replace('\0', "\u{fffd}");
        let category = CATEGORY.import(py, "tympan._errors", "InputWarning")?;
        PyErr::warn(py, category, &CString::new(message).unwrap_or_default(), 1)?;
    }
    Ok(())
}

/// Builds render settings from the options that the caller passed.
#[expect(clippy::too_many_arguments, reason = "they are the options of `render`")]
pub(crate) fn render_settings<'py>(
    py: Python<'py>,
    variant: Option<&str>,
    guard: Option<&Bound<'py, PyAny>>,
    policy: Option<&Bound<'py, PyAny>>,
    strict: Option<bool>,
    lenient: Option<bool>,
    kinds: Option<&str>,
    strict_inputs: Option<bool>,
    seed: Option<u64>,
) -> PyResult<RenderSettings> {
    // The common case: no options.
    let is_default = variant.is_none() && guard.is_none() && policy.is_none() && strict.is_none() && lenient.is_none();
    if is_default && kinds.is_none() && strict_inputs.is_none() && seed.is_none() {
        return Ok(RenderSettings::default());
    }
    let guard = guard.map(values::from_python).transpose()?;
    let policy = policy.map(values::from_python).transpose()?;
    let options = json!({
        "variant": variant, "guard": guard, "policy": policy, "strict": strict, "lenient": lenient, "kinds": kinds,
        "strict_inputs": strict_inputs, "seed": seed,
    });
    config::render_settings(options).map_err(|error| exception(py, &error))
}

#[pymethods]
impl Prompt {
    /// Creates a prompt from a definition in YAML.
    #[staticmethod]
    #[pyo3(signature = (text, /, *, validator = None))]
    fn from_yaml(py: Python<'_>, text: &str, validator: Option<Bound<'_, PyAny>>) -> PyResult<Self> {
        Self::new(py, engine(py, || tympan::Prompt::from_yaml(text))?, Validator::new(validator))
    }

    /// Creates a prompt from a definition in JSON.
    #[staticmethod]
    #[pyo3(signature = (text, /, *, validator = None))]
    fn from_json(py: Python<'_>, text: &str, validator: Option<Bound<'_, PyAny>>) -> PyResult<Self> {
        Self::new(py, engine(py, || tympan::Prompt::from_json(text))?, Validator::new(validator))
    }

    /// Creates a prompt from a definition in TOML.
    #[staticmethod]
    #[pyo3(signature = (text, /, *, validator = None))]
    fn from_toml(py: Python<'_>, text: &str, validator: Option<Bound<'_, PyAny>>) -> PyResult<Self> {
        Self::new(py, engine(py, || tympan::Prompt::from_toml(text))?, Validator::new(validator))
    }

    /// Creates a prompt from a definition as data: a dict, or a `PromptDefinition` from the module `tympan.definition`.
    #[staticmethod]
    #[pyo3(signature = (definition, /, *, validator = None))]
    fn from_definition(
        py: Python<'_>,
        definition: &Bound<'_, PyAny>,
        validator: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let definition = values::definition(definition)?;
        let made = engine(py, || {
            let source = SourceFile::new("<definition>", format!("{definition:#}"));
            tympan::Prompt::from_definition_source(source, Syntax::Json)
        })?;
        Self::new(py, made, Validator::new(validator))
    }

    /// The validator of the inputs: a class, `False` if inputs are validated elsewhere, or `None`.
    #[getter]
    fn validator<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.validator.to_python(py)
    }

    /// The name of the prompt.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.inner.name()
    }

    /// The description of the prompt.
    #[getter]
    fn description(&self) -> Option<&str> {
        self.inner.spec().description.as_deref()
    }

    /// The role of the prompt's text, if the definition declares one.
    #[getter]
    fn role(&self) -> Option<&'static str> {
        self.inner.role().map(tympan::Role::as_str)
    }

    /// The default template.
    #[getter]
    fn body(&self) -> &str {
        self.inner.body()
    }

    /// The declared inputs, in order.
    #[getter]
    fn inputs(&self) -> Vec<Property> {
        self.inner.variables().iter().cloned().map(Property).collect()
    }

    /// The declared outputs, in order.
    #[getter]
    fn outputs(&self) -> Vec<Property> {
        self.inner.spec().outputs.iter().cloned().map(Property).collect()
    }

    /// The custom metadata of the prompt.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        map_to_python(py, self.inner.metadata())
    }

    /// The declared tools, as data. Credentials are replaced by `[REDACTED]`.
    #[getter]
    fn tools<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let data = self.inner.spec().to_json_redacted();
        to_python(py, data.get("tools").unwrap_or(&Json::Array(Vec::new())))
    }

    /// The metadata of the directive that the prompt was loaded from, or `None` if it is not a directive.
    #[getter]
    fn directive<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.inner.directive().map(|metadata| map_to_python(py, metadata)).transpose()
    }

    /// The names of the templates: `default`, followed by the variants.
    #[getter]
    fn variants(&self) -> Vec<&str> {
        self.inner.arms().collect()
    }

    /// The names of the inputs that callers must validate before rendering.
    #[getter]
    fn validation_required(&self) -> Vec<&str> {
        self.inner.validation_required().collect()
    }

    /// The caller's name for the type of the model's answer.
    #[getter]
    fn output_model(&self) -> Option<&str> {
        self.inner.output_model()
    }

    /// The SHA-256 hash of the default template's source.
    #[getter]
    fn template_hash(&self) -> &str {
        self.inner.template_hash()
    }

    /// The SHA-256 hash of everything that determines what a model sees.
    #[getter]
    fn definition_hash(&self) -> &str {
        self.inner.definition_hash()
    }

    /// The warnings from loading the prompt.
    #[getter]
    fn warnings(&self) -> Vec<Finding> {
        self.findings(self.inner.warnings())
    }

    /// The environment variables that were not set when the prompt was loaded with `defer_env`.
    #[getter]
    fn unresolved_env(&self) -> Vec<&str> {
        self.inner.unresolved_env().iter().map(|found| found.variable.as_str()).collect()
    }

    /// Returns the SHA-256 hash of a variant's template source.
    #[pyo3(signature = (variant = None))]
    fn variant_hash(&self, py: Python<'_>, variant: Option<&str>) -> PyResult<&str> {
        self.inner.variant_hash(variant).map_err(|error| exception(py, &error))
    }

    /// Returns the custom metadata of a variant. For the default variant, this is the metadata of the prompt.
    #[pyo3(signature = (variant, /))]
    fn variant_metadata<'py>(&self, py: Python<'py>, variant: &str) -> PyResult<Bound<'py, PyDict>> {
        let metadata = self.inner.variant_metadata(variant).map_err(|error| exception(py, &error))?;
        map_to_python(py, metadata)
    }

    /// Returns the template of a variant.
    #[pyo3(signature = (variant = None))]
    fn get_source(&self, py: Python<'_>, variant: Option<&str>) -> PyResult<&str> {
        self.inner.get_source(variant).map_err(|error| exception(py, &error))
    }

    /// Renders the prompt.
    #[pyo3(signature = (
        inputs = None, *, variant = None, guard = None, policy = None, strict = None, lenient = None,
        kinds = None, strict_inputs = None, seed = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
    pub(crate) fn render<'py>(
        &self,
        py: Python<'py>,
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
        let room = Room::default();
        let inputs = self.taken(py, inputs, &room)?;
        let runtime = default_runtime();
        self.warn_about(py, inputs.map(), settings.over(runtime.render_options()).kinds)?;
        let render = || runtime.render_borrowed(&self.inner, inputs.map(), &settings.over(runtime.render_options()));
        let rendered = engine(py, render)?;
        rendered::to_python(py, rendered)
    }

    /// Splits a rendered text into messages.
    #[pyo3(signature = (rendered, /))]
    fn messages(&self, py: Python<'_>, rendered: &Bound<'_, PyAny>) -> PyResult<Vec<Message>> {
        let rendered = rendered::from_python(rendered)?;
        engine(py, || self.inner.messages(Arc::unwrap_or_clone(rendered)).and_then(to_list))
    }

    /// Splits a rendered text into messages, as plain data. Every text part has `segments`: `start` and `end` in bytes of
    /// UTF-8, the names of the inputs that wrote them as `origins`, and whether they are `trusted`.
    #[pyo3(signature = (rendered, /))]
    fn messages_with_segments<'py>(
        &self,
        py: Python<'py>,
        rendered: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let rendered = rendered::from_python(rendered)?;
        let messages = engine(py, || {
            let mut messages = self.inner.messages_with_segments(&rendered)?;
            tympan::wire::inline_segmented_media(&mut messages)?;
            Ok(messages)
        })?;
        messages.iter().map(|message| to_python(py, &message.to_json(rendered.inputs()))).collect()
    }

    /// Renders the prompt for every row of a table. See `Runtime.map_arrow`.
    #[pyo3(signature = (table, /, **options))]
    fn map_arrow(
        &self,
        table: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<crate::arrow::ArrowStream> {
        crate::arrow::map(default_runtime(), self, table, options)
    }

    /// What a copy of this prompt in another process is created from.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        crate::pickle::reduce(py, self)
    }

    /// Checks the prompt and returns warnings, such as unused variables or untrusted text in a system message.
    fn check(&self, py: Python<'_>) -> PyResult<Vec<Finding>> {
        let findings = engine(py, || Ok(tympan::lint::check(&self.inner, &tympan::lint::Options::default())))?;
        Ok(findings.iter().map(|finding| Finding::of_rule(finding, self.inner.source())).collect())
    }

    /// Checks the JSON Schemas of tools and outputs. Returns a warning for each schema with keywords that are not
    /// checked, and for each that the provider cannot enforce although the prompt asks for it.
    fn check_schemas(&self) -> Vec<Finding> {
        self.findings(&self.inner.check_schemas())
    }

    /// Creates a prompt that differs from this one in some fields of its definition. With `merge`, maps keep the
    /// entries that are not named, and `None` removes an entry. The validator stays the same and must also cover the
    /// new prompt.
    #[pyo3(signature = (fields, /, *, merge = true))]
    fn derive(&self, py: Python<'_>, fields: &Bound<'_, PyAny>, merge: bool) -> PyResult<Self> {
        let fields = values::inputs(Some(fields))?;
        let overlay = if merge { Overlay::merge(fields) } else { Overlay::replace(fields) };
        Self::new(py, engine(py, || self.inner.derive(&overlay))?, self.validator.clone_ref(py))
    }

    /// Returns attributes for telemetry that identify the prompt and the rendered text.
    #[pyo3(signature = (rendered, /))]
    fn provenance_attributes(&self, rendered: &Bound<'_, PyAny>) -> PyResult<BTreeMap<&'static str, String>> {
        Ok(self.inner.provenance_attributes(&*rendered::from_python(rendered)?))
    }

    /// Returns the prompt as data, with the names of the Prompty specification. Credentials are replaced by
    /// `[REDACTED]`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.inner.spec().to_json_redacted())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name = self.name().into_pyobject(py)?;
        Ok(format!("Prompt(name={})", name.repr()?))
    }
}

/// The declaration of an input or an output.
#[pyclass(frozen, module = "tympan")]
pub(crate) struct Property(tympan::spec::schema::Property);

#[pymethods]
impl Property {
    /// The name. Empty for the items of a list.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// The kind: `string`, `integer`, `float`, `boolean`, `array`, `object`, `thread`, `image`, `file` or `audio`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind.as_str()
    }

    /// All kinds, if there are several.
    #[getter]
    fn kinds(&self) -> Vec<&'static str> {
        self.0.kinds.iter().map(|kind| kind.as_str()).collect()
    }

    /// Whether null is a valid value.
    #[getter]
    fn nullable(&self) -> bool {
        self.0.nullable
    }

    /// The description.
    #[getter]
    fn description(&self) -> Option<&str> {
        self.0.description.as_deref()
    }

    /// Whether a value is required. `None` if not declared.
    #[getter]
    fn required(&self) -> Option<bool> {
        self.0.required
    }

    /// The default value.
    #[getter]
    fn default<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, self.0.default.as_ref().unwrap_or(&Json::Null))
    }

    /// An example value.
    #[getter]
    fn example<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, self.0.example.as_ref().unwrap_or(&Json::Null))
    }

    /// The allowed values, if they are listed.
    #[getter]
    fn enum_values<'py>(&self, py: Python<'py>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let values = self.0.enum_values.as_ref();
        values.map(|values| values.iter().map(|value| to_python(py, value)).collect()).transpose()
    }

    /// The declaration of a list's items.
    #[getter]
    fn items(&self) -> Option<Self> {
        self.0.items.as_deref().cloned().map(Self)
    }

    /// The declarations of a map's entries.
    #[getter]
    fn properties(&self) -> Vec<Self> {
        self.0.properties.iter().cloned().map(Self).collect()
    }

    /// Whether text from this input is trusted like the author's.
    #[getter]
    fn trusted(&self) -> bool {
        self.0.trusted
    }

    /// Whether the value is confidential, for the policy for tools.
    #[getter]
    fn confidential(&self) -> bool {
        self.0.confidential
    }

    /// Who speaks through this input: `user`, which the policy for tools trusts, or `None`.
    #[getter]
    fn speaker(&self) -> Option<&'static str> {
        self.0.speaker.map(Speaker::as_str)
    }

    /// Whether text that looks like a role marker is an error.
    #[getter]
    fn strict(&self) -> bool {
        self.0.strict
    }

    /// Whether callers must validate the input before rendering.
    #[getter]
    fn validation_required(&self) -> bool {
        self.0.validation_required
    }

    /// The JSON Schema of the object that this property and its siblings belong to, if the declaration says more than
    /// the other fields can express.
    #[getter]
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.schema.as_deref().map(|schema| to_python(py, schema)).transpose()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name = self.name().into_pyobject(py)?;
        Ok(format!("Property(name={}, kind='{}')", name.repr()?, self.kind()))
    }
}

/// A warning or an error in a prompt.
#[pyclass(frozen, eq, get_all, module = "tympan")]
#[derive(PartialEq)]
pub(crate) struct Finding {
    /// A short, stable name.
    code: &'static str,
    /// The code of the rule, such as `TY101`.
    rule: Option<&'static str>,
    /// `warning` or `error`.
    severity: &'static str,
    /// The message.
    message: String,
    /// How to fix it.
    help: Option<String>,
    /// The replacement text, if there is an obvious one.
    fix: Option<String>,
    /// The line, counted from 1.
    line: Option<usize>,
    /// The column, counted from 1.
    column: Option<usize>,
}

impl Finding {
    pub(crate) fn new(finding: &Diagnostic, source: Option<&SourceFile>) -> Self {
        let place = finding.span.zip(source).map(|(span, source)| source.line_column(span.start));
        Self {
            code: finding.code,
            rule: tympan::lint::rule(finding.code).ok().map(|rule| rule.code),
            severity: finding.severity.as_str(),
            message: finding.message.clone(),
            help: finding.help.clone(),
            fix: finding.fix.clone(),
            line: place.map(|place| place.line),
            column: place.map(|place| place.column),
        }
    }

    fn of_rule(finding: &tympan::lint::Finding, source: &SourceFile) -> Self {
        let place = finding.span.map(|span| source.line_column(span.start));
        Self {
            code: finding.rule.name,
            rule: Some(finding.rule.code),
            severity: finding.severity.as_str(),
            message: finding.message.clone(),
            help: finding.help.clone(),
            fix: finding.replacement().map(str::to_owned),
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

/// A prompt, or the path of a prompt file and the check of the prompt in it.
pub(crate) enum Source {
    Prompt(Arc<tympan::Prompt>),
    File(PathBuf, Box<PromptCheck>),
}

impl Source {
    /// Returns a prompt whose inputs are known to be valid. The inputs of a file are not validated, so a file that
    /// requires validation is rejected.
    pub(crate) fn new(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let check = |prompt: &tympan::Prompt| Box::pin(ready(covered_by_nothing(prompt))) as _;
        Self::checked(value, Box::new(check))
    }

    fn checked(value: &Bound<'_, PyAny>, check: Box<PromptCheck>) -> PyResult<Self> {
        if let Ok(prompt) = value.cast::<Prompt>() {
            return Ok(Self::Prompt(prompt.get().inner()));
        }
        let path = value.extract().map_err(|_| invalid(value.py(), "expected a prompt or the path of a prompt file"));
        path.map(|path| Self::File(path, check))
    }

    /// Returns a prompt and its inputs. The caller is warned about inputs of a file when the file is loaded.
    pub(crate) fn with_inputs(
        value: &Bound<'_, PyAny>,
        inputs: Option<&Bound<'_, PyAny>>,
        kinds: KindCheck,
        caller: &Caller,
    ) -> PyResult<(Self, Arc<Inputs>)> {
        if let Ok(prompt) = value.cast::<Prompt>() {
            let inputs = prompt.get().validated(value.py(), inputs)?;
            prompt.get().warn_about(value.py(), (&inputs).into(), kinds)?;
            return Ok((Self::new(value)?, Arc::new(inputs)));
        }
        let inputs = Arc::new(values::inputs(inputs)?);
        let (known, caller) = (inputs.clone(), caller.clone());
        let check = move |prompt: &tympan::Prompt| -> BoxFuture<'static, tympan::Result<()>> {
            if let Err(error) = covered_by_nothing(prompt) {
                return Box::pin(ready(Err(error)));
            }
            let (findings, caller) = (input_warnings(prompt, (&*known).into(), kinds), caller.clone());
            Box::pin(async move {
                if !findings.is_empty() {
                    caller.perform(move |py| warn(py, &findings)).await;
                }
                Ok(())
            })
        };
        Ok((Self::checked(value, Box::new(check))?, inputs))
    }

    pub(crate) fn get(&self) -> PromptSource<'_> {
        match self {
            Self::Prompt(prompt) => (&**prompt).into(),
            Self::File(path, check) => PromptSource::Checked(path, &**check),
        }
    }
}

//! Validation of a prompt's inputs before rendering.
//!
//! `tympan._validator` knows the fields of Python classes. This module ensures that the prompt's requirements are met.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBool;
use tympan::{Error, Inputs, Kind, Result};

use crate::errors::exception;
use crate::values;

/// The advice for callers.
const HELP: &str = "pass a validator with these fields: validator=Model, where Model is a Pydantic model, a \
    dataclass or a TypedDict; or pass validator=False if they are validated elsewhere or never rendered";

/// How inputs are validated.
pub(crate) enum Validator {
    /// Inputs are not validated.
    Nobody,
    /// The caller validates the inputs elsewhere.
    Elsewhere,
    /// A Pydantic model, a dataclass or a `TypedDict`.
    Class(Py<PyAny>),
}

impl Validator {
    /// Converts the argument of a caller: `None`, `False` or a class.
    pub(crate) fn new(given: Option<Bound<'_, PyAny>>) -> Self {
        match given {
            None => Self::Nobody,
            Some(given) if given.cast::<PyBool>().is_ok_and(|given| !given.is_true()) => Self::Elsewhere,
            Some(class) => Self::Class(class.unbind()),
        }
    }

    /// Returns whether a class validates the inputs.
    pub(crate) fn is_class(&self) -> bool {
        matches!(self, Self::Class(_))
    }

    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Self {
        match self {
            Self::Nobody => Self::Nobody,
            Self::Elsewhere => Self::Elsewhere,
            Self::Class(class) => Self::Class(class.clone_ref(py)),
        }
    }

    pub(crate) fn to_python<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        match self {
            Self::Nobody => py.None().into_bound(py),
            Self::Elsewhere => PyBool::new(py, false).to_owned().into_any(),
            Self::Class(class) => class.bind(py).clone(),
        }
    }

    /// Checks that all inputs that require validation are validated.
    pub(crate) fn check(&self, py: Python<'_>, prompt: &tympan::Prompt) -> PyResult<()> {
        let covered: Vec<String> = match self {
            Self::Elsewhere => return Ok(()),
            Self::Nobody => Vec::new(),
            Self::Class(class) => {
                static FIELDS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
                FIELDS.import(py, "tympan._validator", "fields")?.call1((class,))?.extract()?
            }
        };
        covers(prompt, &covered).map_err(|error| exception(py, &error))
    }

    /// Returns the validated inputs.
    pub(crate) fn inputs(&self, py: Python<'_>, inputs: Option<&Bound<'_, PyAny>>) -> PyResult<Inputs> {
        let Self::Class(class) = self else { return values::inputs(inputs) };
        static VALIDATED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let validated = VALIDATED.import(py, "tympan._validator", "validated")?.call1((class, inputs))?;
        values::inputs(Some(&validated))
    }
}

/// Checks that a prompt without a validator requires no validation.
pub(crate) fn covered_by_nothing(prompt: &tympan::Prompt) -> Result<()> {
    covers(prompt, &[])
}

fn covers(prompt: &tympan::Prompt, covered: &[String]) -> Result<()> {
    let is_bare = |name: &&str| !covered.iter().any(|covered| covered == name);
    let bare: Vec<&str> = prompt.validation_required().filter(is_bare).collect();
    let Some(first) = bare.first() else { return Ok(()) };
    let names: Vec<_> = bare.iter().map(|name| format!("`{name}`")).collect();
    let error = Error::new(Kind::ValidationUncovered, names.join(", ")).with_help(HELP);
    let span = prompt.variables().iter().find(|variable| variable.name == *first).and_then(|variable| variable.span);
    Err(match span {
        Some(span) => error.at(span).in_source(prompt.source(), 0),
        None => error,
    })
}

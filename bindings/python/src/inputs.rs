//! The fast path for inputs: plain data, whose text is borrowed from Python.
//!
//! Copying a text takes longer than rendering it. Because rendering releases the interpreter's lock, each text is kept
//! alive by a reference, and a `str` never changes. Inputs that are not plain data use the slow path in
//! [`crate::values`]. So do invalid inputs, because that path reports the errors.

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use tympan::Inputs;
use tympan::template::input::{Entries, InputData, InputMap};
use typed_arena::Arena;

/// The maximum nesting depth on this path. It also catches values that contain themselves.
const MAX_DEPTH: usize = 100;

/// The inputs of a prompt.
pub(crate) enum PromptInputs<'a> {
    Plain(Entries<'a>),
    Copied(Inputs),
}

impl PromptInputs<'_> {
    pub(crate) fn map(&self) -> InputMap<'_> {
        match self {
            Self::Plain(entries) => InputMap::Borrowed(entries),
            Self::Copied(map) => map.into(),
        }
    }
}

/// Storage for plain inputs for as long as they are used.
#[derive(Default)]
pub(crate) struct Room {
    texts: Arena<PyBackedStr>,
    values: Bump,
}

impl Room {
    /// Borrows the inputs if they are plain data. This runs no Python code, so nothing can change in the meantime.
    pub(crate) fn take(&self, inputs: &Bound<'_, PyAny>) -> Option<Entries<'_>> {
        match self.map(inputs.cast_exact().ok()?, 0)? {
            InputData::Map(entries) => Some(entries),
            _ => None,
        }
    }

    fn value(&self, value: Bound<'_, PyAny>, depth: usize) -> Option<InputData<'_>> {
        let value = match value.cast_into_exact::<PyString>() {
            Ok(text) => return self.text(text).map(InputData::Str),
            Err(other) => other.into_inner(),
        };
        if let Ok(map) = value.cast_exact::<PyDict>() {
            self.map(map, depth)
        } else if let Ok(list) = value.cast_exact::<PyList>() {
            self.list(list.iter(), depth)
        } else if let Ok(list) = value.cast_exact::<PyTuple>() {
            self.list(list.iter(), depth)
        } else if let Ok(is) = value.cast_exact::<PyBool>() {
            Some(InputData::Bool(is.is_true()))
        } else if let Ok(number) = value.cast_exact::<PyInt>() {
            number.extract().ok().map(InputData::Int)
        } else if let Ok(number) = value.cast_exact::<PyFloat>() {
            Some(number.value()).filter(|number| number.is_finite()).map(InputData::Float)
        } else {
            value.is_none().then_some(InputData::Null)
        }
    }

    fn map(&self, map: &Bound<'_, PyDict>, depth: usize) -> Option<InputData<'_>> {
        if depth == MAX_DEPTH {
            return None;
        }
        let mut entries = BumpVec::with_capacity_in(map.len(), &self.values);
        for (name, value) in map {
            // Keys of other classes may compare equal to each other.
            let name = self.text(name.cast_into_exact().ok()?)?;
            entries.push((name, self.value(value, depth + 1)?));
        }
        InputData::map(entries.into_bump_slice())
    }

    fn list<'py>(&self, list: impl ExactSizeIterator<Item = Bound<'py, PyAny>>, depth: usize) -> Option<InputData<'_>> {
        if depth == MAX_DEPTH {
            return None;
        }
        let mut items = BumpVec::with_capacity_in(list.len(), &self.values);
        for item in list {
            items.push(self.value(item, depth + 1)?);
        }
        Some(InputData::List(items.into_bump_slice()))
    }

    /// Returns `None` if the text contains a lone surrogate.
    fn text(&self, text: Bound<'_, PyString>) -> Option<&str> {
        let text = PyBackedStr::try_from(text).ok()?;
        Some(&*self.texts.alloc(text))
    }
}

//! Conversion of values between Python and the engine.
//!
//! All values enter through [`from_python`] and leave through [`to_python`]. The guide has a table of the conversions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple, PyType};
use serde_json::{Number, Value as Json};
use tympan::{Error, Inputs, JsonMap, Kind};

use crate::errors::exception;
use crate::message::{Message, Part};

/// The maximum nesting depth of lists and maps, which is the same as for JSON elsewhere.
const MAX_DEPTH: usize = 128;

/// The reason that a value cannot be converted.
enum Problem {
    /// The value has no equivalent in the engine. The path to it is stored from the inside out.
    Unfit { path: Vec<String>, reason: String },
    /// Python code raised an exception during the conversion.
    Raised(PyErr),
}

type Converted<T> = Result<T, Problem>;

impl From<PyErr> for Problem {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

impl Problem {
    fn unfit(reason: impl Into<String>) -> Self {
        Self::Unfit { path: Vec::new(), reason: reason.into() }
    }

    /// Adds an outer step to the path.
    fn under(self, step: impl FnOnce() -> String) -> Self {
        match self {
            Self::Unfit { mut path, reason } => {
                path.push(step());
                Self::Unfit { path, reason }
            }
            raised @ Self::Raised(_) => raised,
        }
    }

    fn into_exception(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Raised(error) => error,
            Self::Unfit { path, reason } => {
                let path: String = path.into_iter().rev().collect();
                let path = path.strip_prefix('.').unwrap_or(&path);
                let details = if path.is_empty() { reason } else { format!("`{path}`: {reason}") };
                let error = Error::new(Kind::InvalidInput, details);
                exception(py, &error.with_help("the Python guide lists the supported values"))
            }
        }
    }
}

/// Converts the inputs of a prompt: a mapping, a dataclass or a Pydantic model. `None` means no inputs.
pub(crate) fn inputs(value: Option<&Bound<'_, PyAny>>) -> PyResult<Inputs> {
    let Some(value) = value.filter(|value| !value.is_none()) else { return Ok(Inputs::new()) };
    match from_python(value)? {
        Json::Object(inputs) => Ok(inputs),
        _ => Err(Problem::unfit(format!("inputs: expected a mapping, found a value of type `{}`", type_name(value)))
            .into_exception(value.py())),
    }
}

/// Converts the definition of a prompt: a mapping or a Pydantic model. Only fields that were set are converted.
pub(crate) fn definition(value: &Bound<'_, PyAny>) -> PyResult<Json> {
    let is_model = !value.is_instance_of::<PyType>() && value.hasattr("model_fields_set")?;
    if !is_model {
        return from_python(value);
    }
    let options = PyDict::new(value.py());
    options.set_item("exclude_unset", true)?;
    options.set_item("exclude_none", true)?;
    from_python(&value.call_method("model_dump", (), Some(&options))?)
}

/// Converts a Python value for the engine.
pub(crate) fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Json> {
    Converter::default().convert(value).map_err(|problem| problem.into_exception(value.py()))
}

/// Returns a value as JSON, as the engine sees it. Useful for finding out how a value is converted.
#[pyfunction]
#[pyo3(signature = (value, /))]
pub(crate) fn to_json(value: &Bound<'_, PyAny>) -> PyResult<String> {
    from_python(value).map(|value| value.to_string())
}

/// Converts a value recursively.
#[derive(Default)]
struct Converter {
    /// The addresses of the containers around the current value.
    outer: Vec<usize>,
}

impl Converter {
    fn convert(&mut self, value: &Bound<'_, PyAny>) -> Converted<Json> {
        if let Ok(text) = value.cast::<PyString>() {
            return Ok(Json::String(utf8(text)?.to_owned()));
        }
        if value.is_none() {
            return Ok(Json::Null);
        }
        if let Ok(is) = value.cast::<PyBool>() {
            return Ok(Json::Bool(is.is_true()));
        }
        if let Ok(number) = value.cast::<PyInt>() {
            return integer(number);
        }
        if let Ok(number) = value.cast::<PyFloat>() {
            let number = Number::from_f64(number.value());
            return number.map(Json::Number).ok_or_else(|| Problem::unfit("infinity and NaN are not supported"));
        }
        if let Ok(map) = value.cast::<PyDict>() {
            return self.nested(value, |converter| converter.dict(map));
        }
        if let Ok(list) = value.cast::<PyList>() {
            return self.nested(value, |converter| converter.items(list.iter()));
        }
        if let Ok(list) = value.cast::<PyTuple>() {
            return self.nested(value, |converter| converter.items(list.iter()));
        }
        self.convert_rare(value)
    }

    fn convert_rare(&mut self, value: &Bound<'_, PyAny>) -> Converted<Json> {
        let py = value.py();
        if let Ok(message) = value.cast::<Message>() {
            return Ok(message.get().to_json());
        }
        if let Ok(part) = value.cast::<Part>() {
            return Ok(part.get().to_json());
        }
        if let Ok(bytes) = value.cast::<PyBytes>() {
            return Ok(Json::String(STANDARD.encode(bytes.as_bytes())));
        }
        if let Ok(bytes) = value.cast::<PyByteArray>() {
            return Ok(Json::String(STANDARD.encode(bytes.to_vec())));
        }
        if value.is_instance(known::enum_type(py)?)? {
            return self.convert(&value.getattr("value")?);
        }
        if value.is_instance(known::date(py)?)? || value.is_instance(known::time(py)?)? {
            return self.convert(&value.call_method0("isoformat")?);
        }
        if value.is_instance(known::decimal(py)?)? || value.is_instance(known::uuid(py)?)? {
            return self.convert(value.str()?.as_any());
        }
        if value.is_instance(known::path(py)?)? {
            return self.convert(&value.call_method0("__fspath__")?);
        }
        if value.is_instance_of::<PyType>() {
            return Err(unfit_type(value));
        }
        if value.hasattr("model_dump")? && value.hasattr("model_fields_set")? {
            let fields = value.call_method0("model_dump")?;
            return self.nested(value, |converter| converter.convert(&fields));
        }
        if value.hasattr("__dataclass_fields__")? {
            return self.nested(value, |converter| converter.dataclass(value));
        }
        if let Ok(map) = value.cast::<PyMapping>() {
            let pairs = map.items()?;
            return self.nested(value, |converter| converter.mapping(&pairs));
        }
        Err(unfit_type(value))
    }

    /// Converts the contents of a container, unless it contains itself.
    fn nested(
        &mut self,
        value: &Bound<'_, PyAny>,
        inside: impl FnOnce(&mut Self) -> Converted<Json>,
    ) -> Converted<Json> {
        let address = value.as_ptr() as usize;
        if self.outer.contains(&address) {
            return Err(Problem::unfit("the value contains itself"));
        }
        if self.outer.len() == MAX_DEPTH {
            return Err(Problem::unfit(format!("nested more than {MAX_DEPTH} levels deep")));
        }
        self.outer.push(address);
        let converted = inside(self);
        self.outer.pop();
        converted
    }

    fn items<'py>(&mut self, list: impl ExactSizeIterator<Item = Bound<'py, PyAny>>) -> Converted<Json> {
        let mut items = Vec::with_capacity(list.len());
        for (index, item) in list.enumerate() {
            items.push(self.convert(&item).map_err(|problem| problem.under(|| format!("[{index}]")))?);
        }
        Ok(Json::Array(items))
    }

    fn dict(&mut self, map: &Bound<'_, PyDict>) -> Converted<Json> {
        // Take a copy first: converting the entries may run Python code, which may change the map.
        let pairs: Vec<_> = map.iter().collect();
        let mut entries = JsonMap::with_capacity(pairs.len());
        for (key, value) in pairs {
            self.entry(&mut entries, &key, &value)?;
        }
        Ok(Json::Object(entries))
    }

    fn mapping(&mut self, pairs: &Bound<'_, PyList>) -> Converted<Json> {
        let mut entries = JsonMap::with_capacity(pairs.len());
        for pair in pairs.iter() {
            let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.extract()?;
            self.entry(&mut entries, &key, &value)?;
        }
        Ok(Json::Object(entries))
    }

    fn entry(&mut self, entries: &mut JsonMap, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> Converted<()> {
        let Ok(name) = key.cast::<PyString>() else {
            return Err(Problem::unfit(format!("expected string keys, found a key of type `{}`", type_name(key))));
        };
        let name = utf8(name)?;
        let value = self.convert(value).map_err(|problem| problem.under(|| format!(".{name}")))?;
        // `insert` would return the old value, which is large and takes longer to move than a key takes to find.
        *entries.entry(name).or_insert(Json::Null) = value;
        Ok(())
    }

    fn dataclass(&mut self, value: &Bound<'_, PyAny>) -> Converted<Json> {
        let mut entries = JsonMap::new();
        for field in known::fields(value.py())?.call1((value,))?.try_iter()? {
            let name = field?.getattr("name")?;
            let value = value.getattr(name.cast::<PyString>().map_err(PyErr::from)?)?;
            self.entry(&mut entries, &name, &value)?;
        }
        Ok(Json::Object(entries))
    }
}

/// Borrows the text from Python.
fn utf8<'a>(text: &'a Bound<'_, PyString>) -> Converted<&'a str> {
    text.to_str().map_err(|_| Problem::unfit("the string contains a lone surrogate"))
}

/// Converts an integer to a number if it fits into 64 bits, and to its digits otherwise, so that none are lost.
fn integer(number: &Bound<'_, PyInt>) -> Converted<Json> {
    if let Ok(number) = number.extract::<i64>() {
        return Ok(number.into());
    }
    if let Ok(number) = number.extract::<u64>() {
        return Ok(number.into());
    }
    // A subclass, such as an enum, may override `__repr__`.
    let digits = number.py().get_type::<PyInt>().call_method1("__repr__", (number,));
    let digits = digits.map_err(|_| Problem::unfit("the integer has too many digits"))?;
    Ok(Json::String(digits.extract()?))
}

fn unfit_type(value: &Bound<'_, PyAny>) -> Problem {
    let name = type_name(value);
    Problem::unfit(match name.as_str() {
        "set" | "frozenset" => format!(
            "values of type `{name}` are not supported because they have no order; \
            convert it to a list"
        ),
        _ => format!("values of type `{name}` are not supported"),
    })
}

fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string())
}

/// Converts a value of the engine to Python.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Json) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Json::Null => py.None().into_bound(py),
        Json::Bool(is) => PyBool::new(py, *is).to_owned().into_any(),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => number.into_pyobject(py)?.into_any(),
            (None, Some(number)) => number.into_pyobject(py)?.into_any(),
            (None, None) => PyFloat::new(py, number.as_f64().unwrap_or(f64::NAN)).into_any(),
        },
        Json::String(text) => PyString::new(py, text).into_any(),
        Json::Array(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(to_python(py, item)?)?;
            }
            list.into_any()
        }
        Json::Object(map) => map_to_python(py, map)?.into_any(),
    })
}

/// Converts a map of the engine to Python.
pub(crate) fn map_to_python<'py>(py: Python<'py>, map: &JsonMap) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in map {
        dict.set_item(name, to_python(py, value)?)?;
    }
    Ok(dict)
}

/// Types of the standard library, which are looked up once.
mod known {
    use super::*;

    macro_rules! known {
        ($($name:ident: $type:ty = $module:literal $attribute:literal;)*) => {
            $(pub(super) fn $name(py: Python<'_>) -> PyResult<&Bound<'_, $type>> {
                static CELL: PyOnceLock<Py<$type>> = PyOnceLock::new();
                CELL.import(py, $module, $attribute)
            })*
        };
    }

    known! {
        enum_type: PyType = "enum" "Enum";
        date: PyType = "datetime" "date";
        time: PyType = "datetime" "time";
        decimal: PyType = "decimal" "Decimal";
        uuid: PyType = "uuid" "UUID";
        path: PyType = "os" "PathLike";
        fields: PyAny = "dataclasses" "fields";
    }
}

//! Prompts over Arrow tables.
//!
//! Tables come in and go out through the Arrow C stream interface, so that text is not copied between Python and the
//! engine.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ffi::FFI_ArrowSchema;
use arrow::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_pyarrow::FromPyArrow;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use serde_json::{Value as Json, json};
use tympan::host::config;
use tympan_batch::options::table_options;
use tympan_batch::stream::TableStream;

use crate::errors::{engine, exception, invalid};
use crate::prompt::Prompt;
use crate::threads::attach;
use crate::values::from_python;

/// A stream of tables that can be read once, by anything that takes `__arrow_c_stream__`: `pyarrow.table(stream)`,
/// `polars.DataFrame(stream)`, `duckdb.from_arrow(stream)`. Rows are rendered while it is read.
#[pyclass(frozen, module = "tympan")]
pub(crate) struct ArrowStream {
    schema: SchemaRef,
    stream: Mutex<Option<TableStream>>,
}

#[pymethods]
impl ArrowStream {
    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<&str> {
        self.schema.fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// Returns the schema, for libraries that read Arrow.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.schema).map_err(|error| invalid(py, error))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Returns the stream, for libraries that read Arrow. It can be read once.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface leaves it to the reader to compare the schemas.
        let _ = requested_schema;
        let stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner).take();
        let stream = stream.ok_or_else(|| {
            let error = tympan::Error::new(tympan::Kind::InvalidInput, "the stream was read already");
            exception(py, &error.with_help("keep the table that you read it into, or call `map_arrow` again"))
        })?;
        let reader: Box<dyn RecordBatchReader + Send> = Box::new(Detached(stream));
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
    }

    fn __repr__(&self) -> String {
        format!("ArrowStream({})", self.column_names().join(", "))
    }
}

/// A stream whose reader may hold the interpreter's lock.
struct Detached(TableStream);

impl Iterator for Detached {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        // Rendering may call Python from other threads, so this thread must not hold the lock while it waits for them.
        // The caller is not Rust, so no panic may reach it.
        let stream = AssertUnwindSafe(&mut self.0);
        let next = attach(|py| {
            py.detach(|| {
                let stream = stream;
                catch_unwind(AssertUnwindSafe(|| {
                    let AssertUnwindSafe(stream) = stream;
                    stream.next()
                }))
            })
        });
        let failed = |reason: &str| Some(Err(ArrowError::ComputeError(reason.to_owned())));
        match next {
            None => failed("the interpreter is shutting down"),
            Some(Err(_)) => failed("the engine panicked; this is a bug in Tympan, please report it"),
            Some(Ok(next)) => next,
        }
    }
}

impl RecordBatchReader for Detached {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }
}

/// Renders a prompt for every row of a table.
pub(crate) fn map(
    runtime: &tympan::Runtime,
    prompt: &Prompt,
    table: &Bound<'_, PyAny>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<ArrowStream> {
    let py = table.py();
    if prompt.validator_of().is_class() {
        let error =
            tympan::Error::new(tympan::Kind::ValidationUncovered, "rows of a table are not validated one by one");
        return Err(exception(py, &error.with_help("validate the table, and load the prompt with validator=False")));
    }
    let mut data = options.map(|options| from_python(options.as_any())).transpose()?.unwrap_or_else(|| json!({}));
    let mut take = |name: &str| data.as_object_mut().and_then(|data| data.remove(name)).unwrap_or(Json::Null);
    let settings = json!({ "guard": take("guard"), "kinds": take("kinds") });
    let (settings, (mut options, threads)) =
        engine(py, || Ok((config::render_settings(settings)?, table_options(data)?)))?;
    options.guard = settings.guard().map(Option::<&tympan::Guard>::cloned);
    options.kinds = settings.kinds().or(options.kinds);
    let input = reader(table)?;
    let (runtime, prompt) = (runtime.clone(), prompt.inner());
    let stream = engine(py, move || TableStream::new(Box::new(input), runtime, prompt, options, threads))?;
    Ok(ArrowStream { schema: stream.schema(), stream: Mutex::new(Some(stream)) })
}

/// Reads a table of another library.
fn reader(table: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    let py = table.py();
    if !table.hasattr("__arrow_c_stream__")? {
        let kind = table.get_type().name().map_or_else(|_| "another object".to_owned(), |name| name.to_string());
        let error = tympan::Error::new(tympan::Kind::InvalidInput, format_args!("expected a table, found `{kind}`"));
        let help = "pass a table of pyarrow, Polars, DuckDB, Daft or pandas: anything with `__arrow_c_stream__`";
        return Err(exception(py, &error.with_help(help)));
    }
    RecordBatchStreamReader::from_pyarrow_bound(table)
}

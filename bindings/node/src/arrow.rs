//! Prompts over Arrow tables, as IPC streams.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatchReader;
use arrow::error::ArrowError;
use arrow::ipc::writer::StreamWriter;
use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;
use serde_json::Value as Json;
use tympan::host::config;
use tympan::{Error, Kind};
use tympan_batch::ipc::IpcTables;
use tympan_batch::options::table_options;
use tympan_batch::stream::TableStream;

use crate::border::read;
use crate::host::Listener;
use crate::prompt::NativePrompt;
use crate::runtime::NativeRuntime;
use crate::work::{Made, Work};

/// A table that is rendered on other threads.
#[napi]
#[derive(Default)]
pub struct NativeTable {
    result: Arc<Mutex<Option<Vec<u8>>>>,
}

#[napi]
impl NativeTable {
    /// Creates an empty table.
    #[napi(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Renders a prompt for every row of a table. `render` has the options of rendering, and `options` the others, both
    /// as JSON.
    #[napi]
    pub fn map(
        &self,
        runtime: &NativeRuntime,
        prompt: &NativePrompt,
        table: Uint8Array,
        render: String,
        options: String,
        listener: Listener,
    ) -> Work {
        let (runtime, prompt, result) = (runtime.runtime.clone(), prompt.prompt.clone(), self.result.clone());
        // JavaScript may change the array while other threads read it.
        let bytes = table.to_vec();
        Work::compute(listener, move || {
            let settings = config::render_settings(read("options", &render)?)?;
            let (mut options, threads) = table_options(read::<Json>("options", &options)?)?;
            options.guard = settings.guard().map(Option::<&tympan::Guard>::cloned);
            options.kinds = settings.kinds().or(options.kinds);
            let tables = IpcTables::from_memory(bytes).map_err(|error| not_arrow(&error))?;
            let stream = TableStream::new(Box::new(tables), runtime, prompt, options, threads)?;
            let written = write(stream).map_err(|error| Error::new(Kind::InvalidRows, error))?;
            *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(written);
            Ok(Made::Text("null".to_owned()))
        })
    }

    /// Returns the result, once the work is done.
    #[napi]
    pub fn take(&self) -> Option<Uint8Array> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner).take().map(Uint8Array::new)
    }
}

fn write(stream: TableStream) -> std::result::Result<Vec<u8>, ArrowError> {
    let mut writer = StreamWriter::try_new(Vec::new(), &stream.schema())?;
    for table in stream {
        writer.write(&table?)?;
    }
    writer.into_inner()
}

fn not_arrow(reason: &dyn std::fmt::Display) -> Error {
    Error::new(Kind::InvalidRows, format_args!("the table is not an Arrow IPC stream: {reason}"))
        .with_help("write the table with `tableToIPC` of apache-arrow, or as an uncompressed `.arrow` file")
}

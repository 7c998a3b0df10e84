//! Prompts over Arrow tables, as IPC streams.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::buffer::Buffer;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamDecoder;
use arrow::ipc::writer::StreamWriter;
use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;
use serde_json::Value as Json;
use tympan::host::config;
use tympan::{Error, Kind, Result};
use tympan_batch::options::table_options;
use tympan_batch::stream::TableStream;

use crate::border::read;
use crate::host::Listener;
use crate::prompt::NativePrompt;
use crate::runtime::NativeRuntime;
use crate::work::{Made, Work};

/// How Arrow files begin. A stream follows at the eighth byte.
const FILE: &[u8] = b"ARROW1\0\0";

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
            let stream = TableStream::new(Box::new(Tables::new(bytes)?), runtime, prompt, options, threads)?;
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

/// The tables of an IPC stream in memory. The decoder takes slices of it, so that no length in the stream makes it
/// allocate more than the stream has.
struct Tables {
    decoder: StreamDecoder,
    bytes: Buffer,
    schema: SchemaRef,
    /// The table that was found together with the schema.
    ready: VecDeque<RecordBatch>,
}

impl Tables {
    fn new(bytes: Vec<u8>) -> Result<Self> {
        let start = if bytes.starts_with(FILE) { FILE.len() } else { 0 };
        let mut bytes = Buffer::from_vec(bytes).slice(start);
        let mut decoder = StreamDecoder::new();
        let found = decoder.decode(&mut bytes).map_err(|error| not_arrow(&error))?;
        let Some(schema) = decoder.schema() else { return Err(not_arrow(&"it has no schema")) };
        Ok(Self { decoder, bytes, schema, ready: found.into_iter().collect() })
    }
}

fn not_arrow(reason: &dyn std::fmt::Display) -> Error {
    Error::new(Kind::InvalidRows, format_args!("the table is not an Arrow IPC stream: {reason}"))
        .with_help("write the table with `tableToIPC` of apache-arrow, or as an uncompressed `.arrow` file")
}

impl Iterator for Tables {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(table) = self.ready.pop_front() {
            return Some(Ok(table));
        }
        match self.decoder.decode(&mut self.bytes) {
            Ok(Some(table)) => Some(Ok(table)),
            // After the end of a stream there may be the index of a file.
            Ok(None) => self.decoder.finish().err().map(Err),
            Err(error) => {
                self.bytes = Buffer::default();
                Some(Err(error))
            }
        }
    }
}

impl RecordBatchReader for Tables {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

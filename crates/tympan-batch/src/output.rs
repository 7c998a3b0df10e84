//! Tables of messages: what a row becomes, as columns of Arrow.

use std::sync::Arc;

use arrow::array::{
    ArrayBuilder, ArrayRef, BooleanBuilder, Int64Builder, ListBuilder, RecordBatch, StringBuilder, StructBuilder,
};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use tympan_core::chat::text_segment::SegmentedMessage;
use tympan_core::template::input::InputMap;
use tympan_core::wire::{BodyEncoder, EncodeOptions};
use tympan_core::{ContentPart, Error, Guard, Kind, KindCheck, Message, Prompt, Rendered, Result};
use tympan_runtime::model::tokens::Encoding;
use tympan_runtime::{RunOptions, Runtime};

use crate::columns::Bindings;
use crate::render::{Arena, RenderedRow, RowRenderer, Settings};

/// What a row becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OutputKind {
    /// A list of messages: structs with `role` and `content`.
    Messages,
    /// The text before it is split into messages.
    Text,
    /// The body of a request, as JSON, in the protocol of the prompt's provider.
    Request,
}

impl OutputKind {
    /// Returns the name of the column.
    pub const fn column(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Text => "text",
            Self::Request => "request",
        }
    }
}

/// What a table of messages contains.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TableOptions {
    /// What a row becomes.
    pub output: OutputKind,
    /// Pairs of an input and the column that its values come from. Other inputs come from columns of the same name.
    pub map: Vec<(String, String)>,
    /// The variant of the prompt.
    pub variant: Option<String>,
    /// Whether the columns of the table are part of the result.
    pub keeps_columns: bool,
    /// Whether the result has the column `render_hash`: the SHA-256 of the text.
    pub hashes: bool,
    /// Whether the result has the column `tokens`: the number of input tokens. It is exact for the text of models whose
    /// vocabulary is published.
    pub tokens: bool,
    /// Whether the result has the column `segments`: which inputs wrote which bytes of the messages.
    pub origins: bool,
    /// The provider, the model and the API of requests, where they are not those of the prompt.
    pub run: RunOptions,
    /// The guard, if it is not the runtime's: `Some(None)` turns it off.
    pub guard: Option<Option<Guard>>,
    /// Whether the values of inputs must match their declared kinds, if it is not the runtime's choice.
    pub kinds: Option<KindCheck>,
    /// The most text that a column of one table may have, in bytes. A stream divides larger tables; otherwise the row that
    /// would exceed it is an error. The offsets of Arrow allow 2 GB.
    pub max_column_bytes: usize,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self {
            output: OutputKind::Messages,
            map: Vec::new(),
            variant: None,
            keeps_columns: true,
            hashes: false,
            tokens: false,
            origins: false,
            run: RunOptions::default(),
            guard: None,
            kinds: None,
            max_column_bytes: MAX_COLUMN_BYTES,
        }
    }
}

/// Converts tables of rows to tables of messages.
///
/// The result has a column `error`. It is null, unless the row could not be rendered; then the other columns are null.
pub struct TableRenderer<'a> {
    renderer: RowRenderer<'a>,
    encoder: Option<BodyEncoder<'a>>,
    options: &'a TableOptions,
    encoding: Encoding,
    schema: SchemaRef,
}

impl std::fmt::Debug for TableRenderer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableRenderer")
            .field("renderer", &self.renderer)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl<'a> TableRenderer<'a> {
    /// Creates a renderer for tables with these columns.
    ///
    /// # Errors
    /// Returns an error if an input has no column, if the prompt does not have the variant, or if it has no model for
    /// requests.
    pub fn new(runtime: &'a Runtime, prompt: &'a Prompt, columns: &Schema, options: &'a TableOptions) -> Result<Self> {
        let names: Vec<_> = columns.fields().iter().map(|field| field.name().as_str()).collect();
        Self::with_bindings(runtime, prompt, Bindings::new(prompt, &names, &options.map)?, columns, options)
    }

    /// Creates a renderer for rows whose columns are bound already. `columns` are those that the result keeps.
    pub(crate) fn with_bindings(
        runtime: &'a Runtime,
        prompt: &'a Prompt,
        bindings: Bindings,
        columns: &Schema,
        options: &'a TableOptions,
    ) -> Result<Self> {
        let settings = Settings { guard: options.guard.as_ref().map(Option::as_ref), kinds: options.kinds };
        let renderer = RowRenderer::new(runtime, prompt, options.variant.as_deref(), bindings)?.with_settings(settings);
        let encoder = match options.output {
            OutputKind::Request => Some(BodyEncoder::new(prompt, &encode_options(&options.run))?),
            _ => None,
        };
        let schema = Arc::new(schema(columns, options)?);
        let model = options.run.select_model(prompt).model.unwrap_or_default();
        Ok(Self { renderer, encoder, options, encoding: Encoding::of_model(model), schema })
    }

    /// Returns the columns of the result.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// Converts a table. It has as many rows as before.
    ///
    /// # Errors
    /// Returns an error if the table does not have the columns that the renderer was created for. Errors of single rows
    /// are in the column `error`.
    pub fn render(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let columns = self.columns_of(batch)?;
        self.table(batch, columns)
    }

    /// Converts a table, and appends the result to `tables`: several tables if a column of one would be too large.
    pub(crate) fn render_into(&self, batch: &RecordBatch, tables: &mut Vec<RecordBatch>) -> Result<()> {
        let columns = self.columns_of(batch)?;
        let half = batch.num_rows() / 2;
        if !columns.is_too_large || half == 0 {
            tables.push(self.table(batch, columns)?);
            return Ok(());
        }
        drop(columns);
        self.render_into(&batch.slice(0, half), tables)?;
        self.render_into(&batch.slice(half, batch.num_rows() - half), tables)
    }

    fn columns_of(&self, batch: &RecordBatch) -> Result<Columns> {
        let bound = self.renderer.bind(batch)?;
        let mut arena = Arena::default();
        Ok(self.columns(batch.num_rows(), |row, add| bound.with_row(row, arena.next(), add)))
    }

    fn table(&self, batch: &RecordBatch, columns: Columns) -> Result<RecordBatch> {
        let columns = columns.finish();
        let kept = if self.options.keeps_columns { batch.columns() } else { &[] };
        let all = kept.iter().cloned().chain(columns).collect();
        RecordBatch::try_new(self.schema.clone(), all).map_err(|error| Error::new(Kind::InvalidRows, error))
    }

    /// Returns the columns that the result adds to rows, the last of which is `error`, and the errors.
    #[cfg(feature = "jobs")]
    pub(crate) fn added(&self, values: &crate::rows::Values) -> Result<(Vec<ArrayRef>, RowErrors)> {
        let mut columns = match values {
            crate::rows::Values::Arrow(batch) => self.columns_of(batch)?,
            crate::rows::Values::Json(rows) => self.columns(rows.len(), |row, add| match rows.get(row) {
                Some(row) => add((&self.renderer.bindings().of_json(row)).into()),
                None => Ok(()),
            }),
        };
        let failed = std::mem::take(&mut columns.failed);
        Ok((columns.finish(), failed))
    }

    /// Builds the columns of rows. `with_row` calls a function with the inputs of a row.
    fn columns(
        &self,
        rows: usize,
        mut with_row: impl FnMut(usize, &mut dyn FnMut(InputMap<'_>) -> Result<()>) -> Result<()>,
    ) -> Columns {
        let mut columns = Columns::new(self.options, rows);
        let mut body = String::new();
        for row in 0..rows {
            let added = with_row(row, &mut |inputs| {
                let rendered = self.renderer.row(inputs)?;
                self.write_body(&rendered.messages, &mut body)?;
                let segments = if self.options.origins { self.renderer.segments(&rendered)? } else { Vec::new() };
                columns.add(&rendered, &body, &segments, self.encoding)
            });
            match added {
                Ok(()) => columns.errors.append_null(),
                Err(error) => columns.fail(row, error),
            }
        }
        columns
    }

    fn write_body(&self, messages: &[Message], body: &mut String) -> Result<()> {
        let Some(encoder) = &self.encoder else { return Ok(()) };
        let mut bytes = std::mem::take(body).into_bytes();
        bytes.clear();
        encoder.write(messages, &mut bytes)?;
        *body = String::from_utf8(bytes).map_err(|error| Error::new(Kind::InvalidRequest, error))?;
        Ok(())
    }
}

/// The most text that a column may have, in bytes. Its offsets are 32-bit numbers.
const MAX_COLUMN_BYTES: usize = i32::MAX as usize;

fn too_large(most: usize) -> Error {
    Error::new(Kind::InvalidRows, format_args!("the text of the table exceeds {most} bytes, the most for a column"))
        .with_help("render fewer rows at once")
}

/// The rows that could not be rendered, by their position.
pub(crate) type RowErrors = Vec<(usize, Error)>;

/// Returns the options for encoding requests. Neither addresses nor keys are part of a table.
pub(crate) fn encode_options(run: &RunOptions) -> EncodeOptions<'_> {
    EncodeOptions {
        provider: run.provider.as_deref(),
        model: run.model.as_deref(),
        api_type: run.api_type.as_deref(),
        functions: &run.functions,
        ..EncodeOptions::default()
    }
}

/// The columns that a result adds. Numbers are signed, because Spark has no others.
fn schema(columns: &Schema, options: &TableOptions) -> Result<Schema> {
    let mut fields: Vec<Arc<Field>> = Vec::new();
    if options.keeps_columns {
        fields.extend(columns.fields().iter().cloned());
    }
    let mut add = |name: &str, kind| {
        if fields.iter().any(|field| field.name() == name) {
            let error = Error::new(Kind::InvalidRows, format_args!("the rows already have a column `{name}`"));
            return Err(error.with_help("rename the column, or drop the columns of the rows from the result"));
        }
        fields.push(Arc::new(Field::new(name, kind, true)));
        Ok(())
    };
    let output =
        if options.output == OutputKind::Messages { list(DataType::Struct(message_fields())) } else { DataType::Utf8 };
    add(options.output.column(), output)?;
    if options.hashes {
        add("render_hash", DataType::Utf8)?;
    }
    if options.tokens {
        add("tokens", DataType::Int64)?;
    }
    if options.origins {
        add("segments", list(DataType::Struct(segment_fields())))?;
    }
    add("error", DataType::Utf8)?;
    Ok(Schema::new_with_metadata(fields, columns.metadata().clone()))
}

fn list(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(item, true)))
}

fn message_fields() -> Fields {
    Fields::from(vec![Field::new("role", DataType::Utf8, true), Field::new("content", DataType::Utf8, true)])
}

fn segment_fields() -> Fields {
    Fields::from(vec![
        Field::new("message", DataType::Int64, true),
        Field::new("start", DataType::Int64, true),
        Field::new("end", DataType::Int64, true),
        Field::new("origins", list(DataType::Utf8), true),
        Field::new("trusted", DataType::Boolean, true),
    ])
}

/// Builds the columns that a result adds.
struct Columns {
    messages: Option<ListBuilder<StructBuilder>>,
    texts: Option<StringBuilder>,
    is_request: bool,
    hashes: Option<StringBuilder>,
    tokens: Option<Int64Builder>,
    segments: Option<ListBuilder<StructBuilder>>,
    errors: StringBuilder,
    /// The errors of the column, and their rows.
    failed: RowErrors,
    /// The size of the text so far, in bytes.
    text_bytes: usize,
    max_bytes: usize,
    /// Whether a row was left out because a column would have more text than Arrow allows.
    is_too_large: bool,
}

impl Columns {
    fn new(options: &TableOptions, rows: usize) -> Self {
        let structs = |fields| ListBuilder::with_capacity(StructBuilder::from_fields(fields, rows), rows);
        let is_messages = options.output == OutputKind::Messages;
        Self {
            messages: is_messages.then(|| structs(message_fields())),
            texts: (!is_messages).then(StringBuilder::new),
            is_request: options.output == OutputKind::Request,
            hashes: options.hashes.then(StringBuilder::new),
            tokens: options.tokens.then(Int64Builder::new),
            segments: options.origins.then(|| structs(segment_fields())),
            errors: StringBuilder::new(),
            failed: Vec::new(),
            text_bytes: 0,
            max_bytes: options.max_column_bytes.min(MAX_COLUMN_BYTES),
            is_too_large: false,
        }
    }

    /// Adds a row, or nothing if there is an error.
    fn add(&mut self, row: &RenderedRow, body: &str, segments: &[SegmentedMessage], encoding: Encoding) -> Result<()> {
        // Messages may repeat text of a thread, so the rendered text alone does not bound them.
        let parts = row.messages.iter().flat_map(|message| message.content.iter());
        let messages: usize =
            parts.map(|part| if let ContentPart::Text(text) = part { text.value.len() } else { 0 }).sum();
        let bytes = row.rendered.text().len().max(body.len()).max(messages);
        if self.text_bytes.saturating_add(bytes) > self.max_bytes {
            self.is_too_large = true;
            return Err(too_large(self.max_bytes));
        }
        self.text_bytes += bytes;
        if let Some(messages) = &mut self.messages {
            let plain = row.messages.iter().map(plain_text).collect::<Result<Vec<_>>>()?;
            let builder = messages.values();
            for (message, text) in row.messages.iter().zip(plain) {
                append(builder, 0, |roles: &mut StringBuilder| roles.append_value(message.role.as_str()));
                append(builder, 1, |contents: &mut StringBuilder| contents.append_value(text));
                builder.append(true);
            }
            messages.append(true);
        }
        if let Some(texts) = &mut self.texts {
            texts.append_value(if self.is_request { body } else { row.rendered.text() });
        }
        if let Some(hashes) = &mut self.hashes {
            hashes.append_value(row.rendered.render_hash());
        }
        if let Some(tokens) = &mut self.tokens {
            let count: usize = row.messages.iter().map(|message| encoding.count_message(message)).sum();
            tokens.append_value(i64::try_from(count).unwrap_or(i64::MAX));
        }
        if let Some(builder) = &mut self.segments {
            append_segments(builder, segments, &row.rendered);
        }
        Ok(())
    }

    /// Adds a row that has only an error.
    fn fail(&mut self, row: usize, error: Error) {
        self.messages.iter_mut().for_each(ListBuilder::append_null);
        self.texts.iter_mut().chain(&mut self.hashes).for_each(StringBuilder::append_null);
        self.tokens.iter_mut().for_each(Int64Builder::append_null);
        self.segments.iter_mut().for_each(ListBuilder::append_null);
        self.errors.append_value(error.to_string());
        self.failed.push((row, error));
    }

    fn finish(mut self) -> Vec<ArrayRef> {
        let mut columns: Vec<ArrayRef> = Vec::new();
        columns.extend(self.messages.as_mut().map(|builder| Arc::new(builder.finish()) as ArrayRef));
        columns.extend(self.texts.as_mut().map(|builder| Arc::new(builder.finish()) as ArrayRef));
        columns.extend(self.hashes.as_mut().map(|builder| Arc::new(builder.finish()) as ArrayRef));
        columns.extend(self.tokens.as_mut().map(|builder| Arc::new(builder.finish()) as ArrayRef));
        columns.extend(self.segments.as_mut().map(|builder| Arc::new(builder.finish()) as ArrayRef));
        columns.push(Arc::new(self.errors.finish()));
        columns
    }
}

/// Appends to a field of a struct. The builders were made from the fields, so their types are known.
fn append<B: ArrayBuilder>(builder: &mut StructBuilder, field: usize, add: impl FnOnce(&mut B)) {
    if let Some(field) = builder.field_builder::<B>(field) {
        add(field);
    }
}

/// Returns the text of a message that has nothing but text.
fn plain_text(message: &Message) -> Result<&str> {
    let has_calls = message
        .metadata
        .as_ref()
        .is_some_and(|metadata| metadata.contains_key("tool_calls") || metadata.contains_key("tool_call_id"));
    match &*message.content {
        _ if has_calls => Err(not_plain("tool calls")),
        [ContentPart::Text(text)] if text.anchors.is_empty() => Ok(&text.value),
        [] => Ok(""),
        parts => {
            Err(not_plain(parts.iter().find(|part| part.kind() != "text").map_or("several parts", |part| part.kind())))
        }
    }
}

fn not_plain(what: &str) -> Error {
    Error::new(Kind::InvalidRows, format_args!("a message contains {what}, and a column of messages only text"))
        .with_help("write requests instead of messages")
}

fn append_segments(builder: &mut ListBuilder<StructBuilder>, messages: &[SegmentedMessage], rendered: &Rendered) {
    let inputs = rendered.inputs();
    let number = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
    let structs = builder.values();
    for (index, message) in messages.iter().enumerate() {
        for segment in message.segments.iter().flatten() {
            let numbers = [index, segment.range.start, segment.range.end];
            for (field, value) in numbers.into_iter().enumerate() {
                append(structs, field, |numbers: &mut Int64Builder| numbers.append_value(number(value)));
            }
            append(structs, 3, |origins: &mut ListBuilder<Box<dyn ArrayBuilder>>| {
                if let Some(names) = origins.values().as_any_mut().downcast_mut::<StringBuilder>() {
                    inputs.names(segment.origin).for_each(|name| names.append_value(name));
                }
                origins.append(true);
            });
            append(structs, 4, |trusted: &mut BooleanBuilder| trusted.append_value(inputs.is_trusted(segment.origin)));
            structs.append(true);
        }
    }
    builder.append(true);
}

//! Reads Arrow's IPC format, streams and files, from memory or from disk.
//!
//! The decoder of the crate `arrow` trusts the positions and sizes in a message: it panics if a buffer lies outside of its
//! message or ends within a value, and allocates as much as a compressed buffer claims to have. So every message is checked
//! before it is decoded.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use arrow::array::{BufferSpec, RecordBatch, RecordBatchReader, layout};
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::convert::try_fb_to_schema;
use arrow::ipc::reader::{FileDecoder, read_footer_length};
use arrow::ipc::{
    Block, FieldNode, Message, MessageHeader, MetadataVersion, RecordBatch as BatchHeader, root_as_footer,
    root_as_message,
};

/// How files in the file format begin. Streams begin otherwise.
const MAGIC: &[u8] = b"ARROW1";
/// The bytes at the end of a file: the length of the footer, and the magic bytes again.
const FOOTER: u64 = 10;
/// What a message begins with, before its length.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// The largest size of a batch after decompression.
const MAX_BATCH_BYTES: u64 = 2 << 30;

type Result<T> = std::result::Result<T, ArrowError>;

/// The tables of an IPC stream or file.
pub struct IpcTables {
    bytes: Bytes,
    /// The decoder of files also decodes the messages of streams, which are the same. That of streams holds a message
    /// back until it sees the next one.
    decoder: FileDecoder,
    messages: Messages,
    /// All columns.
    declared: SchemaRef,
    /// The columns of the tables.
    schema: SchemaRef,
}

/// Where the bytes are.
enum Bytes {
    Memory(Buffer),
    File(File, u64),
}

/// The messages that are left.
enum Messages {
    /// From this position on.
    Stream(u64),
    File(VecDeque<Block>),
}

impl fmt::Debug for IpcTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IpcTables").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl IpcTables {
    /// Reads tables from memory. Their text is not copied.
    ///
    /// # Errors
    /// Returns an error if there is no schema.
    pub fn from_memory(bytes: Vec<u8>) -> Result<Self> {
        Self::new(Bytes::Memory(Buffer::from_vec(bytes)), &|_| true)
    }

    /// Reads tables from a file. `keeps` chooses columns by name.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or if there is no schema.
    pub fn from_file(file: File, keeps: &dyn Fn(&str) -> bool) -> Result<Self> {
        let size = file.metadata()?.len();
        Self::new(Bytes::File(file, size), keeps)
    }

    fn new(mut bytes: Bytes, keeps: &dyn Fn(&str) -> bool) -> Result<Self> {
        let is_file = bytes.len() >= MAGIC.len() as u64 && bytes.slice(0, MAGIC.len() as u64)?.as_slice() == MAGIC;
        if is_file { Self::of_file(bytes, keeps) } else { Self::of_stream(bytes, keeps) }
    }

    fn of_stream(mut bytes: Bytes, keeps: &dyn Fn(&str) -> bool) -> Result<Self> {
        let mut at = 0;
        let (block, message) = bytes.message(&mut at)?.ok_or_else(no_schema)?;
        let message = header(&message, &block)?;
        let message = message_of(&message)?;
        let schema = Arc::new(try_fb_to_schema(message.header_as_schema().ok_or_else(no_schema)?)?);
        Self::with_schema(bytes, Messages::Stream(at), schema, message.version(), keeps, &[])
    }

    fn of_file(mut bytes: Bytes, keeps: &dyn Fn(&str) -> bool) -> Result<Self> {
        let end = bytes.len().checked_sub(FOOTER).ok_or_else(|| damaged("it ends before its footer"))?;
        let mut tail = [0; 10];
        tail.copy_from_slice(bytes.slice(end, FOOTER)?.as_slice());
        let length = read_footer_length(tail)? as u64;
        let start = end.checked_sub(length).ok_or_else(|| damaged("its footer is longer than the file"))?;
        let footer = bytes.slice(start, length)?;
        let footer = root_as_footer(&footer).map_err(|error| damaged(&format!("its footer is damaged: {error}")))?;
        let schema = Arc::new(try_fb_to_schema(footer.schema().ok_or_else(no_schema)?)?);
        let dictionaries: Vec<_> = footer.dictionaries().into_iter().flatten().copied().collect();
        let blocks = footer.recordBatches().into_iter().flatten().copied().collect();
        Self::with_schema(bytes, Messages::File(blocks), schema, footer.version(), keeps, &dictionaries)
    }

    fn with_schema(
        mut bytes: Bytes,
        messages: Messages,
        declared: SchemaRef,
        version: MetadataVersion,
        keeps: &dyn Fn(&str) -> bool,
        dictionaries: &[Block],
    ) -> Result<Self> {
        let mut decoder = FileDecoder::new(declared.clone(), version);
        for block in dictionaries {
            let message = bytes.block(block)?;
            check(&message, block, &declared)?;
            decoder.read_dictionary(block, &message)?;
        }
        let kept = (0..declared.fields().len()).filter(|&index| keeps(declared.field(index).name()));
        let kept: Vec<usize> = kept.collect();
        let schema = Arc::new(declared.project(&kept)?);
        Ok(Self { bytes, decoder: decoder.with_projection(kept), messages, declared, schema })
    }

    fn next_message(&mut self) -> Result<Option<(Block, Buffer)>> {
        match &mut self.messages {
            Messages::Stream(at) => self.bytes.message(at),
            Messages::File(blocks) => {
                blocks.pop_front().map(|block| Ok((block, self.bytes.block(&block)?))).transpose()
            }
        }
    }

    fn read(&mut self) -> Result<Option<RecordBatch>> {
        while let Some((block, message)) = self.next_message()? {
            if check(&message, &block, &self.declared)? == MessageHeader::DictionaryBatch {
                self.decoder.read_dictionary(&block, &message)?;
            } else if let Some(table) = self.decoder.read_record_batch(&block, &message)? {
                return Ok(Some(table));
            }
        }
        Ok(None)
    }

    /// Ends the iteration.
    fn end(&mut self) {
        match &mut self.messages {
            Messages::File(blocks) => blocks.clear(),
            Messages::Stream(at) => *at = self.bytes.len(),
        }
    }
}

impl Iterator for IpcTables {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let table = self.read();
        if table.is_err() {
            self.end();
        }
        table.transpose()
    }
}

impl RecordBatchReader for IpcTables {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

impl Bytes {
    fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File(_, size) => *size,
        }
    }

    /// Returns a part of the bytes.
    fn slice(&mut self, at: u64, length: u64) -> Result<Buffer> {
        if at.checked_add(length).is_none_or(|end| end > self.len()) {
            return Err(damaged("it ends in the middle of a table"));
        }
        let size = usize::try_from(length).map_err(|_| damaged("a table is larger than the memory"))?;
        match self {
            Self::Memory(bytes) => {
                let start = usize::try_from(at).map_err(|_| damaged("a table is larger than the memory"))?;
                Ok(bytes.slice_with_length(start, size))
            }
            Self::File(file, _) => {
                let mut part = vec![0; size];
                file.seek(SeekFrom::Start(at))?;
                file.read_exact(&mut part)?;
                Ok(Buffer::from_vec(part))
            }
        }
    }

    /// Returns the next message of a stream, or `None` at its end.
    fn message(&mut self, at: &mut u64) -> Result<Option<(Block, Buffer)>> {
        if *at == self.len() {
            return Ok(None);
        }
        let (start, mut head) = (*at, 4_u64);
        let mut first = self.slice(start, 4)?;
        if first.as_slice() == CONTINUATION {
            first = self.slice(start + 4, 4)?;
            head = 8;
        }
        let length = u64::from(u32::from_le_bytes(first.as_slice().try_into().unwrap_or_default()));
        if length == 0 {
            // The end of the stream. An index may follow.
            *at = self.len();
            return Ok(None);
        }
        let metadata = self.slice(start + head, length)?;
        let body = message_of(&metadata)?.bodyLength();
        let size = u64::try_from(body).map_err(|_| damaged("a message has a negative length"))?;
        let total = (head + length).saturating_add(size);
        let message = self.slice(start, total)?;
        let head = i32::try_from(head + length).map_err(|_| damaged("a message begins with more than 2 GiB"))?;
        *at = start + total;
        Ok(Some((Block::new(0, head, body), message)))
    }

    /// Returns the message that the footer of a file refers to.
    fn block(&mut self, block: &Block) -> Result<Buffer> {
        let number = |value: i64| u64::try_from(value).map_err(|_| damaged("its footer has a negative position"));
        let (at, length) = (number(block.offset())?, number(block.metaDataLength().into())?);
        self.slice(at, length.saturating_add(number(block.bodyLength())?))
    }
}

/// Returns the metadata of a message, without its length.
fn header(message: &Buffer, block: &Block) -> Result<Buffer> {
    let length = usize::try_from(block.metaDataLength()).unwrap_or_default();
    let head = if message.starts_with(&CONTINUATION) { 8 } else { 4 };
    if length < head || message.len() < length {
        return Err(damaged("its footer refers to something else than a table"));
    }
    Ok(message.slice_with_length(head, length - head))
}

fn message_of(metadata: &[u8]) -> Result<Message<'_>> {
    root_as_message(metadata).map_err(|error| damaged(&format!("a message is damaged: {error}")))
}

/// Checks that all buffers of a message lie in its body, that their sizes fit the columns, and that they are not too large
/// after decompression. Returns what the message is.
fn check(message: &Buffer, block: &Block, declared: &Schema) -> Result<MessageHeader> {
    let metadata = header(message, block)?;
    let body =
        message.slice(message.len() - usize::try_from(block.bodyLength()).unwrap_or_default().min(message.len()));
    let message = message_of(&metadata)?;
    let (batch, types) = match message.header_type() {
        MessageHeader::RecordBatch => (message.header_as_record_batch(), column_types(declared)),
        MessageHeader::DictionaryBatch => {
            let dictionary = message.header_as_dictionary_batch();
            let id = dictionary.map_or_else(i64::default, |dictionary| dictionary.id());
            (dictionary.and_then(|dictionary| dictionary.data()), dictionary_types(declared, id))
        }
        other => return Ok(other),
    };
    let batch = batch.ok_or_else(|| damaged("a message has no table"))?;
    let sizes = buffer_sizes(batch, &body)?;
    let mut columns = Columns {
        sizes: sizes.into_iter(),
        rows: batch.nodes().into_iter().flatten().map(FieldNode::length).collect(),
        views: batch.variadicBufferCounts().into_iter().flatten().collect(),
        has_masks_of_unions: message.version() < MetadataVersion::V5,
    };
    for column in types {
        columns.check(column)?;
    }
    Ok(message.header_type())
}

fn column_types(schema: &Schema) -> Vec<&DataType> {
    schema.fields().iter().map(|field| field.data_type()).collect()
}

/// Returns the type of the values of a dictionary.
fn dictionary_types(schema: &Schema, id: i64) -> Vec<&DataType> {
    #[expect(deprecated, reason = "the decoder finds dictionaries in the same way")]
    let fields = schema.fields_with_dict_id(id);
    let value = fields.first().and_then(|field| match field.data_type() {
        DataType::Dictionary(_, value) => Some(&**value),
        _ => None,
    });
    value.into_iter().collect()
}

/// Returns the size of each buffer after decompression.
fn buffer_sizes(batch: BatchHeader<'_>, body: &[u8]) -> Result<Vec<u64>> {
    let rows = batch.nodes().into_iter().flatten().map(|node| node.length().min(node.null_count()));
    if rows.chain([batch.length()]).any(|rows| rows < 0) {
        return Err(damaged("a table has a negative number of rows"));
    }
    let mut sizes = Vec::new();
    for buffer in batch.buffers().into_iter().flatten() {
        let range = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
        let range = range.and_then(|(start, length)| Some(start..start.checked_add(length)?));
        let bytes =
            range.and_then(|range| body.get(range)).ok_or_else(|| damaged("a column lies outside of its table"))?;
        sizes.push(match batch.compression() {
            Some(_) if !bytes.is_empty() => size_of_compressed(bytes)?,
            _ => bytes.len() as u64,
        });
    }
    let total = sizes.iter().fold(0_u64, |total, size| total.saturating_add(*size));
    if batch.compression().is_some() && total > MAX_BATCH_BYTES {
        let most = MAX_BATCH_BYTES >> 30;
        return Err(damaged(&format!("a table has more than {most} GiB after decompression; write smaller tables")));
    }
    Ok(sizes)
}

/// Returns the size that a compressed buffer claims to have.
fn size_of_compressed(bytes: &[u8]) -> Result<u64> {
    let (claimed, rest) = bytes.split_first_chunk().ok_or_else(|| damaged("a compressed column has no length"))?;
    match i64::from_le_bytes(*claimed) {
        // Not compressed.
        -1 => Ok(rest.len() as u64),
        length => u64::try_from(length).map_err(|_| damaged("a compressed column has a negative length")),
    }
}

/// The buffers and the numbers of rows of the columns that are not checked yet, in the order of the decoder.
struct Columns {
    sizes: std::vec::IntoIter<u64>,
    rows: VecDeque<i64>,
    /// The number of buffers with text of each column of views.
    views: VecDeque<i64>,
    has_masks_of_unions: bool,
}

impl Columns {
    /// Checks that a column has its buffers, each with whole values. The decoder checks the values themselves.
    fn check(&mut self, column: &DataType) -> Result<()> {
        let rows = u64::try_from(self.rows.pop_front().ok_or_else(missing)?).unwrap_or_default();
        if matches!(column, DataType::FixedSizeBinary(size) | DataType::FixedSizeList(_, size) if *size < 0) {
            return Err(damaged("its schema has values of a negative size"));
        }
        let layout = layout(column);
        let is_union = matches!(column, DataType::Union(..));
        if layout.can_contain_null_mask || (is_union && self.has_masks_of_unions) {
            self.sizes.next().ok_or_else(missing)?;
        }
        for buffer in &layout.buffers {
            let size = self.sizes.next().ok_or_else(missing)?;
            let BufferSpec::FixedWidth { byte_width, .. } = *buffer else { continue };
            let width = byte_width as u64;
            let has_all = !is_union || size >= rows.saturating_mul(width);
            if !has_all || (width > 0 && !size.is_multiple_of(width)) {
                return Err(damaged("a column has parts of values"));
            }
        }
        if layout.variadic {
            let buffers = self.views.pop_front().ok_or_else(missing)?;
            for _ in 0..buffers {
                self.sizes.next().ok_or_else(missing)?;
            }
        }
        children(column).into_iter().try_for_each(|child| self.check(child))
    }
}

/// Returns the columns that a column consists of.
fn children(column: &DataType) -> Vec<&DataType> {
    match column {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => vec![field.data_type()],
        DataType::Struct(fields) => fields.iter().map(|field| field.data_type()).collect(),
        DataType::Union(fields, _) => fields.iter().map(|(_, field)| field.data_type()).collect(),
        DataType::RunEndEncoded(ends, values) => vec![ends.data_type(), values.data_type()],
        _ => Vec::new(),
    }
}

fn missing() -> ArrowError {
    damaged("a table has fewer columns than its schema")
}

fn no_schema() -> ArrowError {
    damaged("it has no schema")
}

fn damaged(reason: &str) -> ArrowError {
    ArrowError::IpcError(reason.to_owned())
}

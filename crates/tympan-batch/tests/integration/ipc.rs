//! Tables in Arrow's IPC format that somebody damaged.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{Array, DictionaryArray, Int64Array, RecordBatch, StringArray, StringViewArray};
use arrow::datatypes::Int32Type;
use arrow::error::ArrowError;
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use tympan_batch::ipc::IpcTables;

fn table() -> RecordBatch {
    let names = StringArray::from(vec![Some("Ada"), None, Some("Bob")]);
    let views = StringViewArray::from(vec!["a", "a text that is longer than twelve bytes", "b"]);
    let shared: DictionaryArray<Int32Type> = vec!["x", "y", "x"].into_iter().collect();
    let numbers = Int64Array::from(vec![1, 2, 3]);
    let columns: [(&str, Arc<dyn Array>); 4] =
        [("name", Arc::new(names)), ("view", Arc::new(views)), ("shared", Arc::new(shared)), ("n", Arc::new(numbers))];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).expect("a table")
}

/// Writes the table as a stream and as a file, plain and compressed.
fn written(compression: Option<CompressionType>) -> [Vec<u8>; 2] {
    let options = || IpcWriteOptions::default().try_with_compression(compression).expect("the codec is there");
    let (table, mut stream, mut file) = (table(), Vec::new(), Vec::new());
    let mut writer = StreamWriter::try_new_with_options(&mut stream, &table.schema(), options()).expect("a writer");
    writer.write(&table).and_then(|()| writer.write(&table)).and_then(|()| writer.finish()).expect("writable");
    let mut writer = FileWriter::try_new_with_options(&mut file, &table.schema(), options()).expect("a writer");
    writer.write(&table).and_then(|()| writer.write(&table)).and_then(|()| writer.finish()).expect("writable");
    [stream, file]
}

fn read(bytes: Vec<u8>) -> Result<Vec<RecordBatch>, ArrowError> {
    IpcTables::from_memory(bytes)?.collect()
}

fn read_from_disk(bytes: &[u8], keeps: &dyn Fn(&str) -> bool) -> Result<Vec<RecordBatch>, ArrowError> {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).expect("writable");
    IpcTables::from_file(file, keeps)?.collect()
}

#[test]
fn streams_and_files_are_read_from_memory_and_from_disk() {
    for compression in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
        for bytes in written(compression) {
            assert_eq!(read(bytes.clone()).expect("valid"), [table(), table()]);
            assert_eq!(read_from_disk(&bytes, &|_| true).expect("valid"), [table(), table()]);
        }
    }
    let [_, file] = written(None);
    let tables = read_from_disk(&file, &|name| name == "n" || name == "name").expect("valid");
    assert_eq!(tables[0], table().project(&[0, 3]).expect("two columns"));
}

#[test]
fn no_changed_byte_panics() {
    for compression in [None, Some(CompressionType::ZSTD)] {
        for bytes in written(compression) {
            for at in 0..bytes.len() {
                for mask in [0x01, 0x80, 0xff] {
                    let mut changed = bytes.clone();
                    changed[at] ^= mask;
                    // Some changes do not matter.
                    let _ = read(changed);
                }
            }
        }
    }
}

#[test]
fn a_cut_stream_or_file_is_an_error() {
    let [stream, file] = written(None);
    let whole = |bytes: &[u8]| read(bytes.to_vec()).is_ok_and(|tables| tables.len() == 2);
    assert!(whole(&stream) && whole(&file));
    // A stream may end without the marker of its end, which has eight bytes.
    assert!((0..stream.len() - 8).all(|end| !whole(&stream[..end])));
    assert!((0..file.len()).all(|end| !whole(&file[..end])));
}

#[test]
fn a_small_file_cannot_claim_to_be_large() {
    // The length of each compressed buffer is before its bytes.
    let text = StringArray::from(vec!["a".repeat(4096)]);
    let table = RecordBatch::try_from_iter([("text", Arc::new(text) as Arc<dyn Array>)]).expect("a table");
    let options =
        IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD)).expect("the codec is there");
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::try_new_with_options(&mut bytes, &table.schema(), options).expect("a writer");
    writer.write(&table).and_then(|()| writer.finish()).expect("writable");
    let length = 4096_u64.to_le_bytes();
    let at = bytes.windows(8).rposition(|part| part == length).expect("the text is compressed");
    bytes[at..at + 8].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    let error = read(bytes).expect_err("too large");
    assert!(error.to_string().contains("more than 2 GiB after decompression"), "{error}");
}

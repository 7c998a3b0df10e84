//! Streams of tables.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchIterator, StringArray};
use tympan_batch::output::{OutputKind, TableOptions};
use tympan_batch::stream::TableStream;
use tympan_core::Prompt;

use crate::support::runtime;

const GREET: &str = "---\ninputs:\n  - {name: name, kind: string}\n---\nuser:\nHi {{ name }}";

fn texts_only() -> TableOptions {
    let mut options = TableOptions::default();
    options.output = OutputKind::Text;
    options.keeps_columns = false;
    options
}

/// Renders batches of names, and returns the tables of the result.
fn tables(batches: &[Vec<String>], options: TableOptions, threads: usize) -> Vec<RecordBatch> {
    let batch = |names: &Vec<String>| {
        let column: ArrayRef = Arc::new(StringArray::from(names.clone()));
        RecordBatch::try_from_iter([("name", column)]).expect("one column")
    };
    let batches: Vec<_> = batches.iter().map(batch).collect();
    let schema = batches[0].schema();
    let input = RecordBatchIterator::new(batches.into_iter().map(Ok), schema);
    let prompt = Arc::new(Prompt::from_prompty(GREET).expect("the prompt is valid"));
    let stream = TableStream::new(Box::new(input), runtime(), prompt, options, threads).expect("the column is bound");
    stream.map(|table| table.expect("the table is rendered")).collect()
}

/// Returns the texts of all tables. A row with an error has the error.
fn texts(tables: &[RecordBatch]) -> Vec<String> {
    let rows = tables.iter().flat_map(|table| {
        let (texts, errors) = (table.column(0).as_string::<i32>(), table.column(1).as_string::<i32>());
        let row = |row| if errors.is_null(row) { texts.value(row) } else { errors.value(row) };
        (0..table.num_rows()).map(row).collect::<Vec<_>>()
    });
    rows.map(|text| text.trim_start_matches("user:\n").to_owned()).collect()
}

fn names(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|number| number.to_string()).collect()
}

#[test]
fn rows_keep_their_order_whatever_the_number_of_threads_and_the_size_of_tables() {
    let expected: Vec<_> = names(0..10_000).iter().map(|name| format!("Hi {name}")).collect();
    for threads in [0, 1, 2, 7] {
        let batches = [names(0..1), names(1..1), names(1..9_000), names(9_000..9_001), names(9_001..10_000)];
        assert_eq!(texts(&tables(&batches, texts_only(), threads)), expected, "{threads} threads");
    }
}

#[test]
fn a_table_whose_text_would_not_fit_into_a_column_is_divided() {
    let mut options = texts_only();
    options.max_column_bytes = 60;
    let tables = tables(&[names(0..20)], options.clone(), 2);
    let bytes = |table: &RecordBatch| table.column(0).as_string::<i32>().values().len();
    assert!(tables.iter().all(|table| bytes(table) <= 60), "{:?}", tables.iter().map(bytes).collect::<Vec<_>>());
    assert_eq!(texts(&tables), names(0..20).iter().map(|name| format!("Hi {name}")).collect::<Vec<_>>());

    let long = vec!["Ada".to_owned(), "x".repeat(100), "Bob".to_owned()];
    let rows = texts(&self::tables(&[long], options, 2));
    assert_eq!((rows[0].as_str(), rows[2].as_str()), ("Hi Ada", "Hi Bob"));
    assert_eq!(rows[1], "Invalid rows: the text of the table exceeds 60 bytes, the most for a column");
}

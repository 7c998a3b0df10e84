//! Formats of files of rows.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::ipc::writer::{FileWriter, StreamWriter};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::WriterProperties;
use tempfile::TempDir;
use tympan_batch::limits::Target;
use tympan_batch::rows::{Rows, Source, Values};
use tympan_core::Prompt;

use crate::support::{Job, last_text, row};

fn table(rows: i64) -> RecordBatch {
    let names: StringArray = (0..rows).map(|row| Some(format!("n{row}"))).collect();
    let numbers = Int64Array::from_iter_values(0..rows);
    RecordBatch::try_from_iter([("name", Arc::new(names) as _), ("number", Arc::new(numbers) as _)]).expect("a table")
}

fn prompt() -> Prompt {
    let source =
        "---\nmodel: gpt-4o-mini\ninputs:\n  - {name: name, kind: string, required: true}\n---\nuser:\nHi {{ name }}";
    Prompt::from_prompty(source).expect("the prompt is valid")
}

/// Writes the same table in every format.
fn written(directory: &Path, rows: i64) -> Vec<PathBuf> {
    let table = table(rows);
    let path = |name: &str| directory.join(name);
    let create = |name: &str| File::create(path(name)).expect("the file can be created");
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(100)).build();
    let mut parquet = ArrowWriter::try_new(create("rows.parquet"), table.schema(), Some(properties)).expect("a writer");
    parquet.write(&table).expect("writable");
    parquet.close().expect("writable");
    let mut file = FileWriter::try_new(create("rows.arrow"), &table.schema()).expect("a writer");
    file.write(&table).and_then(|()| file.finish()).expect("writable");
    let mut stream = StreamWriter::try_new(create("rows.arrows"), &table.schema()).expect("a writer");
    stream.write(&table).and_then(|()| stream.finish()).expect("writable");
    let (mut csv, mut tsv, mut json) = ("name,number\n".to_owned(), "name\tnumber\n".to_owned(), String::new());
    for row in 0..rows {
        csv += &format!("n{row},{row}\n");
        tsv += &format!("n{row}\t{row}\n");
        json += &format!("{{\"name\": \"n{row}\", \"number\": {row}}}\n\n");
    }
    std::fs::write(path("rows.csv"), csv).expect("writable");
    std::fs::write(path("rows.tsv"), tsv).expect("writable");
    std::fs::write(path("rows.jsonl"), json).expect("writable");
    ["parquet", "arrow", "arrows", "csv", "tsv", "jsonl"].map(|ending| path(&format!("rows.{ending}"))).to_vec()
}

#[test]
fn all_formats_have_the_same_rows() {
    let directory = TempDir::new().expect("a temporary directory");
    for path in written(directory.path(), 250) {
        let job = Job::new(prompt(), &[&path]);
        let prepared = job.prepare().expect("the job is prepared");
        let requests = job.requests(&prepared);
        assert_eq!(requests.len(), 250, "{}", path.display());
        for (index, request) in requests.iter().enumerate() {
            assert_eq!(
                (row(request), last_text(request)),
                (index as u64, &*format!("Hi n{index}")),
                "{}",
                path.display()
            );
        }
    }
}

#[test]
fn several_files_are_one_sequence_of_rows() {
    let directory = TempDir::new().expect("a temporary directory");
    let paths = written(directory.path(), 10);
    let paths: Vec<_> = paths.iter().map(PathBuf::as_path).collect();
    let job = Job::new(prompt(), &paths);
    let requests = job.requests(&job.prepare().expect("the job is prepared"));
    let texts: Vec<_> = requests.iter().map(|request| (row(request), last_text(request).to_owned())).collect();
    let expected: Vec<_> = (0..60).map(|row| (row, format!("Hi n{}", row % 10))).collect();
    assert_eq!(texts, expected);
}

#[test]
fn rows_can_be_passed_over_in_every_format() {
    let directory = TempDir::new().expect("a temporary directory");
    let paths = written(directory.path(), 250);
    let sources: Vec<_> = paths.iter().map(|path| Source::new(path, None).expect("a known ending")).collect();
    for skip in [0, 1, 120, 249, 250, 251, 777, 1499, 1500] {
        let mut rows = Rows::new(sources.clone(), None);
        rows.skip(skip).expect("there are enough rows");
        let mut next = skip;
        while let Some(chunk) = rows.next_chunk().expect("readable") {
            assert_eq!(chunk.first, next);
            let first = match &chunk.values {
                Values::Arrow(batch) => match batch.column(0).as_string_opt::<i32>() {
                    Some(names) => names.value(0).to_owned(),
                    None => batch.column(0).as_string_view().value(0).to_owned(),
                },
                Values::Json(rows) => rows[0]["name"].as_str().expect("text").to_owned(),
            };
            assert_eq!(first, format!("n{}", next % 250));
            next += chunk.len() as u64;
        }
        assert_eq!(next, 1500);
    }
}

#[test]
fn tables_have_the_columns_of_the_rows_and_the_messages() {
    let directory = TempDir::new().expect("a temporary directory");
    for path in written(directory.path(), 30) {
        let mut job = Job::new(prompt(), &[&path]);
        job.options.target = Target::Parquet;
        job.options.origins = true;
        let prepared = job.prepare().expect("the job is prepared");
        let file = File::open(job.path(&prepared.files[0].name)).expect("the file exists");
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet").build().expect("readable");
        let batches: Vec<_> = reader.collect::<Result<_, _>>().expect("readable");
        let names: Vec<_> = batches[0].schema().fields().iter().map(|field| field.name().clone()).collect();
        let added = ["messages", "render_hash", "tokens", "segments"];
        let kept: &[&str] = if path.ends_with("rows.jsonl") { &["row"] } else { &["row", "name", "number"] };
        assert_eq!(names, [kept, &added].concat());
        let messages = batches[0].column_by_name("messages").expect("messages").as_list::<i32>().value(3);
        let messages = messages.as_struct();
        assert_eq!(messages.column(0).as_string::<i32>().value(0), "user");
        assert_eq!(messages.column(1).as_string::<i32>().value(0), "Hi n3");
        let segments = batches[0].column_by_name("segments").expect("segments").as_list::<i32>().value(3);
        let origins = segments.as_struct().column(3).as_list::<i32>();
        assert_eq!(origins.value(0).len(), 0, "the author wrote the first segment");
        assert_eq!(origins.value(1).as_string::<i32>().value(0), "name");
    }
}

#[test]
fn unknown_and_damaged_files_are_errors_that_name_the_file() {
    let directory = TempDir::new().expect("a temporary directory");
    let error = Source::new(directory.path().join("rows.xlsx"), None).expect_err("an unknown ending").to_string();
    assert!(error.contains("rows.xlsx` has an unknown ending"), "{error}");
    for (name, content) in [
        ("a.parquet", &b"PAR1 not really"[..]),
        ("b.arrow", b"ARROW1 not really"),
        ("c.arrows", b"\xff\xff\xff\xff\xff\xff\xff\x7f"),
        ("d.csv", b""),
    ] {
        let path = directory.path().join(name);
        std::fs::write(&path, content).expect("writable");
        let error = Job::new(prompt(), &[&path]).prepare().expect_err("damaged").to_string();
        assert!(error.contains(name), "{error}");
    }
    let error = Job::new(prompt(), &[&directory.path().join("absent.csv")]).prepare().expect_err("absent").to_string();
    assert!(error.contains("absent.csv"), "{error}");
}

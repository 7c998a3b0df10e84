//! Results of a job: joins the answers with the rows, and writes them as typed columns beside the columns of the rows.
//!
//! Every row has a result, in the order of the rows: its values, or the reason why there are none.

mod answers;
mod formula;
mod input;
mod line;
mod reasons;
mod row;
mod sink;
mod types;

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray, UInt64Array};
use arrow::datatypes::{DataType, Field};
use serde_json::{Value as Json, json};
use tympan_core::{Error, JsonMap, Kind, Prompt, Result};
use tympan_runtime::{RunOptions, Runtime};

pub use self::answers::{ANSWERS, answers_name};
pub(crate) use self::line::{AnswerLine, Reply};

use self::answers::Answers;
use self::input::InputColumns;
use self::reasons::Reasons;
use self::row::{RowResult, Shape};
use self::sink::Sink;
use crate::columns::Column;
use crate::job::JobInfo;
use crate::manifest::Manifest;
use crate::rows::{Chunk, FileFormat, Rows, Source, Values};

/// The size of results in memory, in bytes, at which they are written.
const PIECE_BYTES: usize = 16 << 20;

/// The columns of every result, after those with the values.
const OTHER_COLUMNS: [&str; 4] = ["error", "finish_reason", "input_tokens", "output_tokens"];

/// The error of a row that nobody answered.
const NO_ANSWER: &str = "no answer";

/// How results are written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ResultsOptions {
    /// The format of the file: Parquet, CSV, TSV or JSON Lines.
    pub format: FileFormat,
    /// What the names of all columns with results begin with. Without it, a column of the rows with the same name is an
    /// error.
    pub prefix: String,
    /// Whether cells of CSV that a spreadsheet would take for a formula begin with an apostrophe.
    pub escapes_formulas: bool,
    /// The provider and the API that answered, where they are not those of the prompt.
    pub run: RunOptions,
    /// Whether files of rows that were written again since the job was prepared are refused even if they have the same size.
    pub checks_times: bool,
}

impl ResultsOptions {
    /// Creates options for a format.
    pub fn new(format: FileFormat) -> Self {
        Self { format, prefix: String::new(), escapes_formulas: false, run: RunOptions::default(), checks_times: true }
    }

    /// Creates options for the format of files with the ending of this path.
    ///
    /// # Errors
    /// Returns an error if the ending is not one of a format that results can have.
    pub fn for_path(path: &Path) -> Result<Self> {
        match FileFormat::of_path(path) {
            Some(FileFormat::Arrow) | None => Err(sink::unsupported(path)),
            Some(format) => Ok(Self::new(format)),
        }
    }
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResultsSummary {
    /// The number of rows.
    pub rows: u64,
    /// The number of rows with an answer that matches the declared outputs.
    pub answered: u64,
    /// The number of rows with an answer that does not.
    pub mismatched: u64,
    /// The number of rows whose call failed.
    pub failed: u64,
    /// The number of rows that were rejected before they were sent.
    pub rejected: u64,
    /// The number of rows without an answer.
    pub missing: u64,
    /// The tokens of the requests.
    pub input_tokens: u64,
    /// The tokens of the answers.
    pub output_tokens: u64,
    /// The number of answers to requests that were never sent. They are not part of the results.
    pub unknown: u64,
    /// The number of rows that have two different answers. The first one counts.
    pub conflicting: u64,
    /// The number of cells of CSV that a spreadsheet would take for a formula.
    pub formulas: u64,
}

impl ResultsSummary {
    /// Returns whether every row has an answer that matches the declared outputs.
    pub fn is_complete(&self) -> bool {
        self.answered == self.rows
    }
}

/// Checks what would keep results from being written, as far as it is known before there are answers.
///
/// # Errors
/// Returns an error if a column of the rows has the name of a result, if the output is a file of rows, or if its directory
/// does not exist.
pub fn check_results(prompt: &Prompt, sources: &[Source], output: &Path, options: &ResultsOptions) -> Result<()> {
    check_output(sources, output)?;
    let directory = output.parent().filter(|directory| !directory.as_os_str().is_empty());
    if let Some(directory) = directory.filter(|directory| !directory.is_dir()) {
        let message = format_args!("cannot write `{}`: `{}` is not a directory", output.display(), directory.display());
        return Err(Error::new(Kind::InvalidBatch, message));
    }
    let results = names(&Shape::of_prompt(prompt, &options.run), &options.prefix);
    let known = sources.first().map(Source::columns).transpose()?.unwrap_or_default();
    known.iter().try_for_each(|name| check_name(name, &results))
}

/// Joins the answers in the directory of a job with the rows, and writes them to a file. Memory does not depend on the
/// number of rows. An existing file is replaced when the new one is complete.
///
/// `progress` is called with the number of rows that were written.
///
/// # Errors
/// Returns an error if the directory has no job of this prompt, if the rows have changed since it was prepared, if a column of the rows has the name of a result, if a file
/// cannot be read, or if the output cannot be written. Answers that cannot be used are errors of their rows.
pub fn write_results(
    runtime: &Runtime,
    prompt: &Prompt,
    sources: &[Source],
    directory: &Path,
    output: &Path,
    options: &ResultsOptions,
    progress: &dyn Fn(u64),
) -> Result<ResultsSummary> {
    let manifest = Manifest::open(directory)?;
    let info = JobInfo::of_manifest(&manifest, directory)?;
    check_job(&info, prompt, directory)?;
    info.check_sources(sources, options.checks_times)?;
    check_output(sources, output)?;
    let shape = Shape::of_prompt(prompt, &options.run);
    let columns = match options.format {
        FileFormat::JsonLines => None,
        _ => Some(InputColumns::of_sources(sources)?),
    };
    let results = names(&shape, &options.prefix);
    let mut fields = columns.as_ref().map(InputColumns::fields).unwrap_or_default();
    if columns.is_none() {
        // Rows without columns are checked one by one as well.
        let known = sources.first().map(Source::columns).transpose()?.unwrap_or_default();
        known.iter().try_for_each(|name| check_name(name, &results))?;
    }
    fields.iter().try_for_each(|field| check_name(field.name(), &results))?;
    fields.extend(result_fields(&shape, &results));
    let mut writer = Writer {
        runtime,
        prompt,
        options,
        answers: Answers::open(directory, &info.job)?,
        reasons: Reasons::new(manifest)?,
        columns,
        names: results,
        shape,
        sink: Sink::create(output, options.format, fields, options.escapes_formulas)?,
        summary: ResultsSummary::default(),
    };
    let mut rows = Rows::new(sources.to_vec(), None);
    while let Some(chunk) = rows.next_chunk()? {
        writer.write_chunk(&chunk)?;
        progress(writer.summary.rows);
    }
    // The files may have changed while they were read.
    check_rows(&info, writer.summary.rows)?;
    info.check_sources(sources, options.checks_times)?;
    writer.finish()
}

/// Returns an error if the job is not completely prepared, or was prepared with another prompt.
fn check_job(info: &JobInfo, prompt: &Prompt, directory: &Path) -> Result<()> {
    info.check_prepared(directory)?;
    if info.prompt_hash == prompt.definition_hash() {
        return Ok(());
    }
    let message = format_args!("the job in `{}` was prepared with another prompt", directory.display());
    Err(Error::new(Kind::InvalidBatch, message).with_help("use the prompt as it was when the job was prepared"))
}

/// Returns an error if the files of rows do not have as many rows as when the job was prepared.
fn check_rows(info: &JobInfo, found: u64) -> Result<()> {
    match info.rows {
        Some(expected) if expected != found => {
            let message = format_args!("the files have {found} rows, and the job was prepared with {expected}");
            Err(Error::new(Kind::InvalidRows, message).with_help("name the files that the job was prepared with"))
        }
        _ => Ok(()),
    }
}

/// Returns an error if the results would replace a file of rows.
fn check_output(sources: &[Source], output: &Path) -> Result<()> {
    let Ok(real) = output.canonicalize() else { return Ok(()) };
    match sources.iter().any(|source| source.path.canonicalize().is_ok_and(|path| path == real)) {
        false => Ok(()),
        true => Err(Error::new(Kind::InvalidBatch, format_args!("`{}` has the rows", output.display()))
            .with_help("write the results to another file")),
    }
}

/// Returns the names of all columns with results.
fn names(shape: &Shape, prefix: &str) -> Vec<String> {
    let values = shape.columns.iter().map(|(name, _)| name.as_str());
    values.chain(OTHER_COLUMNS).map(|name| format!("{prefix}{name}")).collect()
}

fn check_name(column: &str, results: &[String]) -> Result<()> {
    if !results.iter().any(|name| name == column) {
        return Ok(());
    }
    Err(Error::new(Kind::InvalidRows, format_args!("the rows already have a column `{column}`"))
        .with_help("choose other names for the results with a prefix, as in `--prefix result_`"))
}

fn result_fields(shape: &Shape, names: &[String]) -> Vec<Arc<Field>> {
    let kinds = shape.columns.iter().map(|(_, kind)| kind.data_type());
    let others = [DataType::Utf8, DataType::Utf8, DataType::UInt64, DataType::UInt64];
    let fields = names.iter().zip(kinds.chain(others));
    fields.map(|(name, kind)| Arc::new(Field::new(name, kind, true))).collect()
}

struct Writer<'a> {
    runtime: &'a Runtime,
    prompt: &'a Prompt,
    options: &'a ResultsOptions,
    answers: Answers,
    reasons: Reasons,
    /// The columns of the rows, for files that have columns.
    columns: Option<InputColumns>,
    /// The names of the columns with results.
    names: Vec<String>,
    shape: Shape,
    sink: Sink,
    summary: ResultsSummary,
}

impl Writer<'_> {
    fn write_chunk(&mut self, chunk: &Chunk) -> Result<()> {
        let mut bad = chunk.unreadable.iter().peekable();
        let (mut results, mut start, mut bytes) = (Vec::new(), 0, 0);
        for index in 0..chunk.len() {
            let unreadable = bad.next_if(|unreadable| unreadable.index == index);
            let result = self.result(chunk.first + index as u64, unreadable.map(|row| row.reason.as_str()))?;
            bytes += result.bytes;
            results.push(result);
            if bytes >= PIECE_BYTES {
                self.write_piece(chunk, start, &results)?;
                (start, bytes) = (index + 1, 0);
                results.clear();
            }
        }
        if results.is_empty() { Ok(()) } else { self.write_piece(chunk, start, &results) }
    }

    /// Returns the result of a row.
    fn result(&mut self, row: u64, unreadable: Option<&str>) -> Result<RowResult> {
        self.summary.rows += 1;
        let answer = self.answers.of_row(row)?;
        let reason = self.reasons.of_row(row)?;
        if let Some(reason) = unreadable.or(reason.as_ref().filter(|reason| reason.is_rejected()).map(|r| &*r.detail)) {
            self.summary.rejected += 1;
            // Nothing was sent for the row.
            self.summary.unknown += u64::from(answer.is_some());
            return Ok(RowResult::failed(reason));
        }
        let Some(answer) = answer else {
            self.summary.missing += 1;
            return Ok(RowResult::failed(
                reason.map_or_else(|| NO_ANSWER.to_owned(), |reason| reasons::shown(&reason)),
            ));
        };
        let is_answer = answer.is_answer();
        let result = RowResult::of_reply(self.runtime, self.prompt, &self.options.run, &self.shape, answer.reply);
        let summary = &mut self.summary;
        match (is_answer, &result.error) {
            (false, _) => summary.failed += 1,
            (true, None) => summary.answered += 1,
            (true, Some(_)) => summary.mismatched += 1,
        }
        summary.input_tokens += result.input_tokens.unwrap_or_default();
        summary.output_tokens += result.output_tokens.unwrap_or_default();
        Ok(result)
    }

    fn write_piece(&mut self, chunk: &Chunk, start: usize, results: &[RowResult]) -> Result<()> {
        match &self.columns {
            Some(columns) => {
                let mut arrays = columns.arrays(chunk, start, results.len())?;
                arrays.extend(self.arrays(results));
                self.sink.write_table(arrays, results.len())
            }
            None => self.write_objects(chunk, start, results),
        }
    }

    fn arrays(&self, results: &[RowResult]) -> Vec<ArrayRef> {
        let values = self.shape.columns.iter().enumerate().map(|(index, (_, kind))| {
            let values: Vec<_> = results.iter().map(|result| result.values.get(index)).collect();
            kind.array(&values)
        });
        let mut arrays: Vec<ArrayRef> = values.collect();
        let texts = |text: fn(&RowResult) -> Option<&str>| -> ArrayRef {
            Arc::new(results.iter().map(text).collect::<StringArray>())
        };
        let numbers = |number: fn(&RowResult) -> Option<u64>| -> ArrayRef {
            Arc::new(results.iter().map(number).collect::<UInt64Array>())
        };
        arrays.push(texts(|result| result.error.as_deref()));
        arrays.push(texts(|result| result.finish_reason.as_deref()));
        arrays.push(numbers(|result| result.input_tokens));
        arrays.push(numbers(|result| result.output_tokens));
        arrays
    }

    fn write_objects(&mut self, chunk: &Chunk, start: usize, results: &[RowResult]) -> Result<()> {
        let table = match &chunk.values {
            Values::Arrow(batch) => {
                let schema = batch.schema();
                let names = schema.fields().iter().map(|field| field.name().clone());
                let columns = batch.columns().iter().map(|array| (array, Column::new(array).ok()));
                Some(names.zip(columns).collect::<Vec<_>>())
            }
            Values::Json(_) => None,
        };
        for (index, result) in results.iter().enumerate() {
            let row = start + index;
            let mut object = match (&table, &chunk.values) {
                (Some(columns), _) => columns
                    .iter()
                    .map(|(name, (array, column))| (name.clone(), sink::value(array, column.as_ref(), row)))
                    .collect(),
                (None, Values::Json(rows)) => rows.get(row).cloned().unwrap_or_default(),
                (None, Values::Arrow(_)) => JsonMap::new(),
            };
            if let Some((name, _)) = object.iter().find(|(name, _)| self.names.contains(name)) {
                check_name(name, &self.names)?;
            }
            let values = self.shape.columns.len();
            let others: [Json; 4] = [
                json!(result.error),
                json!(result.finish_reason),
                json!(result.input_tokens),
                json!(result.output_tokens),
            ];
            for (at, name) in self.names.iter().enumerate() {
                let value = match at.checked_sub(values) {
                    None => result.values.get(at).cloned().unwrap_or_default(),
                    Some(other) => others.get(other).cloned().unwrap_or_default(),
                };
                object.insert(name.clone(), value);
            }
            self.sink.write_object(&object)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<ResultsSummary> {
        self.answers.finish()?;
        self.summary.unknown += self.answers.unknown;
        self.summary.conflicting = self.answers.conflicting;
        self.summary.formulas = self.sink.formulas;
        self.sink.finish()?;
        Ok(self.summary)
    }
}

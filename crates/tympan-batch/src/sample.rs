//! Measures rows before anything is sent: their tokens, the size of their requests, and how fast they are rendered.

use std::time::{Duration, Instant};

use tympan_core::wire;
use tympan_core::wire::catalog::Catalog;
use tympan_core::{Error, Kind, Message, Prompt, Result};
use tympan_runtime::model::estimate::{Estimate, answer_tokens};
use tympan_runtime::model::tokens::Encoding;
use tympan_runtime::{RunOptions, Runtime};

use crate::columns::Bindings;
use crate::limits::Target;
use crate::prepare::LineWriter;
use crate::price::Price;
use crate::render::{Arena, RowRenderer};
use crate::rows::{Chunk, Rows, Source, Values};
use crate::way::batch_target;

/// The identifier of the requests that are measured. Real ones have the same length.
const JOB: &str = "t0123456789abcdef";

/// What is measured.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SampleOptions {
    /// Pairs of an input and the column that its values come from.
    pub map: Vec<(String, String)>,
    /// The variant of the prompt.
    pub variant: Option<String>,
    /// The models, by what is different from the prompt. The first one decides about the speed.
    pub models: Vec<RunOptions>,
    /// The most rows to measure. `None` measures all.
    pub max_rows: Option<u64>,
}

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Sample {
    /// The number of rows that were read.
    pub rows: u64,
    /// The number of rows that would be rejected.
    pub rejects: u64,
    /// Whether all rows were measured.
    pub is_complete: bool,
    /// The time for rendering rows and writing requests, on one core.
    pub time: Duration,
    /// What was measured for each model.
    pub models: Vec<ModelSample>,
}

/// What was measured for a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelSample {
    /// The name of the provider.
    pub provider: String,
    /// The name of the model.
    pub model: Option<String>,
    /// The form of files for the provider's batch API, if there is one for the protocol.
    pub target: Option<Target>,
    /// The size of all requests.
    pub bytes: u64,
    /// The input tokens of all requests.
    pub input_tokens: u64,
    /// The input tokens of the largest request.
    pub most_tokens: u64,
}

impl Sample {
    /// Returns how many of this many rows become requests, judging by the sample.
    pub fn requests_of(&self, rows: u64) -> u64 {
        scaled(self.rows.saturating_sub(self.rejects), rows, self.rows)
    }

    /// Returns the number of rows that one core renders in a second.
    #[expect(clippy::cast_precision_loss, reason = "it is a measurement")]
    pub fn rows_per_second(&self) -> Option<f64> {
        let seconds = self.time.as_secs_f64();
        (seconds > 0.0 && self.rows > 0).then(|| self.rows as f64 / seconds)
    }
}

impl ModelSample {
    /// Estimates the tokens and the cost of direct calls for this many rows.
    pub fn estimate(&self, sample: &Sample, rows: u64, prompt: &Prompt, catalog: &Catalog) -> Estimate {
        let requests = sample.requests_of(rows);
        if self.provider == wire::echo::ECHO {
            return Estimate::default();
        }
        let (answer, basis) = if self.is_embedding(prompt) { Default::default() } else { answer_tokens(prompt) };
        let input_tokens = scaled(self.input_tokens, rows, sample.rows);
        let output_tokens = answer.saturating_mul(requests);
        let total_tokens = input_tokens.saturating_add(output_tokens);
        let usage =
            wire::response::Usage { input_tokens, output_tokens, total_tokens, ..wire::response::Usage::default() };
        let price = Price { catalog, provider: &self.provider, model: self.model.as_deref(), share: 1.0 };
        let cost = price.cost(&usage);
        Estimate::new(requests, &usage, cost, basis)
    }

    /// Returns the size of the requests of this many rows.
    pub fn bytes_of(&self, sample: &Sample, rows: u64) -> u64 {
        scaled(self.bytes, rows, sample.rows)
    }

    fn is_embedding(&self, prompt: &Prompt) -> bool {
        let model = prompt.spec().model.as_ref();
        model.and_then(|model| model.api_type.as_deref()) == Some("embedding")
    }
}

/// Returns an amount of a sample for another number of rows.
fn scaled(amount: u64, rows: u64, sample: u64) -> u64 {
    let scaled = u128::from(amount) * u128::from(rows) / u128::from(sample.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// Returns the number of rows of all files. Files that do not store it are read.
///
/// # Errors
/// Returns an error if a file cannot be read.
pub fn count_rows(sources: &[Source]) -> Result<u64> {
    let mut count = 0;
    for source in sources {
        count += match source.stored_rows()? {
            Some(rows) => rows,
            None => {
                let mut rows = Rows::new(vec![source.clone()], None);
                let mut read = 0;
                while let Some(chunk) = rows.next_chunk()? {
                    read += chunk.len() as u64;
                }
                read
            }
        };
    }
    Ok(count)
}

/// Renders rows and measures their requests. Nothing is written or sent. `progress` is called with the number of rows.
///
/// # Errors
/// Returns an error if a file cannot be read, if an input has no column, or if there is no model for requests. Rows that
/// would be rejected are counted.
pub fn measure(
    runtime: &Runtime,
    prompt: &Prompt,
    sources: &[Source],
    options: &SampleOptions,
    progress: &dyn Fn(u64),
) -> Result<Sample> {
    let first = sources.first().ok_or_else(|| Error::new(Kind::InvalidRows, "there are no files of rows"))?;
    let columns = first.columns()?;
    let names: Vec<_> = columns.iter().map(String::as_str).collect();
    let bindings = Bindings::new(prompt, &names, &options.map)?;
    let read = bindings.columns().iter().map(|bound| bound.column.clone()).collect();
    let renderer = RowRenderer::new(runtime, prompt, options.variant.as_deref(), bindings)?;
    let mut models = options.models.iter().map(|run| Measured::new(prompt, run)).collect::<Result<Vec<_>>>()?;
    let mut sample = Sample::default();
    let mut rows = Rows::new(sources.to_vec(), Some(read));
    loop {
        let most = options
            .max_rows
            .map_or(usize::MAX, |most| usize::try_from(most.saturating_sub(sample.rows)).unwrap_or(usize::MAX));
        if most == 0 {
            break;
        }
        let started = Instant::now();
        let Some(chunk) = rows.next_chunk()? else {
            sample.is_complete = true;
            break;
        };
        let (all, rejects) = render(&renderer, &chunk, most)?;
        if let Some(first) = models.first_mut() {
            first.write_all(&all);
        }
        sample.time += started.elapsed();
        models.iter_mut().skip(1).for_each(|model| model.write_all(&all));
        count(&mut models, &all);
        sample.rows += chunk.len().min(most) as u64;
        sample.rejects += rejects;
        progress(sample.rows);
    }
    sample.models = models.into_iter().map(|model| model.sample).collect();
    Ok(sample)
}

/// Renders the first rows of a chunk, and counts those that would be rejected.
fn render(renderer: &RowRenderer<'_>, chunk: &Chunk, most: usize) -> Result<(Vec<Vec<Message>>, u64)> {
    let (mut all, mut rejects) = (Vec::new(), 0);
    let mut bad = chunk.unreadable.iter().peekable();
    let mut arena = Arena::default();
    let bound = match &chunk.values {
        Values::Arrow(batch) => Some(renderer.bind(batch)?),
        Values::Json(_) => None,
    };
    for index in 0..chunk.len().min(most) {
        if bad.next_if(|unreadable| unreadable.index == index).is_some() {
            rejects += 1;
            continue;
        }
        let rendered = match (&bound, &chunk.values) {
            (Some(bound), _) => bound.with_row(index, arena.next(), |inputs| renderer.messages(inputs)),
            (None, Values::Json(rows)) => {
                let row = rows.get(index).map(|row| renderer.bindings().of_json(row)).unwrap_or_default();
                renderer.messages((&row).into())
            }
            (None, Values::Arrow(_)) => continue,
        };
        match rendered {
            Ok(messages) => all.push(messages),
            Err(_) => rejects += 1,
        }
    }
    Ok((all, rejects))
}

/// Counts the tokens of messages for each model. Models with the same vocabulary share the counts.
fn count(models: &mut [Measured<'_>], all: &[Vec<Message>]) {
    for encoding in [Encoding::Cl100k, Encoding::O200k] {
        if !models.iter().any(|model| model.encoding == encoding) {
            continue;
        }
        for messages in all {
            let tokens = messages.iter().map(|message| encoding.count_message(message) as u64).sum();
            for model in models.iter_mut().filter(|model| model.encoding == encoding) {
                model.sample.input_tokens += tokens;
                model.sample.most_tokens = model.sample.most_tokens.max(tokens);
            }
        }
    }
}

/// A model, and what was measured for it.
struct Measured<'a> {
    sample: ModelSample,
    lines: LineWriter<'a>,
    encoding: Encoding,
    line: Vec<u8>,
}

impl<'a> Measured<'a> {
    fn new(prompt: &'a Prompt, run: &'a RunOptions) -> Result<Self> {
        let selection = run.select_model(prompt);
        let target = batch_target(prompt, run);
        let lines = LineWriter::new(target.unwrap_or(Target::JsonLines), prompt, run, JOB)?;
        let target = target.filter(|_| wire::catalog::batch_share(selection.provider).is_some());
        let (provider, model) = (selection.provider.to_owned(), selection.model.map(str::to_owned));
        let sample = ModelSample { provider, model, target, ..ModelSample::default() };
        let encoding = Encoding::of_model(selection.model.unwrap_or_default());
        Ok(Self { sample, lines, encoding, line: Vec::new() })
    }

    fn write_all(&mut self, all: &[Vec<Message>]) {
        for (row, messages) in all.iter().enumerate() {
            self.line.clear();
            // A row that this model cannot take has no size.
            if self.lines.write(row as u64, messages, &mut self.line).is_ok() {
                self.sample.bytes += self.line.len() as u64;
            }
        }
    }
}

//! Results of rows: what a model answered, as values of the declared outputs.

use serde_json::{Value as Json, json};
use tympan_core::wire::response::FinishReason;
use tympan_core::{Outcome, Prompt};
use tympan_runtime::{Run, RunOptions, Runtime};

use super::line::Reply;
use super::types::ColumnType;

/// The name of the column with the text of answers, if the prompt declares no outputs.
const ANSWER: &str = "answer";
/// The name of the column with embeddings.
const EMBEDDING: &str = "embedding";

/// The columns for the values of answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shape {
    kind: ShapeKind,
    pub(crate) columns: Vec<(String, ColumnType)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShapeKind {
    /// One column for each declared output.
    Outputs,
    /// One column with text.
    Answer,
    /// One column with a list of numbers.
    Embedding,
}

impl Shape {
    /// Returns the columns for the answers to a prompt.
    pub(crate) fn of_prompt(prompt: &Prompt, run: &RunOptions) -> Self {
        let outputs = &prompt.spec().outputs;
        // A property without a name holds the schema of an object that may have any properties.
        if !outputs.is_empty() && outputs.iter().all(|output| !output.name.is_empty()) {
            let columns = outputs.iter().map(|output| (output.name.clone(), ColumnType::of_property(output)));
            return Self { kind: ShapeKind::Outputs, columns: columns.collect() };
        }
        if outputs.is_empty() && run.select_model(prompt).api_type == Some("embedding") {
            let numbers = ColumnType::List(Box::new(ColumnType::Float));
            return Self { kind: ShapeKind::Embedding, columns: vec![(EMBEDDING.to_owned(), numbers)] };
        }
        Self { kind: ShapeKind::Answer, columns: vec![(ANSWER.to_owned(), ColumnType::Text)] }
    }

    /// Returns the values of the columns.
    ///
    /// # Errors
    /// Returns what is wrong with the answer.
    fn values(&self, run: &Run) -> Result<Vec<Json>, String> {
        if let Some(refusal) = &run.refusal {
            return Err(format!("the model refused to answer: {refusal}"));
        }
        if let Outcome::ToolCalls(calls) = &run.outcome {
            let name = calls.first().map_or("", |call| call.name.as_str());
            return Err(format!("expected an answer, found a call of the tool `{name}`"));
        }
        if !run.outcome.problems().is_empty() {
            return Err(run.outcome.problems().join("; "));
        }
        match (self.kind, &run.outcome) {
            (ShapeKind::Outputs, Outcome::Structured(structured)) => {
                let values = self.columns.iter().map(|(name, kind)| {
                    let value = structured.value.get(name).unwrap_or(&Json::Null);
                    kind.check(value, name).map(|()| value.clone())
                });
                values.collect()
            }
            (ShapeKind::Outputs, _) => Err(match run.finish_reason {
                Some(FinishReason::Length) => {
                    "expected JSON, found text that was cut off at the token limit".to_owned()
                }
                _ => "expected JSON with the declared outputs, found text".to_owned(),
            }),
            (ShapeKind::Embedding, Outcome::Embedding(vector)) => Ok(vec![json!(vector)]),
            (ShapeKind::Embedding, _) => Err("expected one embedding, found something else".to_owned()),
            (ShapeKind::Answer, outcome) => Ok(vec![match outcome.to_json() {
                Json::String(text) => Json::String(text),
                other => Json::String(other.to_string()),
            }]),
        }
    }
}

/// The result of a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RowResult {
    /// The values of the columns, if there is no error.
    pub(crate) values: Vec<Json>,
    pub(crate) error: Option<String>,
    pub(crate) finish_reason: Option<String>,
    pub(crate) input_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
    /// The size in memory, roughly.
    pub(crate) bytes: usize,
}

impl RowResult {
    /// Creates the result of a row that has only an error.
    pub(crate) fn failed(error: impl Into<String>) -> Self {
        let error = error.into();
        Self { bytes: error.len(), error: Some(error), ..Self::default() }
    }

    /// Converts a reply as a single call would.
    pub(crate) fn of_reply(
        runtime: &Runtime,
        prompt: &Prompt,
        options: &RunOptions,
        shape: &Shape,
        reply: Reply,
    ) -> Self {
        let run = match reply {
            Reply::Error { message, code } => {
                return Self::failed(match code.filter(|code| !message.contains(code.as_str())) {
                    Some(code) => format!("{message} ({code})"),
                    None => message,
                });
            }
            Reply::Body(body) => runtime.process_with(prompt, &body, options),
            Reply::Response(response) => runtime.finish(prompt, *response),
        };
        let run = match run {
            Ok(run) => run,
            Err(error) => return Self::failed(error.to_string()),
        };
        let mut result = match shape.values(&run) {
            Ok(values) => Self { bytes: values.iter().map(size).sum(), values, ..Self::default() },
            Err(error) => Self::failed(error),
        };
        result.finish_reason = run.finish_reason.as_ref().map(|reason| reason.as_str().to_owned());
        result.input_tokens = run.usage.as_ref().map(|usage| usage.input_tokens);
        result.output_tokens = run.usage.as_ref().map(|usage| usage.output_tokens);
        result
    }
}

/// Returns the size of a value in memory, roughly. Values come from a parser that bounds their depth.
fn size(value: &Json) -> usize {
    let own = size_of::<Json>();
    own + match value {
        Json::String(text) => text.len(),
        Json::Array(items) => items.iter().map(size).sum(),
        Json::Object(map) => map.iter().map(|(key, value)| key.len() + size(value)).sum(),
        Json::Null | Json::Bool(_) | Json::Number(_) => 0,
    }
}

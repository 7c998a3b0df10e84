//! Rows that cannot become requests.

use serde_json::{Value as Json, json};
use tympan_core::{Error, JsonMap};

/// A row that was rejected.
#[derive(Clone, Debug, PartialEq)]
pub struct Reject {
    /// The number of the row, counted from 0 through all files.
    pub row: u64,
    /// The line in the file, if it has lines and could not be read.
    pub line: Option<u64>,
    /// The code of the error.
    pub code: &'static str,
    /// The error.
    pub message: String,
    /// The advice that belongs to the error.
    pub help: Option<String>,
    /// The inputs of the row, if they could be read.
    pub inputs: Option<JsonMap>,
}

impl Reject {
    pub(crate) fn new(row: u64, error: &Error, inputs: Option<JsonMap>) -> Self {
        let help = error.help().map(str::to_owned);
        Self { row, line: None, code: error.code(), message: error.to_string(), help, inputs }
    }

    pub(crate) fn unreadable(row: u64, line: Option<u64>, reason: &str) -> Self {
        let code = tympan_core::Kind::InvalidRows.code();
        Self { row, line, code, message: reason.to_owned(), help: None, inputs: None }
    }

    /// Converts the row to a line of `rejects.jsonl`.
    pub(crate) fn to_json(&self, source: &str) -> Json {
        let Self { row, line, code, message, help, inputs } = self;
        let mut json = json!({ "row": row, "source": source });
        if let Some(line) = line {
            json["line"] = (*line).into();
        }
        json["error"] = json!({ "code": code, "message": message });
        if let Some(help) = help {
            json["error"]["help"] = help.as_str().into();
        }
        if let Some(inputs) = inputs {
            json["inputs"] = Json::Object(inputs.clone());
        }
        json
    }
}

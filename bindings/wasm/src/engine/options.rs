//! The JSON arguments of a render.

use serde::Deserialize;
use serde_json::Value as Json;
use tympan_core::json::JsonMap;
use tympan_core::{Error, Guard, Kind, Result};

/// The options of a render and of a request.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Options {
    pub(super) variant: Option<String>,
    pub(super) guard: bool,
    pub(super) lenient: Option<bool>,
    pub(super) strict: Option<bool>,
    pub(super) seed: Option<u64>,
    pub(super) provider: Option<String>,
    pub(super) model: Option<String>,
    pub(super) api: Option<String>,
    pub(super) stream: bool,
}

impl Options {
    /// Reads options. Empty text means none.
    ///
    /// # Errors
    /// Returns an error if the text is not a JSON map with valid options.
    pub(super) fn parse(text: &str) -> Result<Self> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        serde_json::from_str(text).map_err(|error| invalid(format_args!("options: {error}"), "pass a JSON map"))
    }

    pub(super) fn guard(&self) -> Option<Guard> {
        self.guard.then(Guard::default)
    }
}

/// Reads inputs. Empty text means none.
///
/// # Errors
/// Returns an error if the text is not a JSON map. It does not quote the text.
pub(super) fn inputs(text: &str) -> Result<JsonMap> {
    if text.trim().is_empty() {
        return Ok(JsonMap::new());
    }
    match serde_json::from_str(text) {
        Ok(Json::Object(map)) => Ok(map),
        _ => Err(invalid("inputs: expected a JSON map", "pass a map from the names of the inputs to their values")),
    }
}

pub(super) fn invalid(message: impl std::fmt::Display, help: &str) -> Error {
    Error::new(Kind::InvalidInput, message).with_help(help)
}

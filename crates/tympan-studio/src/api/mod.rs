//! The functions of the server, one file per topic.

pub(crate) mod count;
pub(crate) mod diff;
pub(crate) mod files;
pub(crate) mod journal;
pub(crate) mod lsp;
pub(crate) mod run;
pub(crate) mod test;
pub(crate) mod trace;
pub(crate) mod watch;

use axum::body::Bytes;
use axum::http::Uri;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tympan_core::json::JsonMap;

use crate::access::query_value;
use crate::failure::{Answer, Failure};
use crate::project::RelativePath;

/// Reads the JSON of a request. Its body is already limited.
///
/// # Errors
/// Returns an error if the body is not valid JSON, or not what is expected.
fn parse<T: DeserializeOwned>(body: &Bytes) -> Answer<T> {
    serde_json::from_slice(body)
        .map_err(|error| Failure::invalid(format!("the body of the request is invalid: {error}")))
}

/// Checks a path.
///
/// # Errors
/// Returns an error if it is not one of a file that the studio may show.
fn checked(path: &str) -> Answer<RelativePath> {
    RelativePath::parse(path).ok_or_else(|| {
        Failure::forbidden("the path is not one of a file in the folder")
            .with_help("paths are relative, and lead neither upwards nor to hidden files")
    })
}

/// Returns the path in the query of an address.
///
/// # Errors
/// Returns an error if there is none, or if it is invalid.
fn path_of(uri: &Uri) -> Answer<RelativePath> {
    checked(&query_value(uri, "path").ok_or_else(|| Failure::invalid("the address has no `path`"))?)
}

/// Runs code that blocks, such as one that reads files.
///
/// # Errors
/// Returns the error of the code, or an error if it panicked.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Answer<T> + Send + 'static) -> Answer<T> {
    let failed = |_| Failure::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, "internal", "the request failed");
    tokio::task::spawn_blocking(work).await.map_err(failed)?
}

/// A prompt to render, as the page describes it.
#[derive(Debug, Deserialize)]
struct RenderRequest {
    path: String,
    /// The text in the editor, if it is not the one of the file.
    text: Option<String>,
    #[serde(default)]
    inputs: JsonMap,
    #[serde(default)]
    options: RequestOptions,
}

/// The options of a render or a run.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RequestOptions {
    variant: Option<String>,
    guard: bool,
    lenient: Option<bool>,
    strict: Option<bool>,
    seed: Option<u64>,
    provider: Option<String>,
    model: Option<String>,
    /// The directory of a cassette to record.
    record: Option<String>,
}

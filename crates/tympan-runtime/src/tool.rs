//! Tools: what a model may have called.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use tympan::turn::ToolRun;
use tympan::{Content, JsonMap};

use crate::io;

mod command;

pub use command::command;

/// Why a tool failed. Its words go to the model.
pub type ToolError = Box<dyn StdError + Send + Sync>;

/// Something that a model may have called.
///
/// It may fail, panic or never come back: the model is told so, within bounds, and the turn goes on.
pub trait Tool: Send + Sync {
    /// Runs it.
    ///
    /// # Errors
    /// Whatever went wrong, in words for the model.
    fn call(&self, run: ToolRun) -> BoxFuture<'static, Result<ToolOutput, ToolError>>;

    /// How long it may take, if that is not what the turn says.
    fn timeout(&self) -> Option<Duration> {
        None
    }
}

/// What a tool returns.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutput(pub Content);

impl From<Content> for ToolOutput {
    fn from(content: Content) -> Self {
        Self(content)
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self(Content::text(text))
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Self(Content::text(text))
    }
}

impl From<Json> for ToolOutput {
    /// Text as it is, and everything else as JSON.
    fn from(value: Json) -> Self {
        match value {
            Json::String(text) => text.into(),
            other => other.to_string().into(),
        }
    }
}

/// A tool that is a function. It may block: it runs where waiting is allowed.
pub fn function<F, O, E>(function: F) -> Arc<dyn Tool>
where
    F: Fn(JsonMap) -> Result<O, E> + Send + Sync + 'static,
    O: Into<ToolOutput>,
    E: Into<ToolError>,
{
    Arc::new(Blocking(Arc::new(move |arguments| function(arguments).map(Into::into).map_err(Into::into))))
}

/// As [`function()`], with the arguments as a value of a type.
pub fn typed<A, F, O, E>(function: F) -> Arc<dyn Tool>
where
    A: DeserializeOwned,
    F: Fn(A) -> Result<O, E> + Send + Sync + 'static,
    O: Into<ToolOutput>,
    E: Into<ToolError>,
{
    Arc::new(Blocking(Arc::new(move |arguments| {
        let arguments = serde_json::from_value(Json::Object(arguments))?;
        function(arguments).map(Into::into).map_err(Into::into)
    })))
}

/// As [`function()`], for a function that is async. It must not block.
pub fn function_async<F, W, O, E>(function: F) -> Arc<dyn Tool>
where
    F: Fn(JsonMap) -> W + Send + Sync + 'static,
    W: Future<Output = Result<O, E>> + Send + 'static,
    O: Into<ToolOutput>,
    E: Into<ToolError>,
{
    Arc::new(Waiting(move |arguments| -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let running = function(arguments);
        Box::pin(async move { running.await.map(Into::into).map_err(Into::into) })
    }))
}

type Function = dyn Fn(JsonMap) -> Result<ToolOutput, ToolError> + Send + Sync;

struct Blocking(Arc<Function>);

impl Tool for Blocking {
    fn call(&self, run: ToolRun) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let function = self.0.clone();
        let arguments = Arc::unwrap_or_clone(run.arguments);
        Box::pin(async move {
            io::blocking(move || function(arguments)).await.unwrap_or_else(|_| Err("it panicked".into()))
        })
    }
}

struct Waiting<F>(F);

impl<F> Tool for Waiting<F>
where
    F: Fn(JsonMap) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync,
{
    fn call(&self, run: ToolRun) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        (self.0)(Arc::unwrap_or_clone(run.arguments))
    }
}

impl fmt::Debug for dyn Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tool")
    }
}

//! Loads prompts from files.

use std::path::Path;

use serde_json::json;
#[cfg(feature = "providers")]
use tympan_core::{Error, Kind};
use tympan_core::{Prompt, Result};

use crate::host::pipeline::default_runtime;
use crate::host::runtime::Runtime;
use crate::load::{load_prompt, load_prompt_str};
use crate::trace::Span;
use crate::trace::event;

impl Runtime {
    /// Loads a prompt file. Files named `.yaml`, `.yml`, `.json` or `.toml` are prompt definitions, files named `.md`
    /// are directives, and all others are `.prompty` files.
    ///
    /// # Errors
    /// Returns the first error in the file, with all other diagnostics in [`Error::others`], or an error if the file
    /// cannot be read.
    #[tracing::instrument(name = "load", level = "info", skip_all)]
    pub fn load(&self, path: impl AsRef<Path>) -> Result<Prompt> {
        let (span, path) = (self.tracer().start("load"), path.as_ref());
        span.inputs(|| json!({ "path": path.display().to_string() }));
        let prompt = load_prompt(path, self.load_options());
        event::record_prompt(&span, &prompt);
        prompt
    }

    /// Loads a prompt file: the async variant of [`Runtime::load`]. Inside a tokio runtime, files are read on a thread
    /// for blocking work.
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::load`].
    pub async fn load_async(&self, path: impl AsRef<Path>) -> Result<Prompt> {
        self.load_as(&self.tracer().start("load"), path.as_ref()).await
    }

    /// Loads a prompt file, and records it in a span.
    pub(crate) async fn load_as(&self, span: &Span, path: &Path) -> Result<Prompt> {
        span.inputs(|| json!({ "path": path.display().to_string() }));
        #[cfg(not(feature = "providers"))]
        let prompt = load_prompt(path, self.load_options());
        #[cfg(feature = "providers")]
        let prompt = match tokio::runtime::Handle::try_current() {
            Err(_) => load_prompt(path, self.load_options()),
            Ok(tokio) => {
                let (owned, options) = (path.to_owned(), self.load_options().clone());
                let log = tracing::info_span!("load");
                let loading = tokio.spawn_blocking(move || log.in_scope(|| load_prompt(&owned, &options)));
                loading.await.unwrap_or_else(|failure| {
                    Err(Error::new(Kind::UnreadableFile, format_args!("{}: {failure}", path.display())))
                })
            }
        };
        event::record_prompt(span, &prompt);
        prompt
    }

    /// Loads a prompt from the text of a prompt file. `name` identifies it in messages, and its references are relative
    /// to `base_dir`.
    ///
    /// # Errors
    /// Returns the first error in the text, with all other diagnostics in [`Error::others`].
    #[tracing::instrument(name = "load", level = "info", skip_all)]
    pub fn load_str(&self, text: &str, name: &str, base_dir: impl AsRef<Path>) -> Result<Prompt> {
        load_prompt_str(text, name, base_dir.as_ref(), self.load_options())
    }
}

/// Loads a prompt file with the default runtime. See [`Runtime::load`].
///
/// # Errors
/// Returns an error for the same reasons as [`Runtime::load`].
pub fn load(path: impl AsRef<Path>) -> Result<Prompt> {
    default_runtime().load(path)
}

/// Loads a prompt file with the default runtime: the async variant of [`load`].
///
/// # Errors
/// Returns an error for the same reasons as [`load`].
pub async fn load_async(path: impl AsRef<Path>) -> Result<Prompt> {
    default_runtime().load_async(path).await
}

/// Loads a prompt from the text of a prompt file with the default runtime. See [`Runtime::load_str`].
///
/// # Errors
/// Returns an error for the same reasons as [`Runtime::load_str`].
pub fn load_str(text: &str, name: &str, base_dir: impl AsRef<Path>) -> Result<Prompt> {
    default_runtime().load_str(text, name, base_dir)
}

//! Prompts from files.

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
    /// Loads a prompt file: a prompt definition if its name ends in `.yaml`, `.yml`, `.json` or `.toml`, a directive if
    /// it ends in `.md`, and a `.prompty` file otherwise.
    ///
    /// # Errors
    /// The first mistake in the file, with all others in [`Error::others`]; or why it cannot be read.
    #[tracing::instrument(name = "load", level = "info", skip_all)]
    pub fn load(&self, path: impl AsRef<Path>) -> Result<Prompt> {
        let (span, path) = (self.tracer().start("load"), path.as_ref());
        span.inputs(|| json!({ "path": path.display().to_string() }));
        let prompt = load_prompt(path, &self.options().load);
        event::loaded(&span, &prompt);
        prompt
    }

    /// The async twin of [`Runtime::load`]: inside a tokio runtime, files are read where waiting is allowed.
    ///
    /// # Errors
    /// As [`Runtime::load`].
    pub async fn load_async(&self, path: impl AsRef<Path>) -> Result<Prompt> {
        self.load_as(&self.tracer().start("load"), path.as_ref()).await
    }

    /// Loads as the stage that a span stands for.
    pub(crate) async fn load_as(&self, span: &Span, path: &Path) -> Result<Prompt> {
        span.inputs(|| json!({ "path": path.display().to_string() }));
        #[cfg(not(feature = "providers"))]
        let prompt = load_prompt(path, &self.options().load);
        #[cfg(feature = "providers")]
        let prompt = match tokio::runtime::Handle::try_current() {
            Err(_) => load_prompt(path, &self.options().load),
            Ok(tokio) => {
                let (owned, options) = (path.to_owned(), self.options().load.clone());
                let log = tracing::info_span!("load");
                let loading = tokio.spawn_blocking(move || log.in_scope(|| load_prompt(&owned, &options)));
                loading.await.unwrap_or_else(|failure| {
                    Err(Error::new(Kind::UnreadableFile, format_args!("{}: {failure}", path.display())))
                })
            }
        };
        event::loaded(span, &prompt);
        prompt
    }

    /// Loads a prompt from the text of a prompt file, which is called `name` in messages and whose references start
    /// at `base_dir`.
    ///
    /// # Errors
    /// The first mistake in the text, with all others in [`Error::others`].
    #[tracing::instrument(name = "load", level = "info", skip_all)]
    pub fn load_str(&self, text: &str, name: &str, base_dir: impl AsRef<Path>) -> Result<Prompt> {
        load_prompt_str(text, name, base_dir.as_ref(), &self.options().load)
    }
}

/// Loads a prompt file. See [`Runtime::load`].
///
/// # Errors
/// As [`Runtime::load`].
pub fn load(path: impl AsRef<Path>) -> Result<Prompt> {
    default_runtime().load(path)
}

/// The async twin of [`load`].
///
/// # Errors
/// As [`load`].
pub async fn load_async(path: impl AsRef<Path>) -> Result<Prompt> {
    default_runtime().load_async(path).await
}

/// Loads a prompt from the text of a prompt file. See [`Runtime::load_str`].
///
/// # Errors
/// As [`Runtime::load_str`].
pub fn load_str(text: &str, name: &str, base_dir: impl AsRef<Path>) -> Result<Prompt> {
    default_runtime().load_str(text, name, base_dir)
}

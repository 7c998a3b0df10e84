//! What the tests share.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use tempfile::TempDir;
use tympan_batch::limits::Target;
use tympan_batch::prepare::{PrepareOptions, Prepared, prepare};
use tympan_batch::rows::Source;
use tympan_core::{KindCheck, Prompt, Result};
use tympan_runtime::{Runtime, RuntimeOptions};

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/batch").join(name)
}

pub(crate) fn ticket() -> Prompt {
    tympan_runtime::load(fixture("ticket.prompty")).expect("the prompt of the fixtures loads")
}

pub(crate) fn runtime() -> Runtime {
    Runtime::new(RuntimeOptions { kinds: KindCheck::Error, ..RuntimeOptions::default() })
}

/// A job in a directory of its own.
pub(crate) struct Job {
    pub(crate) directory: TempDir,
    pub(crate) prompt: Prompt,
    pub(crate) sources: Vec<Source>,
    pub(crate) options: PrepareOptions,
}

impl Job {
    pub(crate) fn new(prompt: Prompt, paths: &[&Path]) -> Self {
        let sources = paths.iter().map(|path| Source::new(*path, None).expect("a known ending")).collect();
        let mut options = PrepareOptions::new(Target::OpenAi);
        options.threads = 2;
        Self { directory: TempDir::new().expect("a temporary directory"), prompt, sources, options }
    }

    pub(crate) fn prepare(&self) -> Result<Prepared> {
        prepare(&runtime(), &self.prompt, &self.sources, self.directory.path(), &self.options, &|_| {})
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns the lines of a file as JSON.
    pub(crate) fn lines(&self, name: &str) -> Vec<Json> {
        let text = std::fs::read_to_string(self.path(name)).expect("the file exists");
        text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
    }

    /// Returns the lines of all request files, in order.
    pub(crate) fn requests(&self, prepared: &Prepared) -> Vec<Json> {
        let files = prepared.files.iter().filter(|file| !file.name.is_empty());
        files.flat_map(|file| self.lines(&file.name)).collect()
    }
}

/// Returns the row of a request.
pub(crate) fn row(request: &Json) -> u64 {
    let id = request["custom_id"].as_str().expect("a request has an identifier");
    id.rsplit('-').next().and_then(|row| row.parse().ok()).expect("the identifier ends in the row")
}

/// Returns the text of the last message of a request.
pub(crate) fn last_text(request: &Json) -> &str {
    request["body"]["messages"].as_array().and_then(|all| all.last()?["content"].as_str()).unwrap_or_default()
}

//! What is known about a version of a document.

use std::path::PathBuf;

use tympan_core::Prompt;
use tympan_core::text::source::SourceFile;
use tympan_lint::{Finding, Options, check_file};

use crate::workspace::WorkspaceFiles;

/// The findings of a document, and its prompt as far as it can be loaded.
#[derive(Debug)]
pub(crate) struct Analysis {
    pub(crate) findings: Vec<Finding>,
    /// The prompt. If the file does not load, the part of it that can be parsed.
    pub(crate) prompt: Option<Prompt>,
    /// Whether the prompt loads, or the tests if this is a test file.
    pub(crate) loads: bool,
    /// The paths of the files that the findings depend on.
    pub(crate) dependencies: Vec<PathBuf>,
    /// The options of the check, with the names that the application registers.
    pub(crate) options: Options,
}

impl Analysis {
    pub(crate) fn new(source: &SourceFile, mut files: WorkspaceFiles<'_>, options: Options) -> Self {
        let checked = check_file(source, &mut files, &options);
        let loads = checked.prompt.is_some() || checked.suite.is_some();
        let prompt = checked.prompt.or(checked.partial);
        Self { findings: checked.findings, prompt, loads, dependencies: files.into_requested(), options }
    }

    /// Returns the analysis of a document that is not a prompt.
    pub(crate) fn empty() -> Self {
        Self { findings: Vec::new(), prompt: None, loads: false, dependencies: Vec::new(), options: Options::default() }
    }
}

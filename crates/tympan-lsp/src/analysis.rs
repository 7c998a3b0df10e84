//! What is known about a version of a document.

use std::path::PathBuf;

use tympan_core::Prompt;
use tympan_core::format::{Format, prompty};
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
    pub(crate) fn new(source: &SourceFile, format: Format, mut files: WorkspaceFiles<'_>, options: Options) -> Self {
        let checked = check_file(source, &mut files, &options);
        let loads = checked.prompt.is_some() || checked.suite.is_some();
        let prompt = checked.prompt.or_else(|| partial(source, format, &mut files));
        Self { findings: checked.findings, prompt, loads, dependencies: files.into_requested(), options }
    }

    /// Returns the analysis of a document that is not a prompt.
    pub(crate) fn empty() -> Self {
        Self { findings: Vec::new(), prompt: None, loads: false, dependencies: Vec::new(), options: Options::default() }
    }
}

/// Parses as much of a file as possible. Directives have no such parser.
fn partial(source: &SourceFile, format: Format, files: &mut WorkspaceFiles<'_>) -> Option<Prompt> {
    match format {
        Format::Prompty => {
            let (document, _) = prompty::parse_as_far_as_possible(source, files);
            let document = document?;
            Some(Prompt::from_document(document.spec, source.clone(), document.body.start, Vec::new()))
        }
        Format::Definition(syntax) => Some(Prompt::from_definition_as_far_as_possible(source.clone(), syntax).0),
        _ => None,
    }
}

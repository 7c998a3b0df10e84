//! The settings of the project that a document belongs to.

use std::path::{Path, PathBuf};

use gen_lsp_types::{Diagnostic, DiagnosticSeverity};
use tympan_core::text::source::SourceFile;
use tympan_lint::{Options, SETTINGS_FILE, Settings, SettingsError};
use tympan_runtime::file::read;

use crate::diagnostics::SOURCE;
use crate::document::Document;

/// The maximum size of a settings file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Returns the options for checking a document. They come from the closest settings file between the document and the
/// folder of the workspace that contains it. Without a workspace, only the document's own directory counts. A settings
/// file with mistakes is ignored; they are shown in the file itself.
pub(crate) fn options(folders: &[PathBuf], document: Option<&Path>) -> Options {
    let found = document.and_then(|document| {
        let directory = document.parent()?;
        let root =
            folders.iter().filter(|folder| directory.starts_with(folder)).max_by_key(|folder| folder.as_os_str().len());
        let root = root.map_or(directory, PathBuf::as_path);
        let mut directories = directory.ancestors().take_while(|ancestor| ancestor.starts_with(root));
        let (directory, text) = directories.find_map(|directory| Some((directory, read_in(directory)?)))?;
        let source = SourceFile::new(SETTINGS_FILE, text);
        let settings = Settings::parse(&source).ok()?;
        let path = document.strip_prefix(directory).unwrap_or(document);
        Some(settings.options(path))
    });
    found.unwrap_or_default()
}

/// Reads the settings file in a directory, but not through links that lead out of it.
fn read_in(directory: &Path) -> Option<String> {
    read::open_in(directory, SETTINGS_FILE).and_then(|file| read::text(file, MAX_BYTES)).ok()
}

/// Returns the mistakes in a document that is a settings file.
pub(crate) fn diagnostics(document: &Document) -> Option<Vec<Diagnostic>> {
    let is_settings = document.path.as_ref()?.file_name()? == SETTINGS_FILE;
    let diagnostic = |error: SettingsError| Diagnostic {
        range: document.range(error.span),
        severity: Some(DiagnosticSeverity::Error),
        source: Some(SOURCE.to_owned()),
        message: error.to_string().into(),
        code: None,
        code_description: None,
        tags: None,
        related_information: None,
        data: None,
    };
    let errors = || Settings::parse(document.source()).err().unwrap_or_default();
    is_settings.then(|| errors().into_iter().map(diagnostic).collect())
}

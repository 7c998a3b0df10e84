//! The files of the workspace: what prompts may refer to.

use std::path::{Path, PathBuf};

use tympan_core::format::{ReferencedFile, Resolve};
use tympan_core::{Error, Kind, Result};
use tympan_runtime::LoadOptions;
use tympan_runtime::load::References;

/// Resolves the references of a document. Without a workspace, the document's own directory counts as one.
pub(crate) struct WorkspaceFiles {
    options: LoadOptions,
    /// The directory of the document, if it is in the workspace.
    directory: Option<PathBuf>,
}

impl WorkspaceFiles {
    pub(crate) fn new(folders: &[PathBuf], document: Option<&Path>) -> Self {
        let options = LoadOptions { file_roots: folders.to_vec(), ..LoadOptions::default() };
        let directory = document.and_then(Path::parent).filter(|directory| is_inside(directory, folders));
        Self { options, directory: directory.map(Path::to_owned) }
    }

    /// Returns the folder at a path relative to the document, if it is in the workspace.
    pub(crate) fn folder(&self, path: &Path) -> Option<PathBuf> {
        let directory = self.directory.as_deref()?;
        let folder = directory.join(path).canonicalize().ok()?;
        let own = [directory.to_owned()];
        let roots = if self.options.file_roots.is_empty() { &own } else { self.options.file_roots.as_slice() };
        is_inside(&folder, roots).then_some(folder)
    }
}

/// Returns whether a directory is in one of the folders, after following links.
fn is_inside(directory: &Path, folders: &[PathBuf]) -> bool {
    let Ok(directory) = directory.canonicalize() else { return false };
    let mut canonical = folders.iter().filter_map(|folder| folder.canonicalize().ok());
    folders.is_empty() || canonical.any(|folder| directory.starts_with(folder))
}

impl Resolve for WorkspaceFiles {
    fn env(&mut self, _name: &str) -> Result<Option<String>> {
        Ok(None)
    }

    fn defers_env(&self) -> bool {
        true
    }

    fn file(&mut self, path: &str) -> Result<ReferencedFile> {
        match &self.directory {
            Some(directory) => References::new(directory, &self.options).file(path),
            None => Err(Error::new(Kind::FileOutsideRoot, path)
                .with_help("this prompt is not in a folder of the workspace: open its folder in the editor")),
        }
    }
}

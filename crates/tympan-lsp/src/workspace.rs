//! The files of the workspace: what prompts and tests may refer to.

use std::path::{Component, Path, PathBuf};

use tympan_core::format::{ReferencedFile, Resolve};
use tympan_core::{Error, Kind, Result};
use tympan_runtime::LoadOptions;
use tympan_runtime::load::References;

use crate::document::Documents;

/// Resolves the references of a document. Without a workspace, the document's own directory counts as one.
///
/// A file that is open in the editor has the text that the user sees, which may not be saved. It is subject to the same
/// limits as a file on disk.
pub(crate) struct WorkspaceFiles<'d> {
    options: LoadOptions,
    /// The directory of the document, if it is in the workspace.
    directory: Option<PathBuf>,
    open: &'d Documents,
    /// The paths of the files that were asked for, including those that do not exist.
    requested: Vec<PathBuf>,
}

impl<'d> WorkspaceFiles<'d> {
    pub(crate) fn new(folders: &[PathBuf], document: Option<&Path>, open: &'d Documents) -> Self {
        let options = LoadOptions { file_roots: folders.to_vec(), ..LoadOptions::default() };
        let directory = document.and_then(Path::parent).filter(|directory| is_inside(directory, folders));
        Self { options, directory: directory.map(Path::to_owned), open, requested: Vec::new() }
    }

    /// Returns the paths of the files that were asked for.
    pub(crate) fn into_requested(self) -> Vec<PathBuf> {
        self.requested
    }

    /// Returns the path of a file relative to the document, if the document may refer to files.
    pub(crate) fn path(&self, path: &str) -> Option<PathBuf> {
        Some(normal(&self.directory.as_deref()?.join(path)))
    }

    /// Returns the names of the files in the directory of the document, sorted.
    pub(crate) fn names_beside(&self) -> Vec<String> {
        let entries = self.directory.as_deref().and_then(|directory| directory.read_dir().ok());
        let names = entries.into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<_> = names.take(MAX_ENTRIES).collect();
        names.sort();
        names
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

/// The maximum number of files of a directory that are looked at.
const MAX_ENTRIES: usize = 10_000;

/// Returns a path without `.` and `..`. Links are not followed.
fn normal(path: &Path) -> PathBuf {
    let mut found = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(found.pop()),
            Component::CurDir => {}
            other => found.push(other),
        }
    }
    found
}

/// Returns whether a directory is in one of the folders, after following links.
fn is_inside(directory: &Path, folders: &[PathBuf]) -> bool {
    let Ok(directory) = directory.canonicalize() else { return false };
    let mut canonical = folders.iter().filter_map(|folder| folder.canonicalize().ok());
    folders.is_empty() || canonical.any(|folder| directory.starts_with(folder))
}

impl Resolve for WorkspaceFiles<'_> {
    fn env(&mut self, _name: &str) -> Result<Option<String>> {
        Ok(None)
    }

    fn defers_env(&self) -> bool {
        true
    }

    fn file(&mut self, path: &str) -> Result<ReferencedFile> {
        let Some(directory) = &self.directory else {
            return Err(Error::new(Kind::FileOutsideRoot, path)
                .with_help("this prompt is not in a folder of the workspace: open its folder in the editor"));
        };
        let target = normal(&directory.join(path));
        let saved = References::new(directory, &self.options).file(path);
        let open = self.open.at_path(&target);
        self.requested.push(target);
        match (saved, open) {
            (Ok(_), Some(open)) => Ok(ReferencedFile { text: open.text().to_owned() }),
            // A new file that was never saved. The directory exists, and so it is inside or outside of the workspace.
            (Err(error), Some(open)) if error.kind() == Kind::ReferencedFileNotFound => {
                let folder = self.folder(Path::new(path).parent().unwrap_or(Path::new("")));
                folder.map(|_| ReferencedFile { text: open.text().to_owned() }).ok_or(error)
            }
            (saved, _) => saved,
        }
    }
}

//! The versions that `tympan diff` compares: files, and files of git revisions.

use std::path::{Component, Path, PathBuf};

use tympan::file::read;
use tympan::load::{DEFAULT_MAX_FILE_BYTES, read_prompt_file};
use tympan::text::source::SourceFile;
use tympan_eval::revision::{Checkout, CheckoutLimits, Repository, RevisionError};

use crate::prompt_file::{is_stdin, read_stdin};
use crate::report::Failure;

/// A version of a prompt file.
pub(super) struct Source {
    /// The name as the user wrote it.
    pub(super) name: String,
    /// The text of the file.
    pub(super) text: SourceFile,
    /// The file that was read. For a revision, it is in a temporary directory, next to the files that it refers to.
    pub(super) file: PathBuf,
    /// The path that settings are chosen by.
    pub(super) path: PathBuf,
    _checkout: Option<Checkout>,
}

impl Source {
    /// Reads a version. A file with this name comes before a revision.
    ///
    /// # Errors
    /// Returns an error if the file or the revision cannot be read.
    pub(super) fn open(argument: &Path) -> Result<Self, Failure> {
        let name = argument.display().to_string();
        if is_stdin(argument) {
            let text = SourceFile::new("<stdin>", read_stdin()?);
            return Ok(Self { name, text, file: argument.to_owned(), path: argument.to_owned(), _checkout: None });
        }
        if let Some((revision, path)) = argument.to_str().and_then(revision_of)
            && !argument.exists()
        {
            return Self::open_revision(name.clone(), revision, path);
        }
        let text = read_prompt_file(argument, DEFAULT_MAX_FILE_BYTES)
            .map_err(|error| error.in_source(&SourceFile::new(&*name, ""), 0))?;
        Ok(Self { name, text, file: argument.to_owned(), path: argument.to_owned(), _checkout: None })
    }

    fn open_revision(name: String, revision: &str, path: &str) -> Result<Self, Failure> {
        let failed = |error: RevisionError| Failure::Usage(error.to_string());
        let repository = Repository::containing(&std::env::current_dir()?).map_err(failed)?;
        let commit = repository.revision(revision).map_err(failed)?;
        let relative = relative_path(&repository, path).ok_or_else(|| outside(path))?;
        let directory = relative.parent().unwrap_or(Path::new(""));
        let checkout = commit.checkout(directory, &CheckoutLimits::default()).map_err(failed)?;
        let file = checkout.path().join(relative.file_name().unwrap_or_default());
        if !file.is_file() {
            let shown = relative.display();
            let message = format!(
                "the revision `{revision}` has no file `{shown}` (paths are relative to the root of the repository; \
                 write `{revision}:./FILE` for a file in the working directory)"
            );
            return Err(Failure::Usage(message));
        }
        let text = read::open(&file).and_then(|file| read::text(file, DEFAULT_MAX_FILE_BYTES));
        let text = text.map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
        let (text, path) = (SourceFile::new(&*name, text), repository.root().join(relative));
        Ok(Self { name, text, file, path, _checkout: Some(checkout) })
    }
}

/// Splits `REV:PATH`. A single letter is the drive of a path on Windows.
fn revision_of(argument: &str) -> Option<(&str, &str)> {
    let (revision, path) = argument.split_once(':')?;
    let is_drive = revision.len() == 1 && path.starts_with('\\');
    (!is_drive && !path.is_empty()).then_some((revision, path))
}

/// Returns a path relative to the root of the repository, or `None` if it leads out of it.
fn relative_path(repository: &Repository, path: &str) -> Option<PathBuf> {
    let is_from_here = path.starts_with("./") || path.starts_with("../");
    let path = if is_from_here { repository.prefix().join(path) } else { PathBuf::from(path) };
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::Normal(part) => clean.push(part),
            Component::ParentDir if clean.pop() => {}
            _ => return None,
        }
    }
    clean.file_name()?;
    Some(clean)
}

fn outside(path: &str) -> Failure {
    Failure::Usage(format!("`{path}` is not a file in the repository: expected a path relative to its root"))
}

#[cfg(test)]
mod tests {
    use super::revision_of;

    #[test]
    fn revisions_and_paths_are_told_apart() {
        assert_eq!(revision_of("main:a.prompty"), Some(("main", "a.prompty")));
        assert_eq!(revision_of("HEAD~2:./a:b.prompty"), Some(("HEAD~2", "./a:b.prompty")));
        assert_eq!(revision_of(r"C:\a.prompty"), None);
        assert_eq!(revision_of("a.prompty"), None);
        assert_eq!(revision_of("main:"), None);
    }
}

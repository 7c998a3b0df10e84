//! Writes files of the project, so that they are never seen incomplete, and never over changes of somebody else.

use std::io::{self, ErrorKind, Write};
use std::sync::PoisonError;

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, OpenOptions};

use super::{FileKind, FileText, Project, RelativePath};

/// What a change is based on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Base<'h> {
    /// The file does not exist.
    New,
    /// The file has this hash.
    Hash(&'h str),
}

/// Why a file was not written.
#[derive(Debug)]
pub(crate) enum WriteError {
    /// The file is not what the change is based on. Contains what it is now, if it exists.
    Changed(Option<FileText>),
    /// Such files are not written.
    Kind,
    Io(io::Error),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Project {
    /// Writes a prompt, a test or a cassette, and returns its hash.
    ///
    /// # Errors
    /// Returns an error if the file is not what the change is based on, if it is of another kind, or if it cannot be
    /// written.
    pub(crate) fn write(&self, path: &RelativePath, text: &str, base: Base<'_>) -> Result<String, WriteError> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if !FileKind::may_be(path) {
            return Err(WriteError::Kind);
        }
        let now = match self.read_any(path, FileKind::max_bytes(path)) {
            Ok(now) => Some(now),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        // Other files do not become prompts, and prompts do not become other files, which could not be opened again.
        let is_written = |text: &str| FileKind::of(path, text).is_some_and(FileKind::is_written);
        if !is_written(text) || now.as_ref().is_some_and(|now| !is_written(&now.text)) {
            return Err(WriteError::Kind);
        }
        if let (Base::New, None) = (base, &now) {
            self.create_parents(path)?;
        }
        let directory = self.parent(path)?;
        match (base, now) {
            (Base::New, None) => create(&directory, path.name(), text)?,
            (Base::Hash(hash), Some(now)) if now.hash == hash => replace(&directory, path.name(), text)?,
            (_, now) => return Err(WriteError::Changed(now)),
        }
        Ok(FileText::new(text.to_owned()).hash)
    }
}

impl Project {
    /// Creates the directories that lead to a file, one after the other, and never through a link.
    ///
    /// # Errors
    /// Returns an error if a part of the path is not a directory, or cannot be created.
    pub(crate) fn create_parents(&self, path: &RelativePath) -> io::Result<()> {
        let mut directory = self.directory.try_clone()?;
        for name in path.parents() {
            match directory.create_dir(name) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                _ => directory = directory.open_dir_nofollow(name)?,
            }
        }
        Ok(())
    }
}

/// Creates a file, if there is none with this name.
fn create(directory: &Dir, name: &str, text: &str) -> Result<(), WriteError> {
    let beside = beside(directory, name, text)?;
    // A link to an existing name fails, so nothing that appeared in the meantime is replaced.
    let linked = directory.hard_link(&beside, directory, name);
    let _ = directory.remove_file(&beside);
    linked.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => WriteError::Changed(None),
        _ => WriteError::Io(error),
    })
}

/// Replaces a file. Its permissions stay the same.
fn replace(directory: &Dir, name: &str, text: &str) -> Result<(), WriteError> {
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No);
    let permissions = directory.open_with(name, &options)?.metadata()?.permissions();
    let beside = beside(directory, name, text)?;
    // If the name has become a link in the meantime, the link is replaced, because renaming does not follow links.
    let placed =
        directory.set_permissions(&beside, permissions).and_then(|()| directory.rename(&beside, directory, name));
    placed.map_err(|error| {
        let _ = directory.remove_file(&beside);
        WriteError::Io(error)
    })
}

/// Writes a new hidden file in the same directory, and returns its name.
fn beside(directory: &Dir, name: &str, text: &str) -> io::Result<String> {
    let random = getrandom::u64().map_err(io::Error::other)?;
    let beside = format!(".{name}.{random:016x}");
    let mut file = directory.open_with(&beside, OpenOptions::new().write(true).create_new(true))?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    match written {
        Ok(()) => Ok(beside),
        Err(error) => {
            let _ = directory.remove_file(&beside);
            Err(error)
        }
    }
}

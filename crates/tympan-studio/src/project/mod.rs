//! The files of the directory that a studio shows.

mod kind;
mod list;
mod path;
mod references;
mod write;

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use tympan_core::text::hash::sha256_hex;
use tympan_runtime::file::read;
use tympan_runtime::load::DEFAULT_MAX_FILE_BYTES;

pub(crate) use kind::FileKind;
pub(crate) use path::RelativePath;
pub(crate) use write::{Base, WriteError};

/// The maximum size of traces, journals and cassettes, in bytes.
const MAX_RECORD_BYTES: u64 = 64 << 20;

/// A directory. Everything is opened beneath its handle, one name after the other, and never through a link.
pub(crate) struct Project {
    root: PathBuf,
    directory: Dir,
    /// Held while a file is compared and replaced.
    writing: Mutex<()>,
}

/// The text of a file.
#[derive(Debug)]
pub(crate) struct FileText {
    pub(crate) text: String,
    /// The SHA-256 of the bytes.
    pub(crate) hash: String,
}

impl FileText {
    fn new(text: String) -> Self {
        let hash = sha256_hex(&text);
        Self { text, hash }
    }
}

impl Project {
    /// Opens a directory.
    ///
    /// # Errors
    /// Returns an error if it is not a directory, or cannot be read.
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        let root = root.canonicalize()?;
        let directory = Dir::open_ambient_dir(&root, ambient_authority())?;
        Ok(Self { root, directory, writing: Mutex::new(()) })
    }

    /// Returns the absolute path of the directory.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the name of the directory.
    pub(crate) fn name(&self) -> String {
        self.root.file_name().map_or_else(|| "/".to_owned(), |name| name.to_string_lossy().into_owned())
    }

    /// Returns the absolute path of a file, for code that only needs a name, or a directory that it checks itself.
    pub(crate) fn absolute(&self, path: &RelativePath) -> PathBuf {
        self.root.join(path.as_str())
    }

    /// Reads a file that the studio shows.
    ///
    /// # Errors
    /// Returns an error if the file does not exist, is not of a kind that is shown, is too large, or is not text, or if
    /// its path contains a link.
    pub(crate) fn read(&self, path: &RelativePath) -> io::Result<(FileKind, FileText)> {
        let text = self.read_any(path, FileKind::max_bytes(path))?;
        match FileKind::of(path, &text.text) {
            Some(kind) => Ok((kind, text)),
            None => Err(io::Error::new(ErrorKind::PermissionDenied, "not a file that the studio shows")),
        }
    }

    /// Reads a file of any kind, for prompts that refer to it.
    ///
    /// # Errors
    /// Returns an error if the file does not exist, is too large, or is not text, or if its path contains a link.
    pub(crate) fn read_any(&self, path: &RelativePath, most: u64) -> io::Result<FileText> {
        let directory = self.parent(path)?;
        let mut options = OpenOptions::new();
        options.read(true).nonblock(true).follow(FollowSymlinks::No);
        let file = directory.open_with(path.name(), &options).map_err(not_a_link)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(ErrorKind::PermissionDenied, "not a regular file"));
        }
        read::text(file.into_std(), most).map(FileText::new)
    }

    /// Opens the directory of a file.
    fn parent(&self, path: &RelativePath) -> io::Result<Dir> {
        let mut directory = self.directory.try_clone()?;
        for name in path.parents() {
            directory = directory.open_dir_nofollow(name).map_err(not_a_link)?;
        }
        Ok(directory)
    }
}

/// Replaces the errors for links, which differ between systems.
fn not_a_link(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::PermissionDenied => error,
        _ => io::Error::new(ErrorKind::PermissionDenied, "a part of the path is a link, or not what it should be"),
    }
}

//! Reads the files that a prompt refers to, and no others.
//!
//! A file is opened beneath an allowed directory, in a single step that no link can escape. Its type and size are then
//! checked on the open file, and its text is read from the same handle. No decision depends on a path that could refer
//! to another file a moment later.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use tympan_core::{Error, Kind, Result};

use crate::file::read;

/// The directories that a prompt may read from.
pub(super) struct Files<'o> {
    base: &'o Path,
    roots: &'o [PathBuf],
    max_bytes: u64,
    /// The prompt's own directory, opened when it is first needed.
    base_dir: Option<Dir>,
}

/// The result of opening a path beneath a directory.
enum Opened {
    File(File),
    /// The path, or a link in it, leads out of the directory.
    Outside,
    Failed(Error),
}

impl<'o> Files<'o> {
    pub(super) fn new(base: &'o Path, roots: &'o [PathBuf], max_bytes: u64) -> Self {
        Self { base, roots, max_bytes, base_dir: None }
    }

    /// Reads the text of the file at a path, as written in a prompt.
    pub(super) fn read(&mut self, path: &str) -> Result<String> {
        check_path(path)?;
        let target = Path::new(path);
        let file = if target.is_absolute() || climbs_out(target) {
            self.open_in_roots(&self.base.join(target), path)?
        } else {
            self.open_relative(path)?
        };
        self.read_text(file, path)
    }

    fn open_relative(&mut self, path: &str) -> Result<File> {
        let dir = match self.base_dir.take() {
            Some(dir) => dir,
            None => Dir::open_ambient_dir(self.base, ambient_authority()).map_err(|error| failure(path, &error))?,
        };
        let opened = open_beneath(&dir, Path::new(path), path);
        self.base_dir = Some(dir);
        match opened {
            Opened::File(file) => Ok(file),
            Opened::Failed(error) => Err(error),
            Opened::Outside => self.open_in_roots(&self.base.join(path), path),
        }
    }

    /// Opens a path if, after following links, it is inside the prompt's directory or one of the host's roots.
    fn open_in_roots(&self, target: &Path, written: &str) -> Result<File> {
        // Where the path leads now only suggests which root to try. Access is decided by the handle of the root.
        let Ok(target) = target.canonicalize().or_else(|_| absolute(target).ok_or(())) else {
            return Err(outside(written));
        };
        for root in self.roots.iter().map(PathBuf::as_path).chain([self.base]) {
            let Ok(canonical) = root.canonicalize() else { continue };
            let Ok(relative) = target.strip_prefix(&canonical) else { continue };
            let Ok(dir) = Dir::open_ambient_dir(&canonical, ambient_authority()) else { continue };
            match open_beneath(&dir, relative, written) {
                Opened::File(file) => return Ok(file),
                Opened::Failed(error) => return Err(error),
                Opened::Outside => {}
            }
        }
        Err(outside(written))
    }

    fn read_text(&self, file: File, path: &str) -> Result<String> {
        read::text(file, self.max_bytes).map_err(|error| {
            let failure = failure(path, &error);
            match error.kind() {
                ErrorKind::FileTooLarge => failure.with_help("LoadOptions::max_file_bytes sets this limit"),
                ErrorKind::InvalidData => failure.with_help("only text files can be included: save the file as UTF-8"),
                _ => failure,
            }
        })
    }
}

/// Opens a path beneath a directory.
fn open_beneath(dir: &Dir, path: &Path, written: &str) -> Opened {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    match read::open_beneath(dir, path) {
        Ok(file) => Opened::File(file),
        Err(error) if read::is_outside(&error) => Opened::Outside,
        Err(error) => Opened::Failed(failure(written, &error)),
    }
}

/// Rejects paths that have a different meaning on other systems, or that only a shell or a browser would interpret.
fn check_path(path: &str) -> Result<()> {
    let unusable = |reason: &str, help: &str| {
        Err(Error::new(Kind::InvalidReferencedFile, format_args!("{path}: {reason}")).with_help(help))
    };
    if path.is_empty() {
        return Err(Error::new(Kind::InvalidReferencedFile, "missing path")
            .with_help("write the path of a file, as in `${file:examples.json}`"));
    }
    if path.starts_with("//") || path.starts_with(r"\\") {
        return Err(outside(path));
    }
    if path.contains('\0') {
        let details = format_args!("{}: a path cannot contain a NUL character", path.escape_debug());
        return Err(Error::new(Kind::InvalidReferencedFile, details));
    }
    if path.starts_with('~') {
        return unusable("`~` is not expanded", "write a path relative to the prompt file");
    }
    if path.contains(':') {
        return unusable("a path cannot contain a colon", "use the path of a local file, without a drive letter");
    }
    if path.contains('\\') {
        return unusable("a path cannot contain a backslash", "separate directories with `/` on every platform");
    }
    Ok(())
}

/// Returns whether the path, taken as text, leaves the directory that it starts in. It does not have to exist.
fn climbs_out(path: &Path) -> bool {
    let mut depth = 0_usize;
    for component in path.components() {
        match component {
            Component::ParentDir if depth == 0 => return true,
            Component::ParentDir => depth -= 1,
            Component::Normal(_) => depth += 1,
            _ => {}
        }
    }
    false
}

/// Returns an absolute path without `.` and `..`, for a file that does not exist.
fn absolute(path: &Path) -> Option<PathBuf> {
    let mut result = PathBuf::new();
    for component in std::path::absolute(path).ok()?.components() {
        match component {
            Component::ParentDir => {
                result.pop();
            }
            other => result.push(other),
        }
    }
    Some(result)
}

fn outside(path: &str) -> Error {
    Error::new(Kind::FileOutsideRoot, path).with_help(
        "move the file into the directory of the prompt, or allow its directory with `--allow-dir DIR` or \
            LoadOptions::file_roots",
    )
}

fn failure(path: &str, error: &std::io::Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            Error::new(Kind::ReferencedFileNotFound, path).with_help("paths are relative to the prompt file")
        }
        _ => Error::new(Kind::InvalidReferencedFile, format_args!("{path}: {error}")),
    }
}

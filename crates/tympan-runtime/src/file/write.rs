//! Files that are never seen half written.

use std::fs::{self, OpenOptions};
use std::io::{Error, ErrorKind, Result, Write};
use std::path::{Path, PathBuf};

/// Makes a file that is complete as soon as it is there, and never takes the place of another.
///
/// # Errors
/// There is a file of that name already, or it cannot be written.
pub fn create(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    let beside = write_beside(path, bytes, mode)?;
    let linked = fs::hard_link(&beside, path);
    let _ = fs::remove_file(&beside);
    linked
}

/// Replaces the text of a file that somebody named, in one step: whoever reads it sees the old text or the new one.
///
/// # Errors
/// It is not a regular file, or cannot be written.
pub fn replace(path: &Path, text: &str) -> Result<()> {
    // What a link leads to is replaced, and not the link.
    let path = fs::canonicalize(path)?;
    rewrite(&path, text.as_bytes(), &fs::metadata(&path)?)
}

/// Writes a file whose name is fixed, in one step: creates it, or replaces the one that is there.
///
/// # Errors
/// Something else than a regular file has that name, such as a link, or it cannot be written. Nothing is ever written
/// through a link.
pub fn put(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => rewrite(path, bytes, &metadata),
        Err(error) if error.kind() == ErrorKind::NotFound => create(path, bytes, mode),
        Err(error) => Err(error),
    }
}

/// Replaces a file that is there.
fn rewrite(path: &Path, bytes: &[u8], metadata: &fs::Metadata) -> Result<()> {
    if metadata.is_symlink() {
        return Err(Error::new(ErrorKind::InvalidInput, "it is a symbolic link"));
    }
    if !metadata.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let beside = write_beside(path, bytes, 0o600)?;
    // A name that has become a link since then is replaced, too: renaming follows none.
    let placed = fs::set_permissions(&beside, metadata.permissions()).and_then(|()| fs::rename(&beside, path));
    placed.inspect_err(|_| {
        let _ = fs::remove_file(&beside);
    })
}

/// Writes a file of another name in the same folder. It has its mode from the beginning.
fn write_beside(path: &Path, bytes: &[u8], mode: u32) -> Result<PathBuf> {
    let random = getrandom::u64().map_err(Error::other)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{random:016x}"));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    let mut file = options.open(&beside)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    written.inspect_err(|_| {
        let _ = fs::remove_file(&beside);
    })?;
    Ok(beside)
}

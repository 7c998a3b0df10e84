//! Files that are never seen half written.

use std::fs::{self, OpenOptions};
use std::io::{Error, Result, Write};
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

/// Puts a new text in the place of a file's, in one step: whoever reads it sees the one or the other.
///
/// # Errors
/// It cannot be written.
pub fn replace(path: &Path, text: &str) -> Result<()> {
    // What a link leads to is replaced, and not the link.
    let path = fs::canonicalize(path)?;
    let permissions = fs::metadata(&path)?.permissions();
    let beside = write_beside(&path, text.as_bytes(), 0o600)?;
    let placed = fs::set_permissions(&beside, permissions).and_then(|()| fs::rename(&beside, &path));
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

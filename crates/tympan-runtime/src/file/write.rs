//! Writes files atomically, so that they are never seen incomplete.

use std::fs::{self, OpenOptions};
use std::io::{Error, ErrorKind, Result, Write};
use std::path::{Path, PathBuf};

/// Creates a file atomically, without replacing an existing one.
///
/// # Errors
/// Returns an error if the file already exists or cannot be written.
pub fn create(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    let beside = write_beside(path, bytes, mode)?;
    let linked = fs::hard_link(&beside, path);
    let _ = fs::remove_file(&beside);
    linked
}

/// Replaces the text of a file that the user named, atomically: readers see either the old or the new text.
///
/// # Errors
/// Returns an error if the file does not exist, is not a regular file, or cannot be written.
pub fn replace(path: &Path, text: &str) -> Result<()> {
    // Replace the target of a link, not the link itself.
    let path = fs::canonicalize(path)?;
    rewrite(&path, text.as_bytes(), &fs::metadata(&path)?)
}

/// Writes a file with a fixed name atomically, creating or replacing it.
///
/// # Errors
/// Returns an error if the name exists but is not a regular file, such as a link, or if it cannot be written. Never
/// writes through a link.
pub fn put(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => rewrite(path, bytes, &metadata),
        Err(error) if error.kind() == ErrorKind::NotFound => match create(path, bytes, mode) {
            // Somebody else has created it in the meantime.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                rewrite(path, bytes, &fs::symlink_metadata(path)?)
            }
            created => created,
        },
        Err(error) => Err(error),
    }
}

/// Replaces an existing file.
fn rewrite(path: &Path, bytes: &[u8], metadata: &fs::Metadata) -> Result<()> {
    if metadata.is_symlink() {
        return Err(Error::new(ErrorKind::InvalidInput, "is a symbolic link"));
    }
    if !metadata.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "not a regular file"));
    }
    let beside = write_beside(path, bytes, 0o600)?;
    // If the name has become a link in the meantime, the link is replaced, because renaming does not follow links.
    let placed = fs::set_permissions(&beside, metadata.permissions()).and_then(|()| fs::rename(&beside, path));
    placed.inspect_err(|_| {
        let _ = fs::remove_file(&beside);
    })
}

/// Writes a temporary file in the same folder. It has the given mode from the start.
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

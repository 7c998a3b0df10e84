//! Opens and reads files safely.
//!
//! Every file is opened without blocking, checked on the open handle, and read up to a size limit. Only regular files
//! are read, so a pipe cannot block and a device cannot produce endless data. Files that Tympan finds by itself, such
//! as `.env` or `tympan.lock`, are opened beneath their directory, and a link that leads out of it is an error.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

use cap_fs_ext::OpenOptionsSyncExt;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

/// Opens a file that the user named. Links are followed without restrictions.
///
/// In addition to regular files, this accepts file descriptors of this process, such as those that a shell passes for
/// `<(…)`: `/dev/stdin`, `/dev/fd/63`.
///
/// # Errors
/// Returns an error if the file does not exist, cannot be read, or is neither a regular file nor such a descriptor.
pub fn open(path: &Path) -> Result<File> {
    if !is_descriptor(path) {
        return open_regular(path);
    }
    let file = File::open(path)?;
    if file.metadata()?.is_dir() { Err(a_directory()) } else { Ok(file) }
}

/// Opens a regular file that the user named. Links are followed without restrictions.
///
/// # Errors
/// Returns an error if the file does not exist, cannot be read, or is not a regular file.
pub fn open_regular(path: &Path) -> Result<File> {
    open_regular_with(path, OpenOptions::new().read(true))
}

/// Opens a regular file that the user named, for appending. Links are followed without restrictions.
///
/// # Errors
/// Returns an error if the file does not exist, cannot be written, or is not a regular file.
pub(crate) fn open_to_append(path: &Path) -> Result<File> {
    open_regular_with(path, OpenOptions::new().read(true).append(true))
}

fn open_regular_with(path: &Path, options: &mut OpenOptions) -> Result<File> {
    let file = cap_std::fs::File::open_ambient_with(path, options.nonblock(true), ambient_authority());
    regular(file.map_err(without_waiting)?.into_std())
}

/// Opens a file in a directory that the user did not name: its name is fixed, or was found by listing the directory.
///
/// # Errors
/// Returns an error if the file does not exist, cannot be read, is not a regular file, or if a link leads out of the
/// directory.
pub fn open_in(directory: &Path, name: impl AsRef<Path>) -> Result<File> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let directory = Dir::open_ambient_dir(directory, ambient_authority())?;
    open_beneath(&directory, name.as_ref()).map_err(|error| {
        if is_outside(&error) {
            Error::new(ErrorKind::PermissionDenied, "symbolic link points outside its directory")
        } else {
            error
        }
    })
}

/// Opens a regular file beneath a directory. Use [`is_outside`] to recognize a path that leads out of it.
pub(crate) fn open_beneath(directory: &Dir, path: &Path) -> Result<File> {
    let file = directory.open_with(path, OpenOptions::new().read(true).nonblock(true));
    regular(file.map_err(without_waiting)?.into_std())
}

/// Returns whether a path was rejected because it leads out of its directory.
pub(crate) fn is_outside(error: &Error) -> bool {
    // Errors of the operating system have an error number; this one comes from cap-std.
    error.kind() == ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}

/// Reads all bytes of a file.
///
/// # Errors
/// Returns an error if the file has more than `most` bytes ([`ErrorKind::FileTooLarge`]) or cannot be read.
pub fn bytes(file: File, most: u64) -> Result<Vec<u8>> {
    let length = file.metadata()?.len();
    if length > most {
        return Err(too_large(most));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    // The file may grow in the meantime, and the length of a descriptor's data is unknown.
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_large(most)) } else { Ok(bytes) }
}

/// Reads the text of a file.
///
/// # Errors
/// Returns an error if [`bytes()`] does, or if the file is not UTF-8.
pub fn text(file: File, most: u64) -> Result<String> {
    String::from_utf8(bytes(file, most)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Error::new(ErrorKind::InvalidData, format!("byte {at} is not valid UTF-8"))
    })
}

fn too_large(most: u64) -> Error {
    Error::new(ErrorKind::FileTooLarge, format!("larger than {most} bytes"))
}

fn a_directory() -> Error {
    Error::new(ErrorKind::IsADirectory, "is a directory")
}

fn not_regular() -> Error {
    Error::new(ErrorKind::InvalidInput, "not a regular file")
}

fn regular(file: File) -> Result<File> {
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(a_directory());
    }
    if metadata.is_file() { Ok(file) } else { Err(not_regular()) }
}

/// Replaces the system's error for something that cannot be opened without blocking, such as a socket, or for a
/// directory.
fn without_waiting(error: Error) -> Error {
    #[cfg(unix)]
    if error.raw_os_error() == Some(NO_SUCH_DEVICE) {
        return not_regular();
    }
    if error.kind() == ErrorKind::IsADirectory { a_directory() } else { error }
}

/// `ENXIO`, which has the same number on every Unix.
#[cfg(unix)]
const NO_SUCH_DEVICE: i32 = 6;

/// Returns whether a path names a file descriptor of this process.
fn is_descriptor(path: &Path) -> bool {
    let is_numbered = || {
        let folders = [Path::new("/dev/fd"), Path::new("/proc/self/fd")];
        let number = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        path.parent().is_some_and(|parent| folders.contains(&parent))
            && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    cfg!(unix) && (path == Path::new("/dev/stdin") || is_numbered())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_known_by_their_paths() {
        for path in ["/dev/stdin", "/dev/fd/63", "/proc/self/fd/0"] {
            assert_eq!(is_descriptor(Path::new(path)), cfg!(unix), "{path}");
        }
        for path in ["/dev/fd", "/dev/fd/../zero", "/dev/fd/a", "/dev/zero", "dev/fd/3", "/dev/fd/3/x", "-"] {
            assert!(!is_descriptor(Path::new(path)), "{path}");
        }
    }
}

//! Key files: private keys that only their owner can read, and folders of trusted keys.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tympan_core::directive::signature::{SigningKey, TrustedKey};
use tympan_core::{Error, Kind, Result};

use crate::file::read;
use crate::file::write::create;

/// The maximum size of a key file, in bytes.
const MAX_KEY_BYTES: u64 = 64 << 10;

/// Generates a private key from the operating system's secure random number generator.
///
/// # Errors
/// Returns an error if the random number generator is not available.
pub fn generate_key() -> Result<SigningKey> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| Error::new(Kind::NoEntropy, error))?;
    Ok(SigningKey::from_bytes(&bytes))
}

/// Writes a private key to a new file that only its owner can read.
///
/// # Errors
/// Returns an error if the file already exists or cannot be written.
pub fn write_signing_key(path: impl AsRef<Path>, key: &SigningKey) -> Result<()> {
    let path = path.as_ref();
    create(path, key.to_pem().as_bytes(), 0o600).map_err(|error| failure(path, &error))
}

/// Reads a private key from a file.
///
/// # Errors
/// Returns an error if the file cannot be read, is not a private key, or is readable by others.
pub fn read_signing_key(path: impl AsRef<Path>) -> Result<SigningKey> {
    let path = path.as_ref();
    let file = read::open(path).map_err(|error| failure(path, &error))?;
    check_private(path, &file)?;
    SigningKey::from_pem(&read_text(path, file)?)
}

/// Writes a trusted key to a folder and returns the path of the file. Creates the folder if necessary.
///
/// # Errors
/// Returns an error if the folder already contains the key or cannot be written to.
pub fn write_trusted_key(folder: impl AsRef<Path>, key: &TrustedKey) -> Result<PathBuf> {
    let folder = folder.as_ref();
    fs::create_dir_all(folder).map_err(|error| failure(folder, &error))?;
    let path = folder.join(format!("{}.toml", key.fingerprint()));
    create(&path, key.to_toml().as_bytes(), 0o644).map_err(|error| failure(&path, &error))?;
    Ok(path)
}

/// Reads all keys in a folder: the files whose names end in `.toml`, in the order of their names.
///
/// # Errors
/// Returns an error if the folder cannot be read, if a file is not a valid key, or if a link leads out of the folder.
/// An invalid key is not skipped, because the person who added it expects it to be used.
pub fn read_trusted_keys(folder: impl AsRef<Path>) -> Result<Vec<TrustedKey>> {
    let folder = folder.as_ref();
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
    let entries = entries.map_err(|error| failure(folder, &error))?;
    let names = entries.into_iter().map(|entry| PathBuf::from(entry.file_name()));
    let mut names: Vec<_> =
        names.filter(|name| name.extension().is_some_and(|extension| extension == "toml")).collect();
    names.sort();
    names.iter().map(|name| read_trusted_key(folder, name)).collect()
}

fn read_trusted_key(folder: &Path, name: &Path) -> Result<TrustedKey> {
    let path = &folder.join(name);
    let file = read::open_in(folder, name).map_err(|error| failure(path, &error))?;
    let text = read_text(path, file)?;
    TrustedKey::from_toml(&text).map_err(|error| {
        let reason = error.message().split_once(": ").map_or(error.message(), |(_, reason)| reason);
        let named = Error::new(Kind::InvalidKey, format_args!("{}: {reason}", path.display()));
        error.help().map_or_else(|| named.clone(), |help| named.clone().with_help(help))
    })
}

fn read_text(path: &Path, file: File) -> Result<String> {
    read::text(file, MAX_KEY_BYTES).map_err(|error| failure(path, &error))
}

/// Rejects a private key that others can read, because it may have been copied.
fn check_private(path: &Path, file: &File) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = file.metadata().map_err(|error| failure(path, &error))?.permissions().mode();
        if mode & 0o077 != 0 {
            let details =
                format!("{}: the private key is readable by other users (mode {:03o})", path.display(), mode & 0o777);
            let help = "if nobody else has read it, run `chmod 600`; otherwise create a new key";
            return Err(Error::new(Kind::InvalidKey, details).with_help(help));
        }
    }
    #[cfg(not(unix))]
    let _ = (path, file);
    Ok(())
}

fn failure(path: &Path, error: &std::io::Error) -> Error {
    let name = path.display();
    match error.kind() {
        ErrorKind::AlreadyExists => Error::new(Kind::InvalidKey, format_args!("{name}: the file already exists"))
            .with_help("choose another path: keys are never overwritten"),
        ErrorKind::NotFound => Error::new(Kind::InvalidKey, format_args!("{name}: file not found")),
        _ => Error::new(Kind::InvalidKey, format_args!("{name}: {error}")),
    }
}

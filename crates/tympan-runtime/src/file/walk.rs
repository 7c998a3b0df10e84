//! Finds prompt files and test files in directories.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use ignore::{DirEntry, WalkBuilder};
use tympan_core::format::Format;
use tympan_core::text::source::SourceFile;
use tympan_core::{Error, Kind, Result};

use super::read;
use crate::load::{DEFAULT_MAX_FILE_BYTES, directory_of};

/// What a walk finds in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Found {
    /// A file that may be a prompt file or a test file by its name.
    File(PathBuf),
    /// A part of the directory that cannot be read, and the reason.
    Unreadable(PathBuf, String),
}

/// Returns the files in a directory that may be prompts or tests, sorted by name. Hidden files, generated files, what
/// ignore files such as `.gitignore` name, and excluded files and directories are left out. Links are not followed.
pub fn prompt_files(root: &Path, is_excluded: impl Fn(&Path) -> bool) -> Vec<Found> {
    let mut builder = WalkBuilder::new(root);
    // What is ignored should not depend on the user or on whether the directory is a clone.
    builder.require_git(false).git_global(false).sort_by_file_name(OsStr::cmp);
    let mut found = Vec::new();
    // An iterator that filters by a closure needs one that lives forever, so leave out excluded directories by hand.
    let mut excluded: Option<PathBuf> = None;
    for entry in builder.build() {
        match entry {
            Ok(entry) if entry.depth() == 0 => {}
            Ok(entry) => {
                let path = entry.path();
                if excluded.as_ref().is_some_and(|directory| path.starts_with(directory)) {
                    continue;
                }
                if is_left_out(&entry) || is_excluded(path) {
                    excluded = Some(path.to_owned());
                } else if entry.file_type().is_some_and(|kind| kind.is_file()) && may_be_prompt(path) {
                    found.push(Found::File(path.strip_prefix("./").unwrap_or(path).to_owned()));
                }
            }
            Err(error) => {
                let path = failed_path(&error).unwrap_or(root).to_owned();
                found.push(Found::Unreadable(path, reason(&error)));
            }
        }
    }
    found
}

/// Reads a file that was found in a directory. Returns `None` if it is neither a prompt nor a test file.
pub fn read_found(path: &Path) -> Option<Result<SourceFile>> {
    let format = Format::from_name(path)?;
    let file = read::open_in(directory_of(path), path.file_name().unwrap_or(OsStr::new("")));
    match file.and_then(|file| read::text(file, DEFAULT_MAX_FILE_BYTES)) {
        Ok(text) if format.matches(&text) => Some(Ok(SourceFile::new(path.display().to_string(), text))),
        Err(error) if matches!(format, Format::Prompty | Format::Tests(_)) => {
            Some(Err(unreadable(path, &error.to_string())))
        }
        // Most files with these extensions are not prompts, and this one was not named.
        _ => None,
    }
}

/// Returns the error for a file or a directory that cannot be read.
pub fn unreadable(path: &Path, reason: &str) -> Error {
    Error::new(Kind::UnreadableFile, format_args!("{}: {reason}", path.display()))
}

/// Returns whether a directory with this name contains generated or downloaded files.
pub fn is_skipped(name: &str) -> bool {
    name.starts_with('.') || matches!(name, "target" | "node_modules" | "__pycache__")
}

fn is_left_out(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_dir()) && is_skipped(&entry.file_name().to_string_lossy())
}

/// Returns whether files with this name can be prompts.
fn may_be_prompt(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default().to_ascii_lowercase();
    matches!(extension.as_str(), "prompty" | "yaml" | "yml" | "json" | "toml" | "md")
}

fn failed_path(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => failed_path(err),
        _ => None,
    }
}

fn reason(error: &ignore::Error) -> String {
    error.io_error().map_or_else(|| error.to_string(), ToString::to_string)
}

//! The files that a check looks at: those that are named, and those in directories.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use ignore::{DirEntry, WalkBuilder};

use crate::commands::lock::is_skipped;
use crate::project::absolute;
use crate::prompt_file::is_stdin;

/// The files to look at, in the order of the command line, and sorted within a directory.
pub(in crate::commands) struct Targets {
    pub(in crate::commands) files: Vec<Target>,
    /// The directories of the command line, with their index.
    pub(in crate::commands) directories: Vec<(usize, PathBuf)>,
}

/// A file to look at.
#[derive(Debug)]
pub(in crate::commands) struct Target {
    /// The index of the argument that it belongs to.
    pub(in crate::commands) argument: usize,
    pub(in crate::commands) kind: TargetKind,
}

#[derive(Debug)]
pub(in crate::commands) enum TargetKind {
    Stdin,
    /// A file that the user named.
    Named(PathBuf),
    /// A file in a directory that the user named. It may not be a prompt.
    Found(PathBuf),
    /// A part of a directory that could not be read.
    Unreadable(PathBuf, String),
}

impl Targets {
    pub(in crate::commands) fn collect(paths: &[PathBuf], is_excluded: impl Fn(&Path) -> bool + Send + Sync) -> Self {
        let mut targets = Self { files: Vec::new(), directories: Vec::new() };
        let mut seen = HashSet::new();
        for (argument, path) in paths.iter().enumerate() {
            if is_stdin(path) {
                if seen.insert(path.clone()) {
                    targets.files.push(Target { argument, kind: TargetKind::Stdin });
                }
            } else if path.is_dir() {
                targets.directories.push((argument, path.clone()));
                let found = walk(path, &is_excluded).into_iter().filter(|kind| match kind {
                    TargetKind::Found(path) => seen.insert(real(path)),
                    _ => true,
                });
                targets.files.extend(found.map(|kind| Target { argument, kind }));
            } else if seen.insert(real(path)) {
                targets.files.push(Target { argument, kind: TargetKind::Named(path.clone()) });
            }
        }
        targets
    }
}

/// Returns the same path for the same file.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| absolute(path))
}

/// Returns the files in a directory that may be prompts. Links are not followed.
fn walk(root: &Path, is_excluded: &(impl Fn(&Path) -> bool + Send + Sync)) -> Vec<TargetKind> {
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
                    found.push(TargetKind::Found(path.strip_prefix("./").unwrap_or(path).to_owned()));
                }
            }
            Err(error) => {
                let path = failed_path(&error).unwrap_or(root).to_owned();
                found.push(TargetKind::Unreadable(path, reason(&error)));
            }
        }
    }
    found
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

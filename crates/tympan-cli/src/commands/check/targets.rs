//! The files that a check looks at: those that are named, and those in directories.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use tympan::file::walk::{Found, prompt_files};

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
                let kinds = prompt_files(path, &is_excluded).into_iter().filter_map(|found| match found {
                    Found::File(path) => seen.insert(real(&path)).then_some(TargetKind::Found(path)),
                    Found::Unreadable(path, reason) => Some(TargetKind::Unreadable(path, reason)),
                    _ => None,
                });
                targets.files.extend(kinds.map(|kind| Target { argument, kind }));
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

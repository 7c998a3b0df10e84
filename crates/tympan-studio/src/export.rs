//! Static sites: the page with the files of a folder, for a web server without a back end.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use crate::api::files::samples_of;
use crate::assets::{self, ASSETS};
use crate::project::{FileKind, Project};

/// What was exported.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exported {
    /// The number of prompts and tests.
    pub files: usize,
    /// The page.
    pub index: PathBuf,
}

/// Writes the page and the prompts of a folder to another folder. Existing files of an earlier export are replaced.
///
/// # Errors
/// Returns an error if the folder cannot be read, if the target is not empty and not an earlier export, or if it cannot be
/// written.
pub fn export(root: &Path, target: &Path) -> io::Result<Exported> {
    let project = Project::open(root)?;
    check_target(target)?;
    let (files, count) = files(&project);
    let document = json!({"name": project.name(), "version": env!("CARGO_PKG_VERSION"), "files": files});
    fs::create_dir_all(target)?;
    let config = json!({"mode": "export", "title": project.name(), "read_only": true});
    for (path, bytes) in ASSETS {
        let file = target.join(path);
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(file, bytes)?;
    }
    let index = target.join("index.html");
    fs::write(&index, assets::index(&config))?;
    fs::write(target.join(DOCUMENT), document.to_string())?;
    Ok(Exported { files: count, index })
}

/// The file with the prompts, which marks a directory as an export.
const DOCUMENT: &str = "project.json";

/// Checks that nothing is replaced but an earlier export.
fn check_target(target: &Path) -> io::Result<()> {
    let mut entries = match target.read_dir() {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if entries.next().is_none() || (target.join(DOCUMENT).is_file() && target.join("index.html").is_file()) {
        return Ok(());
    }
    let message = "the directory is not empty, and contains no earlier export";
    Err(io::Error::new(io::ErrorKind::AlreadyExists, message))
}

/// Returns the prompts and tests with everything that a page without a server needs.
fn files(project: &Project) -> (Json, usize) {
    let listed = project.list().0.into_iter().filter(|file| matches!(file.kind, FileKind::Prompt | FileKind::Test));
    let files: Vec<_> = listed
        .filter_map(|file| {
            let (kind, text) = project.read(&file.path).ok()?;
            let samples =
                if kind == FileKind::Prompt { samples_of(project, &file.path, &text.text) } else { Vec::new() };
            Some(json!({
                "path": file.path.as_str(),
                "kind": kind.as_str(),
                "text": text.text,
                "samples": samples,
                "files": project.referenced(&file.path, &text.text),
            }))
        })
        .collect();
    let count = files.len();
    (files.into(), count)
}

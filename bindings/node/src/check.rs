//! Checks of prompt files.

use std::path::{Path, PathBuf};

use napi_derive::napi;
use tympan::lint::{CheckedFile, check_path};

use crate::border::{guarded, written};

/// Checks a prompt file as `tympan check` does, and returns the findings as JSON.
#[napi]
pub fn check_file(path: String, settings: Option<String>) -> napi::Result<String> {
    guarded(|| findings(&check_path(path, settings.map(PathBuf::from).as_deref())?))
}

/// Checks the text of a prompt file as `tympan check` does, and returns the findings as JSON.
#[napi]
pub fn check_str(text: String, name: String, base_dir: String, settings: Option<String>) -> napi::Result<String> {
    let settings = settings.map(PathBuf::from);
    guarded(|| findings(&tympan::lint::check_str(&text, &name, Path::new(&base_dir), settings.as_deref())?))
}

fn findings(checked: &CheckedFile) -> tympan::Result<String> {
    written(&checked.findings.iter().map(|finding| finding.to_json(&checked.source)).collect::<Vec<_>>())
}

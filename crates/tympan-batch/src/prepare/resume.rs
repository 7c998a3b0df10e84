//! The identity of a job, and where an interrupted one continues.

use std::fs::{self, File, OpenOptions};
use std::path::Path;

use serde_json::{Value as Json, json};
use tympan_core::{Error, Kind, Prompt, Result};

use super::saved::SavedSource;
use super::{PrepareOptions, Prepared, REJECTS, cannot_write};
use crate::manifest::{FileState, JobFile, Manifest};
use crate::rows::Source;

/// The name of the file that the process that works on a job holds locked.
const LOCK: &str = "job.lock";

/// Where a job continues.
pub(super) struct Start {
    pub(super) job: String,
    pub(super) next_row: u64,
    pub(super) files: u64,
    pub(super) rejects: u64,
    /// The size of the file of rejected rows.
    pub(super) rejects_bytes: u64,
    /// The number of rows, if the job is complete.
    rows: Option<u64>,
}

impl Start {
    /// Returns the result of a job that is complete already.
    pub(super) fn finished(&self, manifest: &Manifest) -> Result<Option<Prepared>> {
        let Some(rows) = self.rows else { return Ok(None) };
        let (job, files) = (self.job.clone(), manifest.files()?);
        Ok(Some(Prepared { job, rows, rejects: self.rejects, files, resumed_files: self.files }))
    }
}

/// Locks the directory, so that only one process works on the job. The lock ends with the process.
pub(crate) fn lock(directory: &Path) -> Result<File> {
    let path = directory.join(LOCK);
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(|error| cannot_write(&path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(_) => {
            let directory = directory.display();
            Err(Error::new(Kind::InvalidBatch, format_args!("another process works on the job in `{directory}`"))
                .with_help("wait until it ends, or stop it; the next call continues"))
        }
    }
}

/// Finds out where the job in a directory continues, or begins a new one.
pub(super) fn start(
    manifest: &Manifest,
    prompt: &Prompt,
    sources: &[Source],
    directory: &Path,
    options: &PrepareOptions,
) -> Result<Start> {
    let identity = identity(prompt, sources, options)?;
    let job = match manifest.get("identity")? {
        Some(saved) => {
            check_same(&saved, &identity, directory)?;
            manifest.get("job")?.unwrap_or_default()
        }
        None => begin(manifest, prompt, options, &identity)?,
    };
    let number =
        |key| -> Result<u64> { Ok(manifest.get(key)?.and_then(|value| value.parse().ok()).unwrap_or_default()) };
    let files = manifest.files()?;
    remove_incomplete(directory, &files)?;
    Ok(Start {
        job,
        next_row: number("next_row")?,
        files: files.len() as u64,
        rejects: number("rejects")?,
        rejects_bytes: number("rejects_bytes")?,
        rows: manifest.get("rows")?.and_then(|rows| rows.parse().ok()),
    })
}

fn begin(manifest: &Manifest, prompt: &Prompt, options: &PrepareOptions, identity: &Json) -> Result<String> {
    let random = getrandom::u64().map_err(|error| Error::new(Kind::InvalidBatch, error))?;
    let job = format!("t{random:016x}");
    let (hash, identity) = (prompt.definition_hash(), identity.to_string());
    // A prompt that is not a file has a name that does not exist.
    let path = fs::canonicalize(prompt.source().name()).unwrap_or_default().display().to_string();
    manifest.set(&[
        ("job", &job),
        ("target", options.target.as_str()),
        ("prompt", prompt.name().unwrap_or_default()),
        ("prompt_hash", hash),
        ("prompt_path", &path),
        // Last, so that a job without it has not begun.
        ("identity", &identity),
    ])?;
    Ok(job)
}

/// Returns everything that decides about the content of the files.
fn identity(prompt: &Prompt, sources: &[Source], options: &PrepareOptions) -> Result<Json> {
    let PrepareOptions { target, map, variant, run, limits, origins, cache_order, .. } = options;
    Ok(json!({
        "prompt": prompt.definition_hash(),
        "template": prompt.variant_hash(variant.as_deref())?,
        "rows": sources.iter().map(SavedSource::of).collect::<Result<Vec<_>>>()?,
        "to": target.as_str(),
        "map": map,
        "variant": variant,
        "provider": run.provider,
        "model": run.model,
        "api": run.api_type,
        "limits": limits.map(|limits| json!([limits.requests, limits.bytes, limits.tokens])),
        "origins": origins,
        "cache_order": cache_order,
    }))
}

fn check_same(saved: &str, identity: &Json, directory: &Path) -> Result<()> {
    let saved: Json = serde_json::from_str(saved).unwrap_or_default();
    let keys = identity.as_object().into_iter().flat_map(|map| map.keys());
    let other: Vec<_> =
        keys.filter(|key| saved[key.as_str()] != identity[key.as_str()]).map(|key| format!("`{key}`")).collect();
    if other.is_empty() {
        return Ok(());
    }
    let (directory, other) = (directory.display(), other.join(", "));
    let message = format_args!("`{directory}` has another job: {other} differ");
    Err(Error::new(Kind::InvalidBatch, message).with_help("choose another directory, or delete this one"))
}

/// Removes what a killed process has left behind.
fn remove_incomplete(directory: &Path, files: &[JobFile]) -> Result<()> {
    let entries = fs::read_dir(directory).map_err(|error| cannot_read(directory, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| cannot_read(directory, &error))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_ours = name.starts_with(super::part::PREFIX);
        if is_ours && !files.iter().any(|file| file.name == name) {
            fs::remove_file(entry.path()).map_err(|error| cannot_write(&entry.path(), &error))?;
        }
    }
    Ok(())
}

/// Opens the file of rejected rows, without those of rows that will be rendered again.
pub(super) fn open_rejects(directory: &Path, bytes: u64) -> Result<File> {
    let path = directory.join(REJECTS);
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let mut file = file.map_err(|error| cannot_write(&path, &error))?;
    let ready = file.set_len(bytes).and_then(|()| std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(bytes)));
    ready.map_err(|error| cannot_write(&path, &error))?;
    Ok(file)
}

/// Returns the state of a file for which nothing has to be sent.
pub(super) fn state_of(requests: u64) -> FileState {
    if requests == 0 { FileState::Collected } else { FileState::Prepared }
}

fn cannot_read(path: &Path, error: &std::io::Error) -> Error {
    Error::new(Kind::InvalidRows, format_args!("cannot read `{}`: {error}", path.display()))
}

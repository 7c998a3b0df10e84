//! Prepares a job: renders all rows and writes the files that a provider takes.

mod finish;
mod line;
mod part;
mod pipeline;
mod reject;
mod resume;
mod saved;
mod table;
mod tokens;

use std::path::Path;

use tympan_core::{Error, Kind, Prompt, Result};
use tympan_runtime::{RunOptions, Runtime};

pub(crate) use self::line::{LineWriter, row_of};
pub use self::reject::Reject;
pub(crate) use self::resume::lock;
pub(crate) use self::saved::SavedSource;

use self::part::Parts;
use self::table::TableWriter;
use crate::columns::Bindings;
use crate::limits::{Limits, Target};
use crate::manifest::{JobFile, Manifest};
use crate::render::RowRenderer;
use crate::rows::{Rows, Source};

/// The name of the file with the rejected rows.
pub const REJECTS: &str = "rejects.jsonl";

/// How a job is prepared.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PrepareOptions {
    /// The form of the files.
    pub target: Target,
    /// Pairs of an input and the column that its values come from. Other inputs come from columns of the same name.
    pub map: Vec<(String, String)>,
    /// The variant of the prompt.
    pub variant: Option<String>,
    /// The provider, the model and the API, where they are not those of the prompt.
    pub run: RunOptions,
    /// What fits into one file. `None` uses the limits of the provider.
    pub limits: Option<Limits>,
    /// The number of rejected rows at which the job fails. `None` accepts any number.
    pub max_rejects: Option<u64>,
    /// The number of threads. 0 uses all cores.
    pub threads: usize,
    /// Whether tables have the column `segments`: which inputs wrote which bytes of the messages.
    pub origins: bool,
    /// Whether the requests of each file are ordered so that those with the same beginning follow each other.
    pub cache_order: bool,
}

impl PrepareOptions {
    /// Creates options for a target.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            map: Vec::new(),
            variant: None,
            run: RunOptions::default(),
            limits: None,
            max_rejects: None,
            threads: 0,
            origins: false,
            cache_order: false,
        }
    }
}

/// How far a job is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The number of rows that were read and rendered.
    pub rows: u64,
    /// The number of rejected rows.
    pub rejects: u64,
    /// The number of bytes in files.
    pub bytes: u64,
    /// The number of files.
    pub files: u64,
}

/// A prepared job.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Prepared {
    /// The identifier of the job, with which the identifiers of all its requests begin.
    pub job: String,
    /// The number of rows.
    pub rows: u64,
    /// The number of rejected rows.
    pub rejects: u64,
    /// The files.
    pub files: Vec<JobFile>,
    /// The number of files that were there already.
    pub resumed_files: u64,
}

/// Renders the rows of all sources and writes them to files in a directory, in order. Memory does not depend on the
/// number of rows.
///
/// If the directory has an unfinished job of the same prompt, rows and options, the job continues after its last
/// complete file. Calls of `progress` come from several threads.
///
/// # Errors
/// Returns an error if a source cannot be read, if an input has no column, if the prompt has no model for requests, if
/// the directory has another job, or if more rows than allowed are rejected.
pub fn prepare(
    runtime: &Runtime,
    prompt: &Prompt,
    sources: &[Source],
    directory: &Path,
    options: &PrepareOptions,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Prepared> {
    let first = sources.first().ok_or_else(|| Error::new(Kind::InvalidRows, "there are no files of rows"))?;
    let columns = first.columns()?;
    let names: Vec<_> = columns.iter().map(String::as_str).collect();
    let bindings = Bindings::new(prompt, &names, &options.map)?;
    let (is_table, source) = (options.target == Target::Parquet, first.schema()?);
    let table_options = table::options(options);
    let tables = match is_table {
        true => Some(TableWriter::new(runtime, prompt, bindings.clone(), source.as_deref(), &table_options)?),
        false => None,
    };
    let read: Vec<_> = bindings.columns().iter().map(|bound| bound.column.clone()).collect();
    let renderer = RowRenderer::new(runtime, prompt, options.variant.as_deref(), bindings)?;

    std::fs::create_dir_all(directory).map_err(|error| cannot_write(directory, &error))?;
    let _lock = resume::lock(directory)?;
    let manifest = Manifest::create(directory)?;
    let state = resume::start(&manifest, prompt, sources, directory, options)?;
    if let Some(prepared) = state.finished(&manifest)? {
        return Ok(prepared);
    }
    let lines = LineWriter::new(options.target, prompt, &options.run, &state.job)?;
    let provider = lines.provider().unwrap_or_default();
    let limits = options.limits.unwrap_or_else(|| Limits::of(options.target, provider));
    limits.check()?;
    // Tables have the columns of the rows as well.
    let mut rows = Rows::new(sources.to_vec(), (!is_table).then_some(read));
    rows.skip(state.next_row)?;
    let names = sources.iter().map(|source| source.path.display().to_string()).collect();
    let parts = Parts::new(directory, manifest, names, limits, options, &state, lines.model())?;
    let (manifest, total) =
        pipeline::Pipeline::new(&renderer, &lines, tables.as_ref(), limits, options).run(rows, parts, progress)?;
    let resumed_files = state.files;
    Ok(Prepared { job: state.job, rows: total.rows, rejects: total.rejects, files: manifest.files()?, resumed_files })
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Error {
    Error::new(Kind::InvalidBatch, format_args!("cannot write `{}`: {error}", path.display()))
}

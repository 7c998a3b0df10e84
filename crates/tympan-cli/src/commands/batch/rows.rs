//! The files of rows and the prompt that a command line names.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use tympan::{Error, Kind, Prompt, RunOptions, Runtime, RuntimeOptions};
use tympan_batch::rows::{FileFormat, Source};

use crate::args::{BatchFormatChoice, BatchPromptArgs, BatchRowsArgs};
use crate::commands::render;
use crate::prompt_file::{self, is_stdin};
use crate::report::Failure;

/// The name of the file in the directory of a job that standard input is saved to.
const STDIN: &str = "rows";

const BUFFER: usize = 1 << 16;

/// Returns the files of rows, in order. Standard input is saved in the directory, because rows are read again when their
/// answers are collected.
///
/// # Errors
/// Returns an error if a pattern matches nothing, or if the format of a file is not known.
pub(super) fn sources(args: &BatchRowsArgs, directory: &Path) -> Result<Vec<Source>, Failure> {
    let format = args.format.map(BatchFormatChoice::format);
    let mut sources = Vec::new();
    for path in &args.rows {
        if is_stdin(path) {
            sources.push(saved_stdin(format, directory)?);
            continue;
        }
        for path in matching(path)? {
            sources.push(Source::new(path, format)?);
        }
    }
    Ok(sources)
}

/// Returns the files of rows that were named, none of which is standard input.
///
/// # Errors
/// Returns an error if a pattern matches nothing, or if the format of a file is not known.
pub(super) fn named(paths: &[PathBuf], format: Option<BatchFormatChoice>) -> Result<Vec<Source>, Failure> {
    let format = format.map(BatchFormatChoice::format);
    let mut sources = Vec::new();
    for path in paths {
        for path in matching(path)? {
            sources.push(Source::new(path, format)?);
        }
    }
    Ok(sources)
}

/// Returns the files that match a pattern, by name. A path that exists is no pattern.
fn matching(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let text = path.to_string_lossy();
    if path.exists() || !text.contains(['*', '?', '[']) {
        return if path.is_dir() { files_in(path) } else { Ok(vec![path.to_owned()]) };
    }
    let paths = glob::glob(&text).map_err(|error| Failure::Usage(format!("the pattern `{text}`: {error}")))?;
    let found: Vec<_> = paths.filter_map(Result::ok).filter(|path| path.is_file()).collect();
    if found.is_empty() {
        return Err(Error::new(Kind::InvalidRows, format_args!("no file matches `{text}`")).into());
    }
    Ok(found)
}

/// Returns the files of rows directly in a directory, by name.
fn files_in(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |error: io::Error| {
        Error::new(Kind::InvalidRows, format_args!("cannot read `{}`: {error}", directory.display()))
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_file() && FileFormat::of_path(&path).is_some() {
            found.push(path);
        }
    }
    found.sort();
    if found.is_empty() {
        let message = format_args!("`{}` has no files of rows", directory.display());
        return Err(Error::new(Kind::InvalidRows, message)
            .with_help("files of rows end in `.parquet`, `.arrow`, `.csv`, `.tsv` or `.jsonl`")
            .into());
    }
    Ok(found)
}

fn saved_stdin(format: Option<FileFormat>, directory: &Path) -> Result<Source, Failure> {
    let format =
        format.ok_or_else(|| Failure::Usage("standard input needs a format, as in `--format csv`".to_owned()))?;
    let path = directory.join(format!("{STDIN}.{format}"));
    let save = || {
        std::fs::create_dir_all(directory)?;
        // Without standard input, an interrupted job continues with the rows that were saved.
        let partial = path.with_extension("part");
        let mut file = File::create(&partial)?;
        let copied = io::copy(&mut io::stdin().lock(), &mut file)?;
        // The same command that is called again has the same rows, which must not look like others.
        if path.is_file() && (copied == 0 || is_same(&partial, &path)?) {
            return std::fs::remove_file(&partial);
        }
        file.sync_data()?;
        std::fs::rename(&partial, &path)
    };
    save().map_err(|error| {
        Error::new(Kind::InvalidRows, format_args!("cannot save standard input to `{}`: {error}", path.display()))
    })?;
    Ok(Source::new(path, Some(format))?)
}

/// Returns whether two files have the same content.
fn is_same(one: &Path, other: &Path) -> io::Result<bool> {
    let (one, other) = (File::open(one)?, File::open(other)?);
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut one, mut other) = (BufReader::with_capacity(BUFFER, one), BufReader::with_capacity(BUFFER, other));
    loop {
        let (left, right) = (one.fill_buf()?, other.fill_buf()?);
        let common = left.len().min(right.len());
        if left.get(..common) != right.get(..common) {
            return Ok(false);
        }
        if common == 0 {
            return Ok(left.len() == right.len());
        }
        one.consume(common);
        other.consume(common);
    }
}

/// Loads the prompt, with a runtime that renders rows.
///
/// # Errors
/// Returns an error if the prompt cannot be loaded.
pub(super) fn prompt(args: &BatchPromptArgs, quiet: bool) -> Result<(Runtime, Prompt), Failure> {
    prompt_with(args, prompt_file::deferred(runtime_options(args)), quiet)
}

/// Returns the options of the command line for a runtime that renders rows.
pub(super) fn runtime_options(args: &BatchPromptArgs) -> RuntimeOptions {
    let kinds = args.kinds.for_runtime();
    let options =
        RuntimeOptions { kinds, seed: args.seed, ..render::options_of(args.strict, args.lenient, args.guard) };
    args.env.over(options)
}

/// Loads the prompt, with a runtime that has these options.
///
/// # Errors
/// Returns an error if the prompt cannot be loaded.
pub(super) fn prompt_with(
    args: &BatchPromptArgs,
    options: RuntimeOptions,
    quiet: bool,
) -> Result<(Runtime, Prompt), Failure> {
    if is_stdin(&args.prompt) {
        return Err(Failure::Usage("the prompt must be a file".to_owned()));
    }
    let runtime = prompt_file::runtime(&args.prompt, options, quiet);
    let prompt = prompt_file::load_and_warn(&runtime, &args.prompt, quiet)?;
    Ok((runtime, prompt))
}

/// Returns the provider, the model and the API of the command line.
pub(super) fn run_options(args: &BatchPromptArgs) -> RunOptions {
    let BatchPromptArgs { model, provider, api, .. } = args;
    RunOptions { model: model.clone(), provider: provider.clone(), api_type: api.clone(), ..RunOptions::default() }
}

//! A prompt file as it is named on the command line, and what it may reach.

use std::io::Read;
use std::path::Path;

use tympan::format::definition::{Syntax, is_definition};
use tympan::text::source::SourceFile;
use tympan::{EnvPolicy, LoadOptions, Runtime, RuntimeOptions};
use tympan::{Error, Kind, Prompt};

use crate::{dotenv, report};

/// The most bytes that are read from standard input: as many as a prompt file may have.
const MAX_STDIN_BYTES: u64 = tympan::load::DEFAULT_MAX_FILE_BYTES;

/// Whether a path stands for standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// A runtime for a prompt file: the `.env` files beside it and in the working directory fill in what the environment
/// does not have.
pub(crate) fn runtime(path: &Path, options: RuntimeOptions, quiet: bool) -> Runtime {
    let here = Path::new("");
    let beside = if is_stdin(path) { here } else { path.parent().unwrap_or(here) };
    let is_here = beside == here || beside == Path::new(".");
    let directories = if is_here { vec![here] } else { vec![beside, here] };
    let loaded = dotenv::load(&directories);
    if !quiet {
        loaded.warnings.iter().for_each(|warning| report::warn_plainly("dotenv", warning));
    }
    let load = LoadOptions { env_files: loaded.files, ..options.load };
    Runtime::new(RuntimeOptions { load, ..options })
}

/// A runtime for commands that make hashes: what they say must not depend on the environment.
pub(crate) fn runtime_as_written() -> Runtime {
    let load = LoadOptions { env: EnvPolicy::AsWritten, ..LoadOptions::default() };
    Runtime::new(RuntimeOptions { load, ..RuntimeOptions::default() })
}

/// Loads a prompt file, or standard input.
///
/// # Errors
/// As [`Runtime::load`].
pub(crate) fn load(runtime: &Runtime, path: &Path) -> Result<Prompt, Error> {
    if is_stdin(path) {
        let text = read_stdin()?;
        // Standard input has no name that could tell, but a definition cannot be mistaken for anything else.
        return match [Syntax::Json, Syntax::Yaml, Syntax::Toml].into_iter().find(|syntax| is_definition(&text, *syntax))
        {
            Some(syntax) => Prompt::from_definition_source(SourceFile::new("<stdin>", text), syntax),
            None => runtime.load_str(&text, "<stdin>", "."),
        };
    }
    // A file that cannot be opened has no source, but it has a name.
    let name = path.display().to_string();
    runtime.load(path).map_err(|error| error.in_source(&SourceFile::new(name, ""), 0))
}

/// An error that has no place is still about this prompt.
pub(crate) fn in_prompt(error: Error, prompt: &Prompt) -> Error {
    if error.span().is_some() { error } else { error.in_source(prompt.source(), 0) }
}

/// Loads a prompt file and shows what is worth knowing about it.
///
/// # Errors
/// As [`Runtime::load`].
pub(crate) fn load_and_warn(runtime: &Runtime, path: &Path, quiet: bool) -> Result<Prompt, Error> {
    let prompt = load(runtime, path)?;
    if !quiet {
        report::warn(prompt.warnings(), prompt.source());
    }
    Ok(prompt)
}

/// All of standard input, as text.
///
/// # Errors
/// It is not UTF-8, too long, or cannot be read.
pub(crate) fn read_stdin() -> Result<String, Error> {
    let unreadable = |reason: String| Error::new(Kind::UnreadableFile, format_args!("<stdin>: {reason}"));
    let mut bytes = Vec::new();
    let mut stdin = std::io::stdin().lock().take(MAX_STDIN_BYTES + 1);
    stdin.read_to_end(&mut bytes).map_err(|error| unreadable(error.to_string()))?;
    if bytes.len() as u64 > MAX_STDIN_BYTES {
        return Err(unreadable(format!("it has more than {MAX_STDIN_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        unreadable(format!("byte {} is not UTF-8", error.utf8_error().valid_up_to()))
            .with_help("save the text as UTF-8")
    })
}

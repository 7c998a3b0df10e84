//! Loading of prompt files named on the command line.

use std::io::Read;
use std::path::Path;

use tympan::format::Format;
use tympan::text::source::SourceFile;
use tympan::{EnvPolicy, LoadOptions, Runtime, RuntimeOptions};
use tympan::{Error, Kind, Prompt};

use crate::args::FileArgs;
use crate::{dotenv, report};

/// The most bytes that are read from standard input: as many as a prompt file may have.
const MAX_STDIN_BYTES: u64 = tympan::load::DEFAULT_MAX_FILE_BYTES;

/// Returns whether a path denotes standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Creates a runtime for a prompt file. The `.env` files next to it and in the working directory provide variables that
/// the environment does not have.
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

/// Creates a runtime for commands that compute hashes, which must not depend on the environment.
pub(crate) fn runtime_as_written(allowed: &FileArgs) -> Runtime {
    let load = LoadOptions { env: EnvPolicy::AsWritten, ..LoadOptions::default() };
    Runtime::new(allowed.over(RuntimeOptions { load, ..RuntimeOptions::default() }))
}

/// Changes options for commands that do not call a model, which work without the variables that only a call needs.
pub(crate) fn deferred(mut options: RuntimeOptions) -> RuntimeOptions {
    options.load.defer_env = true;
    options
}

/// Loads a prompt file, or standard input.
///
/// # Errors
/// Returns an error if standard input or the file cannot be read, or if the prompt is invalid.
pub(crate) fn load(runtime: &Runtime, path: &Path) -> Result<Prompt, Error> {
    if is_stdin(path) {
        let text = read_stdin()?;
        // Standard input has no file extension, but a definition can be recognized by its content.
        return match Format::of_content(&text) {
            Some(Format::Definition(syntax)) => {
                Prompt::from_definition_source(SourceFile::new("<stdin>", text), syntax)
            }
            _ => runtime.load_str(&text, "<stdin>", "."),
        };
    }
    // If a file cannot be opened, there is no source to show, but the error should still name the file.
    let name = path.display().to_string();
    runtime.load(path).map_err(|error| error.in_source(&SourceFile::new(name, ""), 0))
}

/// Attaches the prompt's source to an error that has no position.
pub(crate) fn in_prompt(error: Error, prompt: &Prompt) -> Error {
    if error.span().is_some() { error } else { error.in_source(prompt.source(), 0) }
}

/// Loads a prompt file and prints its warnings.
///
/// # Errors
/// Returns an error if standard input or the file cannot be read, or if the prompt is invalid.
pub(crate) fn load_and_warn(runtime: &Runtime, path: &Path, quiet: bool) -> Result<Prompt, Error> {
    let prompt = load(runtime, path)?;
    if !quiet {
        report::warn(prompt.warnings(), prompt.source());
    }
    Ok(prompt)
}

/// Reads all of standard input as text.
///
/// # Errors
/// Returns an error if standard input cannot be read, is too long, or is not UTF-8.
pub(crate) fn read_stdin() -> Result<String, Error> {
    let unreadable = |reason: String| Error::new(Kind::UnreadableFile, format_args!("<stdin>: {reason}"));
    let mut bytes = Vec::new();
    let mut stdin = std::io::stdin().lock().take(MAX_STDIN_BYTES + 1);
    stdin.read_to_end(&mut bytes).map_err(|error| unreadable(error.to_string()))?;
    if bytes.len() as u64 > MAX_STDIN_BYTES {
        return Err(unreadable(format!("larger than {MAX_STDIN_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        unreadable(format!("byte {} is not valid UTF-8", error.utf8_error().valid_up_to()))
            .with_help("save the text as UTF-8")
    })
}

//! `tympan fmt`: formats prompt files and test files.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value as Json, json};
use tympan::file::walk::{read_found, unreadable};
use tympan::file::write;
use tympan::format::Format;
use tympan::load::{DEFAULT_MAX_FILE_BYTES, References, directory_of, read_prompt_file};
use tympan::text::source::SourceFile;
use tympan::{Error, LoadOptions};
use tympan_lint::format::{FormatError, FormatOptions, Formatted, format_file};

use super::check::targets::{TargetKind, Targets};
use crate::args::FmtArgs;
use crate::escape::visible_line;
use crate::excerpt::Finding;
use crate::project::Project;
use crate::report::{self, Failure, finding_json};
use crate::{diff, json, output, prompt_file};

/// The exit status of a formatter that would have changed what a prompt means.
const BUG: u8 = 2;

/// The number of hexadecimal digits of a hash that people see.
const SHORT: usize = 12;

/// The result for one file.
struct FileResult {
    source: SourceFile,
    /// The file to write to. `None` for standard input, and for files that cannot be read.
    path: Option<PathBuf>,
    is_stdin: bool,
    /// Whether the user named the file.
    is_named: bool,
    outcome: Result<Formatted, FormatError>,
}

impl FileResult {
    fn changed(&self) -> Option<&Formatted> {
        self.outcome.as_ref().ok().filter(|formatted| formatted.changed)
    }

    /// Returns the hashes before and after, if they differ.
    fn hashes(&self) -> Option<(&str, &str)> {
        let hashes = self.changed()?.hashes.as_ref()?;
        (hashes.before != hashes.after).then_some((&hashes.before, &hashes.after))
    }

    fn is_bug(&self) -> bool {
        matches!(self.outcome, Err(FormatError::Unsafe(_)))
    }
}

pub(super) fn run(args: &FmtArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let writes = !args.check && !args.diff;
    check_stdin(args, writes)?;
    let project = Project::find(&args.settings)?;
    let targets = Targets::collect(&args.paths, |path| project.settings.check.is_excluded(&project.relative(path)));
    let load = LoadOptions { file_roots: args.allowed.allow_dir.clone(), ..LoadOptions::default() };
    let mut results = Vec::new();
    for target in &targets.files {
        if let Some(mut result) = format_target(args, &target.kind, &load) {
            if writes {
                write_back(&mut result);
            }
            results.push(result);
        }
    }
    if args.json {
        output::print(&(json::pretty(&to_json(args, &results)) + "\n"))?;
    } else {
        show(args, &results, quiet)?;
    }
    Ok(status(&results, writes))
}

/// Checks that standard output has only one use.
fn check_stdin(args: &FmtArgs, writes: bool) -> Result<(), Failure> {
    let is_read = args.paths.iter().any(|path| prompt_file::is_stdin(path));
    if args.stdin_filename.is_some() && !is_read {
        let message = "--stdin-filename: standard input is read only if `-` is one of the paths";
        return Err(Failure::Usage(message.to_owned()));
    }
    if is_read && writes && args.paths.len() > 1 {
        let message = "`-` cannot be combined with other paths, because the formatted text is printed";
        return Err(Failure::Usage(message.to_owned()));
    }
    Ok(())
}

/// Formats a file. Returns `None` if it was found in a directory and is not a prompt, or is not one that is formatted.
fn format_target(args: &FmtArgs, target: &TargetKind, load: &LoadOptions) -> Option<FileResult> {
    let path = match target {
        TargetKind::Stdin => args.stdin_filename.as_deref().unwrap_or(Path::new("")),
        TargetKind::Named(path) | TargetKind::Found(path) | TargetKind::Unreadable(path, _) => path,
    };
    let read = match target {
        TargetKind::Stdin => read_stdin(args),
        TargetKind::Named(path) => read_prompt_file(path, DEFAULT_MAX_FILE_BYTES),
        TargetKind::Found(path) => {
            use tympan::format::definition::Syntax::Toml;
            let format = Format::from_name(path);
            if matches!(format, Some(Format::Directive | Format::Definition(Toml) | Format::Tests(Toml))) {
                return None;
            }
            read_found(path)?
        }
        TargetKind::Unreadable(path, reason) => Err(unreadable(path, reason)),
    };
    let (is_stdin, is_named) = (matches!(target, TargetKind::Stdin), !matches!(target, TargetKind::Found(_)));
    Some(match read {
        Ok(source) => {
            let mut options = FormatOptions::default();
            options.front_matter_only = args.front_matter_only;
            let outcome = format_file(&source, &mut References::new(directory_of(path), load), &options);
            FileResult { source, path: (!is_stdin).then(|| path.to_owned()), is_stdin, is_named, outcome }
        }
        Err(error) => {
            let source = error.source_file().cloned().unwrap_or_else(|| SourceFile::new(stdin_or(path), ""));
            FileResult { source, path: None, is_stdin, is_named, outcome: Err(error.into()) }
        }
    })
}

fn read_stdin(args: &FmtArgs) -> Result<SourceFile, Error> {
    let name = stdin_or(args.stdin_filename.as_deref().unwrap_or(Path::new("")));
    Ok(SourceFile::new(name, prompt_file::read_stdin()?))
}

/// Returns the name of a file. Standard input may have none.
fn stdin_or(path: &Path) -> String {
    if path.as_os_str().is_empty() { "<stdin>".to_owned() } else { path.display().to_string() }
}

/// Writes the formatted text to its file.
fn write_back(result: &mut FileResult) {
    if let (Some(formatted), Some(path)) = (result.changed(), &result.path)
        && let Err(error) = write::replace(path, &formatted.text)
    {
        result.outcome = Err(unreadable(path, &error.to_string()).into());
    }
}

fn status(results: &[FileResult], writes: bool) -> ExitCode {
    if results.iter().any(FileResult::is_bug) {
        return ExitCode::from(BUG);
    }
    let has_failed = |result: &FileResult| result.outcome.is_err() || (!writes && result.changed().is_some());
    if results.iter().any(has_failed) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Prints the results for people.
fn show(args: &FmtArgs, results: &[FileResult], quiet: bool) -> Result<(), Failure> {
    let is_printed = results.iter().any(|result| result.is_stdin) && !args.check && !args.diff;
    let mut out = String::new();
    for result in results {
        match &result.outcome {
            Err(FormatError::Invalid(error)) => report::show_error(&error.clone().in_source(&result.source, 0)),
            Err(error) => report::show_error_plainly("format", &format!("{}: {error}", result.source.name())),
            Ok(formatted) => {
                if let Some(note) = formatted.note.filter(|_| result.is_named && !quiet) {
                    report::warn_plainly("format", &format!("{}: left as it is: {note}", result.source.name()));
                }
                if is_printed {
                    out.push_str(&formatted.text);
                } else if args.diff && formatted.changed {
                    let (before, after) = (result.source.text(), &formatted.text);
                    out.push_str(&diff::unified(result.source.name(), before, after, output::looks()));
                } else if formatted.changed && !quiet {
                    out.push_str(&line(args, result));
                }
            }
        }
    }
    output::print(&out)?;
    if !quiet && !is_printed {
        let summary = summary(args, results) + "\n";
        if args.diff { output::print_error(&summary) } else { output::print_lines(&summary)? }
    }
    Ok(())
}

/// Describes a file that has changed.
fn line(args: &FmtArgs, result: &FileResult) -> String {
    let verb = if args.check { "would format" } else { "formatted" };
    let hashes = result.hashes().map_or_else(String::new, |(before, after)| {
        format!(" (definition hash {}… → {}…)", &before[..SHORT], &after[..SHORT])
    });
    format!("{verb} {}{hashes}\n", visible_line(result.source.name()))
}

fn summary(args: &FmtArgs, results: &[FileResult]) -> String {
    let changed = results.iter().filter(|result| result.changed().is_some()).count();
    let failed = results.iter().filter(|result| result.outcome.is_err()).count();
    let unchanged = results.len() - changed - failed;
    let verb = if args.check || args.diff { "would be formatted" } else { "formatted" };
    let mut parts = Vec::new();
    if changed > 0 {
        parts.push(format!("{} {verb}", counted(changed)));
    }
    if results.is_empty() {
        parts.push("no prompt files found".to_owned());
    }
    if unchanged > 0 {
        parts.push(format!("{} unchanged", counted(unchanged)));
    }
    if failed > 0 {
        parts.push(format!("{} with errors", counted(failed)));
    }
    parts.join(", ")
}

fn counted(files: usize) -> String {
    format!("{files} file{}", if files == 1 { "" } else { "s" })
}

fn to_json(args: &FmtArgs, results: &[FileResult]) -> Json {
    let count = |is_counted: &dyn Fn(&FileResult) -> bool| results.iter().filter(|result| is_counted(result)).count();
    json!({
        "files": results.len(),
        "changed": count(&|result| result.changed().is_some()),
        "errors": count(&|result| result.outcome.is_err()),
        "results": results.iter().map(|result| result_json(args, result)).collect::<Json>(),
    })
}

fn result_json(args: &FmtArgs, result: &FileResult) -> Json {
    let mut object = json!({ "file": result.source.name() });
    match &result.outcome {
        Ok(formatted) => {
            object["changed"] = formatted.changed.into();
            let hashes = formatted.hashes.as_ref();
            object["definition_hash"] =
                hashes.map(|hashes| json!({"before": hashes.before, "after": hashes.after})).into();
            object["note"] = formatted.note.into();
            // Without a file, this is the only place for the text.
            if result.is_stdin && !args.check {
                object["text"] = formatted.text.as_str().into();
            }
        }
        Err(FormatError::Invalid(error)) => {
            let error = error.clone().in_source(&result.source, 0);
            object["error"] = finding_json(&Finding::of_error(&error));
        }
        Err(error) => object["bug"] = error.to_string().into(),
    }
    object
}

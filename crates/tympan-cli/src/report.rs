//! Errors and warnings, for people and for programs.

use std::collections::HashMap;
use std::io;
use std::process::ExitCode;

use serde_json::{Value as Json, json};
use tympan::diagnostic::{Diagnostic, Severity};
use tympan::text::source::SourceFile;
use tympan::{Class, Error, Outcome};
use tympan_lint::SettingsError;

use crate::escape::{is_unsafe, visible};
use crate::excerpt::Finding;
use crate::{json, output};

/// The reason that a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An invalid prompt or invalid inputs, or a failed call.
    Engine(Error),
    /// An invalid command line.
    Usage(String),
    /// Invalid settings.
    Settings(SourceFile, Vec<SettingsError>),
    /// Output that could not be written.
    Output(io::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// The audience of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Human,
    Json,
}

/// Reports a failure on standard error and returns the exit code.
pub(crate) fn failure(failure: &Failure, form: Form) -> ExitCode {
    let (status, text) = match failure {
        Failure::Engine(error) => (1, engine_error(error, form)),
        Failure::Usage(message) => (2, plain_error("UsageError", "usage", message, form)),
        Failure::Settings(source, errors) => (2, settings_errors(source, errors, form)),
        Failure::Output(error) => (1, plain_error(Class::Runtime.as_str(), "output", &error.to_string(), form)),
    };
    output::print_error(&text);
    ExitCode::from(status)
}

/// Reports an invalid command line, or prints the requested help or version.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    if error.exit_code() != 0 && std::env::args_os().any(|argument| argument == "--json") {
        // The text after the first blank line is advice for people.
        let lines = text.lines().take_while(|line| !line.is_empty()).map(str::trim);
        let message = lines.collect::<Vec<_>>().join(" ");
        let message = message.strip_prefix("error: ").unwrap_or(&message).to_owned();
        return failure(&Failure::Usage(message), Form::Json);
    }
    if text.contains(is_unsafe) {
        output::print_error(&visible(&text));
    } else {
        // If the message cannot be written, there is nowhere to report that.
        let _ = error.print();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// Prints an error for people, when the command still has more errors to report.
pub(crate) fn show_error(error: &Error) {
    output::print_error(&(engine_error(error, Form::Human) + "\n"));
}

/// Reports findings that keep a command from its work. A program gets only the first one.
pub(crate) fn refused(findings: &[Finding<'_>], is_json: bool) {
    if !is_json {
        output::print_error(&(show_all(findings, Legacy::Counted, output::stderr_colors()) + "\n"));
    } else if let Some(first) = findings.first() {
        let mut object = json!({ "class": Class::Value.as_str() });
        extend(&mut object, finding_json(first));
        output::print_error(&(json::pretty(&json!({ "error": object })) + "\n"));
    }
}

fn engine_error(error: &Error, form: Form) -> String {
    match form {
        Form::Human => show_all(&Finding::all_of_error(error), Legacy::Counted, output::stderr_colors()),
        Form::Json => {
            let mut object = json!({ "class": error.class().as_str() });
            extend(&mut object, finding_json(&Finding::of_error(error)));
            if let Some(partial) = error.partial_text() {
                extend(&mut object, json!({ "partial": partial }));
            }
            json::pretty(&json!({ "error": object })) + "\n"
        }
    }
}

fn plain_error(class: &str, code: &str, message: &str, form: Form) -> String {
    let finding = Finding::plain(Severity::Error, code, message);
    match form {
        Form::Human => finding.show(output::stderr_colors()),
        Form::Json => {
            let mut object = json!({ "class": class });
            extend(&mut object, finding_json(&finding));
            json::pretty(&json!({ "error": object })) + "\n"
        }
    }
}

fn settings_errors(source: &SourceFile, errors: &[SettingsError], form: Form) -> String {
    let findings = errors.iter().map(|error| Finding {
        help: error.help.as_deref(),
        source: Some(source),
        span: Some(error.span),
        ..Finding::plain(Severity::Error, "settings", &error.message)
    });
    let findings: Vec<_> = findings.collect();
    match form {
        Form::Human => show_each(&findings, output::stderr_colors()),
        Form::Json => {
            let mut object = json!({ "class": "UsageError" });
            findings.first().into_iter().for_each(|first| extend(&mut object, finding_json(first)));
            json::pretty(&json!({ "error": object })) + "\n"
        }
    }
}

/// The maximum number of findings shown to people. Programs get all of them.
const MAX_SHOWN: usize = 100;

/// The maximum number of findings shown per line of a file.
const MAX_ON_LINE: usize = 10;

/// How warnings about version 1 of the `.prompty` format are shown. There is one per key, so a file has many of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Legacy {
    /// As one warning with their number.
    Counted,
    /// As one warning with a line for each.
    Listed,
}

/// The code of warnings about version 1 of the format.
const LEGACY_KEY: &str = "legacy_key";

/// Formats findings for people, separated by blank lines. Warnings about version 1 of the format are combined per file.
/// Findings over the limits are only counted.
pub(crate) fn show_all(findings: &[Finding<'_>], legacy: Legacy, colors: bool) -> String {
    let is_legacy = |finding: &&Finding<'_>| finding.code == LEGACY_KEY;
    let mut by_file: Vec<(&str, Vec<&Finding<'_>>)> = Vec::new();
    for finding in findings.iter().filter(is_legacy) {
        let name = finding.source.map_or("", SourceFile::name);
        match by_file.iter_mut().find(|(file, _)| *file == name) {
            Some((_, found)) => found.push(finding),
            None => by_file.push((name, vec![finding])),
        }
    }
    let combined: Vec<_> = by_file.iter().filter(|(_, found)| found.len() > 1).collect();
    let texts: Vec<_> = combined.iter().map(|(_, found)| migration(found, legacy)).collect();
    let mut shown = Vec::new();
    for finding in findings {
        let name = finding.source.map_or("", SourceFile::name);
        let at = combined.iter().position(|(file, _)| is_legacy(&finding) && *file == name);
        match at {
            None => shown.push(finding.clone()),
            // The combined warning replaces the first of them.
            Some(at) if std::ptr::eq(combined[at].1[0], finding) => {
                let (message, help) = &texts[at];
                shown.push(Finding { message, help: Some(help), span: None, ..finding.clone() });
            }
            Some(_) => {}
        }
    }
    show_each(&shown, colors)
}

/// Returns the message and the help of the warning that combines those about version 1 of the format.
fn migration(found: &[&Finding<'_>], legacy: Legacy) -> (String, String) {
    let message = format!("written for version 1 of the format: {} keys or values have changed", found.len());
    let help = match legacy {
        Legacy::Counted => {
            "to migrate, run `tympan check` on the file, which lists the new spelling of each".to_owned()
        }
        Legacy::Listed => {
            let more = found.len().saturating_sub(MAX_SHOWN);
            let more = if more > 0 { format!("\n    … and {more} more") } else { String::new() };
            let lines = found.iter().take(MAX_SHOWN).map(|finding| {
                let line = finding.line().map_or_else(String::new, |(_, line)| format!("line {line}: "));
                format!("\n    {line}{}; {}", finding.message, finding.help.unwrap_or_default())
            });
            format!("to migrate:{}{more}", lines.collect::<String>())
        }
    };
    (message, help)
}

fn show_each(findings: &[Finding<'_>], colors: bool) -> String {
    // If not all findings can be shown, errors take precedence over warnings.
    let (errors, warnings): (Vec<_>, Vec<_>) =
        (0..findings.len()).partition(|index| findings[*index].severity == Severity::Error);
    let mut on_lines: HashMap<_, usize> = HashMap::new();
    let is_shown = |index: &usize| {
        let Some(line) = findings[*index].line() else { return true };
        let on_line = on_lines.entry(line).or_default();
        *on_line += 1;
        *on_line <= MAX_ON_LINE
    };
    let mut chosen: Vec<_> = errors.into_iter().chain(warnings).filter(is_shown).take(MAX_SHOWN).collect();
    chosen.sort_unstable();
    let mut shown: Vec<_> = chosen.iter().map(|index| findings[*index].show(colors)).collect();
    let more = findings.len() - shown.len();
    if more > 0 {
        shown.push(format!("… and {more} more; run `tympan check --json` to list all\n"));
    }
    shown.join("\n")
}

/// Prints the warnings of loading a prompt to standard error.
pub(crate) fn warn(warnings: &[Diagnostic], source: &SourceFile) {
    let findings: Vec<_> = warnings.iter().map(|warning| Finding::of_diagnostic(warning, Some(source))).collect();
    if !findings.is_empty() {
        output::print_error(&(show_all(&findings, Legacy::Counted, output::stderr_colors()) + "\n"));
    }
}

/// Prints an error that has no source position, when the command still has more to report.
pub(crate) fn show_error_plainly(code: &str, message: &str) {
    let finding = Finding::plain(Severity::Error, code, message);
    output::print_error(&finding.show(output::stderr_colors()));
}

/// Prints a warning that has no source position.
pub(crate) fn warn_plainly(code: &str, message: &str) {
    let finding = Finding::plain(Severity::Warning, code, message);
    output::print_error(&finding.show(output::stderr_colors()));
}

/// Prints a warning for each mismatch between a result and the prompt's declared outputs.
pub(crate) fn mismatches(outcome: &Outcome) {
    outcome.problems().iter().for_each(|problem| warn_plainly("invalid_result", problem));
}

/// Converts a finding to JSON, without its severity. Unknown fields are null.
pub(crate) fn finding_json(finding: &Finding<'_>) -> Json {
    let place = finding.source.zip(finding.span).map(|(source, span)| source.line_column(span.start));
    json!({
        "code": finding.code,
        "message": finding.message,
        "file": finding.source.map(SourceFile::name),
        "line": place.map(|place| place.line),
        "column": place.map(|place| place.column),
        "help": finding.help,
    })
}

fn extend(object: &mut Json, more: Json) {
    if let (Json::Object(object), Json::Object(more)) = (object, more) {
        object.extend(more);
    }
}

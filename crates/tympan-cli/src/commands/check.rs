//! `tympan check`: reports all errors and warnings in prompt files.

use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value as Json, json};
use tympan::RuntimeOptions;
use tympan::diagnostic::{Diagnostic, Severity};
use tympan::format::Format;
use tympan::format::{Document, NoReferences, prompty};
use tympan::secret::env_value::UnresolvedEnv;
use tympan::{Error, Kind, Prompt};

use crate::args::{CheckArgs, EnvArgs};
use crate::excerpt::Finding;
use crate::report::{Failure, Legacy, finding_json, show_all};
use crate::{config, json, output, prompt_file};

pub(super) fn run(args: &CheckArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let checked = args.files.iter().map(|path| Ok((path, FileCheck::new(path, &args.env, quiet || args.json)?)));
    let checked = checked.collect::<Result<Vec<_>, Failure>>()?;
    let findings: Vec<_> = checked.iter().map(|(path, checked)| (*path, checked.findings(quiet))).collect();
    let count = |severity| {
        let all = findings.iter().flat_map(|(_, findings)| findings);
        all.filter(|finding: &&Finding<'_>| finding.severity == severity).count()
    };
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    if args.json {
        let list = findings.iter().flat_map(|(path, findings)| findings.iter().map(|finding| to_json(path, finding)));
        let report = json!({
            "files": args.files.len(),
            "errors": errors,
            "warnings": warnings,
            "diagnostics": list.collect::<Json>(),
        });
        output::print(&(json::pretty(&report) + "\n"))?;
    } else {
        let all: Vec<_> = findings.into_iter().flat_map(|(_, findings)| findings).collect();
        let shown =
            if all.is_empty() { String::new() } else { show_all(&all, Legacy::Listed, output::looks().colors) + "\n" };
        let summary = summary(args.files.len(), errors, warnings);
        output::print_lines(&format!("{shown}{summary}\n"))?;
    }
    Ok(if errors > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The result of checking a file.
enum FileCheck {
    /// The file does not load. The second error is about its template.
    Broken(Error, Option<Error>),
    /// The file loads. There may be findings of rules, and of this command's own.
    Loaded(Box<Prompt>, Vec<tympan_lint::Finding>, Vec<Diagnostic>),
}

impl FileCheck {
    fn new(path: &Path, env: &EnvArgs, quiet: bool) -> Result<Self, Failure> {
        let options = prompt_file::deferred(env.over(RuntimeOptions::default()));
        let runtime = prompt_file::runtime(path, options, quiet);
        config::register_credentials(&runtime, None)?;
        Ok(match prompt_file::load(&runtime, path) {
            Ok(prompt) => {
                let findings = tympan_lint::check(&prompt, &tympan_lint::Options::default());
                let mut notes = runtime.check_credentials(&prompt);
                notes.extend(prompt.unresolved_env().iter().map(unset));
                Self::Loaded(Box::new(prompt), findings, notes)
            }
            Err(error) => {
                let fault = template_fault(&error);
                Self::Broken(error, fault)
            }
        })
    }

    /// Returns the findings, sorted by position.
    fn findings(&self, quiet: bool) -> Vec<Finding<'_>> {
        let mut findings: Vec<_> = match self {
            Self::Broken(error, fault) => {
                let faults = fault.iter().map(Finding::of_error);
                Finding::all_of_error(error).into_iter().chain(faults).map(Finding::with_rule).collect()
            }
            Self::Loaded(prompt, findings, notes) => {
                let source = prompt.source();
                let notes = notes.iter().map(|note| Finding::of_diagnostic(note, Some(source)).with_rule());
                findings.iter().map(|finding| Finding::of_rule(finding, source)).chain(notes).collect()
            }
        };
        findings.sort_by_key(|finding| finding.span.map_or(0, |span| span.start));
        findings.retain(|finding| !quiet || finding.severity == Severity::Error);
        findings
    }
}

/// Returns the warning about a variable that is not set. The prompt is valid, but something may need the value.
fn unset(found: &UnresolvedEnv) -> Diagnostic {
    let name = &found.variable;
    Diagnostic::warning(Kind::EnvNotSet.code(), found.span, format!("Environment variable '{name}' not set"))
        .with_help(format!("set it before the prompt runs, or add a default: `${{env:{name}:some value}}`"))
}

/// Checks the template of a file whose front matter is invalid.
fn template_fault(error: &Error) -> Option<Error> {
    let source = error.source_file()?;
    let is_other = Path::new(source.name()).extension().is_some_and(|extension| extension != "prompty");
    if is_other || Format::detect(source.name(), source.text()) != Format::Prompty {
        // The templates of a definition and the steps of a directive are checked together with the rest of the file.
        return None;
    }
    let (document, _) = prompty::parse_as_far_as_possible(source, &mut NoReferences);
    let Document { spec, body, .. } = document?;
    let prompt = Prompt::from_document(spec, source.clone(), body.start, Vec::new());
    // An unknown renderer may be a consequence of the invalid front matter, so do not report it.
    prompt.template().err().filter(|error| error.kind() != Kind::NotRegistered)
}

fn to_json(path: &Path, finding: &Finding<'_>) -> Json {
    let mut object = finding_json(finding);
    // These fields are present whether or not the finding has a source.
    let file = finding.source.map_or_else(|| path.display().to_string(), |source| source.name().to_owned());
    object["file"] = json!(file);
    object["severity"] = json!(finding.severity.as_str());
    object["rule"] = json!(finding.rule);
    let related = finding.related.iter().filter_map(|(span, note)| {
        let at = finding.source?.line_column(span.start);
        Some(json!({"line": at.line, "column": at.column, "message": note}))
    });
    object["related"] = related.collect();
    object
}

fn summary(files: usize, errors: usize, warnings: usize) -> String {
    let files = counted(files, "file");
    match (errors, warnings) {
        (0, 0) => format!("{files} checked, no problems found"),
        _ => format!("{files} checked: {}, {}", counted(errors, "error"), counted(warnings, "warning")),
    }
}

fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

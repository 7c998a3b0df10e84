//! Checks of test files, and of the tests in prompt files.

use std::path::{Path, PathBuf};

use tympan_core::diagnostic::Severity;
use tympan_core::format::definition::Syntax;
use tympan_core::format::outline::{Field, Outline};
use tympan_core::format::{Format, ReferencedFile, Resolve, test_file};
use tympan_core::spec::test_suite::TestSuite;
use tympan_core::text::source::{SourceFile, Span};
use tympan_core::{Kind, Prompt, Result, directive};

use crate::file::Checked;
use crate::finding::{Finding, Findings};
use crate::rules::tests::{broken_prompt, check_files, check_suite, missing_prompt};
use crate::suite::{SuiteContext, table_columns};

/// Checks a test file with every rule. `files` reads files relative to it.
pub(crate) fn check_test_file(source: &SourceFile, syntax: Syntax, files: &mut impl Resolve) -> Checked {
    let (suite, diagnostics) = test_file::parse(source, syntax);
    let mut findings = Findings::default();
    findings.extend(diagnostics.iter().filter_map(Finding::from_diagnostic));
    let outline = Outline::new(source, Format::Tests(syntax));
    if let (Some(suite), Some(root)) = (&suite, outline.get(&[])) {
        let prompt = tested_prompt(source, suite, root, files, &mut findings);
        check(source, suite, root, prompt.as_ref(), files, &mut findings);
    }
    Checked { prompt: None, partial: None, suite, findings: findings.into_sorted() }
}

/// Checks the tests in a prompt file, if it has any. `prompt` is `None` if the file does not load.
pub(crate) fn check_embedded(
    source: &SourceFile,
    format: Format,
    (prompt, outline): (Option<&Prompt>, &Outline<'_>),
    files: &mut dyn Resolve,
    findings: &mut Findings,
) {
    let Some(root) = outline.get(&["tests"]) else { return };
    let has_items = root.items().next().is_some() || root.entries().next().is_some();
    // The schema of definitions has said already that this is neither a list nor a map.
    if matches!(format, Format::Definition(_)) && !has_items && prompt.is_none() {
        return;
    }
    let Some((suite, diagnostics)) = test_file::parse_embedded(source, format) else { return };
    findings.extend(diagnostics.iter().filter_map(Finding::from_diagnostic));
    if let Some(suite) = suite {
        check(source, &suite, root, prompt, files, findings);
    }
}

/// Applies the rules to a suite.
fn check(
    source: &SourceFile,
    suite: &TestSuite,
    root: Field<'_>,
    prompt: Option<&Prompt>,
    files: &mut dyn Resolve,
    findings: &mut Findings,
) {
    let mut context = SuiteContext::new(source, suite, root, prompt);
    for case in &mut context.cases {
        let rows = case.case.rows.as_deref();
        case.columns = rows.and_then(|path| table_columns(path, &files.file(path).ok()?.text));
    }
    check_suite(&context, findings);
    check_files(&context, files, findings);
}

/// Loads the prompt that a test file is about. Reports why it cannot.
fn tested_prompt(
    source: &SourceFile,
    suite: &TestSuite,
    root: Field<'_>,
    files: &mut dyn Resolve,
    findings: &mut Findings,
) -> Option<Prompt> {
    let written = root.get("prompt").map(|field| field.span);
    let candidates = match &suite.prompt {
        Some(path) => vec![path.clone()],
        None => test_file::default_prompts(source.name()).collect(),
    };
    for path in &candidates {
        let place = written.unwrap_or_default();
        match files.file(path) {
            Ok(file) => {
                return load(path, file, files).map_err(|error| findings.push(broken_prompt(place, path, &error))).ok();
            }
            Err(error) if error.kind() == Kind::ReferencedFileNotFound => {}
            Err(error) => {
                findings.extend(not_read(&error, place));
                return None;
            }
        }
    }
    findings.extend(candidates.first().map(|path| missing_prompt(written, path)));
    None
}

/// Returns the findings about a prompt that exists, and that may not be read.
fn not_read(error: &tympan_core::Error, span: Span) -> Vec<Finding> {
    let findings = Finding::from_error(error).into_iter();
    let at = |finding: Finding| Finding { span: Some(span), ..finding.with_severity(Severity::Warning) };
    let help =
        "the tests are not checked against the prompt: start in the directory of the project, or use `--allow-dir`";
    findings.map(at).map(|finding| finding.with_help(help)).collect()
}

/// Loads a prompt from the text of a file.
fn load(path: &str, file: ReferencedFile, files: &mut dyn Resolve) -> Result<Prompt> {
    let source = SourceFile::new(path, file.text);
    match Format::detect(path, source.text()) {
        Format::Definition(syntax) => Prompt::from_definition_source(source, syntax),
        Format::Directive => directive::load(source, directive::INSTRUCTION),
        _ => {
            let directory = Path::new(path).parent().map(Path::to_owned).unwrap_or_default();
            Prompt::from_prompty_source(source, &mut Below { files, directory })
        }
    }
}

/// Resolves the references of a prompt in another directory.
struct Below<'r> {
    files: &'r mut dyn Resolve,
    directory: PathBuf,
}

impl Resolve for Below<'_> {
    fn env(&mut self, name: &str) -> Result<Option<String>> {
        self.files.env(name)
    }

    fn defers_env(&self) -> bool {
        self.files.defers_env()
    }

    fn file(&mut self, path: &str) -> Result<ReferencedFile> {
        match self.directory.join(path).to_str() {
            Some(path) => self.files.file(path),
            None => self.files.file(path),
        }
    }
}

//! Checks of whole files, including those that do not load.

use serde_json::Value as Json;
use tympan_core::diagnostic::Severity;
use tympan_core::format::outline::{Field, Outline};
use tympan_core::format::{Format, ReferencedFile, Resolve};
use tympan_core::spec::test_suite::TestSuite;
use tympan_core::text::source::SourceFile;
use tympan_core::{Prompt, Result, directive};

use crate::finding::{Finding, Findings};
use crate::migration::add_fixes;
use crate::recovery::check_broken;
use crate::rules::tool_file_not_found::check_tool_files;
use crate::test_file::{check_embedded, check_test_file};
use crate::{Options, check_outlined, suppression};

/// The result of checking a file.
#[derive(Debug)]
#[non_exhaustive]
pub struct Checked {
    /// The prompt, if the file loads. Its template may have errors.
    pub prompt: Option<Prompt>,
    /// If the file does not load, the part of the prompt that can be parsed. Directives have no such part.
    pub partial: Option<Prompt>,
    /// The tests, if the file is a test file that loads.
    pub suite: Option<TestSuite>,
    /// The findings, sorted by position and without duplicates.
    pub findings: Vec<Finding>,
}

/// Checks a prompt file or a test file in the format that its name implies, or, without a known extension, its content. `files`
/// reads the files that it refers to. For a test file, the prompt is one of them.
///
/// A file that does not load has findings as well: its mistakes, and those of its template. Environment variables are
/// not read, so the findings are the same on every machine.
///
/// ```
/// use tympan_core::format::NoReferences;
/// use tympan_core::text::source::SourceFile;
/// use tympan_lint::{Options, check_file};
///
/// let source = SourceFile::new("hello.prompty", "---\nname: [\n---\nuser:\nHi {{ name");
/// let findings = check_file(&source, &mut NoReferences, &Options::default()).findings;
/// let rules: Vec<_> = findings.iter().map(|finding| finding.rule.name).collect();
/// assert_eq!(rules, ["invalid_frontmatter", "template_syntax"]);
/// ```
pub fn check_file(source: &SourceFile, files: &mut dyn Resolve, options: &Options) -> Checked {
    let mut checked = check_all(source, &mut WithoutEnv(files), options);
    mark_fatal(&mut checked);
    suppression::apply(source, &options.selection, &mut checked);
    options.selection.apply(&mut checked);
    checked
}

/// Marks the reasons that a template does not compile, or that tests cannot be checked. Those that a file does not load
/// are marked already.
fn mark_fatal(checked: &mut Checked) {
    const ALWAYS: [&str; 4] = ["template_syntax", "excluded_feature", "limit_exceeded", "invalid_tests"];
    for finding in checked.findings.iter_mut().filter(|finding| finding.severity == Severity::Error) {
        finding.is_fatal |= ALWAYS.contains(&finding.rule.name);
    }
}

/// Checks a file with every rule.
fn check_all(source: &SourceFile, resolve: &mut WithoutEnv<'_>, options: &Options) -> Checked {
    let format = format(source);
    if let Format::Tests(syntax) = format {
        return check_test_file(source, syntax, resolve);
    }
    match load_outlined(source, resolve) {
        Ok((prompt, outline)) => {
            let mut findings = Findings::default();
            check_outlined(&prompt, &outline, options, &mut findings);
            check_tool_files(&prompt, &outline, resolve, &mut findings);
            check_embedded(source, format, (Some(&prompt), &outline), resolve, &mut findings);
            let mut findings = findings.into_sorted();
            add_fixes(&prompt, &outline, resolve, &mut findings);
            Checked { prompt: Some(prompt), partial: None, suite: None, findings }
        }
        Err(error) => check_broken(source, &error, resolve, options),
    }
}

/// Loads a file, and its declarations as they are written.
fn load_outlined<'s>(source: &'s SourceFile, resolve: &mut impl Resolve) -> Result<(Prompt, Outline<'s>)> {
    match format(source) {
        Format::Definition(syntax) => Prompt::from_definition_with_outline(source, syntax),
        // A directive has no outline.
        Format::Directive => Ok((directive::load(source.clone(), directive::INSTRUCTION)?, Outline::default())),
        _ => Prompt::from_prompty_with_outline(source, resolve),
    }
}

pub(crate) fn load(source: &SourceFile, resolve: &mut impl Resolve) -> Result<Prompt> {
    load_outlined(source, resolve).map(|(prompt, _)| prompt)
}

/// Returns the tests in a prompt file, as they are written. They are not part of what a prompt declares.
pub(crate) fn written_tests(prompt: &Prompt) -> Option<Json> {
    prompt.outline().get(&["tests"]).map(Field::to_json)
}

/// Returns the format of a file. Text without a name, such as standard input, can also be a definition, but not a test file.
pub(crate) fn format(source: &SourceFile) -> Format {
    let by_name = Format::from_name(source.name());
    by_name.or_else(|| Format::of_content(source.text())).unwrap_or(Format::Prompty)
}

/// Resolves references to files, and leaves those to environment variables as they are.
pub(crate) struct WithoutEnv<'r>(&'r mut dyn Resolve);

impl Resolve for WithoutEnv<'_> {
    fn env(&mut self, _name: &str) -> Result<Option<String>> {
        Ok(None)
    }

    fn defers_env(&self) -> bool {
        true
    }

    fn file(&mut self, path: &str) -> Result<ReferencedFile> {
        self.0.file(path)
    }
}

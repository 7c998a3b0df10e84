//! Imports promptfoo's configurations: converts them to prompt files and test files.
//!
//! A configuration may come from anyone. The import runs nothing that it names, reads no environment variables and fills in
//! no templates except references to variables; the caller decides which files it can read. Everything that has no exact
//! equivalent becomes a finding.

mod assertion;
mod case;
mod files;
mod finding;
mod node;
mod prompt;
mod provider;
mod rubric;
mod table;
mod template;
mod test;
mod unsupported;
mod write;

use std::path::Path;

use tympan_core::format::Resolve;
use tympan_core::format::definition::Syntax;
use tympan_core::text::source::SourceFile;
use tympan_core::{Error, Kind, Result};
use tympan_runtime::load::{
    DEFAULT_MAX_FILE_BYTES, EnvPolicy, LoadOptions, References, directory_of, read_prompt_file,
};

pub use self::finding::{ImportFinding, Level};

use self::assertion::Refusal;
use self::case::repetitions;
use self::files::{Files, syntax_of};
use self::finding::{Findings, Remark};
use self::node::Node;
use self::provider::{Model, shown};
use self::rubric::{Rubric, rubric_text};

/// The maximum number of bytes of everything that is converted, which bounds the files that are written.
const MAX_OUTPUT: usize = 64 << 20;

/// Keys that change nothing that a verdict depends on.
const HARMLESS: [&str; 8] = [
    "outputPath",
    "sharing",
    "writeLatestResults",
    "metadata",
    "tags",
    "tracing",
    "derivedMetrics",
    "assertionTemplates",
];

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Import {
    /// The files to write.
    pub files: Vec<ImportedFile>,
    /// What was not carried over, and then the notes, each in the order of the configuration.
    pub findings: Vec<ImportFinding>,
}

impl Import {
    /// Returns whether everything was carried over.
    pub fn is_complete(&self) -> bool {
        self.findings.iter().all(|finding| finding.level != Level::NotCarried)
    }
}

/// A file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportedFile {
    /// The name. It contains only ASCII letters and digits, `-`, `_` and `.`.
    pub name: String,
    /// The text.
    pub text: String,
}

/// Converts a configuration of promptfoo to prompt files and test files. `files` reads the files that it names, relative to
/// it.
///
/// ```
/// use tympan_core::format::NoReferences;
/// use tympan_core::text::source::SourceFile;
/// use tympan_eval::promptfoo::import;
///
/// let config = "prompts: ['Greet {{name}}']\nproviders: [openai:gpt-4o-mini]\n\
///     tests: [{vars: {name: Ada}, assert: [{type: contains, value: Ada}]}]\n";
/// let import = import(&SourceFile::new("promptfooconfig.yaml", config), &mut NoReferences)?;
/// let names: Vec<_> = import.files.iter().map(|file| file.name.as_str()).collect();
/// assert_eq!(names, ["prompt.prompty", "prompt.test.yaml"]);
/// assert!(import.is_complete());
/// # Ok::<(), tympan_core::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the configuration does not parse, or is not one.
pub fn import(source: &SourceFile, files: &mut dyn Resolve) -> Result<Import> {
    let root = Node::parse(source, syntax_of(source.name()).unwrap_or(Syntax::Yaml))?;
    let has = |key| root.entries().iter().any(|entry| entry.key == key);
    if !["prompts", "providers", "targets", "tests", "scenarios"].into_iter().any(has) {
        let help = "name a file with `prompts`, `providers` and `tests`, such as promptfooconfig.yaml";
        let error = Error::new(Kind::InvalidTests, "expected a configuration of promptfoo, found something else");
        return Err(error.with_help(help).in_source(source, 0));
    }
    Ok(Importer::new(&root, files).run())
}

/// Reads and converts a configuration of promptfoo. It can name only files in its own directory and below.
///
/// # Errors
/// Returns an error if the file cannot be read, or if [`import`] does.
pub fn import_file(path: &Path) -> Result<Import> {
    let source = read_prompt_file(path, DEFAULT_MAX_FILE_BYTES)?;
    let options = LoadOptions { env: EnvPolicy::Deny, ..LoadOptions::default() };
    import(&source, &mut References::new(directory_of(path), &options))
}

/// The state of an import.
struct Importer<'r> {
    root: &'r Node,
    files: Files<'r>,
    findings: Findings,
    models: Vec<Model>,
    /// The judge that the configuration names for all tests.
    grader: Option<&'r Node>,
    rubrics: Vec<Rubric>,
    out: Vec<ImportedFile>,
    /// The number of bytes that were converted.
    spent: usize,
}

impl<'r> Importer<'r> {
    fn new(root: &'r Node, files: &'r mut dyn Resolve) -> Self {
        Self {
            root,
            files: Files::new(files),
            findings: Findings::default(),
            models: Vec::new(),
            grader: root.get("commandLineOptions").and_then(|options| options.get("grader")),
            rubrics: Vec::new(),
            out: Vec::new(),
            spent: 0,
        }
    }

    fn run(mut self) -> Import {
        let repeat = self.settings();
        self.models = self.models(self.root);
        let prompts = self.prompts(self.root);
        let tests = self.tests(self.root);
        let mut cases = self.cases(&tests);
        for case in &mut cases {
            case.repeat = case.repeat.or(repeat);
        }
        let description = self.root.get("description").and_then(Node::text);
        self.write(&prompts, &cases, description);
        let rubrics = self
            .rubrics
            .iter()
            .map(|rubric| ImportedFile { name: format!("{}.prompty", rubric.name), text: rubric_text(rubric) });
        self.out.extend(rubrics);
        Import { files: self.out, findings: self.findings.into_sorted() }
    }

    /// Reports the keys of the configuration that have no equivalent. Returns how often each test runs.
    fn settings(&mut self) -> Option<u64> {
        let mut repeat = None;
        for entry in self.root.entries().iter().filter(|entry| !entry.value.is_null()) {
            let key = entry.key.as_str();
            let item = format!("`{}`", shown(key));
            let (reason, help) = match key {
                "prompts" | "providers" | "targets" | "tests" | "scenarios" | "defaultTest" | "description"
                | "$schema" => continue,
                "evaluateOptions" | "commandLineOptions" => {
                    repeat = self.run_options(&entry.value).or(repeat);
                    continue;
                }
                "env" => {
                    ("an import does not set environment variables", "set the variables where you run `tympan test`")
                }
                "extensions" => ("it runs code", "run the code before and after `tympan test`"),
                "nunjucksFilters" => (
                    "it runs code for the filters of templates",
                    "use Tympan's filters, or register filters in your own program",
                ),
                "redteam" => ("promptfoo generates these tests", "test forged messages with `forge: all`"),
                _ if HARMLESS.contains(&key) => {
                    let remark = Remark::new(
                        item,
                        "it changes no verdict, and was left out",
                        "see `tympan test --help` for reports",
                    );
                    self.findings.note(&entry.place, remark);
                    continue;
                }
                _ => ("the import does not know this key", "check whether the tests depend on it"),
            };
            self.findings.not_carried(&entry.place, Remark::new(item, reason, help));
        }
        repeat
    }

    /// Reports options of a run. Returns how often each test runs.
    fn run_options(&mut self, options: &Node) -> Option<u64> {
        const CHANGES: [&str; 8] =
            ["promptPrefix", "promptSuffix", "prompts", "providers", "tests", "vars", "var", "modelOutputs"];
        for entry in options.entries() {
            let item = format!("option `{}`", shown(&entry.key));
            match entry.key.as_str() {
                "repeat" | "grader" => {}
                key if CHANGES.contains(&key) || key.starts_with("filter") || key == "assertions" => {
                    let (reason, help) =
                        ("it changes which prompts and tests run", "write it into `prompts` and `tests`");
                    self.findings.not_carried(&entry.place, Remark::new(item, reason, help));
                }
                _ => {
                    let help = "see `tympan test --help` for similar options";
                    self.findings.note(&entry.place, Remark::new(item, "it belongs to promptfoo's command line", help));
                }
            }
        }
        options.get("repeat").and_then(repetitions)
    }

    /// Counts bytes that are converted.
    ///
    /// # Errors
    /// Returns a message if there are too many.
    fn spend(&mut self, bytes: usize) -> std::result::Result<(), Refusal> {
        self.spent = self.spent.saturating_add(bytes);
        match self.spent <= MAX_OUTPUT {
            true => Ok(()),
            false => {
                let reason = format!("the import is limited to {} MiB", MAX_OUTPUT >> 20);
                Err((reason, "split the configuration".to_owned()))
            }
        }
    }
}

/// Returns whether a text would be resolved as a reference in a prompt file, such as `${env:NAME}`.
fn is_reference(text: &str) -> bool {
    text.contains("${")
}

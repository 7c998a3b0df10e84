//! Cases of every rule: `fixtures/lint/TYnnn/fires` has files with findings, and `clean` has files without any.
//!
//! Next to each file in `fires`, a file with the extension `expected` lists the findings of the rule: position, severity
//! and message, then the help, the fix and the path, each on an indented line.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use tympan_core::format::{Format, ReferencedFile, Resolve};
use tympan_core::text::source::SourceFile;
use tympan_core::{Error, Kind, Prompt, Result};
use tympan_lint::{Finding, Group, Options, RULES, Rule, Settings, check_file};

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// Leaves references to the environment unresolved, and reads files relative to a prompt.
struct Files(PathBuf);

impl Files {
    fn of(source: &SourceFile) -> Self {
        Self(Path::new(source.name()).parent().map(Path::to_owned).unwrap_or_default())
    }
}

impl Resolve for Files {
    fn env(&mut self, _: &str) -> Result<Option<String>> {
        Ok(None)
    }

    fn defers_env(&self) -> bool {
        true
    }

    fn file(&mut self, path: &str) -> Result<ReferencedFile> {
        #[expect(clippy::disallowed_methods, reason = "a test reads fixtures")]
        let text = std::fs::read_to_string(self.0.join(path));
        text.map(|text| ReferencedFile { text }).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::new(Kind::ReferencedFileNotFound, path),
            _ => Error::new(Kind::InvalidReferencedFile, path),
        })
    }
}

pub(crate) fn read(path: &Path) -> SourceFile {
    #[expect(clippy::disallowed_methods, reason = "a test reads fixtures")]
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    SourceFile::new(path.display().to_string(), text)
}

pub(crate) fn load(source: SourceFile) -> Result<Prompt> {
    match Format::detect(source.name(), source.text()) {
        Format::Definition(syntax) => Prompt::from_definition_source(source, syntax),
        Format::Tests(_) => Err(Error::new(Kind::InvalidTests, "not a prompt")),
        Format::Directive => tympan_core::directive::load(source, tympan_core::directive::INSTRUCTION),
        _ => {
            let mut files = Files::of(&source);
            Prompt::from_prompty_source(source, &mut files)
        }
    }
}

/// The options for a file: those of the settings in the folder of its rule, if there are any.
fn options(source: &SourceFile) -> Options {
    let path = Path::new(source.name());
    let Some(folder) = path.ancestors().nth(2) else { return Options::default() };
    let settings = folder.join("tympan.toml");
    if !settings.exists() {
        return Options::default();
    }
    let settings = Settings::parse(&read(&settings)).expect("the settings are valid");
    settings.options(path.strip_prefix(folder).unwrap_or(path))
}

pub(crate) fn findings(source: &SourceFile) -> Vec<Finding> {
    check_file(source, &mut Files::of(source), &options(source)).findings
}

/// The prompt files of a folder, sorted.
fn cases(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|ext| ext != "expected")).collect();
    paths.sort();
    paths
}

fn shown(source: &SourceFile, rule: &Rule) -> String {
    let mut text = String::new();
    let place = |span: tympan_core::text::source::Span| {
        let at = source.line_column(span.start);
        format!("{}:{}", at.line, at.column)
    };
    for finding in findings(source).into_iter().filter(|finding| finding.rule == rule) {
        let at = finding.span.map_or_else(|| "-".to_owned(), place);
        let _ = writeln!(text, "{at} {}: {}", finding.severity.as_str(), finding.message);
        if let Some(help) = finding.help {
            let _ = writeln!(text, "  help: {help}");
        }
        for (span, replacement) in finding.fix.iter().flat_map(|fix| &fix.edits) {
            let _ = writeln!(text, "  fix {}: {:?} -> {replacement:?}", place(*span), source.slice(*span));
        }
        for (span, note) in &finding.related {
            let _ = writeln!(text, "  {} {:?} {note}", place(*span), source.slice(*span));
        }
    }
    text
}

#[test]
fn every_rule_has_cases() {
    let mut missing = Vec::new();
    for rule in RULES.iter().filter(|rule| !rule.is_reported_by_engine() || rule.group == Group::Tests) {
        for folder in ["fires", "clean"] {
            if cases(&root().join("lint").join(rule.code).join(folder)).is_empty() {
                missing.push(format!("{}/{folder} ({})", rule.code, rule.name));
            }
        }
    }
    assert!(missing.is_empty(), "no cases: {missing:#?}");
    let folders = std::fs::read_dir(root().join("lint")).expect("the cases are there");
    for folder in folders {
        let name = folder.expect("an entry").file_name();
        assert!(RULES.iter().any(|rule| *rule.code == *name), "{} is not a rule", name.display());
    }
}

#[test]
fn rules_fire_where_they_should() {
    let mut wrong = Vec::new();
    for rule in RULES {
        let folder = root().join("lint").join(rule.code);
        for path in cases(&folder.join("fires")) {
            let found = shown(&read(&path), rule);
            let expected = path.with_extension("expected");
            if !expected.exists() || read(&expected).text() != found || found.is_empty() {
                wrong.push(format!("{}\n{found}", expected.display()));
            }
        }
        for path in cases(&folder.join("clean")) {
            let found = shown(&read(&path), rule);
            if !found.is_empty() {
                wrong.push(format!("{} has findings\n{found}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Writes the files of expected findings. Run it after a change of messages, and review the difference.
#[test]
#[ignore = "changes files"]
fn write_expected_findings() {
    for rule in RULES {
        for path in cases(&root().join("lint").join(rule.code).join("fires")) {
            let found = shown(&read(&path), rule);
            #[expect(clippy::disallowed_methods, reason = "a test writes fixtures")]
            std::fs::write(path.with_extension("expected"), found).expect("it can be written");
        }
    }
}

/// A fix leaves a file that loads, and removes its finding.
#[test]
fn fixes_keep_files_loadable() {
    let mut count = 0;
    for rule in RULES {
        for path in cases(&root().join("lint").join(rule.code).join("fires")) {
            let source = read(&path);
            for finding in findings(&source).into_iter().filter(|finding| finding.rule == *rule) {
                let Some(fix) = finding.fix else { continue };
                let mut text = source.text().to_owned();
                for (span, replacement) in fix.edits.iter().rev() {
                    text.replace_range(span.range(), replacement);
                }
                let fixed = SourceFile::new(source.name(), text);
                let prompt = load(fixed.clone());
                assert!(prompt.is_ok() || load(source.clone()).is_err(), "{}: {}", path.display(), finding.message);
                let left = findings(&fixed);
                let is_left = |left: &Finding| left.rule == finding.rule && left.message == finding.message;
                assert!(!left.iter().any(|left| is_left(left) && left.span == finding.span), "{}", path.display());
                count += 1;
            }
        }
    }
    assert!(count > 0, "no case has a fix");
}

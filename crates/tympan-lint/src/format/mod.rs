//! Formatting of prompt files: the layout of their declarations, and the white space inside of template tags. Of test
//! files, it is the layout.
//!
//! The text of a template is what a model reads, so it is never touched. [`format_file`] checks its own result: the
//! formatted file must load, and must mean the same.

mod jinja;
mod json;
mod mustache;
mod yaml;

use std::fmt;

use tympan_core::format::definition::Syntax;
use tympan_core::format::outline::{Field, Outline};
use tympan_core::format::{Format, ReferencedFile, Resolve, frontmatter, test_file};
use tympan_core::prompt::analysis::TemplateAnalysis;
use tympan_core::spec::DEFAULT_VARIANT;
use tympan_core::text::source::{SourceFile, Span};
use tympan_core::{Error, Kind, Prompt, Result};

pub use crate::difference::Edit;
use crate::{difference, file};

/// Options of formatting.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct FormatOptions {
    /// Whether templates stay as they are, so that no hash changes.
    pub front_matter_only: bool,
}

/// A formatted prompt file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Formatted {
    /// The text.
    pub text: String,
    /// Whether it differs from the text before.
    pub changed: bool,
    /// The hashes of the prompt's definition. They differ if a template has changed, because its source is part of it. A
    /// test file has none.
    pub hashes: Option<Hashes>,
    /// Why a part of the file was left as it is.
    pub note: Option<&'static str>,
}

/// The hashes of a definition before and after formatting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hashes {
    /// The hash before.
    pub before: String,
    /// The hash after.
    pub after: String,
}

/// The reason that a file was not formatted.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum FormatError {
    /// The file does not load.
    Invalid(Error),
    /// The formatted file would not mean the same, which is a bug in the formatter. Holds what would change.
    Unsafe(&'static str),
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(error) => error.fmt(f),
            Self::Unsafe(what) => {
                write!(f, "formatting would change {what}, so the file was left as it is; this is a bug in Tympan")
            }
        }
    }
}

impl std::error::Error for FormatError {}

impl From<Error> for FormatError {
    fn from(error: Error) -> Self {
        Self::Invalid(error)
    }
}

impl Formatted {
    /// Returns the edits that turn the text before into the formatted one. Each replaces whole lines.
    pub fn edits(&self, before: &str) -> Vec<Edit> {
        difference::edits(before, &self.text)
    }
}

/// Formats a prompt file or a test file in the format that its name implies, or, without a known extension, its content. `files` reads
/// the files that it refers to. Environment variables are not read.
///
/// ```
/// use tympan_core::format::NoReferences;
/// use tympan_core::text::source::SourceFile;
/// use tympan_lint::format::{FormatOptions, format_file};
///
/// let source = SourceFile::new("hello.prompty", "---\ninputs:\n- {name: who,kind: string}\n---\nuser:\nHi {{who}}!");
/// let formatted = format_file(&source, &mut NoReferences, &FormatOptions::default())?;
/// assert_eq!(formatted.text, "---\ninputs:\n  - {name: who, kind: string}\n---\nuser:\nHi {{ who }}!");
/// # Ok::<(), tympan_lint::format::FormatError>(())
/// ```
///
/// # Errors
/// Returns an error if the file does not load, or if the formatted file would not mean the same.
pub fn format_file(
    source: &SourceFile,
    files: &mut dyn Resolve,
    options: &FormatOptions,
) -> std::result::Result<Formatted, FormatError> {
    let format = file::format(source);
    if let Format::Tests(syntax) = format {
        return format_tests(source, syntax);
    }
    let resolve = &mut AsWritten(files);
    let before = load(source, resolve)?;
    let mut text = source.text().to_owned();
    if !options.front_matter_only {
        text = apply(&text, template_edits(&before, format));
    }
    let (text, note) = match layout(&text, format) {
        Ok(text) => (text, None),
        Err(note) => (text, Some(note)),
    };
    if text == source.text() {
        let hash = before.definition_hash().to_owned();
        let hashes = Some(Hashes { before: hash.clone(), after: hash });
        return Ok(Formatted { text, changed: false, hashes, note });
    }
    let after = load(&SourceFile::new(source.name(), text.as_str()), resolve)
        .map_err(|_| FormatError::Unsafe("whether it loads"))?;
    if let Some(what) = change(&before, &after, options) {
        return Err(FormatError::Unsafe(what));
    }
    let (before, after) = (before.definition_hash().to_owned(), after.definition_hash().to_owned());
    Ok(Formatted { text, changed: true, hashes: Some(Hashes { before, after }), note })
}

/// Formats a test file.
fn format_tests(source: &SourceFile, syntax: Syntax) -> std::result::Result<Formatted, FormatError> {
    let (_, findings) = test_file::parse(source, syntax);
    if !findings.is_empty() {
        return Err(Error::from_findings(findings, source).into());
    }
    let (text, note) = match layout(source.text(), Format::Tests(syntax)) {
        Ok(text) => (text, None),
        Err(note) => (source.text().to_owned(), Some(note)),
    };
    let json = |source: &SourceFile| Outline::new(source, Format::Tests(syntax)).get(&[]).map(Field::to_json);
    if json(source) != json(&SourceFile::new(source.name(), text.as_str())) {
        return Err(FormatError::Unsafe("the tests"));
    }
    Ok(Formatted { changed: text != source.text(), text, hashes: None, note })
}

/// Loads a file whose templates compile. Templates for a custom renderer are not compiled.
fn load(source: &SourceFile, resolve: &mut AsWritten<'_>) -> Result<Prompt> {
    let prompt = file::load(source, resolve)?;
    for template in prompt.templates() {
        match template.template() {
            Err(error) if error.kind() != Kind::NotRegistered => return Err(error),
            _ => {}
        }
    }
    Ok(prompt)
}

/// Returns what formatting has changed and must not change.
fn change(before: &Prompt, after: &Prompt, options: &FormatOptions) -> Option<&'static str> {
    if declarations(before) != declarations(after) {
        return Some("the declarations");
    }
    if file::written_tests(before) != file::written_tests(after) {
        return Some("the tests");
    }
    let same_text = before.templates().map(|template| template.source());
    if same_text.eq(after.templates().map(|template| template.source())) {
        return None;
    }
    let mut templates = before.templates().zip(after.templates());
    let is_same =
        |(before, after): (TemplateAnalysis<'_>, TemplateAnalysis<'_>)| match (before.template(), after.template()) {
            (Ok(compiled), Ok(other)) => compiled.is_equivalent(other),
            _ => before.source() == after.source(),
        };
    (options.front_matter_only || !templates.all(is_same)).then_some("a template")
}

/// Returns everything that a prompt declares, and the canonical form of its definition, apart from its templates.
fn declarations(prompt: &Prompt) -> (String, String) {
    let mut spec = prompt.spec().clone();
    spec.instructions.clear();
    spec.variants.iter_mut().for_each(|variant| variant.body.clear());
    (spec.to_json().to_string(), Prompt::from_spec(spec).definition_hash().to_owned())
}

/// Returns the edits of all templates, with positions in the file.
fn template_edits(prompt: &Prompt, format: Format) -> Vec<Edit> {
    let outline = prompt.outline();
    let mut edits = Vec::new();
    for template in prompt.templates() {
        let quotes = match format {
            Format::Prompty => Some(true),
            Format::Definition(Syntax::Yaml | Syntax::Json) => {
                let path: &[&str] = match template.name() {
                    DEFAULT_VARIANT => &["body"],
                    variant => &["variants", variant, "body"],
                };
                outline.get(path).and_then(|body| may_change_quotes(prompt.source().text(), body.span.start))
            }
            _ => None,
        };
        if let Some(quotes) = quotes {
            edits.extend(located_edits(prompt, &template, quotes));
        }
    }
    edits.sort_by_key(|(span, _)| (span.start, span.end));
    edits.dedup();
    edits
}

/// Returns whether the quotes in the tags of a template may change. In a literal block they may. In double quotes they
/// may not. Other scalars have too many rules of their own, so templates in them stay as they are: `None`.
fn may_change_quotes(text: &str, start: usize) -> Option<bool> {
    let before = &text[..start];
    let header = before.rsplit_once('\n').filter(|(_, indent)| indent.trim().is_empty()).map(|(lines, _)| {
        let line = lines.trim_end().rsplit('\n').next().unwrap_or_default();
        line.split_once(" #").map_or(line, |(line, _)| line).trim_end()
    });
    if header.and_then(|header| header.split_whitespace().next_back()).is_some_and(|word| word.starts_with('|')) {
        return Some(true);
    }
    text[start..].starts_with('"').then_some(false)
}

/// Returns the edits of a template. Tags that are written with escapes stay as they are.
fn located_edits<'p>(
    prompt: &'p Prompt,
    template: &TemplateAnalysis<'p>,
    quotes: bool,
) -> impl Iterator<Item = Edit> + use<'p> {
    let source = template.source();
    let edits = match prompt.spec().template.format.as_str() {
        "jinja2" | "jinja" | "nunjucks" | "*" => jinja::edits(source, quotes),
        "mustache" => mustache::edits(source),
        _ => Vec::new(),
    };
    let template = *template;
    edits.into_iter().filter_map(move |(span, text)| {
        // The first position of a line may be located before its indentation, so count from the end.
        let end = template.locate(span).end;
        let located = Span::new(end.checked_sub(span.range().len())?, end);
        (prompt.source().slice(located) == &source[span.range()]).then_some((located, text))
    })
}

/// Applies edits that are sorted by position.
fn apply(text: &str, edits: Vec<Edit>) -> String {
    let (mut out, mut at) = (String::with_capacity(text.len() + 2 * edits.len()), 0);
    for (span, replacement) in edits {
        if span.start >= at {
            out.push_str(&text[at..span.start]);
            out.push_str(&replacement);
            at = span.end;
        }
    }
    out.push_str(&text[at..]);
    out
}

/// Lays the declarations of a file out. Returns the reason if they stay as they are.
fn layout(text: &str, format: Format) -> std::result::Result<String, &'static str> {
    const YAML: &str = "the YAML has parts that cannot be laid out, such as tabs, complex keys or several documents";
    let (mark, whole) = text.split_at(if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 });
    match format {
        Format::Prompty => {
            let span = frontmatter::split(text).ok().and_then(|split| split.front_matter);
            let Some(span) = span else { return Ok(text.to_owned()) };
            let yaml = yaml::layout(&text[span.range()]).ok_or(YAML)?;
            Ok([&text[..span.start], &yaml, &text[span.end..]].concat())
        }
        Format::Definition(Syntax::Yaml) | Format::Tests(Syntax::Yaml) => {
            Ok(mark.to_owned() + &yaml::layout(whole).ok_or(YAML)?)
        }
        Format::Definition(Syntax::Json) | Format::Tests(Syntax::Json) => {
            Ok(mark.to_owned() + &json::layout(whole).ok_or("it is not JSON as other programs read it")?)
        }
        Format::Definition(Syntax::Toml) => Err("definitions in TOML are not formatted"),
        Format::Tests(Syntax::Toml) => Err("test files in TOML are not formatted"),
        _ => Err("directives are not formatted"),
    }
}

/// Resolves references to files, and leaves those to environment variables as they are written. So the hashes are those
/// of `tympan hash`.
struct AsWritten<'r>(&'r mut dyn Resolve);

impl Resolve for AsWritten<'_> {
    fn env(&mut self, name: &str) -> Result<Option<String>> {
        Ok(Some(format!("${{env:{name}}}")))
    }

    fn file(&mut self, path: &str) -> Result<ReferencedFile> {
        self.0.file(path)
    }
}

//! Open documents.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use gen_lsp_types::{Position, Range, Uri};
use serde::Deserialize;
use tympan_core::format::Format;
use tympan_core::text::source::{SourceFile, Span};

use crate::analysis::Analysis;
use crate::position::{Encoding, LineIndex};

/// An open document.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) uri: Uri,
    /// The path, if the document is a file.
    pub(crate) path: Option<PathBuf>,
    pub(crate) version: i32,
    pub(crate) encoding: Encoding,
    source: SourceFile,
    lines: LineIndex,
    /// Whether the text was a prompt at any time since the document was opened. A mistake in a YAML file can make its
    /// format unrecognizable, and then it should be reported.
    is_prompt: bool,
    analysis: OnceCell<Analysis>,
}

/// A change of a document's text.
#[derive(Debug, Deserialize)]
pub(crate) struct Change {
    /// The range that is replaced. `None` for all of the text.
    pub(crate) range: Option<Range>,
    pub(crate) text: String,
}

impl Document {
    pub(crate) fn new(uri: Uri, version: i32, text: &str, encoding: Encoding) -> Self {
        let path = uri.to_file_path().ok();
        let name = match &path {
            Some(path) => path.display().to_string(),
            None => uri.path().to_owned(),
        };
        let source = SourceFile::new(name, text);
        let is_prompt = format(&source).matches(text);
        let lines = LineIndex::new(text);
        Self { uri, path, version, encoding, source, lines, is_prompt, analysis: OnceCell::new() }
    }

    /// Applies changes in order.
    pub(crate) fn change(&mut self, version: i32, changes: Vec<Change>) {
        let mut text = self.text().to_owned();
        let mut lines = self.lines.clone();
        for change in changes {
            match change.range {
                Some(range) => {
                    let span = lines.to_span(&text, range, self.encoding);
                    text.replace_range(span.range(), &change.text);
                }
                None => text = change.text,
            }
            lines = LineIndex::new(&text);
        }
        (self.version, self.lines) = (version, lines);
        self.source = SourceFile::new(self.source.name(), text);
        self.is_prompt |= self.format().matches(self.text());
        self.forget_analysis();
    }

    /// Makes the next request analyze the document again, because something that it refers to may have changed.
    pub(crate) fn forget_analysis(&mut self) {
        self.analysis = OnceCell::new();
    }

    pub(crate) fn text(&self) -> &str {
        self.source.text()
    }

    pub(crate) fn source(&self) -> &SourceFile {
        &self.source
    }

    pub(crate) fn format(&self) -> Format {
        format(&self.source)
    }

    /// Returns whether the document is a prompt. Other YAML, JSON, TOML and Markdown files are left alone.
    pub(crate) fn is_prompt(&self) -> bool {
        self.is_prompt
    }

    /// Returns whether the document is a test file. Tests in a prompt file do not count.
    pub(crate) fn is_test_file(&self) -> bool {
        matches!(self.format(), Format::Tests(_))
    }

    /// Returns the span of a name without its quotes. `None` if it is written with escapes.
    pub(crate) fn exact(&self, span: Span, name: &str) -> Option<Span> {
        let text = self.source.slice(span);
        let inner = text.strip_prefix(['"', '\'']).and_then(|text| text.strip_suffix(['"', '\'']));
        match inner {
            Some(inner) if inner == name => Some(Span::new(span.start + 1, span.end - 1)),
            _ => (text == name).then_some(span),
        }
    }

    /// Returns the last analysis, if the document has not changed since.
    pub(crate) fn known_analysis(&self) -> Option<&Analysis> {
        self.analysis.get()
    }

    /// Returns the analysis of this version of the document.
    pub(crate) fn analysis(&self, analyze: impl FnOnce() -> Analysis) -> &Analysis {
        self.analysis.get_or_init(analyze)
    }

    pub(crate) fn offset(&self, position: Position) -> usize {
        self.lines.offset(self.text(), position, self.encoding)
    }

    pub(crate) fn position(&self, offset: usize) -> Position {
        self.lines.position(self.text(), offset, self.encoding)
    }

    pub(crate) fn span(&self, range: Range) -> Span {
        self.lines.to_span(self.text(), range, self.encoding)
    }

    pub(crate) fn range(&self, span: Span) -> Range {
        self.lines.range(self.text(), span, self.encoding)
    }

    /// Returns the span of the line that contains an offset, without its line end.
    pub(crate) fn line_at(&self, offset: usize) -> Span {
        self.lines.span(self.text(), self.lines.line(offset))
    }
}

/// Returns the format that the name implies or, without an extension, the content.
fn format(source: &SourceFile) -> Format {
    let by_name = Format::from_name(source.name());
    by_name.or_else(|| Format::of_content(source.text())).unwrap_or(Format::Prompty)
}

/// A document that is open, or that was read for one request.
pub(crate) enum DocumentRef<'d> {
    Open(&'d Document),
    Read(Box<Document>),
}

impl Deref for DocumentRef<'_> {
    type Target = Document;

    fn deref(&self) -> &Document {
        match self {
            Self::Open(document) => document,
            Self::Read(document) => document,
        }
    }
}

/// The open documents.
#[derive(Debug, Default)]
pub(crate) struct Documents(HashMap<Uri, Document>);

impl Documents {
    pub(crate) fn open(&mut self, document: Document) {
        self.0.insert(document.uri.clone(), document);
    }

    pub(crate) fn close(&mut self, uri: &Uri) -> bool {
        self.0.remove(uri).is_some()
    }

    pub(crate) fn get(&self, uri: &Uri) -> Option<&Document> {
        self.0.get(uri)
    }

    pub(crate) fn get_mut(&mut self, uri: &Uri) -> Option<&mut Document> {
        self.0.get_mut(uri)
    }

    /// Returns the open document with this path.
    pub(crate) fn at_path(&self, path: &Path) -> Option<&Document> {
        self.0.values().find(|document| document.path.as_deref() == Some(path))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Document> {
        self.0.values()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Document> {
        self.0.values_mut()
    }
}

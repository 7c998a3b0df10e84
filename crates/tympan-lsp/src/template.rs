//! The templates of a document: their syntax trees, and positions in both directions.

use tympan_core::Prompt;
use tympan_core::prompt::analysis::TemplateAnalysis;
use tympan_core::spec::PromptKind;
use tympan_core::template::syntax::{SyntaxTree, Token};
use tympan_core::text::source::{SourceFile, Span};

/// A template of a prompt.
///
/// In YAML, JSON and TOML, templates are strings with escapes and folded lines. What cannot be located exactly there is
/// left out.
pub(crate) struct Template<'p> {
    pub(crate) analysis: TemplateAnalysis<'p>,
    /// The syntax tree. `None` for a directive, and for the syntax of a custom renderer.
    pub(crate) tree: Option<SyntaxTree>,
    file: &'p SourceFile,
    /// The offset in the file, if the template is there unchanged.
    verbatim: Option<usize>,
}

/// Returns the templates of a prompt.
pub(crate) fn templates<'p>(prompt: &'p Prompt) -> Vec<Template<'p>> {
    let is_verbatim = prompt.kind() == PromptKind::Prompty;
    let new = |analysis: TemplateAnalysis<'p>| -> Template<'p> {
        let tree = analysis.syntax_tree();
        let verbatim = is_verbatim.then(|| analysis.locate(Span::default()).start);
        Template { analysis, tree, file: prompt.source(), verbatim }
    };
    prompt.templates().map(new).collect()
}

impl<'p> Template<'p> {
    pub(crate) fn source(&self) -> &'p str {
        self.analysis.source()
    }

    pub(crate) fn text(&self, span: Span) -> &'p str {
        self.source().get(span.range()).unwrap_or_default()
    }

    pub(crate) fn tokens(&self) -> &[Token] {
        match &self.tree {
            Some(SyntaxTree::Jinja(parsed)) => &parsed.tokens,
            Some(SyntaxTree::Mustache(parsed)) => &parsed.tokens,
            _ => &[],
        }
    }

    /// Returns the span in the file that has the same text as this one.
    pub(crate) fn file_span(&self, span: Span) -> Option<Span> {
        let located = self.analysis.locate(span);
        let text = self.source().get(span.range())?;
        (self.file.text().get(located.range()) == Some(text)).then_some(located)
    }

    /// Returns the offset in the template of an offset in the file.
    pub(crate) fn offset(&self, file_offset: usize) -> Option<usize> {
        if let Some(start) = self.verbatim {
            let offset = file_offset.checked_sub(start)?;
            return (offset <= self.source().len()).then_some(offset);
        }
        let mut ending = None;
        for span in self.tokens().iter().flat_map(|token| self.lines(token.span())) {
            let Some(located) = self.file_span(span) else { continue };
            if located.range().contains(&file_offset) {
                return Some(span.start + file_offset - located.start);
            }
            if located.end == file_offset {
                ending = Some(span.end);
            }
        }
        ending
    }

    /// Returns the parts of a span that are on one line each.
    pub(crate) fn lines(&self, span: Span) -> impl Iterator<Item = Span> + use<'p> {
        let mut start = span.start;
        self.text(span).split_inclusive('\n').map(move |line| {
            let part = Span::new(start, start + line.trim_end_matches(['\r', '\n']).len());
            start += line.len();
            part
        })
    }
}

/// Returns whether a cursor touches a span.
pub(crate) fn touches(span: Span, offset: usize) -> bool {
    span.start <= offset && offset <= span.end
}

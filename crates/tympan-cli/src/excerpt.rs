//! A finding with the line of the source that it is about, as compilers show it.

use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use tympan::Error;
use tympan::diagnostic::{Diagnostic, Severity};
use tympan::text::source::{SourceFile, Span};

use crate::escape::{is_unsafe, visible, visible_line, written};

/// What a finding says, wherever it came from.
#[derive(Clone, Debug)]
pub(crate) struct Finding<'a> {
    pub(crate) severity: Severity,
    pub(crate) code: &'a str,
    pub(crate) message: &'a str,
    pub(crate) help: Option<&'a str>,
    pub(crate) source: Option<&'a SourceFile>,
    pub(crate) span: Option<Span>,
}

impl<'a> Finding<'a> {
    /// An error of the engine's.
    pub(crate) fn of_error(error: &'a Error) -> Self {
        Self {
            severity: Severity::Error,
            code: error.code(),
            message: error.message(),
            help: error.help(),
            source: error.source_file(),
            span: error.span(),
        }
    }

    /// A diagnostic about a source.
    pub(crate) fn of_diagnostic(diagnostic: &'a Diagnostic, source: Option<&'a SourceFile>) -> Self {
        Self {
            severity: diagnostic.severity,
            code: diagnostic.code,
            message: &diagnostic.message,
            help: diagnostic.help.as_deref(),
            source,
            span: diagnostic.span,
        }
    }

    /// The error and what came up together with it, in the order of their places.
    pub(crate) fn all_of_error(error: &'a Error) -> Vec<Self> {
        let others = error.others().iter().map(|other| Self::of_diagnostic(other, error.source_file()));
        let mut findings: Vec<_> = std::iter::once(Self::of_error(error)).chain(others).collect();
        findings.sort_by_key(|finding| finding.span.map_or(0, |span| span.start));
        findings
    }

    /// The file and the line that it is about, if it is about one.
    pub(crate) fn line(&self) -> Option<(&'a str, usize)> {
        let (source, span) = self.source.zip(self.span)?;
        Some((source.name(), source.line_column(span.start).line))
    }

    /// The finding for people, on lines of its own.
    pub(crate) fn show(&self, colours: bool) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let renderer = if colours { Renderer::styled() } else { Renderer::plain() };
        let mut group = Group::with_title(level.primary_title(visible_line(self.message)).id(self.code));
        let Some((source, span)) = self.source.zip(self.span) else {
            return renderer.render(&[group]) + "\n" + &self.rest_without_place();
        };
        let excerpt = Excerpt::new(source, span);
        if excerpt.is_cut {
            let place = source.line_column(span.start);
            let path = Origin::path(visible_line(source.name()));
            group = group.element(path.line(place.line).char_column(place.column));
        }
        group = group.element(excerpt.into_snippet(source));
        if let Some(help) = self.help {
            group = group.element(Level::HELP.message(visible(help).into_owned()));
        }
        renderer.render(&[group]) + "\n"
    }

    /// The file, unless the message has named it, and the help.
    fn rest_without_place(&self) -> String {
        let file = self.source.map(SourceFile::name).filter(|name| !self.message.contains(name));
        let file = file.map_or_else(String::new, |name| format!(" --> {}\n", visible_line(name)));
        let help = self.help.map_or_else(String::new, |help| format!("  = help: {}\n", visible(help)));
        file + &help
    }
}

/// The most characters of a line that are shown before what is marked; twice as many are shown from there on.
const MAX_AROUND: usize = 1000;

/// The line where a span begins, with the span marked as far as it lies on that line.
struct Excerpt {
    line: String,
    marked: Range<usize>,
    number: usize,
    /// Whether this is not all of the line.
    is_cut: bool,
}

impl Excerpt {
    fn new(source: &SourceFile, span: Span) -> Self {
        let text = source.text();
        let start = floor(text, span.start);
        let number = source.line_column(start).line;
        // A line can be as long as its file, and have thousands of findings.
        let (line_start, cut_before) = beginning(text, start);
        let (line_end, cut_after) = ending(text, start);
        let line_end = line_start + text[line_start..line_end].trim_end_matches('\r').len();
        let start = start.min(line_end);
        let end = floor(text, span.end).clamp(start, line_end);
        let mut line = String::from(if cut_before { "…" } else { "" });
        let mut marked = 0..0;
        for (at, char) in text[line_start..line_end].char_indices() {
            mark(&mut marked, line_start + at, start, end, line.len());
            if is_unsafe(char) {
                line.push_str(&written(char));
            } else {
                line.push(char);
            }
        }
        mark(&mut marked, line_end, start, end, line.len());
        if cut_after {
            line.push('…');
        }
        Self { line, marked, number, is_cut: cut_before || cut_after }
    }

    fn into_snippet(self, source: &SourceFile) -> Snippet<'static, Annotation<'static>> {
        let snippet = Snippet::source(self.line).line_start(self.number);
        // The place of what is cut would be counted from where it is cut.
        let snippet = if self.is_cut { snippet } else { snippet.path(visible_line(source.name())) };
        snippet.annotation(AnnotationKind::Primary.span(self.marked))
    }
}

/// Where the line begins that an offset is on, or what is shown of it; and whether that is less.
fn beginning(text: &str, offset: usize) -> (usize, bool) {
    let mut start = offset;
    for (at, char) in text[..offset].char_indices().rev().take(MAX_AROUND) {
        if char == '\n' {
            return (start, false);
        }
        start = at;
    }
    (start, start > 0 && !text[..start].ends_with('\n'))
}

/// Where that line ends, or what is shown of it; and whether that is less.
fn ending(text: &str, offset: usize) -> (usize, bool) {
    let rest = &text[offset..];
    match rest.char_indices().take(2 * MAX_AROUND).find(|(_, char)| *char == '\n') {
        Some((at, _)) => (offset + at, false),
        None => {
            let end = rest.char_indices().nth(2 * MAX_AROUND).map_or(text.len(), |(at, _)| offset + at);
            (end, end < text.len() && !text[end..].starts_with('\n'))
        }
    }
}

/// Moves the ends of the marked range to where they stand in the text that is shown.
fn mark(marked: &mut Range<usize>, at: usize, start: usize, end: usize, shown: usize) {
    if at == start {
        marked.start = shown;
    }
    if at == end {
        marked.end = shown;
    }
}

fn floor(text: &str, offset: usize) -> usize {
    text.floor_char_boundary(offset.min(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_span_can_be_shown() {
        let source = SourceFile::new("x", "é\u{1b}\r\n\n\ta € b\u{202e}\n");
        let length = source.text().len() + 2;
        for start in 0..length {
            for end in 0..length {
                let diagnostic = Diagnostic::error("code", Span::new(start, end), "message");
                let shown = Finding::of_diagnostic(&diagnostic, Some(&source)).show(false);
                assert!(shown.contains('^') && !shown.contains(is_unsafe), "{start}..{end}: {shown}");
            }
        }
    }

    #[test]
    fn the_source_line_cannot_drive_a_terminal() {
        let source = SourceFile::new("a\u{1b}.prompty", "one\ntwo \u{1b}]0;x\u{7} {{ y }}\nthree");
        let at = source.text().find("{{").expect("there is a tag");
        let error =
            Error::new(tympan::Kind::TemplateSyntax, "b\u{9b}ad").at(Span::new(at, at + 7)).in_source(&source, 0);
        let shown = Finding::of_error(&error).show(false);
        assert!(!shown.contains(is_unsafe), "{shown:?}");
        assert!(shown.contains(r"2 | two \u{1b}]0;x\u{7} {{ y }}"), "{shown}");
        assert!(shown.contains("^^^^^^^"), "{shown}");
    }
}

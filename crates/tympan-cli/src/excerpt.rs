//! Formatting of findings with the source line that they refer to, in the style of compilers.

use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use tympan::Error;
use tympan::diagnostic::{Diagnostic, Severity};
use tympan::text::source::{SourceFile, Span};

use crate::escape::{is_unsafe, visible, visible_line, written};

/// An error or a warning, independent of its source.
#[derive(Clone, Debug)]
pub(crate) struct Finding<'a> {
    pub(crate) severity: Severity,
    /// The code of the rule, such as `TY101`, if it is shown.
    pub(crate) rule: Option<&'static str>,
    pub(crate) code: &'a str,
    pub(crate) message: &'a str,
    pub(crate) help: Option<&'a str>,
    pub(crate) source: Option<&'a SourceFile>,
    pub(crate) span: Option<Span>,
    /// Other positions that explain the finding.
    pub(crate) related: &'a [(Span, String)],
}

impl<'a> Finding<'a> {
    /// Creates a finding that has no position.
    pub(crate) fn plain(severity: Severity, code: &'a str, message: &'a str) -> Self {
        Self { severity, rule: None, code, message, help: None, source: None, span: None, related: &[] }
    }

    /// Creates a finding from an error of the engine.
    pub(crate) fn of_error(error: &'a Error) -> Self {
        Self {
            severity: Severity::Error,
            rule: None,
            code: error.code(),
            message: error.message(),
            help: error.help(),
            source: error.source_file(),
            span: error.span(),
            related: &[],
        }
    }

    /// Creates a finding from a diagnostic about a source.
    pub(crate) fn of_diagnostic(diagnostic: &'a Diagnostic, source: Option<&'a SourceFile>) -> Self {
        Self {
            severity: diagnostic.severity,
            rule: None,
            code: diagnostic.code,
            message: &diagnostic.message,
            help: diagnostic.help.as_deref(),
            source,
            span: diagnostic.span,
            related: &[],
        }
    }

    /// Creates a finding from one of a rule.
    pub(crate) fn of_rule(finding: &'a tympan_lint::Finding, source: &'a SourceFile) -> Self {
        Self {
            severity: finding.severity,
            rule: Some(finding.rule.code),
            code: finding.rule.name,
            message: &finding.message,
            help: finding.help.as_deref(),
            source: Some(source),
            span: finding.span,
            related: &finding.related,
        }
    }

    /// Returns the error and the diagnostics that were reported together with it, sorted by position.
    pub(crate) fn all_of_error(error: &'a Error) -> Vec<Self> {
        let others = error.others().iter().map(|other| Self::of_diagnostic(other, error.source_file()));
        let mut findings: Vec<_> = std::iter::once(Self::of_error(error)).chain(others).collect();
        findings.sort_by_key(|finding| finding.span.map_or(0, |span| span.start));
        findings
    }

    /// Returns the file name and line number that the finding refers to, if any.
    pub(crate) fn line(&self) -> Option<(&'a str, usize)> {
        let (source, span) = self.source.zip(self.span)?;
        Some((source.name(), source.line_column(span.start).line))
    }

    /// Formats the finding for people, on one or more full lines.
    pub(crate) fn show(&self, colors: bool) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let renderer = if colors { Renderer::styled() } else { Renderer::plain() };
        let id = self.rule.map_or_else(|| self.code.to_owned(), |rule| format!("{rule} {}", self.code));
        let mut group = Group::with_title(level.primary_title(visible_line(self.message)).id(id));
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
        for note in self.notes(source) {
            group = group.element(Level::NOTE.message(note));
        }
        if let Some(help) = self.help {
            group = group.element(Level::HELP.message(visible(help).into_owned()));
        }
        renderer.render(&[group]) + "\n"
    }

    /// Formats the positions that explain the finding, without its own.
    fn notes(&self, source: &SourceFile) -> Vec<String> {
        let others = self.related.iter().filter(|(span, _)| Some(*span) != self.span);
        let note = |(span, note): &(Span, String)| {
            let line = source.line_column(span.start).line;
            let text: String = source.slice(*span).lines().next().unwrap_or_default().chars().take(MAX_NOTE).collect();
            format!("line {line}: `{}` {note}", visible_line(&text))
        };
        others.map(note).collect()
    }

    /// Formats the help and, unless the message contains it, the name of the file.
    fn rest_without_place(&self) -> String {
        let file = self.source.map(SourceFile::name).filter(|name| !self.message.contains(name));
        let file = file.map_or_else(String::new, |name| format!(" --> {}\n", visible_line(name)));
        let help = self.help.map_or_else(String::new, |help| format!("  = help: {}\n", visible(help)));
        file + &help
    }
}

/// The maximum number of characters of the source in a note.
const MAX_NOTE: usize = 60;

/// The maximum number of characters shown before the marked text. Twice as many are shown from its start on.
const MAX_AROUND: usize = 1000;

/// The line where a span starts. The part of the span on that line is marked.
struct Excerpt {
    line: String,
    marked: Range<usize>,
    number: usize,
    /// Whether part of the line is left out.
    is_cut: bool,
}

impl Excerpt {
    fn new(source: &SourceFile, span: Span) -> Self {
        let text = source.text();
        let start = floor(text, span.start);
        let number = source.line_column(start).line;
        // Limit what is shown: a line can be as long as its file and have thousands of findings.
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
        // In a shortened line, the column would be counted from the cut, so leave the position out.
        let snippet = if self.is_cut { snippet } else { snippet.path(visible_line(source.name())) };
        snippet.annotation(AnnotationKind::Primary.span(self.marked))
    }
}

/// Returns the start of the line that contains an offset, or of its visible part, and whether the line is cut there.
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

/// Returns the end of the line that contains an offset, or of its visible part, and whether the line is cut there.
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

/// Moves the ends of the marked range to their positions in the displayed text.
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

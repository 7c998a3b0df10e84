//! Colors that show the origin of text.

use std::ops::Range;

use anstyle::{AnsiColor, Style};
use tympan::Rendered;
use tympan::chat::rendered::Segment;
use tympan::text::origin::Origin;

use crate::escape::{is_unsafe, written};
use crate::output::Looks;

/// The writer of a piece of text, as far as trust is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writer {
    /// The author of the prompt.
    Author,
    /// A trusted input.
    Trusted,
    /// Any other input.
    Untrusted,
}

impl Writer {
    /// Returns the writer of text with this origin.
    pub(crate) fn of(rendered: &Rendered, origin: Origin) -> Self {
        match origin {
            origin if origin.is_author() => Self::Author,
            origin if rendered.inputs().is_trusted(origin) => Self::Trusted,
            _ => Self::Untrusted,
        }
    }

    pub(crate) const fn style(self) -> Style {
        match self {
            Self::Author => Style::new(),
            Self::Trusted => AnsiColor::Green.on_default(),
            Self::Untrusted => AnsiColor::Yellow.on_default(),
        }
    }
}

/// Returns the legend that explains the colors.
pub(crate) fn legend() -> String {
    let (trusted, untrusted) = (Writer::Trusted.style(), Writer::Untrusted.style());
    format!("author  {trusted}trusted input{trusted:#}  {untrusted}untrusted input{untrusted:#}\n")
}

/// The style of headings that Tympan prints around text.
pub(crate) const HEADING: Style = Style::new().bold();

/// Appends text to `out`, escaped and colored as standard output requires.
pub(crate) fn paint(out: &mut String, text: &str, writer: Writer, looks: Looks) {
    paint_in(out, text, writer.style(), looks);
}

/// Appends text to `out` in a style, escaped as standard output requires.
pub(crate) fn paint_in(out: &mut String, text: &str, style: Style, looks: Looks) {
    if !looks.is_seen {
        out.push_str(text);
        return;
    }
    let style = if looks.colors { style } else { Style::new() };
    let escaped = if looks.colors { style.invert() } else { style };
    for line in text.split_inclusive('\n') {
        // Close the style before the end of the line, so that it does not affect what follows.
        let (line, newline) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        // A carriage return before a line feed is harmless and common in files from Windows.
        let mut rest = if newline.is_empty() { line } else { line.strip_suffix('\r').unwrap_or(line) };
        while let Some(at) = rest.find(is_unsafe) {
            styled(out, &rest[..at], style);
            let char = rest[at..].chars().next().unwrap_or_default();
            styled(out, &written(char), escaped);
            rest = &rest[at + char.len_utf8()..];
        }
        styled(out, rest, style);
        out.push_str(newline);
    }
}

/// Appends text in a style.
pub(crate) fn styled(out: &mut String, text: &str, style: Style) {
    if !text.is_empty() {
        out.push_str(&format!("{style}{text}{style:#}"));
    }
}

/// Splits a range of rendered text into parts by writer. `segments` must be all segments of the text, in order.
pub(crate) fn parts<'r>(
    rendered: &'r Rendered,
    segments: &[Segment<'r>],
    range: &Range<usize>,
) -> Vec<(&'r str, Writer)> {
    let first = segments.partition_point(|segment| segment.range.end <= range.start);
    let inside = segments[first..].iter().take_while(|segment| segment.range.start < range.end);
    let parts = inside.map(|segment| {
        let part = segment.range.start.max(range.start)..segment.range.end.min(range.end);
        (&rendered.text()[part], Writer::of(rendered, segment.origin))
    });
    parts.filter(|(text, _)| !text.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn painted(text: &str, writer: Writer, colors: bool, is_seen: bool) -> String {
        let mut out = String::new();
        paint(&mut out, text, writer, Looks { colors, is_seen });
        out
    }

    #[test]
    fn a_terminal_is_never_driven_by_the_text() {
        let text = "a\u{1b}[31mb\nc";
        assert_eq!(painted(text, Writer::Untrusted, false, false), text);
        for writer in [Writer::Author, Writer::Trusted, Writer::Untrusted] {
            assert_eq!(painted(text, writer, false, true), "a\\u{1b}[31mb\nc");
        }
        assert_eq!(painted("a\rb\r\nc\r", Writer::Author, false, true), "a\\rb\nc\\r");
        let colored = painted(text, Writer::Untrusted, true, true);
        assert!(colored.contains(r"\u{1b}") && !colored.contains("\u{1b}[31m"), "{colored:?}");
    }
}

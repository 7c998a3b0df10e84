//! Line wrapping for terminals: if a line does not fit into one row, the next rows are indented.
//!
//! Tympan's own output starts at the left edge, and text from elsewhere does not. If the terminal wrapped a long line
//! itself, the rest would start at the left edge and could be mistaken for Tympan's output.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The number of columns of a terminal that does not report its width.
const USUAL_WIDTH: usize = 80;

/// The minimum number of columns for text after the indentation. Narrower terminals are treated as if they had this
/// many.
const MIN_TEXT: usize = 2;

/// The distance between tab stops.
const TAB: usize = 8;

/// Wraps text into rows.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    /// The prefix of the first row of every line.
    first: &'static str,
    /// The prefix of the other rows of a line.
    further: &'static str,
    /// The number of columns. `None` if the output is not a terminal; rows are then not wrapped.
    width: Option<usize>,
    /// The number of columns used in the current row.
    column: usize,
    /// Whether the current line is still empty.
    is_new: bool,
}

impl Rows {
    /// Indents all rows.
    pub(crate) fn indented(width: Option<usize>) -> Self {
        Self::new("  ", "  ", width)
    }

    /// Indents the continuation rows of each line.
    pub(crate) fn hanging(width: Option<usize>) -> Self {
        Self::new("", "  ", width)
    }

    /// Indents the continuation rows of each line by more than any line of Tympan's own that is indented.
    pub(crate) fn hanging_deeply(width: Option<usize>) -> Self {
        Self::new("", "        ", width)
    }

    /// Starts all rows with a bar, to set text from elsewhere apart from lines that are indented.
    pub(crate) fn quoted(width: Option<usize>) -> Self {
        Self::new("  │ ", "  │ ", width)
    }

    fn new(first: &'static str, further: &'static str, width: Option<usize>) -> Self {
        let least = prefix_width(further) + MIN_TEXT;
        Self { first, further, width: width.map(|width| width.max(least)), column: 0, is_new: true }
    }

    /// Wraps the next part of a text. Escape sequences for colors have no width. The text must not contain other
    /// sequences.
    pub(crate) fn lay_out(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len() + text.len() / 16);
        let mut chars = text.chars();
        while let Some(char) = chars.next() {
            match char {
                '\n' => {
                    out.push('\n');
                    (self.column, self.is_new) = (0, true);
                }
                '\u{1b}' => {
                    // The prefix is not part of the colored text.
                    self.begin(&mut out);
                    out.push(char);
                    out.extend(chars.by_ref().take_while(|char| *char != 'm'));
                    out.push('m');
                }
                '\t' if self.width.is_some() => {
                    self.begin(&mut out);
                    let stop = TAB - self.column % TAB;
                    (0..stop).for_each(|_| self.add(&mut out, ' ', 1));
                }
                char => self.add(&mut out, char, columns(char)),
            }
        }
        out
    }

    /// Starts a line, if it is still empty.
    fn begin(&mut self, out: &mut String) {
        if std::mem::take(&mut self.is_new) {
            out.push_str(self.first);
            self.column = prefix_width(self.first);
        }
    }

    fn add(&mut self, out: &mut String, char: char, columns: usize) {
        self.begin(out);
        if self.width.is_some_and(|width| self.column + columns > width) {
            out.push('\n');
            out.push_str(self.further);
            self.column = prefix_width(self.further);
        }
        out.push(char);
        self.column += columns;
    }
}

/// Returns the maximum number of columns that a terminal may use for a character. If terminals differ, a row may end
/// too early, but never too late.
fn columns(char: char) -> usize {
    match char {
        // Combining marks, which all terminals draw over the preceding letter.
        '\u{300}'..='\u{36f}' => 0,
        // Regional indicators, which form flags in pairs.
        '\u{1f1e6}'..='\u{1f1ff}' => 2,
        // Other zero-width characters may widen the preceding character or be shown as a box.
        char => char.width_cjk().unwrap_or(1).max(1),
    }
}

/// Returns the number of columns of a prefix.
fn prefix_width(prefix: &str) -> usize {
    prefix.chars().map(columns).sum()
}

/// Returns the number of columns that most terminals use for a text.
pub(crate) fn width_of(text: &str) -> usize {
    text.width()
}

/// Returns the number of columns of the terminal that a stream is connected to, or `None` if it is not a terminal.
#[cfg(unix)]
pub(crate) fn terminal_width(stream: &(impl std::io::IsTerminal + std::os::fd::AsFd)) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(stream).ok().map(|size| usize::from(size.ws_col));
    Some(size.filter(|columns| *columns > 0).or_else(said_width).unwrap_or(USUAL_WIDTH))
}

/// Returns the number of columns of a terminal, which only the environment can provide on this platform.
#[cfg(not(unix))]
pub(crate) fn terminal_width(stream: &impl std::io::IsTerminal) -> Option<usize> {
    stream.is_terminal().then(|| said_width().unwrap_or(USUAL_WIDTH))
}

fn said_width() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_row_but_the_first_begins_at_the_edge() {
        let text = "abcdefghij\n\n\tx\n日本語日本語\ne\u{301}e\u{301}e\u{301}e\u{301}\n";
        let laid_out = Rows::hanging(Some(6)).lay_out(text);
        let expected = "abcdef\n  ghij\n\n      \n    x\n日本語\n  日本\n  語\ne\u{301}e\u{301}e\u{301}e\u{301}\n";
        assert_eq!(laid_out, expected);
    }

    #[test]
    fn parts_are_laid_out_as_the_whole() {
        let text = "ab\ncdefg\u{1b}[33mhi\u{1b}[0mj\n\nk";
        let whole = Rows::indented(Some(6)).lay_out(text);
        assert_eq!(whole, "  ab\n  cdef\n  g\u{1b}[33mhi\u{1b}[0mj\n\n  k");
        let mut rows = Rows::indented(Some(6));
        let parts: String =
            ["ab\nc", "defg", "\u{1b}[33mhi\u{1b}[0mj\n", "\nk"].map(|part| rows.lay_out(part)).concat();
        assert_eq!(parts, whole);
    }

    #[test]
    fn every_row_of_a_quote_begins_with_a_bar() {
        // A bar may be two columns wide.
        assert_eq!(Rows::quoted(Some(9)).lay_out("abcdef\n\ng"), "  │ abcd\n  │ ef\n\n  │ g");
        assert_eq!(Rows::quoted(None).lay_out("a\nb\n"), "  │ a\n  │ b\n");
    }

    #[test]
    fn without_a_terminal_lines_are_not_broken() {
        let long = "x\t".repeat(500);
        assert_eq!(Rows::hanging(None).lay_out(&long), long);
        assert_eq!(Rows::indented(None).lay_out("a\nb"), "  a\n  b");
    }

    #[test]
    fn characters_are_never_wider_than_they_are_counted() {
        for (char, least) in [('a', 1), ('日', 2), ('\u{fe0f}', 1), ('\u{200d}', 1), ('🇩', 2), ('…', 2), ('👩', 2)]
        {
            assert_eq!(columns(char), least, "{char:?}");
        }
    }
}

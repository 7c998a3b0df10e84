//! Rows of a terminal: where a line is too long for one, the next row is indented.
//!
//! What Tympan prints itself begins at the left edge, and what anybody else wrote does not. A terminal that breaks a line
//! by itself would put the rest at the left edge, where text could pass for Tympan's.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The columns of a terminal that does not say how many it has.
const USUAL_WIDTH: usize = 80;

/// The fewest columns for text beside the indentation. On narrower terminals rows are broken as if they had these.
const MIN_TEXT: usize = 2;

/// How far apart the stops of tabs are.
const TAB: usize = 8;

/// Lays out text in rows.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    /// What every line begins with.
    first: &'static str,
    /// What every further row of a line begins with.
    further: &'static str,
    /// The number of columns. Without a terminal, rows are not broken.
    width: Option<usize>,
    /// How many columns of the row are taken.
    column: usize,
    /// Whether nothing of the line has come yet.
    is_new: bool,
}

impl Rows {
    /// Indents all rows.
    pub(crate) fn indented(width: Option<usize>) -> Self {
        Self::new("  ", "  ", width)
    }

    /// Indents the further rows of each line.
    pub(crate) fn hanging(width: Option<usize>) -> Self {
        Self::new("", "  ", width)
    }

    fn new(first: &'static str, further: &'static str, width: Option<usize>) -> Self {
        let least = further.len() + MIN_TEXT;
        Self { first, further, width: width.map(|width| width.max(least)), column: 0, is_new: true }
    }

    /// The next part of a text. Escape sequences that set colours take no room; there must be no others.
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

    /// Begins a line, if nothing of it has come yet.
    fn begin(&mut self, out: &mut String) {
        if std::mem::take(&mut self.is_new) {
            out.push_str(self.first);
            self.column = self.first.len();
        }
    }

    fn add(&mut self, out: &mut String, char: char, columns: usize) {
        self.begin(out);
        if self.width.is_some_and(|width| self.column + columns > width) {
            out.push('\n');
            out.push_str(self.further);
            self.column = self.further.len();
        }
        out.push(char);
        self.column += columns;
    }
}

/// The most columns that a terminal may give to a character. Where terminals differ, a row may end too early, but never too
/// late.
fn columns(char: char) -> usize {
    match char {
        // Combining marks, which all terminals put over the letter before.
        '\u{300}'..='\u{36f}' => 0,
        // Halves of flags.
        '\u{1f1e6}'..='\u{1f1ff}' => 2,
        // Other characters without a width of their own may widen the one before, or be shown as a box.
        char => char.width_cjk().unwrap_or(1).max(1),
    }
}

/// The columns that most terminals give to a text.
pub(crate) fn width_of(text: &str) -> usize {
    text.width()
}

/// The columns of the terminal that a stream leads to; `None` if it leads to none.
#[cfg(unix)]
pub(crate) fn terminal_width(stream: &(impl std::io::IsTerminal + std::os::fd::AsFd)) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(stream).ok().map(|size| usize::from(size.ws_col));
    Some(size.filter(|columns| *columns > 0).or_else(said_width).unwrap_or(USUAL_WIDTH))
}

/// As above, where only the environment can say.
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

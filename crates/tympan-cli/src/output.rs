//! Standard output: exact bytes for programs, safe text for terminals.

use std::io::{self, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};

use crate::rows::{Rows, terminal_width};

/// How text is written to standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Looks {
    /// Whether to use colors.
    pub(crate) colors: bool,
    /// Whether the output is displayed on a terminal. If so, control characters must be escaped.
    pub(crate) is_seen: bool,
}

/// Determines how to write to standard output, from the user's choice and the environment.
pub(crate) fn looks() -> Looks {
    let stdout = io::stdout();
    let colors = AutoStream::choice(&stdout) != ColorChoice::Never;
    // If colors are requested, the output is meant to be displayed, perhaps through a pager.
    Looks { colors, is_seen: colors || stdout.is_terminal() }
}

/// Returns whether standard error uses colors.
pub(crate) fn stderr_colors() -> bool {
    AutoStream::choice(&io::stderr()) != ColorChoice::Never
}

/// Writes text to standard output.
///
/// # Errors
/// Returns an error if standard output cannot be written. A closed pipe is not an error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let stdout = io::stdout();
    let result = if looks().colors {
        // Enables colors on Windows consoles. With `Always`, nothing is stripped.
        let mut stream = AutoStream::new(stdout.lock(), ColorChoice::Always);
        stream.write_all(text.as_bytes()).and_then(|()| stream.flush())
    } else {
        let mut stream = stdout.lock();
        stream.write_all(text.as_bytes()).and_then(|()| stream.flush())
    };
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Writes lines for people to standard output. On a terminal, continuation rows of a line are indented.
///
/// # Errors
/// Returns an error if standard output cannot be written to.
pub(crate) fn print_lines(text: &str) -> io::Result<()> {
    print(&Rows::hanging(stdout_width()).lay_out(text))
}

/// Returns the number of columns of the terminal on standard output, or `None` if it is not a terminal.
pub(crate) fn stdout_width() -> Option<usize> {
    terminal_width(&io::stdout())
}

/// Writes lines to standard error. On a terminal, continuation rows of a line are indented. Write errors are ignored,
/// because there is nowhere to report them.
pub(crate) fn print_error(text: &str) {
    let stderr = io::stderr();
    let text = Rows::hanging(terminal_width(&stderr)).lay_out(text);
    let choice = if stderr_colors() { ColorChoice::Always } else { ColorChoice::Never };
    let mut stream = AutoStream::new(stderr.lock(), choice);
    let _ = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
}

//! Standard output: exact bytes for programs, safe ones for terminals.

use std::io::{self, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};

use crate::rows::{Rows, terminal_width};

/// How standard output wants its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Looks {
    /// Whether to use colours.
    pub(crate) colours: bool,
    /// Whether somebody looks at it on a terminal. Nothing in the text may then drive it.
    pub(crate) is_seen: bool,
}

/// How standard output wants its text, as the user and the environment say.
pub(crate) fn looks() -> Looks {
    let stdout = io::stdout();
    let colours = AutoStream::choice(&stdout) != ColorChoice::Never;
    // Who asks for colours wants to look at the text, if only through a pager.
    Looks { colours, is_seen: colours || stdout.is_terminal() }
}

/// Whether standard error wants colours.
pub(crate) fn stderr_colours() -> bool {
    AutoStream::choice(&io::stderr()) != ColorChoice::Never
}

/// Writes text to standard output.
///
/// # Errors
/// It cannot be written. A reader who has gone away is no error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let stdout = io::stdout();
    let result = if looks().colours {
        // Makes the consoles of Windows understand colours, and removes nothing.
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

/// Writes lines for people to standard output: on a terminal, no further row of a line begins at the left edge.
///
/// # Errors
/// Returns an error if standard output cannot be written to.
pub(crate) fn print_lines(text: &str) -> io::Result<()> {
    print(&Rows::hanging(stdout_width()).lay_out(text))
}

/// The columns of the terminal that standard output is; `None` if it is something else.
pub(crate) fn stdout_width() -> Option<usize> {
    terminal_width(&io::stdout())
}

/// Writes lines to standard error; on a terminal, no further row of a line begins at the left edge. If they cannot be
/// written, nobody can be told.
pub(crate) fn print_error(text: &str) {
    let stderr = io::stderr();
    let text = Rows::hanging(terminal_width(&stderr)).lay_out(text);
    let choice = if stderr_colours() { ColorChoice::Always } else { ColorChoice::Never };
    let mut stream = AutoStream::new(stderr.lock(), choice);
    let _ = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
}

//! Screen output: answers go to standard output, and everything else to standard error.

use std::io;

use crate::commands::show::Waiting;
use crate::escape::{visible, visible_line};
use crate::output;
use crate::rows::Rows;

/// The state of the screen.
pub(super) struct Screen {
    model: String,
    quiet: bool,
    /// The layout of answers on a terminal. They are indented, so that they cannot be mistaken for anything else.
    rows: Option<Rows>,
    /// Whether the last line of an answer is unfinished.
    is_open: bool,
    /// Whether an answer has started.
    has_text: bool,
    waiting: Option<Waiting>,
    /// The first error from printing.
    failed: Option<io::Error>,
}

impl Screen {
    pub(super) fn new(model: &str, quiet: bool) -> Self {
        let rows = output::looks().is_seen.then(|| Rows::indented(output::stdout_width()));
        let model = model.to_owned();
        Self { model, quiet, rows, is_open: false, has_text: false, waiting: None, failed: None }
    }

    /// Shows the progress indicator.
    pub(super) fn wait(&mut self) {
        self.settle();
        self.waiting = Some(Waiting::begin(self.quiet, &self.model));
    }

    /// Starts an answer.
    pub(super) fn begin(&mut self) {
        self.has_text = false;
        self.wait();
        // The terminal may have been resized.
        self.rows = self.rows.take().map(|_| Rows::indented(output::stdout_width()));
    }

    /// Returns whether an answer has started.
    pub(super) fn has_text(&self) -> bool {
        self.has_text
    }

    /// Prints the next part of an answer.
    pub(super) fn text(&mut self, text: &str) {
        if let Some(waiting) = self.waiting.take() {
            waiting.end();
        }
        if text.is_empty() {
            return;
        }
        self.has_text = true;
        self.is_open = !text.ends_with('\n');
        self.print_answer(text);
    }

    /// Prints full lines that are not part of an answer. The lines must be safe to print.
    pub(super) fn note(&mut self, lines: &str) {
        self.settle();
        output::print_error(lines);
    }

    /// Prints a line that is not part of an answer and may come from anywhere, so it is escaped first.
    pub(super) fn remark(&mut self, line: &str) {
        self.note(&(visible_line(line) + "\n"));
    }

    /// Stops the progress indicator and ends the current line, so that others can print.
    pub(super) fn settle(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            waiting.end();
        }
        if std::mem::take(&mut self.is_open) {
            self.print_answer("\n");
        }
    }

    fn print_answer(&mut self, text: &str) {
        let laid_out = match &mut self.rows {
            Some(rows) => rows.lay_out(&visible(text)),
            None => text.to_owned(),
        };
        if let Err(error) = output::print(&laid_out) {
            self.failed.get_or_insert(error);
        }
    }

    /// Records an error from printing.
    pub(super) fn fail(&mut self, error: io::Error) {
        self.failed.get_or_insert(error);
    }

    /// Checks whether everything could be printed.
    ///
    /// # Errors
    /// Returns the first error from printing.
    pub(super) fn check(&mut self) -> io::Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }
}

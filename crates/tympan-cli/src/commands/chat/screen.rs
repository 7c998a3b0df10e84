//! What is on the screen: answers on standard output, and everything else on standard error.

use std::io;

use crate::commands::show::Waiting;
use crate::escape::{visible, visible_line};
use crate::output;
use crate::rows::Rows;

/// What is on the screen.
pub(super) struct Screen {
    model: String,
    quiet: bool,
    /// How answers are laid out, if somebody looks at them: they are indented, so that they cannot pass for anything else.
    rows: Option<Rows>,
    /// Whether the last line of an answer has no end yet.
    is_open: bool,
    /// Whether an answer has begun.
    has_text: bool,
    waiting: Option<Waiting>,
    /// Why something could not be printed.
    failed: Option<io::Error>,
}

impl Screen {
    pub(super) fn new(model: &str, quiet: bool) -> Self {
        let rows = output::looks().is_seen.then(|| Rows::indented(output::stdout_width()));
        let model = model.to_owned();
        Self { model, quiet, rows, is_open: false, has_text: false, waiting: None, failed: None }
    }

    /// Shows that something is under way.
    pub(super) fn wait(&mut self) {
        self.settle();
        self.waiting = Some(Waiting::begin(self.quiet, &self.model));
    }

    /// Begins an answer.
    pub(super) fn begin(&mut self) {
        self.has_text = false;
        self.wait();
        // The terminal may have another size by now.
        self.rows = self.rows.take().map(|_| Rows::indented(output::stdout_width()));
    }

    /// Whether an answer has begun.
    pub(super) fn has_text(&self) -> bool {
        self.has_text
    }

    /// More of an answer.
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

    /// Something that is no answer, on lines of its own. It is safe to print.
    pub(super) fn note(&mut self, lines: &str) {
        self.settle();
        output::print_error(lines);
    }

    /// As [`Screen::note`], for a line that anybody may have written.
    pub(super) fn remark(&mut self, line: &str) {
        self.note(&(visible_line(line) + "\n"));
    }

    /// What somebody is asked about, on the terminal where they answer, wherever standard error goes.
    pub(super) fn ask_about(&mut self, line: &str) {
        self.settle();
        if let Err(error) = output::print_lines(&(visible_line(line) + "\n")) {
            self.failed.get_or_insert(error);
        }
    }

    /// Leaves the screen to somebody else: nothing moves, and a new line begins.
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

    /// Whether all could be printed.
    ///
    /// # Errors
    /// It could not.
    pub(super) fn check(&mut self) -> io::Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }
}

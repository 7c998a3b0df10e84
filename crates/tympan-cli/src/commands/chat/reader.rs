//! The source of questions: a terminal, or the lines of standard input.

use std::io::{self, BufRead, IsTerminal, Read};
use std::path::{Path, PathBuf};

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Config, Context, Editor, Helper};
use tympan::file::read as file;
use tympan::{Error, Kind};

use super::command::Command;
use super::line::is_complete;
use crate::report::{self, Failure};

/// The maximum number of questions in the history.
const MAX_HISTORY: usize = 1000;

/// The name of the history file.
const HISTORY: &str = "history";

/// The maximum size of the history file in bytes. This is more than the maximum number of questions of maximum size.
const MAX_HISTORY_BYTES: u64 = 64 << 20;

/// The maximum size in bytes of a question in the history. Longer questions were probably pasted.
const MAX_REMEMBERED: usize = 16 * 1024;

/// The most bytes of a question: as many as a prompt file may have.
const MAX_BYTES: usize = tympan::load::DEFAULT_MAX_FILE_BYTES as usize;

/// The result of reading.
pub(super) enum Typed {
    /// One or more lines that form a unit.
    Lines(String),
    /// Ctrl-C: the line is discarded.
    Interrupted,
    /// The end of the input.
    End,
}

/// The source of questions.
pub(super) enum Reader {
    /// A terminal.
    Terminal(Box<Terminal>),
    /// Anything else: each line is a question.
    Lines,
}

/// A terminal with line editing and history.
pub(super) struct Terminal {
    editor: Editor<Lines, FileHistory>,
    /// The path of the history file, if history is on.
    history: Option<PathBuf>,
}

impl Reader {
    /// Uses the terminal if both standard input and standard output are one, and lines otherwise.
    ///
    /// # Errors
    /// Returns an error if the terminal cannot be set up.
    pub(super) fn new(keeps_history: bool) -> Result<Self, Failure> {
        if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            return Ok(Self::Lines);
        }
        let config = Config::builder().max_history_size(MAX_HISTORY).map_err(failed)?.build();
        let mut editor = Editor::with_config(config).map_err(failed)?;
        editor.set_helper(Some(Lines));
        let history = keeps_history.then(history_file).flatten();
        if let Some(path) = history.as_deref().filter(|path| path.exists())
            && let Err(error) = editor.load_history(path)
        {
            report::warn_plainly("history", &format!("{}: {error}", path.display()));
        }
        Ok(Self::Terminal(Box::new(Terminal { editor, history })))
    }

    /// Returns whether there is a user who can be asked.
    pub(super) fn is_terminal(&self) -> bool {
        matches!(self, Self::Terminal(_))
    }

    /// Reads the next question or command.
    ///
    /// # Errors
    /// Returns an error if reading fails.
    pub(super) fn read(&mut self) -> Result<Typed, Failure> {
        match self {
            Self::Terminal(terminal) => terminal.read(),
            Self::Lines => read_lines(&mut io::stdin().lock()),
        }
    }
}

impl Terminal {
    fn read(&mut self) -> Result<Typed, Failure> {
        match self.editor.readline("> ") {
            Ok(typed) => {
                self.remember(&typed);
                Ok(Typed::Lines(typed))
            }
            Err(ReadlineError::Interrupted) => Ok(Typed::Interrupted),
            Err(ReadlineError::Eof) => Ok(Typed::End),
            Err(error) => Err(failed(error)),
        }
    }

    /// Saves a question to the history immediately, because the chat can end at any time.
    fn remember(&mut self, typed: &str) {
        if typed.trim().is_empty() || typed.len() > MAX_REMEMBERED {
            return;
        }
        let saved = self.editor.add_history_entry(typed).and_then(|_| match &self.history {
            Some(path) => self.editor.append_history(path),
            None => Ok(()),
        });
        if let Err(error) = saved {
            // Warn only once, because later writes will fail too.
            let path = self.history.take().unwrap_or_default();
            report::warn_plainly("history", &format!("{}: {error}", path.display()));
        }
    }
}

fn failed(error: ReadlineError) -> Failure {
    Failure::Output(match error {
        ReadlineError::Io(error) => error,
        other => io::Error::other(other),
    })
}

/// Reads one or more lines that form a unit from standard input.
fn read_lines(from: &mut impl BufRead) -> Result<Typed, Failure> {
    let unreadable = |reason: &str| Error::new(Kind::UnreadableFile, format_args!("<stdin>: {reason}"));
    let mut typed = Vec::new();
    loop {
        let left = (MAX_BYTES + 1).saturating_sub(typed.len());
        let read = from.by_ref().take(left as u64).read_until(b'\n', &mut typed);
        let count = read.map_err(|error| unreadable(&error.to_string()))?;
        if typed.len() > MAX_BYTES {
            return Err(unreadable(&format!("a question is longer than {MAX_BYTES} bytes")).into());
        }
        if count == 0 && typed.is_empty() {
            return Ok(Typed::End);
        }
        let text = str::from_utf8(&typed).map_err(|_| {
            unreadable("not valid UTF-8").with_help(
                "send the questions as \
            UTF-8",
            )
        })?;
        let text = text.strip_suffix('\n').unwrap_or(text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        if count == 0 || is_complete(text) {
            return Ok(Typed::Lines(text.to_owned()));
        }
    }
}

/// Returns Tympan's folder in the user's state directory, or a folder in it. Creates it, so that only the user can read
/// it.
///
/// # Errors
/// Returns an error if the folder cannot be created.
pub(super) fn state_folder(inside: Option<&str>) -> io::Result<Option<PathBuf>> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state =
        set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state"))).or_else(|| set("LOCALAPPDATA"));
    let Some(state) = state else { return Ok(None) };
    let folder = state.join("tympan").join(inside.unwrap_or_default());
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let created = builder.create(&folder);
    created.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", folder.display())))?;
    Ok(Some(folder))
}

/// Returns the path of the history file, in the user's state directory.
fn history_file() -> Option<PathBuf> {
    let usable = state_folder(None).and_then(|folder| {
        let Some(folder) = folder else { return Ok(None) };
        match check_history(&folder) {
            Ok(()) => Ok(Some(folder.join(HISTORY))),
            Err(error) => Err(io::Error::other(format!("{}: {error}", folder.display()))),
        }
    });
    usable.unwrap_or_else(|error| {
        report::warn_plainly("history", &error.to_string());
        None
    })
}

/// Rejects a history file that is too large or not in the user's state directory.
fn check_history(folder: &Path) -> io::Result<()> {
    match file::open_in(folder, HISTORY) {
        Ok(opened) if opened.metadata()?.len() > MAX_HISTORY_BYTES => {
            Err(io::Error::other(format!("`{HISTORY}` is larger than {MAX_HISTORY_BYTES} bytes")))
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(io::Error::other(format!("cannot use `{HISTORY}`: {error}")))
        }
        _ => Ok(()),
    }
}

/// Recognizes complete input and completes the names of commands.
struct Lines;

impl Validator for Lines {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let is_complete = is_complete(context.input());
        Ok(if is_complete { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Completer for Lines {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let names = Command::ALL.iter().map(|command| format!("/{}", command.name()));
        let begun = line.get(..at).filter(|begun| begun.starts_with('/'));
        let fitting = begun.map(|begun| names.filter(|name| name.starts_with(begun)).collect());
        Ok((0, fitting.unwrap_or_default()))
    }
}

impl Hinter for Lines {
    type Hint = String;
}

impl Highlighter for Lines {}

impl Helper for Lines {}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut bytes: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        while let Ok(Typed::Lines(typed)) = read_lines(&mut bytes) {
            found.push(typed);
        }
        found
    }

    #[test]
    fn lines_of_a_file_are_put_together() {
        let text = b"one\r\ntwo\\\nthree\n\n\"\"\"\na\n\nb\n\"\"\"\nlast\\";
        assert_eq!(all(text), ["one", "two\\\nthree", "", "\"\"\"\na\n\nb\n\"\"\"", "last\\"]);
        assert!(all(b"").is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        for bytes in [&b"\xff\n"[..], &vec![b'a'; MAX_BYTES + 1]] {
            let Err(Failure::Engine(error)) = read_lines(&mut &*bytes) else { panic!("it fails") };
            assert_eq!(error.kind(), Kind::UnreadableFile);
        }
    }
}

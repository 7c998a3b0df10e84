//! Reads the prompt file and shows positions in it.

use std::fmt::Write as _;
use std::path::Path;

use tympan_core::diagnostic::{Diagnostic, guess_name};
use tympan_core::prompt::typed;
use tympan_core::text::source::{SourceFile, Span};
use tympan_core::{Error, Prompt};

/// Reads the file at a path relative to a directory.
///
/// # Errors
/// Returns a message if the file cannot be read. The message omits the directory, which differs between machines.
pub(crate) fn read(directory: &Path, path: &str) -> Result<String, String> {
    match std::fs::read_to_string(directory.join(path)) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(not_found(directory, path)),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            Err(format!("`{path}` is not valid UTF-8\n = help: save it as UTF-8"))
        }
        Err(error) => Err(format!("cannot read `{path}`: {}", error.kind())),
    }
}

fn not_found(directory: &Path, path: &str) -> String {
    let mut message = format!("file not found: `{path}`");
    let (folder, name) = path.rsplit_once('/').map_or(("", path), |(folder, name)| (folder, name));
    let mut names: Vec<_> = std::fs::read_dir(directory.join(folder))
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    // `read_dir` returns the names in an unspecified order. Sort them, so that the suggestion is deterministic.
    names.sort_unstable();
    if let Some(meant) = guess_name(name, names.iter().map(String::as_str)) {
        let folder = &path[..path.len() - name.len()];
        let _ = write!(message, "\n = help: did you mean `{folder}{meant}`?");
    }
    message + "\n = note: the path is relative to the directory of Cargo.toml"
}

/// Parses a prompt.
///
/// # Errors
/// Returns all findings, each formatted for display.
pub(crate) fn parse(path: &str, text: &str) -> Result<Prompt, Vec<String>> {
    typed::embedded(path, text).map_err(|error| findings(&error))
}

fn findings(error: &Error) -> Vec<String> {
    let source = error.source_file();
    let first = show(error.message(), source.zip(error.span()), error.help());
    let others = error.others().iter().filter(|other| other.is_error()).map(|other| {
        let Diagnostic { message, help, span, .. } = other;
        show(message, source.zip(*span), help.as_deref())
    });
    std::iter::once(first).chain(others).collect()
}

/// Formats a message with the source line that it is about and its help text.
pub(crate) fn show(message: &str, place: Option<(&SourceFile, Span)>, help: Option<&str>) -> String {
    let mut shown = message.to_owned();
    if let Some((source, span)) = place {
        shown.push_str(&excerpt(source, span));
    }
    if let Some(help) = help {
        let _ = write!(shown, "\n = help: {help}");
    }
    shown
}

fn excerpt(source: &SourceFile, span: Span) -> String {
    let place = source.line_column(span.start);
    let line = source.text().lines().nth(place.line - 1).unwrap_or_default();
    let before: String = line.chars().take(place.column - 1).map(blank).collect();
    // If the span continues on the next line, mark it up to the end of this line.
    let marked = source.slice(span).lines().next().unwrap_or_default().chars().count();
    let carets = "^".repeat(marked.max(1));
    let number = place.line.to_string();
    let margin = " ".repeat(number.len());
    format!(
        "\n{margin}--> {}:{}:{}\n{margin} |\n{number} | {line}\n{margin} | {before}{carets}",
        source.name(),
        place.line,
        place.column,
    )
}

/// Returns a blank as wide as the character. A tab stays a tab, so that the carets line up with the text above them.
fn blank(c: char) -> char {
    if c == '\t' { c } else { ' ' }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_shown_with_their_lines() {
        let source = SourceFile::new("a.yaml", "a\n\tß = b\nc");
        let at = source.text().find('b').expect("there is a b");
        let shown = show("wrong", Some((&source, Span::new(at, at + 3))), Some("do it right"));
        assert_eq!(shown, "wrong\n --> a.yaml:2:6\n  |\n2 | \tß = b\n  | \t    ^\n = help: do it right");
    }

    #[test]
    fn a_place_may_be_the_end() {
        let source = SourceFile::new("a.yaml", "");
        assert_eq!(show("x", Some((&source, Span::default())), None), "x\n --> a.yaml:1:1\n  |\n1 | \n  | ^");
    }

    #[test]
    fn files_that_are_not_there_are_guessed() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR"));
        let message = read(directory, "tests/prompts/helo.yaml").expect_err("there is none");
        assert!(message.contains("did you mean `tests/prompts/hello.yaml`?"), "{message}");
        assert!(!message.contains(env!("CARGO_MANIFEST_DIR")));
        let message = read(directory, "src").expect_err("a directory");
        assert!(message.starts_with("cannot read `src`"), "{message}");
    }
}

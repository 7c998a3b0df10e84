//! Parsing of what the user types: a question or a command.

/// The line that starts and ends a block of lines.
const FENCE: &str = "\"\"\"";

/// A parsed line or block.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Only whitespace.
    Empty,
    /// A question.
    Text(String),
    /// A command without its slash, and its argument.
    Command(String, String),
}

impl Line {
    /// Parses complete lines.
    pub(super) fn new(typed: &str) -> Self {
        if let Some(block) = block(typed) {
            return Self::text(block.to_owned());
        }
        match typed.trim_end().strip_prefix('/') {
            Some(rest) if rest.starts_with('/') => Self::Text(joined(&typed[1..])),
            Some(rest) if !rest.contains('\n') => {
                let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                Self::Command(name.to_owned(), argument.trim().to_owned())
            }
            _ => Self::text(joined(typed)),
        }
    }

    fn text(text: String) -> Self {
        if text.trim().is_empty() { Self::Empty } else { Self::Text(text) }
    }
}

/// Returns whether the input is complete.
pub(super) fn is_complete(typed: &str) -> bool {
    match inside(typed) {
        Some(rest) => ends_block(rest),
        None => !typed.ends_with('\\'),
    }
}

/// Returns the text after the line that starts a block.
fn inside(typed: &str) -> Option<&str> {
    let (first, rest) = typed.split_once('\n').unwrap_or((typed, ""));
    (first.trim_end() == FENCE).then_some(rest)
}

fn ends_block(rest: &str) -> bool {
    rest.rsplit('\n').next().is_some_and(|last| last.trim_end() == FENCE)
}

/// Returns the lines of a block unchanged. An unterminated block ends with the input.
fn block(typed: &str) -> Option<&str> {
    let rest = inside(typed)?;
    if !ends_block(rest) {
        return Some(rest);
    }
    Some(rest.rsplit_once('\n').map_or("", |(lines, _)| lines))
}

/// Joins continued lines and removes the backslashes at their ends.
fn joined(typed: &str) -> String {
    let joined = typed.replace("\\\n", "\n");
    joined.strip_suffix('\\').map(str::to_owned).unwrap_or(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_questions_or_commands() {
        let text = |text: &str| Line::Text(text.to_owned());
        let command = |name: &str, rest: &str| Line::Command(name.to_owned(), rest.to_owned());
        for (typed, expected) in [
            ("", Line::Empty),
            ("  \t", Line::Empty),
            ("Hi there", text("Hi there")),
            ("/help", command("help", "")),
            ("/save  a file.md ", command("save", "a file.md")),
            ("/", command("", "")),
            ("//etc/hosts", text("/etc/hosts")),
            ("//", text("/")),
            ("/etc\nis a folder", text("/etc\nis a folder")),
            ("a\\\nb", text("a\nb")),
            ("a\\", text("a")),
            ("\"\"\"\n/quit \\\nb\n\"\"\"", text("/quit \\\nb")),
            ("\"\"\"\n\"\"\"", Line::Empty),
            ("\"\"\"", Line::Empty),
            ("\"\"\"\nnever ended", text("never ended")),
            ("\"\"\"quoted\"\"\"", text("\"\"\"quoted\"\"\"")),
        ] {
            assert_eq!(Line::new(typed), expected, "{typed:?}");
        }
    }

    #[test]
    fn more_is_asked_for_until_all_is_there() {
        for complete in ["", "a", "a\\\nb", "\"\"\"\na\n\"\"\"", "\"\"\"\n\"\"\" ", "\"\"\"a"] {
            assert!(is_complete(complete), "{complete:?}");
        }
        for incomplete in ["a\\", "\"\"\"", "\"\"\" \na", "\"\"\"\na\\\n\"\"\"b"] {
            assert!(!is_complete(incomplete), "{incomplete:?}");
        }
    }
}

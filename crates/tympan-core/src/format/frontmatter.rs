//! Splits a prompt file into front matter and body.

use crate::diagnostic::Diagnostic;
use crate::error::Kind;
use crate::text::source::Span;

/// The two parts of a prompt file, as spans in its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// The YAML between the delimiters; `None` if the file has no front matter.
    pub front_matter: Option<Span>,
    /// The template.
    pub body: Span,
}

/// Splits a prompt file into front matter and body.
///
/// The file has front matter if its first nonblank line is `---` or `+++`. The front matter ends at the next line that
/// is the same delimiter without indentation. An indented or quoted delimiter is part of a YAML value, so it does not
/// end the front matter. If there is no matching delimiter, the first occurrence of the other one ends it, because the
/// format does not require the two to match. Whitespace between the closing delimiter and the first character of the
/// body belongs to neither.
///
/// # Errors
/// Returns a diagnostic if the front matter is never closed.
pub fn split(text: &str) -> Result<Split, Diagnostic> {
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let opening = text.len() - text[start..].trim_start().len();
    let (line, after) = line_at(text, opening);
    let Some(delimiter) = delimiter(line) else {
        return Ok(Split { front_matter: None, body: Span::new(start, text.len()) });
    };
    let (mut at, mut other) = (after, None);
    while at < text.len() {
        let (line, next) = line_at(text, at);
        match self::delimiter(line) {
            Some(found) if found == delimiter => return Ok(between(text, after, at, next)),
            Some(_) => other = other.or(Some((at, next))),
            None => {}
        }
        at = next;
    }
    match other {
        Some((end, next)) => Ok(between(text, after, end, next)),
        None => Err(unclosed(Span::new(opening, opening + delimiter.len()), delimiter)),
    }
}

fn between(text: &str, start: usize, end: usize, after: usize) -> Split {
    let body = text.len() - text[after..].trim_start().len();
    Split { front_matter: Some(Span::new(start, end)), body: Span::new(body, text.len()) }
}

/// Returns the line that starts at `at`, without its line ending, and the start of the next line.
fn line_at(text: &str, at: usize) -> (&str, usize) {
    match memchr::memchr(b'\n', &text.as_bytes()[at..]) {
        Some(length) => (&text[at..at + length], at + length + 1),
        None => (&text[at..], text.len()),
    }
}

fn delimiter(line: &str) -> Option<&'static str> {
    match line.trim_end() {
        "---" => Some("---"),
        "+++" => Some("+++"),
        _ => None,
    }
}

fn unclosed(span: Span, delimiter: &str) -> Diagnostic {
    let message = Kind::InvalidFrontmatter.pattern().replacen(
        "{}",
        &format!("the front matter opened with `{delimiter}` is not closed"),
        1,
    );
    Diagnostic::error(Kind::InvalidFrontmatter.code(), span, message)
        .with_help(format!("put `{delimiter}` on its own line, not indented, before the template"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (Option<&str>, &str) {
        let split = split(text).expect("it splits");
        (split.front_matter.map(|span| &text[span.range()]), &text[split.body.range()])
    }

    #[test]
    fn both_parts_are_found() {
        let cases = [
            ("---\nname: test\n---\nHello world", Some("name: test\n"), "Hello world"),
            ("Just a prompt", None, "Just a prompt"),
            ("---\n---\nBody only", Some(""), "Body only"),
            ("  ---\nname: test\n---\nBody", Some("name: test\n"), "Body"),
            ("+++\nname: test\n+++\nBody", Some("name: test\n"), "Body"),
            ("\u{feff}\r\n---\r\nname: t\r\n---  \r\n\r\nBody\r\n", Some("name: t\r\n"), "Body\r\n"),
            ("---\nname: t\n---", Some("name: t\n"), ""),
            ("----\nnot front matter", None, "----\nnot front matter"),
            ("", None, ""),
        ];
        for (text, front_matter, body) in cases {
            assert_eq!(parts(text), (front_matter, body), "{text:?}");
        }
    }

    #[test]
    fn a_delimiter_in_a_value_closes_nothing() {
        let text = "---\na: |\n  ---\nb: \"x --- y\"\n---\nBody\n---\nstill body";
        assert_eq!(parts(text), (Some("a: |\n  ---\nb: \"x --- y\"\n"), "Body\n---\nstill body"));
    }

    #[test]
    fn the_matching_delimiter_is_preferred() {
        assert_eq!(parts("---\na: 1\n+++\nb: 2\n---\nBody"), (Some("a: 1\n+++\nb: 2\n"), "Body"));
        assert_eq!(parts("---\na: 1\n+++\nBody"), (Some("a: 1\n"), "Body"));
    }

    #[test]
    fn an_open_end_is_an_error_with_a_place() {
        let error = split("\n---\nname: x\nsystem:\nhi").expect_err("it is never closed");
        assert_eq!((error.code, error.span), ("invalid_frontmatter", Some(Span::new(1, 4))));
    }
}

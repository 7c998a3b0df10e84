//! `.env` files.
//!
//! The parser is our own for two reasons. The available crates expand `$NAME` inside values, which silently corrupts
//! passwords that contain a dollar sign. They also modify the process environment, which is unsound in a multithreaded
//! program. This module only reads the files and passes the variables to the runtime.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::Path;

use tympan::EnvFile;
use tympan::file::read;

/// The maximum size of a `.env` file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The files that were found, and warnings about what could not be read.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Loaded {
    pub(crate) files: Vec<EnvFile>,
    pub(crate) warnings: Vec<String>,
}

/// Reads the `.env` files of these directories, in this order.
pub(crate) fn load(directories: &[&Path]) -> Loaded {
    let mut loaded = Loaded::default();
    for directory in directories {
        let path = directory.join(".env");
        match read::open_in(directory, ".env").and_then(|file| read::text(file, MAX_BYTES)) {
            Ok(text) => {
                let mut variables = HashMap::new();
                for line in parse(&text, &mut variables) {
                    let place = format!("{}:{line}", path.display());
                    // Do not quote the line: it may be a credential with a typo next to it.
                    loaded.warnings.push(format!("{place}: expected NAME=value; the line is ignored"));
                }
                loaded.files.push(EnvFile { name: path.display().to_string(), variables });
            }
            // Some projects have a directory with this name.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory) => {}
            Err(error) => loaded.warnings.push(format!("{}: cannot read the file: {error}", path.display())),
        }
    }
    loaded
}

/// Adds the variables of a file. If a name is repeated, the last line wins. Returns the numbers of invalid lines.
fn parse(text: &str, variables: &mut HashMap<String, String>) -> Vec<usize> {
    let mut wrong = Vec::new();
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut number = 1;
    while !rest.is_empty() {
        let (line, after) = next_entry(rest);
        match entry(line) {
            Some(Some((name, value))) => {
                variables.insert(name.to_owned(), value);
            }
            Some(None) => {}
            None => wrong.push(number),
        }
        number += rest[..rest.len() - after.len()].matches('\n').count();
        rest = after;
    }
    wrong
}

/// Splits off the next entry: one line, or several if a quoted value continues. Returns the entry and the rest.
fn next_entry(text: &str) -> (&str, &str) {
    let end = text.find('\n').unwrap_or(text.len());
    let mut length = end;
    if let Some((_, value)) = text[..end].split_once('=')
        && let Some(quote) = value.trim_start().chars().next().filter(|char| matches!(char, '"' | '\''))
        && !text[..end].trim_start().starts_with('#')
    {
        let opening = text[..end].len() - value.trim_start().len();
        if let Some(close) = closing(&text[opening + 1..], quote) {
            let closed = opening + 1 + close;
            length = text[closed..].find('\n').map_or(text.len(), |newline| closed + newline);
        }
    }
    (&text[..length], text.get(length + 1..).unwrap_or_default())
}

/// Returns the offset of the closing quote. In single quotes, a backslash has no special meaning.
fn closing(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, char) in text.char_indices() {
        if char == quote && !is_escaped {
            return Some(at);
        }
        is_escaped = quote == '"' && char == '\\' && !is_escaped;
    }
    None
}

/// Parses a line into a name and a value. Returns `Some(None)` for a blank line or a comment, and `None` for an invalid
/// line.
fn entry(line: &str) -> Option<Option<(&str, String)>> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Some(None);
    }
    let (name, value) = line.split_once('=')?;
    let name = name.trim();
    let name = name.strip_prefix("export ").map_or(name, str::trim);
    let is_name = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '.' | '-');
    if name.is_empty() || !name.chars().all(is_name) {
        return None;
    }
    unquote(value.trim()).map(|value| Some((name, value)))
}

fn unquote(value: &str) -> Option<String> {
    let Some(quote) = value.chars().next().filter(|char| matches!(char, '"' | '\'')) else {
        let comment = value.find(" #").or_else(|| value.find("\t#")).or_else(|| value.starts_with('#').then_some(0));
        return Some(value[..comment.unwrap_or(value.len())].trim_end().to_owned());
    };
    let close = closing(&value[1..], quote)?;
    let (inner, after) = (&value[1..=close], value[close + 2..].trim_start());
    if !after.is_empty() && !after.starts_with('#') {
        return None;
    }
    Some(if quote == '"' { unescape(inner) } else { inner.to_owned() })
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match (char, (char == '\\').then(|| chars.next()).flatten()) {
            ('\\', Some('n')) => out.push('\n'),
            ('\\', Some('r')) => out.push('\r'),
            ('\\', Some('t')) => out.push('\t'),
            ('\\', Some(escaped @ ('"' | '\\' | '$' | '\''))) => out.push(escaped),
            ('\\', Some(other)) => out.extend(['\\', other]),
            (other, _) => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<(String, String)>, Vec<usize>) {
        let mut variables = HashMap::new();
        let wrong = parse(text, &mut variables);
        let mut variables: Vec<_> = variables.into_iter().collect();
        variables.sort();
        (variables, wrong)
    }

    #[test]
    fn values_are_read_as_written() {
        let text = "# keys\nA=1\nexport B = two words # why\nC='a $A # b'\nD=\"x\\ny \\\"z\\\"\"\nE=p$ss#word\nF=\n";
        let expected =
            [("A", "1"), ("B", "two words"), ("C", "a $A # b"), ("D", "x\ny \"z\""), ("E", "p$ss#word"), ("F", "")];
        let (variables, wrong) = read(text);
        assert_eq!(variables, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(wrong, [0_usize; 0]);
    }

    #[test]
    fn a_quoted_value_may_go_on() {
        let (variables, wrong) = read("KEY=\"-----BEGIN\nabc\n-----END\"\r\nB=2\nnonsense\nC=\"open\n");
        assert_eq!(variables[1], ("KEY".into(), "-----BEGIN\nabc\n-----END".into()));
        assert_eq!(variables[0], ("B".into(), "2".into()));
        assert_eq!(wrong, [5, 6]);
    }

    #[test]
    fn the_last_line_with_a_name_counts() {
        assert_eq!(read("B=1\nB=2\n").0, [("B".to_owned(), "2".to_owned())]);
    }
}

//! The position of a cursor in TOML that is being written, and so may not parse.

use crate::keys::ITEM;
use crate::yaml_cursor::{YamlCursor, in_collections};

/// Returns the position of a cursor at the end of a text. Returns `None` inside of comments, strings over several lines,
/// and headers.
pub(crate) fn cursor(text: &str) -> Option<YamlCursor> {
    // The path of the current table, and the tables that are items of lists.
    let (mut table, mut lists): (Vec<String>, Vec<Vec<String>>) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < text.len() {
        let line = &text[at..at + text[at..].find('\n').map_or(text.len() - at, |end| end + 1)];
        let is_last = at + line.len() == text.len() && !line.ends_with('\n');
        let content = line.trim_start();
        if let Some(header) = content.strip_prefix('[').filter(|_| !content.contains('=')) {
            if is_last {
                return None;
            }
            let is_item = header.starts_with('[');
            let names = names(header.trim_start_matches('[').split(']').next().unwrap_or_default());
            if is_item && !lists.contains(&names) {
                lists.push(names.clone());
            }
            table = with_items(&names, &lists);
        } else if let Some((key, value)) = content.split_once('=').filter(|_| !content.starts_with('#')) {
            let start = at + (line.len() - content.len()) + key.len() + 1;
            let path = || [table.clone(), names(key)].concat();
            let end = value_end(&text[start..]);
            match end {
                Some(end) if !(is_last && start + end == text.len()) => {
                    at = start + end;
                    continue;
                }
                Some(_) => return in_collections(value, start, path(), true, '='),
                None if is_multi_line_string(value) => return None,
                None => return in_collections(&text[start..], start, path(), true, '='),
            }
        } else if is_last {
            let is_comment = content.starts_with('#');
            return (!is_comment).then(|| YamlCursor {
                path: table,
                is_value: false,
                word: text.len() - content.len(),
            });
        }
        at += line.len();
    }
    Some(YamlCursor { path: table, is_value: false, word: text.len() })
}

/// Returns the length of a value at the start of a text, up to the end of its last line. `None` if it is not closed.
fn value_end(text: &str) -> Option<usize> {
    let value = text.trim_start_matches([' ', '\t']);
    for quotes in ["\"\"\"", "'''"] {
        if let Some(rest) = value.strip_prefix(quotes) {
            let end = text.len() - rest.len() + rest.find(quotes)? + quotes.len();
            return Some(end + text[end..].find('\n').map_or(text.len() - end, |newline| newline + 1));
        }
    }
    let (mut depth, mut quote) = (0_usize, None);
    for (at, char) in text.char_indices() {
        match (quote, char) {
            (Some(open), _) if char == open => quote = None,
            // A string ends at its line's end, also if it is not closed.
            (_, '\n') => {
                quote = None;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            (None, '"' | '\'') => quote = Some(char),
            (None, '{' | '[') => depth += 1,
            (None, '}' | ']') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    (depth == 0).then_some(text.len())
}

fn is_multi_line_string(value: &str) -> bool {
    let value = value.trim_start();
    value.starts_with("\"\"\"") || value.starts_with("'''")
}

/// Returns the parts of a dotted key.
fn names(key: &str) -> Vec<String> {
    key.split('.').map(|name| name.trim().trim_matches(['"', '\'']).to_owned()).collect()
}

/// Adds the items to a path that leads through lists.
fn with_items(names: &[String], lists: &[Vec<String>]) -> Vec<String> {
    let mut path = Vec::new();
    for (index, name) in names.iter().enumerate() {
        path.push(name.clone());
        if lists.iter().any(|list| list.as_slice() == &names[..=index]) {
            path.push(ITEM.to_owned());
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::cursor;

    #[test]
    fn cursors_have_the_path_to_their_place() {
        let cases = [
            ("", "", false, ""),
            ("pro", "", false, "pro"),
            ("prompt = \"a", "prompt", true, "a"),
            ("[[cases]]\nna", "cases.[]", false, "na"),
            ("[[cases]]\nname = \"a\"\n[cases.inputs]\nna", "cases.[].inputs", false, "na"),
            ("[[cases]]\n[[cases.expect]]\nmess", "cases.[].expect.[]", false, "mess"),
            ("[[cases]]\nexpect = [{message = {in = \"us", "cases.[].expect.[].message.in", true, "us"),
            ("[[cases]]\nexpect = [\n  {roles = []},\n  {mess", "cases.[].expect.[]", false, "mess"),
            ("[[cases]]\nexpect = [\n  {roles = []},\n]\nna", "cases.[]", false, "na"),
            ("[[cases]]\nname = '''\n[x]\n'''\nin", "cases.[]", false, "in"),
            ("[[cases]]\nanswer.te", "cases.[]", false, "answer.te"),
            ("[defaults]\nguard = t", "defaults.guard", true, "t"),
        ];
        for (text, path, is_value, word) in cases {
            let found = cursor(text).unwrap_or_else(|| panic!("{text:?} has a cursor"));
            assert_eq!((found.path.join(".").as_str(), found.is_value), (path, is_value), "{text:?}");
            assert_eq!(&text[found.word..], word, "{text:?}");
        }
        for text in ["# a", "[ca", "[[cases]]\nname = '''\na"] {
            assert_eq!(cursor(text), None, "{text:?}");
        }
    }
}

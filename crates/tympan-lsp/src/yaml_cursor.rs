//! The position of a cursor in YAML that is being written, and so may not parse.

use crate::keys::ITEM;

/// A cursor in YAML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct YamlCursor {
    /// The keys of the enclosing maps and lists, from the outermost. For a value, its own key is the last.
    pub(crate) path: Vec<String>,
    pub(crate) is_value: bool,
    /// The offset at which the word at the cursor starts.
    pub(crate) word: usize,
}

/// An open map entry or list item of the block style.
struct Open {
    indent: usize,
    /// The key, or `None` for an item of a list.
    key: Option<String>,
}

/// Returns the position of a cursor at the end of a text. Returns `None` inside of comments and block scalars.
pub(crate) fn cursor(text: &str) -> Option<YamlCursor> {
    let mut open: Vec<Open> = Vec::new();
    let mut lines = text.split_inclusive('\n').peekable();
    let (mut start, mut scalar) = (0, None);
    if text.is_empty() || text.ends_with('\n') {
        return Some(YamlCursor { path: Vec::new(), is_value: false, word: text.len() });
    }
    while let Some(line) = lines.next() {
        let at = start;
        start += line.len();
        let content = line.trim_end_matches(['\r', '\n']);
        let indent = content.len() - content.trim_start_matches(' ').len();
        let is_last = lines.peek().is_none();
        if scalar.is_some_and(|outer| indent > outer || content.trim().is_empty()) {
            if is_last {
                return None;
            }
            continue;
        }
        scalar = None;
        if content.trim_start().starts_with('#') || content.trim().is_empty() && !is_last {
            if is_last {
                return None;
            }
            continue;
        }
        let rest = block(content, indent, &mut open);
        let value = &content[rest..];
        if is_last {
            return flow(
                value,
                at + rest,
                path(&open),
                open.last().is_some_and(|last| last.key.is_some()) && rest > indent,
            );
        }
        if value.trim_start().starts_with(['|', '>']) {
            scalar = open.last().map(|last| last.indent);
        }
        // A flow collection over several lines is one line for this purpose.
        if depth(value) > 0
            && let Some(joined) = text.get(at + rest..)
        {
            let is_open = depth(joined) > 0;
            if is_open {
                return flow(joined, at + rest, path(&open), true);
            }
        }
    }
    None
}

/// Enters the items and the key at the start of a line. Returns the offset of what follows them.
fn block(line: &str, indent: usize, open: &mut Vec<Open>) -> usize {
    let is_item = |at: usize| line[at..].starts_with("- ") || &line[at..] == "-";
    // The items of a list may have the same indentation as its key.
    open.retain(|outer| outer.indent < indent || (outer.indent == indent && outer.key.is_some() && is_item(indent)));
    let mut at = indent;
    while is_item(at) {
        open.push(Open { indent: at, key: None });
        let rest = &line[(at + 1).min(line.len())..];
        at = line.len() - rest.trim_start_matches(' ').len();
    }
    let Some((key, after)) = key(&line[at..]) else { return at };
    open.push(Open { indent: at, key: Some(key) });
    at + after
}

/// Returns the key at the start of a text, and the offset after its colon.
fn key(text: &str) -> Option<(String, usize)> {
    let end = text.find(':')?;
    let after = &text[end + 1..];
    let word = text[..end].trim().trim_matches(['"', '\'']);
    let is_key = !word.is_empty() && !word.contains(['{', '[', ',', '"', '#', '$']);
    (is_key && (after.is_empty() || after.starts_with(' '))).then(|| (word.to_owned(), end + 1))
}

fn path(open: &[Open]) -> Vec<String> {
    open.iter().map(|outer| outer.key.clone().unwrap_or_else(|| ITEM.to_owned())).collect()
}

/// Returns how many brackets a text leaves open.
fn depth(text: &str) -> usize {
    let mut quote = None;
    text.chars().fold(0_usize, |depth, char| match (quote, char) {
        (Some(open), _) => {
            if char == open {
                quote = None;
            }
            depth
        }
        (None, '"' | '\'') => {
            quote = Some(char);
            depth
        }
        (None, '{' | '[') => depth + 1,
        (None, '}' | ']') => depth.saturating_sub(1),
        _ => depth,
    })
}

/// Returns the position at the end of a value, which may be inside of flow collections.
fn flow(text: &str, start: usize, path: Vec<String>, is_value: bool) -> Option<YamlCursor> {
    in_collections(text, start, path, is_value, ':')
}

/// Returns the position at the end of a value, with this separator between keys and values.
pub(crate) fn in_collections(
    text: &str,
    start: usize,
    mut path: Vec<String>,
    mut is_value: bool,
    separator: char,
) -> Option<YamlCursor> {
    // For each open collection, the length of the path outside of it, and whether it is a map.
    let mut open: Vec<(usize, bool)> = Vec::new();
    let mut word = text.len() - text.trim_start().len();
    let mut quote = None;
    for (at, char) in text.char_indices() {
        if let Some(end) = quote {
            if char == end {
                quote = None;
            }
            continue;
        }
        match char {
            // A reference is not a map.
            '{' if text[..at].ends_with('$') => {}
            '"' | '\'' if text[word..at].trim().is_empty() => quote = Some(char),
            '#' if text[..at].ends_with(' ') => return None,
            '{' | '[' => {
                open.push((path.len(), char == '{'));
                if char == '[' {
                    path.push(ITEM.to_owned());
                }
                (word, is_value) = (at + 1, char == '[');
            }
            '}' | ']' => {
                if let Some((outside, _)) = open.pop() {
                    path.truncate(outside);
                }
                word = at + 1;
            }
            ',' => {
                if let Some((outside, is_map)) = open.last() {
                    path.truncate(outside + usize::from(!is_map));
                    (word, is_value) = (at + 1, !is_map);
                }
            }
            char if char == separator && open.last().is_some_and(|(_, is_map)| *is_map) && !is_value => {
                path.push(text[word..at].trim().trim_matches(['"', '\'']).to_owned());
                (word, is_value) = (at + 1, true);
            }
            _ => {}
        }
    }
    let blank = text[word..].len() - text[word..].trim_start_matches([' ', '\n', '\r', '"', '\'']).len();
    Some(YamlCursor { path, is_value, word: start + word + blank })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_found_in_unfinished_text() {
        let cases: [(&str, &str, bool, &str); 21] = [
            ("", "", false, ""),
            ("na", "", false, "na"),
            ("name: a\nmo", "", false, "mo"),
            ("model: ", "model", true, ""),
            ("model:\n  pro", "model", false, "pro"),
            ("model:\n  provider: op", "model.provider", true, "op"),
            ("model:\n  id: x\ntemp", "", false, "temp"),
            ("inputs:\n  - na", "inputs.[]", false, "na"),
            ("inputs:\n- name: a\n  ki", "inputs.[]", false, "ki"),
            ("inputs:\n- name: a\n- name: b\n  kind: st", "inputs.[].kind", true, "st"),
            ("inputs:\n  a:\n    kind: ", "inputs.a.kind", true, ""),
            ("inputs:\n  - {name: a, ki", "inputs.[]", false, "ki"),
            ("inputs:\n  - {name: a, kind: in", "inputs.[].kind", true, "in"),
            ("inputs: {a: {kind: ", "inputs.a.kind", true, ""),
            ("inputs: {a: {kind: string}, b: {", "inputs.b", false, ""),
            ("model: {id: x, options: {te", "model.options", false, "te"),
            ("model: {\n  id: x,\n  pro", "model", false, "pro"),
            ("description: |\n  model: x\nmod", "", false, "mod"),
            ("metadata: ${file:da", "metadata", true, "${file:da"),
            ("metadata: \"${file:da", "metadata", true, "${file:da"),
            ("tools:\n  - name: t\n    bindings:\n      x: {input: q", "tools.[].bindings.x.input", true, "q"),
        ];
        for (text, path, is_value, word) in cases {
            let found = cursor(text).unwrap_or_else(|| panic!("{text:?} has a cursor"));
            assert_eq!((found.path.join(".").as_str(), found.is_value), (path, is_value), "{text:?}");
            assert_eq!(&text[found.word..], word, "{text:?}");
        }
        assert_eq!(cursor("description: |\n  mod"), None);
        assert_eq!(cursor("# mod"), None);
        assert_eq!(cursor("name: a # mod"), None);
    }
}

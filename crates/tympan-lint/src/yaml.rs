//! Writes values as YAML that people can read and edit.

use serde_json::Value as Json;

/// Appends an entry of a map in block style, with a line end.
///
/// ```
/// use serde_json::json;
///
/// let mut text = String::new();
/// tympan_lint::yaml::push_entry(&mut text, 0, "case", &json!({"inputs": {"copies": 1}, "answer": "Yes.\nNo."}));
/// assert_eq!(text, "case:\n  inputs:\n    copies: 1\n  answer: |-\n    Yes.\n    No.\n");
/// ```
pub fn push_entry(out: &mut String, indent: usize, key: &str, value: &Json) {
    push_indent(out, indent);
    push_text(out, key);
    out.push(':');
    push_nested(out, indent, value);
}

fn push_nested(out: &mut String, indent: usize, value: &Json) {
    match value {
        Json::Object(map) if !map.is_empty() => {
            out.push('\n');
            map.iter().for_each(|(key, value)| push_entry(out, indent + 2, key, value));
        }
        Json::Array(items) if !items.is_empty() => {
            out.push('\n');
            items.iter().for_each(|item| push_item(out, indent + 2, item));
        }
        Json::String(text) if is_literal(text) => push_literal(out, indent + 2, text),
        _ => {
            out.push(' ');
            push_scalar(out, value);
            out.push('\n');
        }
    }
}

/// Appends a text of several lines as a literal block.
fn push_literal(out: &mut String, indent: usize, text: &str) {
    out.push_str(if text.ends_with('\n') { " |\n" } else { " |-\n" });
    for line in text.lines() {
        if !line.is_empty() {
            push_indent(out, indent);
            out.push_str(line);
        }
        out.push('\n');
    }
}

/// Returns whether a text can be a literal block: every line means itself, and nothing at the end is invisible.
fn is_literal(text: &str) -> bool {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let is_visible = |char: char| matches!(char, ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}');
    text.contains('\n')
        && !body.starts_with([' ', '\n'])
        && !body.ends_with('\n')
        && !body.is_empty()
        && body.split('\n').all(|line| line.chars().all(is_visible) && !line.ends_with(' '))
}

fn push_item(out: &mut String, indent: usize, value: &Json) {
    push_indent(out, indent);
    out.push('-');
    match value {
        Json::Object(map) if !map.is_empty() => {
            // The first entry is on the line of the dash.
            let mut inner = String::new();
            map.iter().for_each(|(key, value)| push_entry(&mut inner, indent + 2, key, value));
            out.push(' ');
            out.push_str(inner.trim_start_matches(' '));
        }
        _ => push_nested(out, indent, value),
    }
}

fn push_indent(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

fn push_scalar(out: &mut String, value: &Json) {
    match value {
        Json::String(text) => push_text(out, text),
        _ => out.push_str(&value.to_string()),
    }
}

/// Appends a text, in quotes if it could be read as something else.
pub fn push_text(out: &mut String, text: &str) {
    if is_plain(text) {
        out.push_str(text);
    } else {
        for char in Json::from(text).to_string().chars() {
            // JSON allows these characters, and YAML does not, or takes them for line ends.
            match char {
                '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                    out.push_str(&format!("\\u{:04x}", u32::from(char)));
                }
                _ => out.push(char),
            }
        }
    }
}

/// Returns whether a text means itself without quotes.
fn is_plain(text: &str) -> bool {
    let is_safe = |char: char| char.is_ascii_alphanumeric() || "_-./$ {}:".contains(char);
    let starts = text.starts_with(|char: char| char.is_ascii_alphabetic() || char == '$');
    let is_word = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "inf", "nan"]
        .iter()
        .any(|word| word.eq_ignore_ascii_case(text));
    starts && !is_word && text.chars().all(is_safe) && !text.contains(": ") && !text.ends_with([' ', ':'])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::push_entry;

    #[test]
    fn values_are_written_in_block_style() {
        let value = json!({"id": "gpt-4o", "key": "${env:KEY}", "count": 1.0, "empty": {}, "list": [1, {"a": [], "b": "x: y"}, [2]],
            "word": "no", "lines": "a\nb", "control": "\u{96}"});
        let mut out = String::new();
        push_entry(&mut out, 0, "model", &value);
        let expected = "model:\n  id: gpt-4o\n  key: ${env:KEY}\n  count: 1.0\n  empty: {}\n  list:\n    - 1\n    - a: []\n      \
            b: \"x: y\"\n    -\n      - 2\n  word: \"no\"\n  lines: |-\n    a\n    b\n  control: \"\\u0096\"\n";
        assert_eq!(out, expected);
    }
}

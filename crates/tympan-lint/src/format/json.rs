//! The layout of JSON: white space between tokens, which are copied as they are written. So no number loses digits and
//! no string its escapes.

use serde::de::IgnoredAny;

/// The number of columns that a list of plain values may take up before it gets one line per value.
const MAX_COLUMNS: usize = 100;

/// Lays a JSON text out. Returns `None` if it is not JSON.
pub(super) fn layout(text: &str) -> Option<String> {
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    let tokens = tokens(text);
    let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut out = String::with_capacity(text.len());
    let mut depth = 0;
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        match *token {
            open @ ("{" | "[") => {
                if let Some(length) = flat(&tokens[index..], &out) {
                    tokens[index..index + length].iter().for_each(|token| {
                        out.push_str(token);
                        out.push_str(if *token == "," { " " } else { "" });
                    });
                    index += length;
                    continue;
                }
                out.push_str(open);
                depth += 1;
                new_line(&mut out, line_end, depth);
            }
            close @ ("}" | "]") => {
                depth -= 1;
                new_line(&mut out, line_end, depth);
                out.push_str(close);
            }
            "," => {
                out.push(',');
                new_line(&mut out, line_end, depth);
            }
            ":" => out.push_str(": "),
            value => out.push_str(value),
        }
        index += 1;
    }
    let end = &text[text.trim_end().len()..];
    out.push_str(if end.contains('\n') { line_end } else { "" });
    Some(out)
}

fn new_line(out: &mut String, line_end: &str, depth: usize) {
    out.push_str(line_end);
    out.extend(std::iter::repeat_n("  ", depth));
}

/// Returns the number of tokens of an empty collection, or of a list of plain values that fits on the line.
fn flat(tokens: &[&str], before: &str) -> Option<usize> {
    let mut columns = before.rsplit('\n').next().unwrap_or_default().chars().count();
    for (index, token) in tokens.iter().enumerate() {
        columns += token.chars().count() + usize::from(*token == ",");
        match *token {
            "[" if index == 0 => {}
            "{" if index == 0 && tokens.get(1) == Some(&"}") => {}
            "]" | "}" => return Some(index + 1),
            "[" | "{" => return None,
            _ if columns > MAX_COLUMNS => return None,
            _ => {}
        }
    }
    None
}

/// Splits a valid JSON text into tokens.
fn tokens(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let (mut tokens, mut at) = (Vec::new(), 0);
    while let Some(byte) = bytes.get(at) {
        let end = match byte {
            b' ' | b'\t' | b'\n' | b'\r' => {
                at += 1;
                continue;
            }
            b'"' => string_end(bytes, at),
            b'{' | b'}' | b'[' | b']' | b',' | b':' => at + 1,
            _ => {
                let rest = bytes[at..].iter().position(|byte| b" \t\n\r{}[],:\"".contains(byte));
                rest.map_or(bytes.len(), |length| at + length)
            }
        };
        tokens.push(&text[at..end]);
        at = end;
    }
    tokens
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

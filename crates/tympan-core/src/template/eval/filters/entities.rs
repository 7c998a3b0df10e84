//! HTML's character references, such as `&amp;` and `&#39;`.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

/// The names of the HTML standard, each with the code points that it stands for. Some are also valid without the
/// semicolon.
const NAMED: &str = include_str!("entities.txt");

/// The maximum number of characters of a name, without the semicolon.
const MAX_NAME: usize = 32;

/// What the numbers 0x80 to 0x9f stand for. Browsers read them as Windows-1252.
const WINDOWS_1252: [u32; 32] = [
    0x20ac, 0x81, 0x201a, 0x192, 0x201e, 0x2026, 0x2020, 0x2021, 0x2c6, 0x2030, 0x160, 0x2039, 0x152, 0x8d, 0x17d,
    0x8f, 0x90, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x2dc, 0x2122, 0x161, 0x203a, 0x153, 0x9d,
    0x17e, 0x178,
];

/// A character reference in a text.
#[derive(Debug, PartialEq)]
pub(super) struct Reference {
    pub(super) range: Range<usize>,
    pub(super) text: String,
}

/// Returns the first character reference at or after a position.
pub(super) fn next(text: &str, from: usize) -> Option<Reference> {
    let mut from = from;
    loop {
        let start = from + memchr::memchr(b'&', text.as_bytes().get(from..)?)?;
        if let Some((len, text)) = read(&text[start + 1..]) {
            return Some(Reference { range: start..start + 1 + len, text });
        }
        from = start + 1;
    }
}

/// Reads a reference after its `&`. Returns its length and the text that it stands for.
fn read(text: &str) -> Option<(usize, String)> {
    match text.strip_prefix('#') {
        Some(number) => read_number(number).map(|(len, text)| (len + 1, text)),
        None => read_name(text),
    }
}

fn read_number(text: &str) -> Option<(usize, String)> {
    let is_hex = text.starts_with(['x', 'X']);
    let (skipped, radix) = if is_hex { (1, 16) } else { (0, 10) };
    let digits = &text[skipped..];
    let count = digits.bytes().take_while(|byte| char::from(*byte).is_digit(radix)).count();
    if count == 0 {
        return None;
    }
    let semicolon = usize::from(digits[count..].starts_with(';'));
    let number = u32::from_str_radix(&digits[..count], radix).unwrap_or(u32::MAX);
    Some((skipped + count + semicolon, number_text(number)))
}

fn number_text(number: u32) -> String {
    let number = match number {
        0 => 0xfffd,
        0x80..=0x9f => WINDOWS_1252[(number - 0x80) as usize],
        1..=8 | 0xb | 0xe..=0x1f | 0x7f | 0xfdd0..=0xfdef => return String::new(),
        _ if number & 0xfffe == 0xfffe && number <= 0x0010_ffff => return String::new(),
        other => other,
    };
    char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER).into()
}

fn read_name(text: &str) -> Option<(usize, String)> {
    let is_part = |char: &char| !matches!(char, '\t' | '\n' | '\x0c' | ' ' | '<' | '&' | '#' | ';');
    let len: usize = text.chars().take(MAX_NAME).take_while(is_part).map(char::len_utf8).sum();
    let end = len + usize::from(len > 0 && text[len..].starts_with(';'));
    // Without a semicolon, the longest name that the text starts with counts.
    (2..=end).rev().find_map(|end| Some((end, named()?.get(text.get(..end)?)?.clone())))
}

fn named() -> Option<&'static HashMap<&'static str, String>> {
    static NAMES: OnceLock<HashMap<&str, String>> = OnceLock::new();
    let parsed = |line: &'static str| {
        let (name, points) = line.split_once(' ')?;
        let char = |point| u32::from_str_radix(point, 16).ok().and_then(char::from_u32);
        Some((name, points.split(' ').filter_map(char).collect()))
    };
    Some(NAMES.get_or_init(|| NAMED.lines().filter_map(parsed).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_as_browsers_do() {
        let cases = [
            ("a&amp;b", Some((1..6, "&"))),
            ("&ampb", Some((0..4, "&"))),
            ("&notit;", Some((0..4, "¬"))),
            ("&notin;", Some((0..7, "∉"))),
            ("&#39;", Some((0..5, "'"))),
            ("&#x27", Some((0..5, "'"))),
            ("&#x80;", Some((0..6, "€"))),
            ("&#0;", Some((0..4, "\u{fffd}"))),
            ("&#99999999999;", Some((0..14, "\u{fffd}"))),
            ("&#1;", Some((0..4, ""))),
            ("& &amp;", Some((2..7, "&"))),
            ("&nosuch;", None),
            ("&", None),
            ("&#;", None),
            ("&é;", None),
            ("&NotEqualTilde;", Some((0..15, "≂\u{338}"))),
        ];
        for (text, expected) in cases {
            let found = next(text, 0).map(|found| (found.range, found.text));
            assert_eq!(found, expected.map(|(range, text)| (range, text.to_owned())), "{text}");
        }
    }
}

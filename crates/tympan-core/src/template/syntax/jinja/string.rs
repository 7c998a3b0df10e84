//! Strings: their text without quotes and escapes.

use std::borrow::Cow;

/// A string with an escape that is not valid.
#[derive(Debug, PartialEq)]
pub(super) struct BadEscape;

/// Returns the text of a string literal, which is one or more quoted strings with white space between them.
pub(super) fn value(literal: &str) -> Result<Cow<'_, str>, BadEscape> {
    let (first, mut rest) = next_part(literal);
    let mut text = unescape(first)?;
    while !rest.is_empty() {
        let (part, behind) = next_part(rest);
        text.to_mut().push_str(&unescape(part)?);
        rest = behind;
    }
    Ok(text)
}

/// Splits the first quoted string off. Returns its content, and what follows it without white space.
fn next_part(literal: &str) -> (&str, &str) {
    let bytes = literal.as_bytes();
    let Some(&quote) = bytes.first() else { return ("", "") };
    let mut end = 1;
    while let Some(length) = bytes.get(end..).and_then(|rest| memchr::memchr2(quote, b'\\', rest)) {
        end += length;
        if bytes[end] == quote {
            return (&literal[1..end], literal[end + 1..].trim_ascii_start());
        }
        end += 2;
    }
    (&literal[1..], "")
}

fn unescape(text: &str) -> Result<Cow<'_, str>, BadEscape> {
    let Some(first) = memchr::memchr(b'\\', text.as_bytes()) else { return Ok(Cow::Borrowed(text)) };
    let mut unescaped = Unescaped { text: text[..first].to_owned(), high_surrogate: None };
    let mut rest = text[first..].chars();
    while let Some(char) = rest.next() {
        if char == '\\' {
            unescaped.escape(&mut rest)?;
        } else {
            unescaped.push(char)?;
        }
    }
    match unescaped.high_surrogate {
        None => Ok(Cow::Owned(unescaped.text)),
        Some(_) => Err(BadEscape),
    }
}

struct Unescaped {
    text: String,
    /// The first half of a character that is written as two `\u` escapes.
    high_surrogate: Option<u16>,
}

impl Unescaped {
    fn push(&mut self, char: char) -> Result<(), BadEscape> {
        if self.high_surrogate.is_some() {
            return Err(BadEscape);
        }
        self.text.push(char);
        Ok(())
    }

    /// Resolves the escape whose characters after the backslash come next. An unknown one stays as it is written.
    fn escape(&mut self, rest: &mut std::str::Chars<'_>) -> Result<(), BadEscape> {
        let char = match rest.next().ok_or(BadEscape)? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'x' => char::from(u8::from_str_radix(take(rest, 2)?, 16).map_err(|_| BadEscape)?),
            'u' => {
                let unit = u16::from_str_radix(take(rest, 4)?, 16).map_err(|_| BadEscape)?;
                return self.push_unit(unit);
            }
            digit @ '0'..='7' => octal(digit, rest)?,
            same @ ('"' | '\\' | '/' | '\'') => same,
            unknown => {
                self.push('\\')?;
                unknown
            }
        };
        self.push(char)
    }

    /// Appends a code unit of UTF-16.
    fn push_unit(&mut self, unit: u16) -> Result<(), BadEscape> {
        match (self.high_surrogate.take(), (0xd800..0xe000).contains(&unit)) {
            (None, true) => {
                self.high_surrogate = Some(unit);
                Ok(())
            }
            (None, false) => self.push(char::from_u32(u32::from(unit)).ok_or(BadEscape)?),
            (Some(high), true) => {
                let decoded = char::decode_utf16([high, unit]).next().and_then(Result::ok);
                self.push(decoded.ok_or(BadEscape)?)
            }
            (Some(_), false) => Err(BadEscape),
        }
    }
}

/// Takes the next bytes, if they are whole characters.
fn take<'s>(rest: &mut std::str::Chars<'s>, length: usize) -> Result<&'s str, BadEscape> {
    let text = rest.as_str();
    let taken = text.get(..length).ok_or(BadEscape)?;
    *rest = text[length..].chars();
    Ok(taken)
}

/// Resolves an octal escape of up to three digits, the first of which has been taken.
fn octal(first: char, rest: &mut std::str::Chars<'_>) -> Result<char, BadEscape> {
    let digit = |char: char| char.to_digit(8);
    let mut code = digit(first).unwrap_or_default();
    for _ in 0..2 {
        let Some(next) = rest.clone().next().and_then(digit) else { break };
        code = code * 8 + next;
        rest.next();
    }
    u8::try_from(code).map(char::from).map_err(|_| BadEscape)
}

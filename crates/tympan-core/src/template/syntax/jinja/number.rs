//! Numbers: where they end, and what they mean.

use crate::template::syntax::token::TokenKind;

/// The value of a number.
#[derive(Debug, PartialEq)]
pub(super) enum Number {
    Int(u64),
    Big(u128),
    Float(f64),
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// The digits after `0x`, `0o` or `0b`.
    Radix(u32),
    Integer,
    Fraction,
    /// After `e`, where a sign may follow.
    Exponent,
    ExponentDigits,
}

/// Returns the kind and the length of the number that starts at `start`, which is a digit.
pub(super) fn scan(source: &[u8], start: usize) -> (TokenKind, usize) {
    let rest = &source[start..];
    let mut state = match radix_of(rest) {
        Some(radix) => State::Radix(radix),
        None => State::Integer,
    };
    let mut length = if state == State::Integer { 0 } else { 2 };
    // A number after a dot is an index, and an index has no fraction: `x.1.0` is `x[1][0]`.
    let is_index = start > 0 && source[start - 1] == b'.';
    while let Some(&byte) = rest.get(length) {
        state = match (byte, state) {
            (b'0'..=b'9', State::Exponent) => State::ExponentDigits,
            (b'0'..=b'9' | b'_', _) => state,
            (b'.', State::Integer) if !is_index && !is_attribute(&rest[length + 1..]) => State::Fraction,
            (b'e' | b'E', State::Integer | State::Fraction) => State::Exponent,
            (b'+' | b'-', State::Exponent) => State::ExponentDigits,
            (b'a'..=b'f' | b'A'..=b'F', State::Radix(16)) => state,
            _ => break,
        };
        length += 1;
    }
    let is_integer = matches!(state, State::Integer | State::Radix(_));
    (if is_integer { TokenKind::Integer } else { TokenKind::Float }, length)
}

fn radix_of(text: &[u8]) -> Option<u32> {
    match text.get(..2)? {
        b"0b" | b"0B" => Some(2),
        b"0o" | b"0O" => Some(8),
        b"0x" | b"0X" => Some(16),
        _ => None,
    }
}

/// Returns whether the text after a dot is a name rather than the fraction of a number. `1.e5` is a number.
fn is_attribute(rest: &[u8]) -> bool {
    let is_exponent =
        matches!(rest.first(), Some(b'e' | b'E')) && matches!(rest.get(1), Some(b'+' | b'-' | b'0'..=b'9'));
    !is_exponent && rest.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
}

/// Returns the value of a number, or what is wrong with it.
pub(super) fn value(text: &str, kind: TokenKind) -> Result<Number, &'static str> {
    let radix = radix_of(text.as_bytes());
    let digits = if radix.is_some() { &text[2..] } else { text };
    if digits.ends_with('_') {
        return Err("'_' may not occur at end of number");
    }
    let without_underscores;
    let digits = if digits.contains('_') {
        without_underscores = digits.replace('_', "");
        &without_underscores
    } else {
        digits
    };
    if kind == TokenKind::Float {
        return digits.parse().map(Number::Float).map_err(|_| "invalid float");
    }
    let radix = radix.unwrap_or(10);
    if let Ok(int) = u64::from_str_radix(digits, radix) {
        return Ok(Number::Int(int));
    }
    u128::from_str_radix(digits, radix).map(Number::Big).map_err(|_| match digits.bytes().all(|d| is_digit(d, radix)) {
        true if !digits.is_empty() => "invalid integer (too large)",
        _ => "invalid integer",
    })
}

fn is_digit(byte: u8, radix: u32) -> bool {
    char::from(byte).is_digit(radix)
}

//! Resolves YAML scalars according to the core schema of YAML 1.2.

use std::borrow::Cow;

use serde_json::Number;
use serde_saphyr::granit_parser::Tag;

use super::Value;

/// Resolves a scalar. Quoted and block scalars are strings.
///
/// `yes` and `no` are strings. So is a number that JSON cannot represent (`.nan`, `1e400`, an integer of more than 64
/// bits): a string is lossless, while any number would be a different one.
pub(super) fn resolve<'s>(text: Cow<'s, str>, plain: bool, tag: Option<&Tag>) -> Result<Value<'s>, String> {
    let Some(tag) = tag else {
        return Ok(if plain { resolve_plain(text) } else { Value::String(text) });
    };
    let value = match tag.core_suffix() {
        Some("str") => return Ok(Value::String(text)),
        Some("int") => number(&text).filter(|number| !number.is_f64()).map(Value::Number),
        Some("float") => number(&text).map(Value::Number),
        Some("bool") => boolean(&text).map(Value::Bool),
        Some("null") => is_null(&text).then_some(Value::Null),
        _ if tag.handle().is_empty() && tag.suffix() == "!" => return Ok(Value::String(text)),
        _ => return Err(format!("unsupported tag `{}`", tag.original())),
    };
    value.ok_or_else(|| format!("value does not match its tag `{}`", tag.original()))
}

fn resolve_plain(text: Cow<'_, str>) -> Value<'_> {
    // Most plain scalars are strings, and the first character rules out the other types.
    match text.as_bytes().first() {
        None | Some(b'~' | b'n' | b'N') if is_null(&text) => Value::Null,
        Some(b't' | b'T' | b'f' | b'F') => match boolean(&text) {
            Some(value) => Value::Bool(value),
            None => Value::String(text),
        },
        Some(b'0'..=b'9' | b'-' | b'+' | b'.') => match number(&text) {
            Some(value) => Value::Number(value),
            None => Value::String(text),
        },
        _ => Value::String(text),
    }
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// Parses a number in the core schema that JSON can represent.
pub(in crate::format) fn number(text: &str) -> Option<Number> {
    let radix = |digits: &str, radix| u64::from_str_radix(digits, radix).ok().map(Number::from);
    if let Some(digits) = text.strip_prefix("0o") {
        return digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| radix(digits, 8)).flatten();
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| radix(digits, 16)).flatten();
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        let digits = text.strip_prefix('+').unwrap_or(text);
        return digits.parse::<i64>().map(Number::from).or_else(|_| digits.parse::<u64>().map(Number::from)).ok();
    }
    is_float(unsigned).then(|| text.parse().ok().and_then(Number::from_f64)).flatten()
}

/// Returns whether the text is digits with a decimal point, an exponent, or both.
fn is_float(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (text, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    (!whole.is_empty() || !fraction.is_empty())
        && digits(whole)
        && digits(fraction)
        && exponent.is_none_or(|exponent| !exponent.is_empty() && digits(exponent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_are_what_the_core_schema_says() {
        let text = |text| Value::String(Cow::Borrowed(text));
        let integer = |value: i64| Value::Number(value.into());
        let float = |value| Value::Number(Number::from_f64(value).expect("it is finite"));
        let cases = [
            ("", Value::Null),
            ("~", Value::Null),
            ("null", Value::Null),
            ("nil", text("nil")),
            ("true", Value::Bool(true)),
            ("yes", text("yes")),
            ("no", text("no")),
            ("42", integer(42)),
            ("+1", integer(1)),
            ("-7", integer(-7)),
            ("010", integer(10)),
            ("0o17", integer(15)),
            ("0x1F", integer(31)),
            ("1_000", text("1_000")),
            ("12:30:45", text("12:30:45")),
            ("1.50", float(1.5)),
            (".5", float(0.5)),
            ("1e3", float(1000.0)),
            ("1e400", text("1e400")),
            (".nan", text(".nan")),
            ("-.inf", text("-.inf")),
            ("184467440737095516160", text("184467440737095516160")),
            ("1.2.3", text("1.2.3")),
            ("-", text("-")),
            (".", text(".")),
            ("2024-08-01-preview", text("2024-08-01-preview")),
        ];
        for (written, expected) in cases {
            assert_eq!(resolve_plain(Cow::Borrowed(written)), expected, "{written:?}");
        }
    }
}

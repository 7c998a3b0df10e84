//! Conditions on texts and JSON values.
//!
//! Text conditions on a value that is not a text apply to its compact JSON. With `ignore_case`, every character is
//! converted to upper case and then to lower case, without regard to the language; regular expressions use Unicode's
//! simple case folding.

use std::borrow::Cow;

use serde_json::Value as Json;
use tympan_core::json::path::JsonPath;
use tympan_core::spec::test_suite::{TextMatch, Texts, ValueMatch};
use tympan_core::text::pattern::Pattern;
use tympan_core::turn::schema::{same, value_problems};

use crate::quote::{quoted, quoted_json, type_name};
use crate::result::Check;

/// Why a text or a value does not match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mismatch {
    /// What was expected and what was found.
    pub message: String,
    /// The expected and the actual text, if their difference explains the mismatch.
    pub difference: Option<(String, String)>,
    /// Whether the condition itself is wrong, such as an invalid regular expression. Then its negation does not hold
    /// either.
    pub is_invalid: bool,
}

impl Mismatch {
    /// Creates a mismatch.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// Creates a mismatch for a condition that is wrong itself.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self { is_invalid: true, ..Self::new(message) }
    }

    /// Adds the two texts whose difference explains the mismatch.
    #[must_use]
    pub fn with_difference(self, expected: impl Into<String>, actual: impl Into<String>) -> Self {
        Self { difference: Some((expected.into(), actual.into())), ..self }
    }

    /// Converts the mismatch to the result of an assertion. An assertion that is wrong itself fails as well: it must not be
    /// forgiven as if only a recording were missing.
    pub fn into_check(self, assertion: &str, line: usize) -> Check {
        let check = Check::failed(assertion, line, self.message);
        match self.difference {
            Some((expected, actual)) => check.with_difference(expected, actual),
            None => check,
        }
    }

    /// Puts a text in front of the message.
    #[must_use]
    pub fn within(self, place: &str) -> Self {
        Self { message: format!("{place}: {}", self.message), ..self }
    }

    /// Joins mismatches. The result is invalid if one of them is.
    fn join(mismatches: Vec<Self>) -> Result<(), Self> {
        mismatches.into_iter().reduce(Self::and).map_or(Ok(()), Err)
    }

    fn and(mut self, other: Self) -> Self {
        self.message = format!("{}; {}", self.message, other.message);
        self.difference = self.difference.or(other.difference);
        self.is_invalid |= other.is_invalid;
        self
    }
}

/// Checks whether a text meets all conditions.
///
/// # Errors
/// Returns all conditions that it does not meet.
pub fn check_text(text: &str, wanted: &TextMatch) -> Result<(), Mismatch> {
    let mut mismatches = Vec::new();
    let folded = folded(text, wanted.ignore_case);
    let mut check = |is_met: bool, condition: &str, part: &str| {
        if !is_met {
            let message = format!("expected a text that {condition} {}, found {}", quoted(part), quoted(text));
            mismatches.push(Mismatch::new(message));
        }
    };
    let fold = |part| self::folded(part, wanted.ignore_case);
    for part in texts(wanted.contains.as_ref()) {
        check(folded.contains(&*fold(part)), "contains", part);
    }
    for part in texts(wanted.not_contains.as_ref()) {
        check(!folded.contains(&*fold(part)), "does not contain", part);
    }
    if let Some(start) = &wanted.starts_with {
        check(folded.starts_with(&*fold(start)), "starts with", start);
    }
    if let Some(end) = &wanted.ends_with {
        check(folded.ends_with(&*fold(end)), "ends with", end);
    }
    if let Some(pattern) = &wanted.matches {
        match compile(pattern, wanted.ignore_case) {
            Ok(compiled) => check(compiled.is_match(text), "matches", pattern),
            Err(invalid) => mismatches.push(invalid),
        }
    }
    Mismatch::join(mismatches)
}

/// Checks whether a text is equal to another. If only white space at the end differs, the message says so.
///
/// # Errors
/// Returns the difference.
pub fn check_equal_text(text: &str, wanted: &str, ignore_case: bool) -> Result<(), Mismatch> {
    if folded(text, ignore_case) == folded(wanted, ignore_case) {
        return Ok(());
    }
    let note = match text.trim_end() == wanted.trim_end() {
        true => ", which differs only in white space at the end",
        false => "",
    };
    let message = format!("expected {}, found {}{note}", quoted(wanted), quoted(text));
    Err(Mismatch { difference: Some((wanted.to_owned(), text.to_owned())), ..Mismatch::new(message) })
}

/// Checks whether a JSON value meets all conditions. If there is a path, every value that it selects must meet them, and
/// there must be at least one, unless `exists` is false.
///
/// `problems` are the mismatches of the value with the prompt's `outputs`, or `None` if there are no such declarations.
///
/// # Errors
/// Returns all conditions that the value does not meet.
pub fn check_value(value: &Json, wanted: &ValueMatch, problems: Option<&[String]>) -> Result<(), Mismatch> {
    let mut mismatches: Vec<_> = check_valid(wanted.valid, problems).err().into_iter().collect();
    let parsed = match parsed(value, wanted.json) {
        Ok(parsed) => parsed,
        Err(mismatch) => {
            mismatches.push(mismatch);
            return Mismatch::join(mismatches);
        }
    };
    let value = parsed.as_ref().unwrap_or(value);
    let path = wanted.path.as_deref().unwrap_or("$");
    let invalid = |error| Mismatch::invalid(format!("`{path}`: {error}"));
    let selected = JsonPath::parse(path).and_then(|path| path.select(value)).map_err(invalid)?;
    match (selected.as_slice(), wanted.exists) {
        ([], Some(false)) => {}
        ([], _) => {
            mismatches.push(Mismatch::new(format!("expected a value at `{path}`, found none")));
        }
        ([value, ..], Some(false)) => {
            mismatches.push(Mismatch::new(format!("expected no value at `{path}`, found {}", quoted_json(value))));
        }
        (values, _) => {
            let place = |mismatch: Mismatch| match wanted.path.is_some() {
                true => mismatch.within(&format!("`{path}`")),
                false => mismatch,
            };
            let first = values.iter().find_map(|value| check_one(value, wanted).err());
            mismatches.extend(first.map(place));
        }
    }
    Mismatch::join(mismatches)
}

/// Returns the problems of conditions that do not depend on the text: invalid regular expressions.
pub fn text_problems(wanted: &TextMatch) -> Vec<String> {
    let compiled = wanted.matches.as_deref().map(|pattern| compile(pattern, wanted.ignore_case));
    compiled.and_then(Result::err).map(|invalid| invalid.message).into_iter().collect()
}

/// Returns the problems of conditions that do not depend on the value: invalid paths and regular expressions.
pub fn value_match_problems(wanted: &ValueMatch) -> Vec<String> {
    let path = wanted.path.as_deref().and_then(|path| Some(format!("`{path}`: {}", JsonPath::parse(path).err()?)));
    path.into_iter().chain(text_problems(&wanted.text)).collect()
}

fn check_valid(wanted: Option<bool>, problems: Option<&[String]>) -> Result<(), Mismatch> {
    let message = match (wanted, problems) {
        (None, _) | (Some(true), Some([])) => return Ok(()),
        (Some(false), Some(problems)) if !problems.is_empty() => return Ok(()),
        (Some(_), None) => return Err(Mismatch::invalid("`valid`: the prompt declares no `outputs`")),
        (Some(true), Some(problems)) => format!("expected a result as `outputs` declares: {}", problems.join("; ")),
        (Some(false), Some(_)) => "expected a result that `outputs` does not allow, found a valid one".to_owned(),
    };
    Err(Mismatch::new(message))
}

/// Parses a text that is expected to be JSON. Returns `None` if the conditions apply to the value as it is: a value that is
/// not a text is JSON already.
fn parsed(value: &Json, wanted: Option<bool>) -> Result<Option<Json>, Mismatch> {
    let (Some(wanted), Json::String(text)) = (wanted, value) else {
        return match wanted {
            Some(false) => {
                Err(Mismatch::new(format!("expected a text that is not JSON, found {}", quoted_json(value))))
            }
            _ => Ok(None),
        };
    };
    match (wanted, serde_json::from_str::<Json>(text)) {
        (true, Ok(parsed)) => Ok(Some(parsed)),
        (true, Err(error)) => Err(Mismatch::new(format!("expected JSON, found {}: {error}", quoted(text)))),
        (false, Ok(_)) => Err(Mismatch::new(format!("expected a text that is not JSON, found {}", quoted(text)))),
        (false, Err(_)) => Ok(None),
    }
}

/// Checks the conditions on one value.
fn check_one(value: &Json, wanted: &ValueMatch) -> Result<(), Mismatch> {
    let mut mismatches = Vec::new();
    if let Some(expected) = &wanted.equals {
        mismatches.extend(check_equal(value, expected, wanted.text.ignore_case).err());
    }
    mismatches.extend(check_range(value, wanted).err());
    if let Some(schema) = &wanted.schema {
        let problems = value_problems(schema, value);
        if !problems.is_empty() {
            mismatches
                .push(Mismatch::new(format!("expected a value that matches the schema: {}", problems.join("; "))));
        }
    }
    mismatches.extend(check_text(&text_of(value), &wanted.text).err());
    Mismatch::join(mismatches)
}

/// Checks whether two values are equal, treating 2 and 2.0 as equal.
fn check_equal(value: &Json, expected: &Json, ignore_case: bool) -> Result<(), Mismatch> {
    if let (Json::String(text), Json::String(expected)) = (value, expected) {
        return check_equal_text(text, expected, ignore_case);
    }
    if same(value, expected) {
        return Ok(());
    }
    let message = format!("expected {}, found {}", quoted_json(expected), quoted_json(value));
    Err(Mismatch { difference: Some((pretty(expected), pretty(value))), ..Mismatch::new(message) })
}

fn check_range(value: &Json, wanted: &ValueMatch) -> Result<(), Mismatch> {
    let range = match (wanted.min, wanted.max) {
        (None, None) => return Ok(()),
        (Some(min), Some(max)) => format!("from {min} to {max}"),
        (Some(min), None) => format!("of at least {min}"),
        (None, Some(max)) => format!("of at most {max}"),
    };
    let Some(number) = value.as_f64() else {
        let found = type_name(value);
        return Err(Mismatch::new(format!("expected a number {range}, found {found}")));
    };
    match wanted.min.is_none_or(|min| number >= min) && wanted.max.is_none_or(|max| number <= max) {
        true => Ok(()),
        false => Err(Mismatch::new(format!("expected a number {range}, found {value}"))),
    }
}

fn compile(pattern: &str, ignore_case: bool) -> Result<Pattern, Mismatch> {
    let invalid = |error| Mismatch::invalid(format!("invalid regular expression {}: {error}", quoted(pattern)));
    Pattern::new(pattern, ignore_case).map_err(invalid)
}

/// Returns the text of a value: a text itself, everything else as compact JSON.
pub fn text_of(value: &Json) -> Cow<'_, str> {
    match value {
        Json::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// Returns a value in the form in which differences are shown: a text as it is, everything else as indented JSON.
fn pretty(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    }
}

fn texts(texts: Option<&Texts>) -> &[String] {
    texts.map_or(&[], Texts::as_slice)
}

fn folded(text: &str, ignore_case: bool) -> Cow<'_, str> {
    match ignore_case {
        true => Cow::Owned(text.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()),
        false => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(text: &str, wanted: Json) -> Result<(), Mismatch> {
        check_text(text, &serde_json::from_value(wanted).expect("conditions"))
    }

    fn value(value: Json, wanted: Json) -> Result<(), Mismatch> {
        check_value(&value, &serde_json::from_value(wanted).expect("conditions"), Some(&[]))
    }

    fn message(result: Result<(), Mismatch>) -> String {
        result.expect_err("a mismatch").message
    }

    #[test]
    fn text_conditions_hold_or_say_why_not() {
        assert_eq!(text("Good day, Ada!", json!({"contains": ["Good", "Ada"], "not_contains": "Bob"})), Ok(()));
        assert_eq!(text("Good day", json!({"starts_with": "Good", "ends_with": "day", "matches": "^G.*y$"})), Ok(()));
        let wanted = json!({"contains": "b", "not_contains": ["x", "a"], "starts_with": "b", "ends_with": "b"});
        let found = "found \"a\"";
        let expected = [
            format!("expected a text that contains \"b\", {found}"),
            format!("expected a text that does not contain \"a\", {found}"),
            format!("expected a text that starts with \"b\", {found}"),
            format!("expected a text that ends with \"b\", {found}"),
        ];
        assert_eq!(message(text("a", wanted)), expected.join("; "));
        assert_eq!(message(text("a", json!({"matches": "^b"}))), "expected a text that matches \"^b\", found \"a\"");
    }

    #[test]
    fn case_can_be_ignored() {
        let wanted = json!({"contains": "STRASSE", "starts_with": "große", "matches": "STR", "ignore_case": true});
        assert_eq!(text("Große Straße", wanted.clone()), Ok(()));
        let sensitive = json!({"contains": "STRASSE"});
        assert!(text("Große Straße", sensitive).is_err());
        assert_eq!(text("ὈΔΥΣΣΕΎΣ", json!({"ends_with": "σεύς", "ignore_case": true})), Ok(()));
        assert_eq!(value(json!("Yes"), json!({"equals": "YES", "ignore_case": true})), Ok(()));
    }

    #[test]
    fn invalid_conditions_do_not_count_as_mismatches() {
        let wrong = text("a", json!({"matches": "("})).expect_err("invalid");
        assert!(wrong.is_invalid, "{wrong:?}");
        assert_eq!(wrong.message, "invalid regular expression \"(\": unclosed group");
        assert_eq!(wrong.into_check("result", 3).status, crate::CheckStatus::Failed);
        let wrong = value(json!({}), json!({"path": "title", "exists": true})).expect_err("invalid");
        assert!(wrong.is_invalid && wrong.message.contains("expected `$`"), "{wrong:?}");
        let wanted = serde_json::from_value(json!({"path": "a", "matches": "("})).expect("conditions");
        assert_eq!(value_match_problems(&wanted).len(), 2);
    }

    #[test]
    fn values_are_compared_by_what_they_mean() {
        assert_eq!(value(json!({"a": 2.0, "b": 1}), json!({"equals": {"b": 1, "a": 2}})), Ok(()));
        assert_eq!(value(json!({"a": null}), json!({"path": "$.a", "equals": null})), Ok(()));
        let wrong = value(json!({"a": 1}), json!({"equals": {"a": 2}})).expect_err("unequal");
        assert_eq!(wrong.message, r#"expected {"a":2}, found {"a":1}"#);
        assert_eq!(wrong.difference, Some(("{\n  \"a\": 2\n}".to_owned(), "{\n  \"a\": 1\n}".to_owned())));
        let end = message(value(json!("a"), json!({"equals": "a\n"})));
        assert_eq!(end, r#"expected "a\n", found "a", which differs only in white space at the end"#);
    }

    #[test]
    fn paths_select_values() {
        let items = json!({"items": [{"n": 1}, {"n": 5}]});
        assert_eq!(value(items.clone(), json!({"path": "$.items[*].n", "min": 1, "max": 5})), Ok(()));
        let wrong = message(value(items.clone(), json!({"path": "$.items[*].n", "max": 4})));
        assert_eq!(wrong, "`$.items[*].n`: expected a number of at most 4, found 5");
        assert_eq!(value(items.clone(), json!({"path": "$.title", "exists": false})), Ok(()));
        let wrong = message(value(items.clone(), json!({"path": "$.title", "exists": true})));
        assert_eq!(wrong, "expected a value at `$.title`, found none");
        assert_eq!(message(value(items.clone(), json!({"path": "$.title", "equals": 1}))), wrong);
        let wrong = message(value(items.clone(), json!({"path": "$.items[0]", "exists": false})));
        assert_eq!(wrong, r#"expected no value at `$.items[0]`, found {"n":1}"#);
        assert_eq!(value(items, json!({"contains": r#""n":5"#})), Ok(()));
    }

    #[test]
    fn numbers_schemas_and_declared_outputs() {
        assert_eq!(message(value(json!("7"), json!({"min": 1}))), "expected a number of at least 1, found a string");
        let schema = json!({"schema": {"type": "object", "required": ["title"]}});
        assert_eq!(value(json!({"title": 1}), schema.clone()), Ok(()));
        let wrong = message(value(json!({}), schema));
        assert_eq!(wrong, "expected a value that matches the schema: `title`: missing");
        let valid = |wanted: bool, problems: Option<&[String]>| {
            let wanted = serde_json::from_value(json!({"valid": wanted})).expect("conditions");
            check_value(&json!({}), &wanted, problems)
        };
        let problems = ["`a` is missing".to_owned()];
        assert_eq!((valid(true, Some(&[])), valid(false, Some(&problems))), (Ok(()), Ok(())));
        assert!(message(valid(true, Some(&problems))).ends_with("`a` is missing"));
        assert!(valid(false, Some(&[])).is_err());
        assert!(valid(true, None).expect_err("nothing declared").is_invalid);
    }

    #[test]
    fn texts_can_be_json() {
        let found = json!("{\"a\": 1}");
        assert_eq!(value(found.clone(), json!({"json": true, "path": "$.a", "equals": 1})), Ok(()));
        assert_eq!(value(found.clone(), json!({"json": true, "schema": {"type": "object"}})), Ok(()));
        assert!(value(found.clone(), json!({"schema": {"type": "object"}})).is_err());
        let wrong = message(value(found.clone(), json!({"json": false})));
        assert_eq!(wrong, r#"expected a text that is not JSON, found "{\"a\": 1}""#);
        let wrong = message(value(json!("Sure: {}"), json!({"json": true, "contains": "x"})));
        assert_eq!(wrong, r#"expected JSON, found "Sure: {}": expected value at line 1 column 1"#);
        assert_eq!(value(json!("Sure"), json!({"json": false, "contains": "Sure"})), Ok(()));
        assert_eq!(value(json!({"a": 1}), json!({"json": true, "path": "$.a", "equals": 1})), Ok(()));
        assert!(value(json!({"a": 1}), json!({"json": false})).is_err());
    }

    #[test]
    fn long_texts_are_shortened() {
        let wrong = message(text(&"a\u{1b}".repeat(1_000_000), json!({"contains": "b"})));
        assert!(wrong.len() < 2_000 && wrong.contains("\\u{1b}") && !wrong.contains('\u{1b}'), "{}", wrong.len());
    }
}

//! Checks arguments and results against a JSON Schema.
//!
//! The check covers the keywords of JSON Schema 2020-12 and their older forms, except for those that
//! `spec::json_schema::unchecked` lists. It ignores keywords that it does not understand.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt::{Display, Write as _};

use serde_json::Value as Json;

use crate::json::JsonMap;
use crate::spec::json_schema::{is_open, reference, target};
use crate::template::input::InputRef;
use crate::text::pattern::{Pattern, compile};

/// The maximum number of problems to list.
const MAX_PROBLEMS: usize = 20;

/// The maximum number of characters of a name to quote.
const MAX_QUOTED: usize = 40;

/// The maximum depth. References can be circular.
const MAX_DEPTH: usize = 64;

/// The maximum number of steps. Circular references can also branch, and the schema may come from a malicious server.
const MAX_STEPS: usize = 200_000;

/// The maximum number of references to follow to find the type of a choice.
const MAX_HOPS: usize = 8;

/// The number of steps to compile a pattern.
const PATTERN_STEPS: usize = 1_000;

/// The number of bytes that a pattern is searched in per step.
const PATTERN_BYTES: usize = 16;

/// Returns the problems of a value with a JSON Schema that the prompt does not declare, such as one of a test.
///
/// ```
/// use serde_json::json;
/// use tympan::turn::schema::value_problems;
///
/// let problems = value_problems(&json!({"required": ["title"]}), &json!({}));
/// assert_eq!(problems, ["`title`: missing"]);
/// ```
pub fn value_problems(schema: &Json, value: &Json) -> Vec<String> {
    run(schema, value, "the value", false)
}

/// Returns the problems of a tool's arguments.
pub(super) fn problems(schema: &Json, value: &Json) -> Vec<String> {
    run(schema, value, "arguments", false)
}

/// Returns the problems of a value that the prompt declares by a JSON Schema.
///
/// Two rules are those of declared properties. An optional property may be null, because providers that enforce a
/// schema return null for a property that is omitted. Undeclared properties are not allowed, unless the schema says
/// otherwise.
pub(super) fn declared_problems(schema: &Json, value: &Json) -> Vec<String> {
    run(schema, value, "the value", true)
}

fn run(schema: &Json, value: &Json, what: &'static str, is_declared: bool) -> Vec<String> {
    let shared = Shared { root: schema, what, is_declared, steps: Cell::new(MAX_STEPS), patterns: RefCell::default() };
    let mut check = Check { shared: &shared, problems: Vec::new() };
    check.value(schema, value, "", 0);
    if shared.steps.get() == 0 {
        check.add("", "too many values to check");
    }
    check.problems
}

/// What all parts of a check share.
struct Shared<'s> {
    root: &'s Json,
    /// What the value is called in messages.
    what: &'static str,
    /// Whether the rules of declared properties apply.
    is_declared: bool,
    /// The number of steps left.
    steps: Cell<usize>,
    /// The compiled patterns; `None` for those that are not supported.
    patterns: RefCell<HashMap<&'s str, Option<Pattern>>>,
}

impl<'s> Shared<'s> {
    /// Counts steps. When none are left, checking stops.
    fn charge(&self, steps: usize) {
        self.steps.set(self.steps.get().saturating_sub(steps));
    }

    /// Returns whether a text matches a pattern. Every text matches a pattern that is not supported.
    fn matches(&self, pattern: &'s str, text: &str) -> bool {
        self.charge(1 + text.len() / PATTERN_BYTES);
        let mut patterns = self.patterns.borrow_mut();
        if !patterns.contains_key(pattern) {
            self.charge(PATTERN_STEPS);
        }
        if self.steps.get() == 0 {
            return true;
        }
        let compiled = patterns.entry(pattern).or_insert_with(|| compile(pattern));
        compiled.as_ref().is_none_or(|compiled| compiled.is_match(text))
    }
}

struct Check<'s, 'c> {
    shared: &'c Shared<'s>,
    problems: Vec<String>,
}

impl<'s> Check<'s, '_> {
    fn add(&mut self, path: &str, problem: impl Display) {
        if self.problems.len() < MAX_PROBLEMS {
            let path = if path.is_empty() { self.shared.what.to_owned() } else { format!("`{path}`") };
            self.problems.push(format!("{path}: {problem}"));
        }
    }

    /// Returns the problems of a value with another schema.
    fn problems_of(&self, schema: &'s Json, value: &Json, path: &str, depth: usize) -> Vec<String> {
        let mut check = Check { shared: self.shared, problems: Vec::new() };
        check.value(schema, value, path, depth + 1);
        check.problems
    }

    fn fits(&self, schema: &'s Json, value: &Json, depth: usize) -> bool {
        self.problems_of(schema, value, "", depth).is_empty()
    }

    fn value(&mut self, schema: &'s Json, value: &Json, path: &str, depth: usize) {
        if depth > MAX_DEPTH || self.shared.steps.get() == 0 {
            return;
        }
        self.shared.charge(1);
        if *schema == Json::Bool(false) {
            return self.add(path, "not allowed");
        }
        let Some(schema) = schema.as_object() else { return };
        if let Some(found) = schema.get("$ref").and_then(Json::as_str).and_then(|name| target(name, self.shared.root)) {
            self.value(found, value, path, depth + 1);
        }
        if schema.get("nullable") == Some(&Json::Bool(true)) && value.is_null() {
            return;
        }
        if let Some(types) = schema.get("type").filter(|types| !is_any_type(value, types)) {
            let found = InputRef::from(value).type_name();
            return self.add(path, format_args!("expected {}, found {found}", names(types)));
        }
        if !self.is_allowed(schema, value) {
            return self.add(path, "not one of the allowed values");
        }
        self.combinations(schema, value, path, depth);
        self.conditions(schema, value, path, depth);
        match value {
            Json::Object(map) => self.members(schema, map, path, depth),
            Json::Array(items) => self.items(schema, items, path, depth),
            Json::String(text) => self.text(schema, text, path),
            Json::Number(_) => self.number(schema, value, path),
            _ => {}
        }
    }

    /// Returns whether a value is one of those that `enum` and `const` list.
    fn is_allowed(&self, schema: &JsonMap, value: &Json) -> bool {
        let listed = schema.get("enum").and_then(Json::as_array);
        let only = schema.get("const");
        let count = listed.map_or(0, Vec::len) + usize::from(only.is_some());
        if count == 0 {
            return listed.is_none();
        }
        self.shared.charge(count.saturating_mul(weight(value)));
        self.shared.steps.get() == 0
            || listed.is_none_or(|listed| listed.iter().any(|one| same(one, value)))
                && only.is_none_or(|only| same(only, value))
    }

    fn members(&mut self, schema: &'s JsonMap, map: &JsonMap, path: &str, depth: usize) {
        let required = schema.get("required").and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
        self.shared.charge(required.len());
        for name in required.iter().filter_map(Json::as_str).filter(|name| !map.contains_key(*name)) {
            self.add(&join(path, name), "missing");
        }
        self.range(schema, ["minProperties", "maxProperties"], map.len(), ["property", "properties"], path);
        let properties = schema.get("properties").and_then(Json::as_object);
        let patterns = schema.get("patternProperties").and_then(Json::as_object);
        let names = schema.get("propertyNames");
        let is_closed = self.shared.is_declared && depth == 0 && !is_open_map(schema);
        for (name, value) in map {
            let declared = properties.and_then(|properties| properties.get(name));
            let path = join(path, name);
            let mut is_declared = declared.is_some();
            if let Some(declared) = declared.filter(|_| !self.is_omitted(required, name, value)) {
                self.value(declared, value, &path, depth + 1);
            }
            for (pattern, declared) in patterns.into_iter().flatten() {
                if self.shared.matches(pattern, name) {
                    is_declared = true;
                    self.value(declared, value, &path, depth + 1);
                }
            }
            if names.is_some_and(|names| !self.fits(names, &Json::String(name.clone()), depth)) {
                self.add(&path, "name not allowed");
            }
            match schema.get("additionalProperties").filter(|_| !is_declared) {
                Some(Json::Bool(false)) => self.add(&path, "not declared"),
                Some(further) => self.value(further, value, &path, depth + 1),
                None if is_closed && !is_declared => self.add(&path, "not declared"),
                None => {}
            }
        }
    }

    /// Returns whether a value stands for an optional property that is omitted.
    fn is_omitted(&self, required: &[Json], name: &str, value: &Json) -> bool {
        self.shared.is_declared && value.is_null() && {
            self.shared.charge(required.len());
            !required.iter().any(|one| one == name)
        }
    }

    fn items(&mut self, schema: &'s JsonMap, items: &[Json], path: &str, depth: usize) {
        self.range(schema, ["minItems", "maxItems"], items.len(), ["item", "items"], path);
        // Before 2020-12, `items` was also the list that is now called `prefixItems`.
        let (first, rest) = match (schema.get("prefixItems"), schema.get("items")) {
            (Some(Json::Array(first)), rest) => (first.as_slice(), rest),
            (None, Some(Json::Array(first))) => (first.as_slice(), schema.get("additionalItems")),
            (_, rest) => (&[][..], rest),
        };
        for (index, item) in items.iter().enumerate() {
            if let Some(declared) = first.get(index).or(rest) {
                self.value(declared, item, &format!("{path}[{index}]"), depth + 1);
            }
        }
        if schema.get("uniqueItems") == Some(&Json::Bool(true)) && !self.are_unique(items) {
            self.add(path, "the items are not unique");
        }
        if let Some(contained) = schema.get("contains") {
            let count = items.iter().filter(|item| self.fits(contained, item, depth)).count();
            let least = schema.get("minContains").and_then(Json::as_u64).unwrap_or(1);
            let most = schema.get("maxContains").and_then(Json::as_u64).unwrap_or(u64::MAX);
            let count = u64::try_from(count).unwrap_or(u64::MAX);
            if self.shared.steps.get() > 0 && !(least..=most).contains(&count) {
                self.add(path, format_args!("{count} items match `contains`"));
            }
        }
    }

    fn are_unique(&self, items: &[Json]) -> bool {
        items.iter().enumerate().all(|(index, item)| {
            self.shared.charge(index.saturating_mul(weight(item)));
            self.shared.steps.get() == 0 || !items[..index].iter().any(|other| same(other, item))
        })
    }

    fn text(&mut self, schema: &'s JsonMap, text: &str, path: &str) {
        if ["minLength", "maxLength"].iter().any(|word| schema.contains_key(*word)) {
            self.shared.charge(text.len() / 64);
            self.range(schema, ["minLength", "maxLength"], text.chars().count(), ["character", "characters"], path);
        }
        if let Some(pattern) = schema.get("pattern").and_then(Json::as_str)
            && !self.shared.matches(pattern, text)
        {
            self.add(path, format_args!("does not match the pattern {}", quoted(pattern)));
        }
    }

    /// Checks a number of things against a minimum and a maximum.
    fn range(&mut self, schema: &JsonMap, [least, most]: [&str; 2], count: usize, what: [&str; 2], path: &str) {
        let bound = |word: &str| schema.get(word).and_then(Json::as_f64);
        #[expect(clippy::cast_precision_loss, reason = "a value has fewer parts than a float can count")]
        let size = count as f64;
        #[expect(clippy::float_cmp, reason = "the bound is a whole number")]
        let what = |bound: f64| what[usize::from(bound != 1.0)];
        if let Some(least) = bound(least).filter(|least| size < *least) {
            self.add(path, format_args!("expected at least {least} {}, found {count}", what(least)));
        }
        if let Some(most) = bound(most).filter(|most| size > *most) {
            self.add(path, format_args!("expected at most {most} {}, found {count}", what(most)));
        }
    }

    fn number(&mut self, schema: &JsonMap, value: &Json, path: &str) {
        use std::cmp::Ordering::{Equal, Greater, Less};
        let flag = |word: &str| schema.get(word) == Some(&Json::Bool(true));
        // In draft 4 and OpenAPI 3.0, exclusive bounds are flags.
        let least_is = if flag("exclusiveMinimum") { "greater than" } else { "of at least" };
        let most_is = if flag("exclusiveMaximum") { "less than" } else { "of at most" };
        let bounds = [
            ("minimum", least_is, Less, flag("exclusiveMinimum")),
            ("maximum", most_is, Greater, flag("exclusiveMaximum")),
            ("exclusiveMinimum", "greater than", Less, true),
            ("exclusiveMaximum", "less than", Greater, true),
        ];
        for (word, relation, wrong, is_exclusive) in bounds {
            if let Some(bound) = schema.get(word).filter(|bound| bound.is_number())
                && let Some(order) = compare(value, bound)
                && (order == wrong || is_exclusive && order == Equal)
            {
                self.add(path, format_args!("expected a number {relation} {bound}"));
            }
        }
        if let Some(step) = schema.get("multipleOf").filter(|step| !is_multiple(value, step)) {
            self.add(path, format_args!("expected a multiple of {step}"));
        }
    }

    fn combinations(&mut self, schema: &'s JsonMap, value: &Json, path: &str, depth: usize) {
        for all in list(schema, "allOf") {
            self.value(all, value, path, depth + 1);
        }
        if schema.contains_key("anyOf") && !list(schema, "anyOf").any(|choice| self.fits(choice, value, depth)) {
            self.explain(schema, "anyOf", value, path, depth);
        }
        if schema.contains_key("oneOf") {
            match list(schema, "oneOf").filter(|choice| self.fits(choice, value, depth)).take(2).count() {
                0 => self.explain(schema, "oneOf", value, path, depth),
                // When no steps are left, everything fits.
                2 if self.shared.steps.get() > 0 => self.add(path, "matches more than one of the allowed schemas"),
                _ => {}
            }
        }
        if let Some(other) = schema.get("not")
            && self.fits(other, value, depth)
            && self.shared.steps.get() > 0
        {
            self.add(path, "not allowed");
        }
    }

    /// Reports a value that matches no choice. If only one choice has the right type, its problems are more helpful.
    fn explain(&mut self, schema: &'s JsonMap, key: &str, value: &Json, path: &str, depth: usize) {
        let mut near = list(schema, key).filter(|choice| is_near(choice, value, self.shared.root));
        match (near.next(), near.next()) {
            (Some(only), None) => self.value(only, value, path, depth + 1),
            (Some(_), Some(_)) | (None, _) => self.add(path, "does not match any of the allowed schemas"),
        }
    }

    fn conditions(&mut self, schema: &'s JsonMap, value: &Json, path: &str, depth: usize) {
        if let Some(condition) = schema.get("if") {
            let branch = if self.fits(condition, value, depth) { "then" } else { "else" };
            if let Some(branch) = schema.get(branch) {
                self.value(branch, value, path, depth + 1);
            }
        }
        let Json::Object(map) = value else { return };
        for (name, needed) in schema.get("dependentRequired").and_then(Json::as_object).into_iter().flatten() {
            let needed = needed.as_array().map_or(&[][..], Vec::as_slice);
            self.shared.charge(1 + needed.len());
            for other in needed.iter().filter_map(Json::as_str).filter(|_| map.contains_key(name)) {
                if !map.contains_key(other) {
                    self.add(&join(path, other), format_args!("missing, although {} is set", quoted(name)));
                }
            }
        }
        for (name, further) in schema.get("dependentSchemas").and_then(Json::as_object).into_iter().flatten() {
            if map.contains_key(name) {
                self.value(further, value, path, depth + 1);
            }
        }
    }
}

fn list<'s>(schema: &'s JsonMap, key: &str) -> impl Iterator<Item = &'s Json> + use<'s> {
    schema.get(key).and_then(Json::as_array).into_iter().flatten()
}

fn is_open_map(schema: &JsonMap) -> bool {
    // Without any declared property, a map may contain anything.
    !schema.contains_key("properties") || is_open(schema)
}

/// Returns whether the type of a value is one that a choice allows, and tags match.
fn is_near(choice: &Json, value: &Json, root: &Json) -> bool {
    let choice = resolved(choice, root);
    let tag_fits = |(name, declared): (&String, &Json)| {
        let tag = declared.get("const").zip(value.get(name));
        tag.is_none_or(|(only, tag)| same(only, tag))
    };
    let tags = choice.get("properties").and_then(Json::as_object).into_iter().flatten();
    choice.get("type").is_some_and(|types| is_any_type(value, types)) && tags.into_iter().all(tag_fits)
}

/// Follows references, and the only schema of `allOf`, within bounds.
fn resolved<'s>(mut schema: &'s Json, root: &'s Json) -> &'s Json {
    for _ in 0..MAX_HOPS {
        let only = match schema.get("allOf").and_then(Json::as_array).map(Vec::as_slice) {
            Some([only]) => Some(only),
            _ => None,
        };
        match reference(schema, root).or(only) {
            Some(next) => schema = next,
            None => break,
        }
    }
    schema
}

/// Returns the number of steps to compare a value.
fn weight(value: &Json) -> usize {
    match value {
        Json::String(text) => 1 + text.len() / 64,
        Json::Array(items) => 1 + items.iter().map(weight).sum::<usize>(),
        Json::Object(map) => 1 + map.iter().map(|(key, value)| key.len() / 64 + weight(value)).sum::<usize>(),
        _ => 1,
    }
}

fn is_any_type(value: &Json, types: &Json) -> bool {
    match types {
        Json::String(name) => is_type(value, name),
        Json::Array(names) => names.iter().filter_map(Json::as_str).any(|name| is_type(value, name)),
        _ => true,
    }
}

fn is_type(value: &Json, name: &str) -> bool {
    match name {
        "string" => value.is_string(),
        // JSON Schema treats 2.0 as an integer.
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    }
}

/// Returns whether two values are equal, treating 2 and 2.0 as equal. The order of keys does not matter.
pub fn same(one: &Json, other: &Json) -> bool {
    match (one, other) {
        (Json::Number(_), Json::Number(_)) => compare(one, other).is_some_and(std::cmp::Ordering::is_eq),
        (Json::Array(one), Json::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Json::Object(one), Json::Object(other)) => {
            let is_same = |(key, value): (&String, &Json)| other.get(key).is_some_and(|other| same(value, other));
            one.len() == other.len() && one.iter().all(is_same)
        }
        _ => one == other,
    }
}

/// Compares two numbers, exactly if both are integers.
fn compare(one: &Json, other: &Json) -> Option<std::cmp::Ordering> {
    let integer = |value: &Json| value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from));
    match (integer(one), integer(other)) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

/// Returns whether a number is a multiple of another. Floats only have to be close to one, because 0.3 is not exactly
/// three times 0.1.
fn is_multiple(value: &Json, step: &Json) -> bool {
    if let (Some(value), Some(step)) = (value.as_i64(), step.as_i64().filter(|step| *step != 0)) {
        return value.checked_rem(step).is_none_or(|rest| rest == 0);
    }
    let (Some(value), Some(step)) = (value.as_f64(), step.as_f64().filter(|step| *step > 0.0)) else { return true };
    let quotient = value / step;
    (quotient - quotient.round()).abs() <= quotient.abs().max(1.0) * 1e-9
}

fn names(types: &Json) -> String {
    let names: Vec<_> = match types {
        Json::Array(names) => names.iter().filter_map(Json::as_str).collect(),
        other => other.as_str().into_iter().collect(),
    };
    names.join(" or ")
}

fn join(path: &str, name: &str) -> String {
    let name = super::context::truncate(name, MAX_QUOTED);
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn quoted(text: &str) -> String {
    let short = super::context::truncate(text, MAX_QUOTED);
    let mut quoted = format!("`{short}");
    let _ = write!(quoted, "{}`", if short.len() < text.len() { "…" } else { "" });
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_schema_says_is_checked() {
        let schema = json!({
            "type": "object",
            "properties": {
                "n": {"type": "integer"},
                "unit": {"enum": ["C", "F"]},
                "tags": {"type": "array", "items": {"type": "string"}},
                "place": {"$ref": "#/$defs/place"},
                "when": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            },
            "required": ["n"],
            "additionalProperties": false,
            "$defs": {"place": {"type": "object", "properties": {"in": {"$ref": "#/$defs/place"}}, "required": ["city"]}},
        });
        let sound = [json!({"n": 1}), json!({"n": 2.0, "unit": "C", "tags": ["a"], "when": null})];
        for value in sound.into_iter().chain([json!({"n": 1, "place": {"city": "x", "in": {"city": "y"}}})]) {
            assert_eq!(problems(&schema, &value), [""; 0], "{value}");
        }
        let wrong = [
            (json!({"n": "1"}), "`n`: expected integer, found a string"),
            (json!({}), "`n`: missing"),
            (json!({"n": 1, "unit": "K"}), "`unit`: not one of the allowed values"),
            (json!({"n": 1, "tags": [1]}), "`tags[0]`: expected string, found a number"),
            (json!({"n": 1, "place": {"city": "x", "in": {}}}), "`place.in.city`: missing"),
            (json!({"n": 1, "when": 5}), "`when`: does not match any of the allowed schemas"),
            (json!({"n": 1, "x": 5}), "`x`: not declared"),
            (json!([]), "arguments: expected object, found a list"),
        ];
        for (value, problem) in wrong {
            assert_eq!(problems(&schema, &value), [problem], "{value}");
        }
    }

    #[test]
    fn circles_end_and_what_is_not_understood_passes() {
        let circle = json!({"$ref": "#", "allOf": [{"$ref": "#/nowhere"}], "type": 7, "pattern": "^a"});
        assert_eq!(problems(&circle, &json!({"a": 1})), [""; 0]);
        let bomb = json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]});
        assert_eq!(problems(&bomb, &json!({})), ["arguments: too many values to check"]);
        assert_eq!(problems(&json!({"properties": {"a": false}}), &json!({"a": 1})), ["`a`: not allowed"]);
    }
}

//! Checks arguments against a JSON Schema.
//!
//! The check covers types, members, items, allowed values and combinations. It ignores keywords that it does not
//! understand, such as patterns; a tool that declares them must check them itself.

use std::cell::Cell;

use serde_json::Value as Json;

use crate::template::input::InputRef;

/// The maximum number of problems to list.
const MAX_PROBLEMS: usize = 20;

/// The maximum number of characters of a name to quote.
const MAX_QUOTED: usize = 40;

/// The maximum depth. References can be circular.
const MAX_DEPTH: usize = 64;

/// The maximum number of steps. Circular references can also branch, and the schema may come from a malicious server.
const MAX_STEPS: usize = 200_000;

/// Returns the problems of a value.
pub(super) fn problems(schema: &Json, value: &Json) -> Vec<String> {
    let steps = Cell::new(MAX_STEPS);
    let mut check = Check { root: schema, steps: &steps, problems: Vec::new() };
    check.value(schema, value, "", 0);
    if steps.get() == 0 {
        check.add("", "too many values to check");
    }
    check.problems
}

struct Check<'s, 'c> {
    root: &'s Json,
    /// The number of steps left.
    steps: &'c Cell<usize>,
    problems: Vec<String>,
}

impl<'s> Check<'s, '_> {
    fn add(&mut self, path: &str, problem: impl std::fmt::Display) {
        if self.problems.len() < MAX_PROBLEMS {
            let path = if path.is_empty() { "arguments".to_owned() } else { format!("`{path}`") };
            self.problems.push(format!("{path}: {problem}"));
        }
    }

    /// Counts steps. When none are left, checking stops.
    fn charge(&self, steps: usize) {
        self.steps.set(self.steps.get().saturating_sub(steps));
    }

    fn value(&mut self, schema: &'s Json, value: &Json, path: &str, depth: usize) {
        let left = self.steps.get();
        if depth > MAX_DEPTH || left == 0 {
            return;
        }
        self.charge(1);
        if *schema == Json::Bool(false) {
            return self.add(path, "not allowed");
        }
        if let Some(target) = schema.get("$ref").and_then(Json::as_str).and_then(|name| self.target(name)) {
            self.value(target, value, path, depth + 1);
        }
        if let Some(types) = schema.get("type").filter(|types| !is_any_type(value, types)) {
            return self
                .add(path, format_args!("expected {}, found {}", names(types), InputRef::from(value).type_name()));
        }
        if let Some(allowed) = schema.get("enum").and_then(Json::as_array) {
            self.charge(allowed.len().saturating_mul(weight(value)));
        }
        let is_listed =
            |allowed: &Json| allowed.as_array().is_none_or(|allowed| allowed.iter().any(|one| same(one, value)));
        if self.steps.get() == 0 {
            return;
        }
        if !schema.get("enum").is_none_or(is_listed) || schema.get("const").is_some_and(|only| !same(only, value)) {
            return self.add(path, "not one of the allowed values");
        }
        self.combinations(schema, value, path, depth);
        match value {
            Json::Object(map) => self.members(schema, map, path, depth),
            Json::Array(items) => {
                let declared = schema.get("items").filter(|items| items.is_object() || items.is_boolean());
                for (index, item) in items.iter().enumerate() {
                    if let Some(declared) = declared {
                        self.value(declared, item, &format!("{path}[{index}]"), depth + 1);
                    }
                }
            }
            _ => {}
        }
    }

    fn members(&mut self, schema: &'s Json, map: &serde_json::Map<String, Json>, path: &str, depth: usize) {
        let required = schema.get("required").and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
        self.charge(required.len());
        for name in required.iter().filter_map(Json::as_str).filter(|name| !map.contains_key(*name)) {
            self.add(&join(path, name), "missing");
        }
        let properties = schema.get("properties").and_then(Json::as_object);
        // With `patternProperties`, undeclared members may be allowed by a pattern, which is not checked here.
        let others = schema.get("additionalProperties").filter(|_| schema.get("patternProperties").is_none());
        for (name, value) in map {
            match (properties.and_then(|properties| properties.get(name)), others) {
                (Some(declared), _) => self.value(declared, value, &join(path, name), depth + 1),
                (None, Some(Json::Bool(false))) => self.add(&join(path, name), "not declared"),
                (None, Some(declared)) => self.value(declared, value, &join(path, name), depth + 1),
                (None, None) => {}
            }
        }
    }

    fn combinations(&mut self, schema: &'s Json, value: &Json, path: &str, depth: usize) {
        for all in list(schema, "allOf") {
            self.value(all, value, path, depth + 1);
        }
        for key in ["anyOf", "oneOf"] {
            let mut choices = list(schema, key).peekable();
            let (root, steps) = (self.root, self.steps);
            let fits = |choice: &'s Json| {
                let mut check = Check { root, steps, problems: Vec::new() };
                check.value(choice, value, path, depth + 1);
                check.problems.is_empty()
            };
            if choices.peek().is_some() && !choices.any(fits) {
                self.add(path, "does not match any of the allowed schemas");
            }
        }
    }

    /// Resolves a reference within the schema.
    fn target(&self, name: &str) -> Option<&'s Json> {
        self.root.pointer(name.strip_prefix('#')?)
    }
}

fn list<'s>(schema: &'s Json, key: &str) -> impl Iterator<Item = &'s Json> + use<'s> {
    schema.get(key).and_then(Json::as_array).into_iter().flatten()
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

/// Returns whether two values are equal, treating 2 and 2.0 as equal.
fn same(one: &Json, other: &Json) -> bool {
    one == other || one.is_number() && other.is_number() && one.as_f64() == other.as_f64()
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

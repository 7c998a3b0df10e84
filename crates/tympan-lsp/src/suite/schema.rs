//! What the JSON Schema of test files says about a path: the keys of a map, their descriptions, and the allowed words.

use std::sync::LazyLock;

use serde_json::Value as Json;
use tympan_core::format::test_file::SCHEMA;

use crate::keys::ITEM;

static ROOT: LazyLock<Json> = LazyLock::new(|| serde_json::from_str(SCHEMA).unwrap_or_default());

/// How many references and alternatives are followed. The schema is not recursive.
const MAX_STEPS: usize = 20;

/// A key that a map can have.
pub(crate) struct SchemaKey {
    pub(crate) name: &'static str,
    pub(crate) about: Option<&'static str>,
}

/// Returns the keys that a map at this path can have.
pub(crate) fn keys(path: &[&str]) -> Vec<SchemaKey> {
    let schemas = at(path).into_iter();
    let properties = schemas.filter_map(|schema| schema.get("properties")?.as_object()).flatten();
    let key = |(name, schema): (&'static String, &'static Json)| SchemaKey { name, about: description(schema) };
    properties.map(key).collect()
}

/// Returns the description of the key at the end of a path.
pub(crate) fn about(path: &[&str]) -> Option<&'static str> {
    let (name, parent) = path.split_last()?;
    at(parent).into_iter().find_map(|schema| description(schema.get("properties")?.get(name)?))
}

/// Returns the words that a value at this path can be.
pub(crate) fn words(path: &[&str]) -> Vec<&'static str> {
    let mut found = Vec::new();
    for schema in at(path) {
        let listed = schema.get("enum").and_then(Json::as_array).into_iter().flatten();
        found.extend(listed.filter_map(Json::as_str));
        if type_of(schema) == "boolean" {
            found.extend(["true", "false"]);
        }
    }
    found
}

/// Returns the schemas of the value at a path: several if it can have several forms.
fn at(path: &[&str]) -> Vec<&'static Json> {
    let mut schemas = alternatives(&ROOT);
    for key in path {
        let inner = |schema: &'static Json| match *key {
            ITEM => schema.get("items"),
            key => schema.get("properties").and_then(|properties| properties.get(key)),
        };
        schemas = schemas.into_iter().filter_map(inner).flat_map(alternatives).collect();
    }
    schemas
}

/// Returns the forms that a value can have, without references.
fn alternatives(schema: &'static Json) -> Vec<&'static Json> {
    let (mut left, mut found) = (vec![schema], Vec::new());
    for _ in 0..MAX_STEPS {
        let Some(schema) = left.pop() else { break };
        match schema.get("anyOf").and_then(Json::as_array) {
            Some(forms) => left.extend(forms.iter().rev()),
            None => match referenced(schema) {
                Some(target) => left.push(target),
                None => found.push(schema),
            },
        }
    }
    found
}

fn referenced(schema: &Json) -> Option<&'static Json> {
    ROOT.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)
}

/// Returns the description of a value: its own or, if it has none, that of what it refers to.
fn description(schema: &'static Json) -> Option<&'static str> {
    let own = schema.get("description").and_then(Json::as_str);
    own.or_else(|| referenced(schema)?.get("description")?.as_str())
}

fn type_of(schema: &Json) -> &str {
    schema.get("type").and_then(Json::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &[&str]) -> Vec<&'static str> {
        keys(path).into_iter().map(|key| key.name).collect()
    }

    #[test]
    fn keys_and_words_follow_references_and_alternatives() {
        assert_eq!(names(&[]), ["prompt", "cassettes", "defaults", "cases"]);
        assert_eq!(names(&["cases", ITEM, "expect", ITEM, "share"]), ["input", "in", "min", "max"]);
        assert_eq!(names(&["cases", ITEM, "expect", ITEM, "tool_calls", "include", ITEM]), ["name", "arguments"]);
        assert_eq!(words(&["cases", ITEM, "expect", ITEM, "message", "in"])[..2], ["system", "developer"]);
        assert_eq!(words(&["defaults", "guard"]), ["true", "false"]);
        assert!(names(&["cases", ITEM, "inputs"]).is_empty() && names(&["nothing", ITEM]).is_empty());
    }

    #[test]
    fn every_key_of_a_case_and_every_assertion_has_a_description() {
        let case = ["cases", ITEM];
        for path in [&case[..], &[case[0], case[1], "expect", ITEM]] {
            for key in keys(path) {
                // The description of an assertion about texts is that of its schema.
                assert!(key.about.is_some() || key.name == "finish_reason", "{}", key.name);
            }
        }
    }
}

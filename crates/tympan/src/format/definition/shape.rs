//! Whether a document has the shape that the schema says.
//!
//! The rules come from the schema alone, so that nothing here repeats it. Only the keywords that it uses are known; a
//! test fails when it begins to use another.

use serde_json::Value as Json;

use super::super::report::{Report, error, guess};
use super::super::yaml::{Entry, Node, Value};
use crate::diagnostic::Diagnostic;
use crate::error::Kind;
use crate::source::Span;

/// Reports everything about a document that does not fit a schema.
pub(super) fn check(schema: &Json, root: &Node<'_>, report: &mut Report) {
    Checker { schema, report }.check(schema, root, "");
}

struct Checker<'a> {
    schema: &'a Json,
    report: &'a mut Report,
}

impl<'a> Checker<'a> {
    /// Checks a value that stands at a path such as `variables.name.type`.
    fn check(&mut self, schema: &'a Json, node: &Node<'_>, path: &str) {
        let schema = self.resolve(schema);
        if let Some(branches) = schema["anyOf"].as_array() {
            return self.check_any(branches, node, path);
        }
        if !is_of_type(schema, node) {
            let expected = schema["type"].as_str().map(in_words).unwrap_or_default();
            return self.wrong(node, path, expected);
        }
        match &node.value {
            Value::String(text) => self.check_enum(schema, text, node, path),
            Value::List(items) => self.check_list(schema, items, node.span, path),
            Value::Map(entries) => self.check_map(schema, entries, node.span, path),
            _ => {}
        }
    }

    /// One of several shapes: the one whose type fits says what is wrong.
    fn check_any(&mut self, branches: &'a [Json], node: &Node<'_>, path: &str) {
        let resolved: Vec<_> = branches.iter().map(|branch| self.resolve(branch)).collect();
        match resolved.iter().find(|branch| is_of_type(branch, node)) {
            Some(branch) => self.check(branch, node, path),
            None => {
                let expected: Vec<_> = resolved.iter().filter_map(|branch| branch["type"].as_str()).collect();
                let expected: Vec<_> = expected.into_iter().map(in_words).collect();
                self.wrong(node, path, &expected.join(" or "));
            }
        }
    }

    fn check_enum(&mut self, schema: &Json, text: &str, node: &Node<'_>, path: &str) {
        let Some(allowed) = schema["enum"].as_array() else { return };
        let allowed: Vec<_> = allowed.iter().filter_map(Json::as_str).collect();
        if allowed.contains(&text) {
            return;
        }
        let found = invalid(node.span, format_args!("`{path}` cannot be `{}`", node.quote()));
        let found = found.with_help(format!("write one of {}", quoted(&allowed)));
        self.report.push(match guess(text, allowed) {
            Some(meant) => found.with_fix(meant),
            None => found,
        });
    }

    fn check_list(&mut self, schema: &'a Json, items: &[Node<'_>], span: Span, path: &str) {
        if schema["minItems"].as_u64().is_some_and(|least| (items.len() as u64) < least) {
            self.report.push(invalid(span, format_args!("`{path}` is empty")).with_help("name at least one"));
        }
        for (index, item) in items.iter().enumerate() {
            self.check(&schema["items"], item, &format!("{path}[{index}]"));
        }
    }

    fn check_map(&mut self, schema: &'a Json, entries: &[Entry<'_>], span: Span, path: &str) {
        for required in schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str) {
            if !entries.iter().any(|entry| entry.key == required) {
                self.missing(self.resolve(&schema["properties"][required]), &join(path, required), span);
            }
        }
        let refused = schema["propertyNames"]["not"]["const"].as_str();
        for entry in entries {
            let path = join(path, &entry.key);
            if refused == Some(&entry.key) {
                let finding = invalid(entry.key_span, format_args!("`{path}` is not allowed: the name is taken"));
                self.report.push(finding.with_help("the body at the top is the default variant: rename this one"));
            }
            match schema["properties"].get(entry.key.as_ref()) {
                Some(schema) => self.check(schema, &entry.value, &path),
                None if schema["additionalProperties"] == false => self.unknown(schema, entry, &path),
                None if schema["additionalProperties"].is_object() => {
                    self.check(&schema["additionalProperties"], &entry.value, &path);
                }
                None => {}
            }
        }
    }

    fn missing(&mut self, schema: &Json, path: &str, span: Span) {
        let finding = invalid(Span::new(span.start, span.start), format_args!("`{path}` is missing"));
        let help = schema["description"].as_str().map(|description| format!("add it: {}", first_lower(description)));
        let allowed: Vec<_> = schema["enum"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
        self.report.push(match help {
            Some(help) if !allowed.is_empty() => finding.with_help(format!("{help} One of {}", quoted(&allowed))),
            Some(help) => finding.with_help(help),
            None => finding,
        });
    }

    fn unknown(&mut self, schema: &Json, entry: &Entry<'_>, path: &str) {
        let known: Vec<_> = schema["properties"].as_object().into_iter().flat_map(|map| map.keys()).collect();
        let known: Vec<_> = known.into_iter().map(String::as_str).collect();
        let finding = invalid(entry.key_span, format_args!("`{path}` is not a key that is known here"));
        self.report.push(match guess(&entry.key, known.iter().copied()) {
            Some(meant) => finding.with_help(format!("did you mean `{meant}`?")).with_fix(meant),
            None if known.contains(&"metadata") => {
                finding.with_help(format!("the keys are {}; `metadata` takes any others", quoted(&known)))
            }
            None => finding.with_help(format!("the keys are {}", quoted(&known))),
        });
    }

    fn wrong(&mut self, node: &Node<'_>, path: &str, expected: &str) {
        let what = if path.is_empty() { "a prompt definition".to_owned() } else { format!("`{path}`") };
        let finding = invalid(node.span, format_args!("{what} has to be {expected}, but this is {}", node.describe()));
        self.report.push(match node.value {
            Value::Null => finding.with_help("give it a value, or remove it"),
            Value::Number(_) | Value::Bool(_) if expected == "text" => finding.with_help("put it in quotes"),
            _ => finding,
        });
    }

    /// What a `$ref` refers to.
    fn resolve(&self, schema: &'a Json) -> &'a Json {
        match schema["$ref"].as_str().and_then(|target| target.strip_prefix('#')) {
            Some(pointer) => self.schema.pointer(pointer).unwrap_or(schema),
            None => schema,
        }
    }
}

fn is_of_type(schema: &Json, node: &Node<'_>) -> bool {
    match schema["type"].as_str() {
        Some("string") => matches!(node.value, Value::String(_)),
        Some("boolean") => matches!(node.value, Value::Bool(_)),
        Some("array") => matches!(node.value, Value::List(_)),
        Some("object") => matches!(node.value, Value::Map(_)),
        _ => true,
    }
}

fn in_words(name: &str) -> &'static str {
    match name {
        "string" => "text",
        "boolean" => "true or false",
        "array" => "a list",
        _ => "a map",
    }
}

fn invalid(span: Span, details: impl std::fmt::Display) -> Diagnostic {
    error(Kind::InvalidDefinition, span, details)
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn first_lower(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keywords that say something to people only.
    const NOTES: [&str; 6] = ["$schema", "$id", "title", "description", "default", "$defs"];
    const KNOWN: [&str; 12] = [
        "$ref",
        "anyOf",
        "type",
        "enum",
        "items",
        "minItems",
        "required",
        "properties",
        "additionalProperties",
        "propertyNames",
        "not",
        "const",
    ];

    fn keywords(schema: &Json, found: &mut Vec<String>) {
        let Json::Object(map) = schema else { return };
        for (key, value) in map {
            found.push(key.clone());
            match (key.as_str(), value) {
                ("properties" | "$defs", Json::Object(named)) => {
                    named.values().for_each(|schema| keywords(schema, found));
                }
                ("default", _) => {}
                (_, Json::Array(items)) => items.iter().for_each(|schema| keywords(schema, found)),
                _ => keywords(value, found),
            }
        }
    }

    #[test]
    fn every_keyword_of_the_schema_is_known_here() {
        let schema: Json = serde_json::from_str(super::super::SCHEMA).expect("the schema is JSON");
        let mut found = Vec::new();
        keywords(&schema, &mut found);
        found.retain(|keyword| !KNOWN.contains(&keyword.as_str()) && !NOTES.contains(&keyword.as_str()));
        assert_eq!(found, Vec::<String>::new());
    }
}

//! JSON Schemas that are not valid.

use serde_json::Value as Json;
use tympan_core::diagnostic::{Severity, guess};
use tympan_core::format::outline::Field;
use tympan_core::text::pattern::Pattern;
use tympan_core::text::source::Span;

use crate::finding::{Finding, Findings, Fix};
use crate::rule::{FixAvailability, Group, Rule};
use crate::suite::SuiteContext;

pub(crate) static RULE: Rule = Rule {
    code: "TY511",
    name: "invalid_test_schema",
    group: Group::Tests,
    severity: Severity::Error,
    fix: FixAvailability::Sometimes,
    summary: "Reports a `schema` of an assertion that is not a JSON Schema.",
    why: "A part of the schema has no effect, so that values pass which should not.",
    example: "cases:\n  - expect:\n      - result: {schema: {type: sting}}",
    how_to_fix: "Correct the keyword that the message names.",
    check: None,
};

const TYPES: [&str; 7] = ["string", "integer", "number", "boolean", "array", "object", "null"];
/// The keywords whose values are schemas.
const SCHEMAS: [&str; 10] = [
    "items",
    "additionalProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
];
/// The keywords whose values are maps of schemas.
const NAMED: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
/// The keywords whose values are lists of schemas.
const LISTS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
const NUMBERS: [&str; 5] = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
const SIZES: [&str; 8] =
    ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains"];

pub(super) fn check(context: &SuiteContext<'_>, findings: &mut Findings) {
    for written in context.assertions() {
        let Some(field) = written.field.get("schema") else { continue };
        let root = field.to_json();
        Checker { context, root: &root, findings }.schema(field, &root);
    }
}

struct Checker<'c, 't> {
    context: &'c SuiteContext<'t>,
    root: &'c Json,
    findings: &'c mut Findings,
}

impl Checker<'_, '_> {
    fn schema(&mut self, field: Field<'_>, schema: &Json) {
        match schema {
            Json::Object(_) => {}
            Json::Bool(_) => return,
            _ => return self.report(field.span, "expected a schema: a map, `true` or `false`".to_owned()),
        }
        for entry in field.entries() {
            let Some((key, value)) = entry.key.and_then(|key| Some((key, schema.get(key)?))) else { continue };
            self.keyword(key, entry, value);
        }
    }

    fn keyword(&mut self, key: &str, field: Field<'_>, value: &Json) {
        let is_texts = || value.as_array().is_some_and(|items| items.iter().all(Json::is_string));
        match key {
            "type" => self.types(field, value),
            "$ref" => self.reference(field, value),
            "enum" if !value.is_array() => self.expected(key, "a list of values", field),
            "required" if !is_texts() => self.expected(key, "a list of names", field),
            "pattern" => self.pattern(field, value),
            // Older schemas have a list for the first items.
            "items" if value.is_array() => self.list(field, value),
            key if SCHEMAS.contains(&key) => self.schema(field, value),
            key if NAMED.contains(&key) && !value.is_object() => self.expected(key, "a map of schemas", field),
            key if NAMED.contains(&key) => {
                for entry in field.entries() {
                    if let Some(inner) = entry.key.and_then(|key| value.get(key)) {
                        self.schema(entry, inner);
                    }
                }
            }
            key if LISTS.contains(&key) && value.as_array().is_none_or(Vec::is_empty) => {
                self.expected(key, "a list of schemas", field);
            }
            key if LISTS.contains(&key) => self.list(field, value),
            // Older schemas have `true` for the exclusive bounds.
            key if NUMBERS.contains(&key) && !(value.is_number() || value.is_boolean()) => {
                self.expected(key, "a number", field);
            }
            key if SIZES.contains(&key) && value.as_u64().is_none() => {
                self.expected(key, "an integer that is not negative", field);
            }
            _ => {}
        }
    }

    fn list(&mut self, field: Field<'_>, value: &Json) {
        for (item, inner) in field.items().zip(value.as_array().into_iter().flatten()) {
            self.schema(item, inner);
        }
    }

    fn types(&mut self, field: Field<'_>, value: &Json) {
        let is_one = value.is_string();
        if !is_one && value.as_array().is_none_or(Vec::is_empty) {
            return self.expected("type", "the name of a type, or a list of names", field);
        }
        let names: Vec<_> = if is_one { vec![field] } else { field.items().collect() };
        for field in names {
            let Some(name) = field.text() else {
                self.expected("type", "the name of a type", field);
                continue;
            };
            if TYPES.contains(&name) {
                continue;
            }
            let known: Vec<_> = TYPES.iter().map(|name| format!("`{name}`")).collect();
            let mut finding = Finding::new(&RULE, field.span, format!("invalid schema: there is no type `{name}`"))
                .with_help(format!("expected one of {}", known.join(", ")));
            if let (Some(near), Some(span)) = (guess(name, TYPES), self.context.exact(field.span, name)) {
                finding.fix = Some(Fix::needs_review(span, near));
            }
            self.findings.push(finding);
        }
    }

    fn reference(&mut self, field: Field<'_>, value: &Json) {
        let Some(target) = value.as_str() else { return self.expected("$ref", "a reference", field) };
        let is_known = target.strip_prefix('#').is_none_or(|pointer| {
            // An anchor is not a pointer.
            !(pointer.is_empty() || pointer.starts_with('/'))
                || pointer.contains('%')
                || self.root.pointer(pointer).is_some()
        });
        if !is_known {
            self.report(field.span, format!("`$ref`: the schema has no `{target}`"));
        }
    }

    fn pattern(&mut self, field: Field<'_>, value: &Json) {
        match value.as_str() {
            None => self.expected("pattern", "a regular expression", field),
            Some(pattern) => {
                if let Err(problem) = Pattern::new(pattern, false) {
                    self.report(field.span, format!("`pattern`: {problem}"));
                }
            }
        }
    }

    fn expected(&mut self, key: &str, expected: &str, field: Field<'_>) {
        self.report(field.span, format!("`{key}`: expected {expected}"));
    }

    fn report(&mut self, span: Span, problem: String) {
        self.findings.push(Finding::new(&RULE, span, format!("invalid schema: {problem}")));
    }
}

//! Defaults and examples that do not match their declarations.

use std::collections::HashMap;

use tympan_core::diagnostic::Severity;
use tympan_core::format::outline::Field;
use tympan_core::prompt::kinds::mismatches;
use tympan_core::spec::schema::Property;

use crate::context::{Context, is_reference};
use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY110",
    name: "invalid_default",
    group: Group::Correctness,
    severity: Severity::Error,
    fix: FixAvailability::Never,
    summary: "Reports a default, an example or a sample that does not match the kind or the enum of its declaration. \
        Examples are warnings.",
    why: "A default of the wrong kind is rendered as it is. A wrong example misleads readers and breaks tests.",
    example: "inputs:\n  - {name: week, kind: integer, default: abc}",
    how_to_fix: "Write a value of the declared kind, or change the declaration.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    for section in context.sections() {
        let written = context.written(section);
        for property in section.properties {
            let written = written.get(property.name.as_str()).copied();
            check_property(context, section.noun, property, written, findings);
        }
    }
}

fn check_property(
    context: &Context<'_>,
    noun: &str,
    property: &Property,
    written: Option<Field<'_>>,
    findings: &mut Findings,
) {
    // A JSON Schema may allow more than the kind says.
    if property.schema.is_some() {
        return;
    }
    let values = [
        (property.default.as_ref(), "default", &["default"][..], Severity::Error),
        (property.example.as_ref(), "example", &["example", "sample"], Severity::Warning),
    ];
    for (value, what, keys, severity) in values {
        let Some(value) = value.filter(|value| !value.is_null()) else { continue };
        let field = keys.iter().find_map(|key| written?.get(key));
        // Older files have the examples of all inputs in one map.
        let field = field.or_else(|| context.outline.get(&["sample", &property.name]).filter(|_| what == "example"));
        if is_unknown(field, value) {
            continue;
        }
        let span = field.map(|field| field.span).or(property.span);
        findings.extend(mismatches(property, value).into_iter().map(|found| {
            let message =
                format!("{what} of {noun} `{}`: expected {}, found {}", found.path, found.expected, found.found);
            let help = "write a value of the declared kind, or change the declaration";
            Finding::new(&RULE, span, message).with_severity(severity).with_help(help)
        }));
    }
    check_nested(context, property, written, findings);
}

/// Checks the properties of a map and the items of a list.
fn check_nested(context: &Context<'_>, property: &Property, written: Option<Field<'_>>, findings: &mut Findings) {
    let declarations = written.and_then(|written| written.get("properties")).into_iter().flat_map(Field::declarations);
    let declarations: HashMap<_, _> = declarations.collect();
    for nested in &property.properties {
        let written = declarations.get(nested.name.as_str()).copied();
        check_property(context, "property", nested, written, findings);
    }
    if let Some(items) = &property.items {
        let written = written.and_then(|written| written.get("items"));
        check_nested(context, items, written, findings);
    }
}

/// Returns whether a value comes from the environment or from a file.
fn is_unknown(field: Option<Field<'_>>, value: &serde_json::Value) -> bool {
    field.and_then(Field::text).or(value.as_str()).is_some_and(is_reference)
}

//! Parses the declarations of inputs and outputs.

use std::collections::HashSet;

use serde_json::Value as Json;

use super::element::{Element, Text, Yaml};
use crate::diagnostic::{Diagnostic, guess};
use crate::error::Kind;
use crate::format::interpolation::is_name;
use crate::format::report::{Report, error};
use crate::format::yaml::scalar;
use crate::json::JsonMap;
use crate::spec::schema::{Property, PropertyKind};

/// The type names that are accepted, and their kinds.
const TYPES: [(&str, PropertyKind); 11] = [
    ("string", PropertyKind::String),
    ("integer", PropertyKind::Integer),
    ("number", PropertyKind::Float),
    ("boolean", PropertyKind::Boolean),
    ("array", PropertyKind::Array),
    ("object", PropertyKind::Object),
    ("str", PropertyKind::String),
    ("int", PropertyKind::Integer),
    ("float", PropertyKind::Float),
    ("bool", PropertyKind::Boolean),
    ("list", PropertyKind::Array),
];

pub(super) fn read_inputs(element: &Element, report: &mut Report) -> Vec<Property> {
    let inputs = read_all(element, "input", report);
    for input in inputs.iter().filter(|input| !is_name(&input.name)) {
        let message = format!("`{}` is not a valid input name", input.name);
        let span = input.span.unwrap_or(element.span);
        let finding = error(Kind::InvalidDirective, span, message);
        report.push(finding.with_help("use only letters, digits, `_` and `-`"));
    }
    inputs
}

pub(super) fn read_outputs(element: &Element, report: &mut Report) -> Vec<Property> {
    read_all(element, "output", report)
}

/// Reads declarations: elements with this name, a list, or a map by name.
fn read_all(element: &Element, what: &str, report: &mut Report) -> Vec<Property> {
    let mut properties: Vec<Property> = Vec::new();
    let mut names = HashSet::new();
    for child in &element.children {
        let is_item = child.name.is_empty() || (child.name == what && !element.is_yaml());
        if !is_item && !element.is_yaml() {
            let message = format!("expected an `<{what}>` element, found `<{}>`, which is ignored", child.name);
            let finding = Diagnostic::warning("unknown_element", child.span, message);
            report.push(finding.with_help(format!("write `<{what} name=\"…\">`")));
            continue;
        }
        let Some(property) = read_property(child, is_item, what, report) else { continue };
        if !names.insert(property.name.clone()) {
            let span = property.span.unwrap_or(child.span);
            let message = format!("{what} `{}` is declared twice", property.name);
            report.push(error(Kind::DuplicateName, span, message).with_help("rename or remove one of the two"));
            continue;
        }
        properties.push(property);
    }
    properties
}

fn read_property(element: &Element, is_item: bool, what: &str, report: &mut Report) -> Option<Property> {
    let own_name = Text { text: &element.name, span: element.span };
    let name = match element.field("name") {
        Some(name) if is_item => Some(name),
        // A list may consist of names only.
        _ if is_item && element.is_yaml() && !element.text.is_empty() => Some(element.as_text()),
        _ if is_item => None,
        _ => Some(own_name),
    };
    let Some(name) = name.filter(|name| !name.text.trim().is_empty()) else {
        let finding = error(Kind::InvalidDirective, element.span, format_args!("this {what} has no name"));
        report.push(finding.with_help(format!("add one, as in `<{what} name=\"path\">`")));
        return None;
    };
    let mut property = Property::new(name.text.trim(), read_kind(element, report));
    property.span = Some(name.span);
    property.description = description(element, is_item);
    property.required = element.field("required").and_then(|field| read_required(field, report));
    property.default = read_default(element, &property, report);
    property.extra = extra(element);
    Some(property)
}

/// Returns the description: a separate field, the text of an element or, in a map, the value.
fn description(element: &Element, is_item: bool) -> Option<String> {
    let has_text = !element.is_yaml() || !is_item;
    let text = Some(element.text.clone()).filter(|_| has_text && element.children.is_empty());
    // Like Python, treat false, null and zero as no description.
    let is_false = matches!(&element.yaml, Some(Yaml::Scalar(Json::Bool(false) | Json::Null)))
        || matches!(&element.yaml, Some(Yaml::Scalar(json)) if json.as_f64() == Some(0.0));
    element.text_of("description").or(text.filter(|text| !text.is_empty() && !is_false))
}

fn read_kind(element: &Element, report: &mut Report) -> PropertyKind {
    let Some(field) = element.field("type") else { return PropertyKind::String };
    let name = field.text.trim();
    if let Some((_, kind)) = TYPES.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
        return kind;
    }
    let message = format!("unknown type `{name}`, treated as a string");
    let types: Vec<_> = TYPES[..6].iter().map(|(name, _)| *name).collect();
    let finding = Diagnostic::warning("unknown_type", field.span, message);
    let known = format!("known types: {}", types.join(", "));
    report.push(match guess(name, types) {
        Some(meant) => finding.with_help(format!("did you mean `{meant}`? {known}")),
        None => finding.with_help(known),
    });
    PropertyKind::String
}

fn read_required(field: Text<'_>, report: &mut Report) -> Option<bool> {
    match field.text.trim() {
        "true" | "True" => Some(true),
        "false" | "False" | "" => Some(false),
        _ => {
            let finding = error(Kind::InvalidDirective, field.span, "`required`: expected `true` or `false`");
            report.push(finding);
            None
        }
    }
}

/// Reads the default value and converts it to the declared type.
fn read_default(element: &Element, property: &Property, report: &mut Report) -> Option<Json> {
    let written = element.child("default").filter(|child| child.is_yaml()).map(Element::to_json);
    let field = element.field("default");
    let span = field.map(|field| field.span).or(element.child("default").map(|child| child.text_span))?;
    let value = match written {
        Some(Json::Null) => return None,
        Some(Json::String(text)) => of_kind(&text, property.kind),
        Some(value) => Some(value).filter(|value| matches_kind(value, property.kind)),
        None => of_kind(field?.text, property.kind),
    };
    if value.is_none() {
        let kind = property.kind.as_str();
        let message = format!("default of `{}`: expected a value of type {kind}", property.name);
        report.push(error(Kind::InvalidDirective, span, message).with_help("change the default or the type"));
    }
    value
}

/// Converts text to a value of this kind, if possible.
pub(crate) fn of_kind(text: &str, kind: PropertyKind) -> Option<Json> {
    let trimmed = text.trim();
    let value = match kind {
        PropertyKind::String => return Some(text.into()),
        PropertyKind::Integer | PropertyKind::Float => scalar::number(trimmed).map(Json::Number),
        PropertyKind::Boolean => match trimmed {
            "true" | "True" => Some(true.into()),
            "false" | "False" => Some(false.into()),
            _ => None,
        },
        _ => serde_json::from_str(trimmed).ok(),
    };
    value.filter(|value| matches_kind(value, kind))
}

/// Returns whether a value is of this kind.
pub(crate) fn matches_kind(value: &Json, kind: PropertyKind) -> bool {
    match kind {
        PropertyKind::String => value.is_string(),
        PropertyKind::Integer => value.is_i64() || value.is_u64(),
        PropertyKind::Float => value.is_number(),
        PropertyKind::Boolean => value.is_boolean(),
        PropertyKind::Array => value.is_array(),
        PropertyKind::Object => value.is_object(),
        _ => true,
    }
}

/// Collects unknown attributes and children, unchanged.
fn extra(element: &Element) -> JsonMap {
    const KNOWN: [&str; 5] = ["name", "type", "required", "default", "description"];
    let attributes = element.attributes.iter().map(|attribute| (&attribute.name, Json::from(attribute.value.clone())));
    let children = element.children.iter().map(|child| (&child.name, child.to_json()));
    let unknown = attributes.chain(children).filter(|(name, _)| !KNOWN.contains(&name.as_str()) && !name.is_empty());
    unknown.map(|(name, value)| (name.clone(), value)).collect()
}

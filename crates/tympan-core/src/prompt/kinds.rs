//! Checks the values of inputs against the kinds and enums that a prompt declares, and their names.
//!
//! A value matches a kind if it can be read as that kind: `"3"` and `3.0` are integers, and any number is text. The
//! check never changes a value, so that a prompt renders the same text with and without it.

use std::collections::HashSet;
use std::fmt;

use serde_json::Value as Json;

use super::Prompt;
use crate::diagnostic::{Diagnostic, guess_name, short};
use crate::error::{Error, Kind, Result};
use crate::spec::BindingValue;
use crate::spec::schema::{Property, PropertyKind};
use crate::template::input::{InputMap, InputRef, View};

/// The maximum number of mismatches, or of unknown inputs, to report.
const MAX_FINDINGS: usize = 20;

/// Up to this many inputs, names are searched linearly, without building a set.
const MAX_SEARCHED: usize = 16;

/// The keys of a map that contain the content of an image, file or audio input.
const MEDIA_KEYS: [&str; 4] = ["value", "source", "url", "data"];

/// What happens if the value of an input does not match its declaration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KindCheck {
    /// Values are not checked, as the specification requires by default.
    #[default]
    Off,
    /// The host reports mismatches as warnings. [`Prompt::kind_warnings`] returns them.
    Warn,
    /// Rendering fails before it starts.
    Error,
}

impl KindCheck {
    /// Every setting.
    pub const ALL: [Self; 3] = [Self::Off, Self::Warn, Self::Error];

    /// Returns the name that options use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }

    /// Returns the setting with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|check| check.as_str() == name)
    }
}

/// A value that does not match its declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The name of the input, and the path to the value in it: `user.ages[0]`.
    pub path: String,
    /// What the declaration allows.
    pub expected: String,
    /// What was found. It never quotes the value.
    pub found: &'static str,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "input `{}`: expected {}, found {}", self.path, self.expected, self.found)
    }
}

/// Checks whether a value can be read as the kind that a property declares, and whether its enum allows it. Returns
/// the mismatches, including those of nested values.
///
/// ```
/// use serde_json::json;
/// use tympan::prompt::kinds::mismatches;
/// use tympan::spec::schema::{Property, PropertyKind};
///
/// let week = Property::new("week", PropertyKind::Integer);
/// assert!(mismatches(&week, &json!("3")).is_empty());
/// let found = mismatches(&week, &json!([3]));
/// assert_eq!(found[0].to_string(), "input `week`: expected an integer, found a list");
/// ```
pub fn mismatches(property: &Property, value: &Json) -> Vec<Mismatch> {
    let mut found = Vec::new();
    check(property, value.into(), &Path::Name(&property.name), &mut found);
    found
}

impl Prompt {
    /// Checks the values of declared inputs against their kinds and enums. Defaults are the author's and are not
    /// checked. Neither are optional inputs without a value.
    ///
    /// # Errors
    /// Returns an error that names the first input that does not match, what was expected, and what was found. Further
    /// mismatches are in [`Error::others`].
    pub fn check_kinds(&self, inputs: InputMap<'_>) -> Result<()> {
        let mut mismatches = self.mismatches(inputs).into_iter();
        let Some((input, mismatch)) = mismatches.next() else { return Ok(()) };
        let others = mismatches.map(|(input, mismatch)| {
            Diagnostic::error(Kind::InvalidInput.code(), input.span, mismatch.to_string()).with_help(help(input))
        });
        let error = Error::new(Kind::InvalidInput, &mismatch).with_help(help(input)).with_others(others.collect());
        Err(self.in_input(error, input))
    }

    /// Returns a warning for each value that does not match its declaration; see [`Prompt::check_kinds`].
    pub fn kind_warnings(&self, inputs: InputMap<'_>) -> Vec<Diagnostic> {
        let warning = |(input, mismatch): (&Property, Mismatch)| {
            Diagnostic::warning(Kind::InvalidInput.code(), input.span, mismatch.to_string()).with_help(help(input))
        };
        self.mismatches(inputs).into_iter().map(warning).collect()
    }

    /// Returns a warning for each input that the prompt neither declares nor uses. Such a name is probably misspelled.
    /// Directives reject unknown inputs instead.
    pub fn unknown_inputs(&self, inputs: InputMap<'_>) -> Vec<Diagnostic> {
        if self.is_directive() {
            return Vec::new();
        }
        // A template that does not compile is reported elsewhere, and nobody knows the names in it.
        let Ok(compiled) = self.compiled(0) else { return Vec::new() };
        let names = || compiled.template.inputs().map(|(name, _)| name);
        let set: HashSet<&str> = if inputs.len() > MAX_SEARCHED { names().collect() } else { HashSet::new() };
        let is_named = |name: &str| match set.is_empty() {
            true => names().any(|known| known == name),
            false => set.contains(name),
        };
        let unknown = inputs.iter().map(|(name, _)| name).filter(|name| !is_named(name) && !self.uses_elsewhere(name));
        let warning = |name: &str| {
            let message = format!("the prompt has no input `{}`", short(name));
            let finding = Diagnostic::warning(Kind::UnknownInput.code(), None, message);
            match guess_name(name, names()) {
                Some(near) => finding.with_help(format!("did you mean `{near}`?")),
                None => finding,
            }
        };
        unknown.take(MAX_FINDINGS).map(warning).collect()
    }

    /// Returns whether a binding of a tool, or the template of another variant, uses an input.
    fn uses_elsewhere(&self, name: &str) -> bool {
        let mut bindings = self.spec.tools.iter().flat_map(|tool| &tool.bindings);
        let mut variants = (1..self.arms.len()).filter_map(|arm| self.arm_template(arm).ok());
        bindings.any(|binding| matches!(&binding.value, BindingValue::Input(input) if input == name))
            || variants.any(|template| template.inputs().any(|(known, _)| known == name))
    }

    fn mismatches(&self, inputs: InputMap<'_>) -> Vec<(&Property, Mismatch)> {
        let mut all = Vec::new();
        for input in &self.spec.inputs {
            let Some(value) = inputs.get(&input.name) else { continue };
            let is_absent = value.is_null() && input.required != Some(true) && !self.is_definition();
            if is_absent || all.len() >= MAX_FINDINGS {
                continue;
            }
            let mut found = Vec::new();
            check(input, value, &Path::Name(&input.name), &mut found);
            all.extend(found.into_iter().map(|mismatch| (input, mismatch)));
        }
        all
    }
}

fn help(input: &Property) -> String {
    match &input.description {
        Some(description) => format!("`{}` ({}): {description}", input.name, input.kind.as_str()),
        None => "pass a value of the declared kind, or change the declaration in the prompt file".to_owned(),
    }
}

/// The position of a value in an input.
enum Path<'p> {
    Name(&'p str),
    Key(&'p Path<'p>, &'p str),
    Index(&'p Path<'p>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(&short(name)),
            Self::Key(parent, key) => write!(f, "{parent}.{}", short(key)),
            Self::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

fn check(property: &Property, value: InputRef<'_>, path: &Path<'_>, found: &mut Vec<Mismatch>) {
    if found.len() >= MAX_FINDINGS || (value.is_null() && allows_null(property)) {
        return;
    }
    let mut add = |expected: String, what| found.push(Mismatch { path: path.to_string(), expected, found: what });
    let kinds = kinds(property);
    if !kinds.iter().any(|kind| reads_as(value, *kind)) {
        let expected: Vec<_> = kinds.iter().map(|kind| expected(*kind)).collect();
        return add(expected.join(" or "), describe(value, kinds));
    }
    if let Some(allowed) = &property.enum_values
        && !allowed.iter().any(|allowed| kinds.iter().any(|kind| is_same(value, allowed, *kind)))
    {
        return add(one_of(allowed), "another value");
    }
    match value.view() {
        View::List(items) => {
            let Some(declared) = &property.items else { return };
            for (index, item) in items.iter().enumerate() {
                check(declared, item, &Path::Index(path, index), found);
            }
        }
        View::Map(map) => check_entries(&property.properties, map, path, found),
        _ => {}
    }
}

/// Checks the declared entries of a map. Others are allowed.
fn check_entries(declared: &[Property], map: InputMap<'_>, path: &Path<'_>, found: &mut Vec<Mismatch>) {
    for property in declared {
        let path = Path::Key(path, &property.name);
        match map.get(&property.name) {
            None if property.required == Some(true) && property.default.is_none() => {
                let kinds: Vec<_> = kinds(property).iter().map(|kind| expected(*kind)).collect();
                found.push(Mismatch { path: path.to_string(), expected: kinds.join(" or "), found: "nothing" });
            }
            Some(value) if !value.is_null() || property.required == Some(true) => check(property, value, &path, found),
            _ => {}
        }
    }
}

fn kinds(property: &Property) -> &[PropertyKind] {
    if property.kinds.is_empty() { std::slice::from_ref(&property.kind) } else { &property.kinds }
}

fn allows_null(property: &Property) -> bool {
    property.nullable || property.enum_values.as_ref().is_some_and(|allowed| allowed.contains(&Json::Null))
}

/// Returns whether a value can be read as this kind.
fn reads_as(value: InputRef<'_>, kind: PropertyKind) -> bool {
    let view = value.view();
    match kind {
        PropertyKind::String => !matches!(view, View::Null | View::List(_) | View::Map(_)),
        PropertyKind::Integer => number(view).is_some_and(Number::is_integer),
        PropertyKind::Float => number(view).is_some(),
        PropertyKind::Boolean => boolean(view).is_some(),
        PropertyKind::Array => matches!(view, View::List(_)),
        PropertyKind::Object => matches!(view, View::Map(_)),
        PropertyKind::Thread => {
            let list = match view {
                View::Map(map) => map.get("messages").map(InputRef::view),
                other => Some(other),
            };
            // Rendering parses the messages themselves.
            matches!(list, Some(View::List(items)) if items.iter().all(|item| matches!(item.view(), View::Map(_))))
        }
        PropertyKind::Image | PropertyKind::File | PropertyKind::Audio => match view {
            View::Str(_) => true,
            View::Map(map) => MEDIA_KEYS.iter().any(|key| map.get(key).and_then(InputRef::as_str).is_some()),
            _ => false,
        },
    }
}

#[derive(Clone, Copy)]
enum Number {
    Int(i128),
    Float(f64),
}

impl Number {
    fn is_integer(self) -> bool {
        match self {
            Self::Int(_) => true,
            Self::Float(float) => float.fract() == 0.0,
        }
    }

    fn equals(self, other: Self) -> bool {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a == b,
            (a, b) => a.as_float() == b.as_float(),
        }
    }

    fn as_float(self) -> f64 {
        match self {
            Self::Int(int) => int as f64,
            Self::Float(float) => float,
        }
    }
}

/// Reads a number, or text that is a decimal number.
fn number(view: View<'_>) -> Option<Number> {
    let number = match view {
        View::Int(int) => Number::Int(int.into()),
        View::Uint(int) => Number::Int(int.into()),
        View::Float(float) => Number::Float(float),
        View::Str(text) => {
            let text = text.trim();
            // Rust also reads `inf` and `nan`.
            if !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')) {
                return None;
            }
            text.parse().map(Number::Int).or_else(|_| text.parse().map(Number::Float)).ok()?
        }
        _ => return None,
    };
    Some(number).filter(|number| number.as_float().is_finite())
}

/// Reads a boolean, or the text `true` or `false` in any case.
fn boolean(view: View<'_>) -> Option<bool> {
    match view {
        View::Bool(value) => Some(value),
        View::Str(text) if text.trim().eq_ignore_ascii_case("true") => Some(true),
        View::Str(text) if text.trim().eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// Returns whether a value, read as this kind, is the same as one that an enum allows.
fn is_same(value: InputRef<'_>, allowed: &Json, kind: PropertyKind) -> bool {
    let (a, b) = (value.view(), InputRef::from(allowed).view());
    match kind {
        PropertyKind::Integer | PropertyKind::Float => match (number(a), number(b)) {
            (Some(a), Some(b)) => a.equals(b),
            _ => false,
        },
        PropertyKind::Boolean => boolean(a).is_some() && boolean(a) == boolean(b),
        PropertyKind::String => match (a, b) {
            (View::Str(a), View::Str(b)) => a == b,
            (View::List(_) | View::Map(_), _) | (_, View::List(_) | View::Map(_)) => false,
            _ => text(value) == text(allowed.into()),
        },
        _ => value.to_json() == *allowed,
    }
}

/// Returns a scalar as the template prints it.
fn text(value: InputRef<'_>) -> String {
    match value.view() {
        View::Str(text) => text.to_owned(),
        _ => value.to_json().to_string(),
    }
}

const fn expected(kind: PropertyKind) -> &'static str {
    match kind {
        PropertyKind::String => "a string",
        PropertyKind::Integer => "an integer",
        PropertyKind::Float => "a number",
        PropertyKind::Boolean => "a boolean",
        PropertyKind::Array => "a list",
        PropertyKind::Object => "a map",
        PropertyKind::Thread => "a list of messages",
        PropertyKind::Image => "an image (a string, or a map with a `value`)",
        PropertyKind::File => "a file (a string, or a map with a `value`)",
        PropertyKind::Audio => "an audio recording (a string, or a map with a `value`)",
    }
}

/// Lists the values of an enum. They are the author's, so they can be quoted.
fn one_of(allowed: &[Json]) -> String {
    let values: Vec<_> =
        allowed.iter().take(MAX_FINDINGS).map(|value| short(&value.to_string()).into_owned()).collect();
    let more = if allowed.len() > MAX_FINDINGS { ", …" } else { "" };
    format!("one of {}{more}", values.join(", "))
}

/// Describes a value that none of these kinds match.
fn describe(value: InputRef<'_>, kinds: &[PropertyKind]) -> &'static str {
    match (value.view(), kinds) {
        (View::Str(_), [PropertyKind::Integer]) => "a string that is not an integer",
        (View::Str(_), [PropertyKind::Float]) => "a string that is not a number",
        (View::Str(_), [PropertyKind::Boolean]) => "a string that is neither `true` nor `false`",
        (View::Float(float), _) if !float.is_finite() => "a number that is not finite",
        (View::Float(_), [PropertyKind::Integer]) => "a number with a fraction",
        (View::Map(_), [PropertyKind::Thread]) => "a map without `messages`",
        (View::List(_), [PropertyKind::Thread]) => "a list with elements that are not maps",
        (View::Map(_), [PropertyKind::Image | PropertyKind::File | PropertyKind::Audio]) => "a map without a `value`",
        _ => value.type_name(),
    }
}

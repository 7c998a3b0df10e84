//! Inputs of directives. Errors about them list the declared inputs.

use std::collections::HashSet;

use serde_json::Value as Json;

use crate::error::{Error, Kind, Result};
use crate::format::directive::{list, list_near};
use crate::format::interpolation::{Reference, references};
use crate::spec::PromptSpec;
use crate::template::input::InputMap;
use crate::text::source::Span;

/// Returns the span of the steps in a directive's prompt text, or of the whole text if the spec does not say.
pub(crate) fn steps(spec: &PromptSpec) -> Span {
    let bounds = spec.template.format_options.get("steps").and_then(Json::as_array);
    let bound = |index| usize::try_from(bounds?.get::<usize>(index)?.as_u64()?).ok();
    match (bound(0), bound(1)) {
        (Some(start), Some(end)) => Span::new(start, end),
        _ => Span::new(0, spec.instructions.len()),
    }
}

/// Rejects undeclared inputs. Nothing in a directive can use them, so they are mistakes. A directive without declarations
/// has the inputs that its steps refer to.
pub(crate) fn check_known(spec: &PromptSpec, inputs: InputMap<'_>) -> Result<()> {
    let mut known: HashSet<&str> = spec.inputs.iter().map(|input| input.name.as_str()).collect();
    if known.is_empty() && inputs.iter().next().is_some() {
        known.extend(step_references(spec).map(|(reference, _)| reference.name));
    }
    match inputs.iter().find(|(name, _)| !known.contains(name)) {
        Some((name, _)) => Err(Error::new(Kind::UnknownInput, name).with_help(list_near(name, &names(spec)))),
        None => Ok(()),
    }
}

/// Adds a list of the declared inputs to an error about an input.
pub(crate) fn with_list(error: Error, spec: &PromptSpec) -> Error {
    let help = match error.help() {
        Some(help) => format!("{help}; {}", declared(spec)),
        None => declared(spec),
    };
    error.with_help(help)
}

/// Rejects the first reference that would stay in the text because its input has no value.
pub(crate) fn check_all_given<'a>(spec: &'a PromptSpec, has_value: impl Fn(&'a str) -> bool) -> Result<()> {
    let is_input = |reference: &Reference<'_>| {
        !reference.is_dollar || spec.inputs.is_empty() || names(spec).contains(&reference.name)
    };
    let mut left = step_references(spec).filter(|(reference, _)| reference.fallback.is_none() && is_input(reference));
    match left.find(|(reference, _)| !has_value(reference.name)) {
        Some((Reference { name, .. }, span)) => {
            let help = format!(
                "pass a value, or make the reference optional: `{{input:{name}?}}` or `{{input:{name}:default}}`"
            );
            Err(with_list(Error::new(Kind::MissingInput, name).at(span).with_help(help), spec))
        }
        None => Ok(()),
    }
}

/// Iterates over the references in the steps, with their spans in the prompt text.
fn step_references(spec: &PromptSpec) -> impl Iterator<Item = (Reference<'_>, Span)> {
    let steps = steps(spec);
    let text = spec.instructions.get(steps.range()).unwrap_or_default();
    references(text).map(move |reference| {
        let span = Span::from(reference.range.clone()).shifted(steps.start);
        (reference, span)
    })
}

fn declared(spec: &PromptSpec) -> String {
    list(&names(spec))
}

fn names(spec: &PromptSpec) -> Vec<&str> {
    spec.inputs.iter().map(|input| input.name.as_str()).collect()
}

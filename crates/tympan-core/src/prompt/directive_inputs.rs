//! Inputs of directives. All of them must be declared, and errors about them list the declared inputs.

use std::collections::HashSet;

use serde_json::Value as Json;

use crate::error::{Error, Kind, Result};
use crate::format::directive::{list, list_near};
use crate::format::interpolation::references;
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

/// Rejects undeclared inputs. Nothing in a directive can use them, so they are mistakes.
pub(crate) fn check_known(spec: &PromptSpec, inputs: InputMap<'_>) -> Result<()> {
    let declared: HashSet<&str> = spec.inputs.iter().map(|input| input.name.as_str()).collect();
    match inputs.iter().find(|(name, _)| !declared.contains(name)) {
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

/// Rewrites an error about an undefined variable to name the directive's missing input.
pub(crate) fn reword(error: Error, spec: &PromptSpec) -> Error {
    let place = error.span().filter(|_| error.kind() == Kind::UndefinedVariable);
    let text = place.and_then(|span| Some((spec.instructions.get(span.range())?, span)));
    match text.and_then(|(text, span)| Some((references(text).next()?.name.to_owned(), span))) {
        Some((name, span)) => {
            let help = format!(
                "pass a value, or make the reference optional: `{{input:{name}?}}` or `{{input:{name}:default}}`"
            );
            with_list(Error::new(Kind::MissingInput, name).at(span).with_help(help), spec)
        }
        None => error,
    }
}

fn declared(spec: &PromptSpec) -> String {
    list(&names(spec))
}

fn names(spec: &PromptSpec) -> Vec<&str> {
    spec.inputs.iter().map(|input| input.name.as_str()).collect()
}

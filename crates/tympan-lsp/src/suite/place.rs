//! What the names at a place in a test file refer to, beyond what the schema says.

use crate::keys::ITEM;

/// What a name refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target<'p> {
    Input,
    /// An input, or the word `all`.
    InputOrAll,
    /// The value of an input.
    ValueOf(&'p str),
    Variant,
    Provider,
    Model,
    /// A model, or a provider and a model: `anthropic/claude-sonnet-4-5`.
    ProviderModel,
    Tool,
    ErrorCode,
    FinishReason,
    File,
}

/// Returns what the keys of the map at a path refer to, if they are names.
pub(crate) fn of_keys<'p>(path: &[&'p str]) -> Option<Target<'p>> {
    match settings(path)? {
        ["inputs"] | ["matrix", "inputs"] => Some(Target::Input),
        ["tools"] => Some(Target::Tool),
        _ => None,
    }
}

/// Returns what the value at a path refers to, if it is a name.
pub(crate) fn of_value<'p>(path: &[&'p str]) -> Option<Target<'p>> {
    if let ["prompt" | "cassettes"] = path {
        return Some(Target::File);
    }
    let settings = settings(path)?;
    match settings {
        ["inputs", name] | ["matrix", "inputs", name, ITEM] => Some(Target::ValueOf(name)),
        ["variant"] | ["matrix", "variants", ITEM] => Some(Target::Variant),
        ["provider"] => Some(Target::Provider),
        ["model"] => Some(Target::Model),
        ["matrix", "models", ITEM] => Some(Target::ProviderModel),
        ["rows"] => Some(Target::File),
        ["expect", ITEM, "not", assertion @ ..] | ["expect", ITEM, assertion @ ..] => of_assertion(assertion),
        _ => None,
    }
}

fn of_assertion<'p>(path: &[&'p str]) -> Option<Target<'p>> {
    Some(match path {
        ["no_origin" | "guarded" | "verbatim"] => Target::Input,
        ["no_origin" | "guarded" | "verbatim" | "share", "input"] | ["only_from", "inputs", ITEM] => Target::Input,
        ["forge"] => Target::InputOrAll,
        ["forge", ITEM] => Target::Input,
        ["error"] | ["error", "code"] => Target::ErrorCode,
        ["finish_reason"] | ["finish_reason", ITEM] => Target::FinishReason,
        ["tool_calls", ITEM] | ["tool_calls", ITEM, "name"] => Target::Tool,
        ["tool_calls", "in_order" | "include" | "exclude", ITEM] => Target::Tool,
        ["tool_calls", "in_order" | "include" | "exclude", ITEM, "name"] => Target::Tool,
        ["judge", "rubric" | "calibration"] => Target::File,
        ["judge", "provider"] => Target::Provider,
        ["judge", "model"] => Target::Model,
        _ => return None,
    })
}

/// Returns the path inside of the settings of a case or of all cases.
fn settings<'a, 'p>(path: &'a [&'p str]) -> Option<&'a [&'p str]> {
    match path {
        ["cases", ITEM, rest @ ..] | ["defaults", rest @ ..] => Some(rest),
        _ => None,
    }
}

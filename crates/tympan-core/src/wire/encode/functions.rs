//! The functions that a model may call.

use std::collections::HashSet;

use serde::{Serialize, Serializer};
use serde_json::Value as Json;

use super::schema::ObjectSchema;
use crate::spec::{Tool, ToolKind};
use crate::wire;

/// A function, independent of the protocol.
pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    pub(super) description: Option<&'a str>,
    pub(super) parameters: Parameters<'a>,
    pub(super) strict: bool,
}

/// The parameters of a function.
pub(super) enum Parameters<'a> {
    /// Declared by the prompt.
    Declared(ObjectSchema<'a>),
    /// A JSON Schema from the host.
    Schema(&'a Json),
}

impl Serialize for Parameters<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Declared(schema) => schema.serialize(serializer),
            Self::Schema(schema) => schema.serialize(serializer),
        }
    }
}

/// Returns the functions of a prompt, followed by the host's functions whose names the prompt does not declare.
///
/// Only the host can convert other kinds of tools to functions, because that requires reading files or querying
/// servers.
pub(super) fn functions<'a>(tools: &'a [Tool], given: &'a [wire::Function]) -> Vec<Function<'a>> {
    let mut functions: Vec<_> = tools.iter().filter_map(declared).collect();
    let mut names: HashSet<&str> = functions.iter().map(|function| function.name).collect();
    for function in given {
        if names.insert(&function.name) {
            functions.push(Function {
                name: &function.name,
                description: function.description.as_deref(),
                parameters: Parameters::Schema(&function.parameters),
                strict: function.strict,
            });
        }
    }
    functions
}

fn declared(tool: &Tool) -> Option<Function<'_>> {
    let ToolKind::Function { parameters, strict } = &tool.kind else { return None };
    let strict = strict.unwrap_or(false);
    let schema = ObjectSchema { properties: parameters, bound: &tool.bindings, strict };
    let parameters = Parameters::Declared(schema);
    Some(Function { name: &tool.name, description: tool.description.as_deref(), parameters, strict })
}

/// Describes the functions for a protocol. Returns `None` if there are none, because providers reject an empty list.
pub(super) fn listed<'a, T>(functions: &'a [Function<'a>], describe: fn(&'a Function<'a>) -> T) -> Option<Vec<T>> {
    (!functions.is_empty()).then(|| functions.iter().map(describe).collect())
}

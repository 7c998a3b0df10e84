//! The functions that a model may call.

use std::collections::HashSet;

use serde::{Serialize, Serializer};
use serde_json::Value as Json;

use super::schema::{ObjectSchema, written};
use crate::spec::strict_schema::{Dialect, StrictSchema};
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
    /// A JSON Schema that the author of the prompt wrote.
    Written(Json),
    /// A JSON Schema from the host.
    Schema(&'a Json),
}

impl Serialize for Parameters<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Declared(schema) => schema.serialize(serializer),
            Self::Written(schema) => schema.serialize(serializer),
            Self::Schema(schema) => schema.serialize(serializer),
        }
    }
}

/// Returns the functions of a prompt, followed by the host's functions whose names the prompt does not declare.
///
/// Only the host can convert other kinds of tools to functions, because that requires reading files or querying
/// servers.
pub(super) fn functions<'a>(tools: &'a [Tool], given: &'a [wire::Function], dialect: Dialect) -> Vec<Function<'a>> {
    let mut functions: Vec<_> = tools.iter().filter_map(|tool| declared(tool, dialect)).collect();
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

fn declared(tool: &Tool, dialect: Dialect) -> Option<Function<'_>> {
    let ToolKind::Function { parameters, strict } = &tool.kind else { return None };
    let strict = strict.unwrap_or(false);
    if let Some(schema) = written(parameters, &tool.bindings) {
        return Some(of_schema(tool, schema, strict, dialect));
    }
    let schema = ObjectSchema { properties: parameters, bound: &tool.bindings, strict };
    let parameters = Parameters::Declared(schema);
    Some(Function { name: &tool.name, description: tool.description.as_deref(), parameters, strict })
}

/// Returns a function whose parameters are declared by a JSON Schema. If the provider cannot enforce the schema, it is
/// not asked to: the arguments are checked in any case.
fn of_schema(tool: &Tool, schema: Json, strict: bool, dialect: Dialect) -> Function<'_> {
    let enforced = strict.then(|| StrictSchema::new(&schema, dialect)).filter(StrictSchema::is_exact);
    let strict = enforced.is_some();
    let parameters = Parameters::Written(enforced.map_or(schema, |enforced| enforced.schema));
    Function { name: &tool.name, description: tool.description.as_deref(), parameters, strict }
}

/// Describes the functions for a protocol. Returns `None` if there are none, because providers reject an empty list.
pub(super) fn listed<'a, T>(functions: &'a [Function<'a>], describe: fn(&'a Function<'a>) -> T) -> Option<Vec<T>> {
    (!functions.is_empty()).then(|| functions.iter().map(describe).collect())
}

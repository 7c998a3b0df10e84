//! The functions that a model may call.

use std::collections::HashSet;

use serde::{Serialize, Serializer};
use serde_json::Value as Json;

use super::schema::{ObjectSchema, written};
use crate::spec::strict_schema::{Budget, Dialect, Size, StrictSchema};
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
///
/// The provider is asked to enforce schemas in this order, as far as the budget allows: it would refuse the request
/// otherwise, and arguments are checked in any case.
pub(super) fn functions<'a>(
    tools: &'a [Tool],
    given: &'a [wire::Function],
    dialect: Dialect,
    mut budget: Budget,
) -> Vec<Function<'a>> {
    let mut functions: Vec<_> = tools.iter().filter_map(|tool| declared(tool, dialect, &mut budget)).collect();
    let mut names: HashSet<&str> = functions.iter().map(|function| function.name).collect();
    for function in given {
        if names.insert(&function.name) {
            functions.push(Function {
                name: &function.name,
                description: function.description.as_deref(),
                parameters: Parameters::Schema(&function.parameters),
                strict: function.strict && budget.take_tool(Size::of(&function.parameters)),
            });
        }
    }
    functions
}

fn declared<'a>(tool: &'a Tool, dialect: Dialect, budget: &mut Budget) -> Option<Function<'a>> {
    let ToolKind::Function { parameters, strict } = &tool.kind else { return None };
    let strict = strict.unwrap_or(false);
    let (parameters, strict) = if let Some(schema) = written(parameters, &tool.bindings) {
        of_schema(schema, strict, dialect, budget)
    } else {
        let schema = ObjectSchema { properties: parameters, bound: &tool.bindings, strict };
        let size = strict.then(|| Size::of(&schema.to_json()));
        let strict = size.is_some_and(|size| size.fits(dialect) && budget.take_tool(size));
        (Parameters::Declared(ObjectSchema { strict, ..schema }), strict)
    };
    Some(Function { name: &tool.name, description: tool.description.as_deref(), parameters, strict })
}

/// Returns parameters that are declared by a JSON Schema, and whether the provider is asked to enforce them.
fn of_schema<'a>(schema: Json, strict: bool, dialect: Dialect, budget: &mut Budget) -> (Parameters<'a>, bool) {
    let enforced = strict.then(|| StrictSchema::new(&schema, dialect)).filter(StrictSchema::is_exact);
    match enforced.filter(|enforced| budget.take_tool(Size::of(&enforced.schema))) {
        Some(enforced) => (Parameters::Written(enforced.schema), true),
        None => (Parameters::Written(schema), false),
    }
}

/// Describes the functions for a protocol. Returns `None` if there are none, because providers reject an empty list.
pub(super) fn listed<'a, T>(functions: &'a [Function<'a>], describe: fn(&'a Function<'a>) -> T) -> Option<Vec<T>> {
    (!functions.is_empty()).then(|| functions.iter().map(describe).collect())
}

//! Checks whether a tool's implementation accepts what the prompt declares.

use std::cell::Cell;

use serde_json::Value as Json;
use tympan_core::spec::{Tool as Declared, ToolKind};
use tympan_core::wire::Function;
use tympan_core::{Error, Kind, Result};

/// Compares the parameters and bindings that a prompt declares with the JSON Schema of a function's parameters.
///
/// # Errors
/// Returns an error if the function does not accept a declared parameter, or requires one that is not declared.
pub(super) fn check(tool: &Declared, taken: &Json) -> Result<()> {
    let ToolKind::Function { parameters, .. } = &tool.kind else { return Ok(()) };
    let declared = Function::of_properties(&tool.name, None, parameters).parameters;
    let mut problems = Vec::new();
    let roots = Roots { declared: &declared, taken, steps: Cell::new(MAX_STEPS) };
    let is_bound = |name: &str| tool.bindings.iter().any(|binding| binding.parameter == name);
    roots.compare("", &declared, taken, &is_bound, &mut problems);
    for binding in tool.bindings.iter().filter(|binding| declared["properties"].get(&binding.parameter).is_none()) {
        if !takes(taken, &binding.parameter) {
            problems.push(format!("`{}` is bound, but the function does not take it", binding.parameter));
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    let error = Error::new(Kind::ToolMismatch, format_args!("`{}`: {}", tool.name, problems.join("; ")));
    let error = error.with_help("make the parameters in the prompt match the type of the function");
    Err(match tool.span {
        Some(span) => error.at(span),
        None => error,
    })
}

/// The maximum number of comparisons. Schemas can be recursive, and references multiply comparisons.
const MAX_STEPS: usize = 10_000;

/// The schemas that references are resolved in.
struct Roots<'s> {
    declared: &'s Json,
    taken: &'s Json,
    /// The number of comparisons left.
    steps: Cell<usize>,
}

impl Roots<'_> {
    /// Collects the differences between the declared and the accepted schema at a path.
    fn compare(
        &self,
        path: &str,
        declared: &Json,
        taken: &Json,
        is_bound: &dyn Fn(&str) -> bool,
        problems: &mut Vec<String>,
    ) {
        let (declared, taken) = (resolved(declared, self.declared), resolved(taken, self.taken));
        let left = self.steps.get();
        // Beyond a certain depth, only recursion is left to compare.
        if left == 0 || path.matches(['.', '[']).count() > MAX_DEPTH {
            return;
        }
        self.steps.set(left - 1);
        if let Some(choices) = choices(declared) {
            // Each value that the model may send has to fit.
            for choice in choices.iter().filter(|choice| choice["type"] != "null" || !takes_no_null(taken)) {
                self.compare(path, choice, taken, is_bound, problems);
            }
            return;
        }
        if let Some(choices) = choices(taken) {
            let fits = |choice: &Json| {
                let mut found = Vec::new();
                self.compare(path, declared, choice, is_bound, &mut found);
                found.is_empty()
            };
            if !choices.iter().any(fits) {
                problems.push(format!("{} does not match any type that the function takes", named(path)));
            }
            return;
        }
        compare_types(path, declared, taken, problems);
        compare_values(path, declared, taken, problems);
        if let Some(fields) = declared["properties"].as_object() {
            for (name, field) in fields {
                let path = join(path, name);
                match field_of(taken, name) {
                    Some(taken) => self.compare(&path, field, taken, &|_| false, problems),
                    None => problems.push(format!("`{path}` is declared, but the function does not take it")),
                }
            }
            let is_given = |name: &str| is_bound(name) || names(&declared["required"]).any(|given| given == name);
            for name in names(&taken["required"]).filter(|name| !is_given(name)) {
                let path = join(path, name);
                problems.push(match fields.contains_key(name) {
                    true => format!("`{path}` is optional, but the function requires it; declare it as required"),
                    false => format!("`{path}` is not declared, but the function requires it"),
                });
            }
        }
        if let (Some(declared), Some(taken)) = (declared.get("items"), taken.get("items")) {
            self.compare(&format!("{path}[]"), declared, taken, &|_| false, problems);
        }
    }
}

/// The maximum depth of comparisons.
const MAX_DEPTH: usize = 16;

/// Follows references, and the only schema of `allOf`.
fn resolved<'s>(mut schema: &'s Json, root: &'s Json) -> &'s Json {
    for _ in 0..MAX_DEPTH {
        let target = schema["$ref"].as_str().and_then(|name| root.pointer(name.strip_prefix('#')?));
        let only = match schema["allOf"].as_array().map(Vec::as_slice) {
            Some([only]) if schema.get("type").is_none() => Some(only),
            _ => None,
        };
        match target.or(only) {
            Some(next) => schema = next,
            None => break,
        }
    }
    schema
}

fn choices(schema: &Json) -> Option<&Vec<Json>> {
    ["anyOf", "oneOf"].iter().find_map(|key| schema[key].as_array())
}

fn takes_no_null(taken: &Json) -> bool {
    choices(taken).is_none() && taken.get("type").is_some_and(|types| names(types).all(|name| name != "null"))
}

fn compare_types(path: &str, declared: &Json, taken: &Json, problems: &mut Vec<String>) {
    let taken: Vec<&str> = names(&taken["type"]).collect();
    let fits = |declared: &str| taken.contains(&declared) || (declared == "integer" && taken.contains(&"number"));
    if let Some(other) = names(&declared["type"]).find(|declared| !taken.is_empty() && !fits(declared)) {
        let taken = taken.join(" or ");
        problems.push(format!("{} is declared as {other}, but the function takes {taken}", named(path)));
    }
}

fn compare_values(path: &str, declared: &Json, taken: &Json, problems: &mut Vec<String>) {
    let taken = taken["enum"].as_array().map(Vec::as_slice).or_else(|| taken.get("const").map(std::slice::from_ref));
    let Some(taken) = taken else { return };
    let values = declared["enum"].as_array().map(Vec::as_slice);
    match values.or_else(|| declared.get("const").map(std::slice::from_ref)) {
        Some(values) => {
            if let Some(other) = values.iter().find(|value| !taken.contains(value)) {
                problems.push(format!("{} may be {other}, which the function does not take", named(path)));
            }
        }
        None => problems.push(format!("{} may be any value, but the function takes only some", named(path))),
    }
}

/// Returns the schema of a field that a function accepts, or `None` if it does not accept the field.
fn field_of<'s>(taken: &'s Json, name: &str) -> Option<&'s Json> {
    const ANYTHING: Json = Json::Bool(true);
    let named = taken["properties"].get(name);
    // A map accepts every name, whereas a struct would silently ignore unknown fields.
    let further = || taken.get("additionalProperties").filter(|further| **further != Json::Bool(false));
    let is_open = taken.get("properties").is_none() && taken.get("additionalProperties").is_none();
    named.or_else(further).or(is_open.then_some(&ANYTHING))
}

fn takes(taken: &Json, name: &str) -> bool {
    field_of(taken, name).is_some()
}

/// Returns one or several names, as in `type` of a schema.
fn names(value: &Json) -> impl Iterator<Item = &str> {
    let several = value.as_array().into_iter().flatten().filter_map(Json::as_str);
    value.as_str().into_iter().chain(several)
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn named(path: &str) -> String {
    if path.is_empty() { "the arguments".to_owned() } else { format!("`{path}`") }
}

//! The canonical form from which a definition's hash is computed.

use serde_json::{Value as Json, json};

use crate::json::JsonMap;
use crate::json::canonical_json;
use crate::secret::credential::redact_literals;
use crate::spec::json_schema::further_schema;
use crate::spec::schema::Property;
use crate::spec::{DEFAULT_VARIANT, PromptSpec, Tool, ToolKind};

/// Serializes everything that affects what a model sees to JSON: keys sorted by code point, no whitespace, and only
/// values that differ from their default. `docs/guide/hashes.md` specifies the form in full, so that others can compute
/// it.
pub(crate) fn canonical(spec: &PromptSpec) -> String {
    let bodies = spec.variants.iter().map(|variant| (variant.name.as_str(), variant.body.as_str()));
    let bodies = std::iter::once((DEFAULT_VARIANT, spec.instructions.as_str())).chain(bodies);
    let mut map = JsonMap::new();
    map.insert("version".into(), 1.into());
    map.insert("bodies".into(), named(bodies.map(|(name, body)| (name, body.into()))));
    map.insert("format".into(), spec.template.format.clone().into());
    map.insert("parser".into(), spec.template.parser.clone().into());
    if spec.template.lenient {
        map.insert("undefined".into(), "lenient".into());
    }
    if let Some(role) = spec.role {
        map.insert("role".into(), role.as_str().into());
    }
    put(&mut map, "variables", named(spec.inputs.iter().map(|input| (input.name.as_str(), variable(input)))));
    put(&mut map, "outputs", named(spec.outputs.iter().map(|output| (output.name.as_str(), property(output)))));
    put(&mut map, "output_schema", further_schema(&spec.outputs).cloned().into());
    if let Some(output_model) = &spec.output_model {
        map.insert("output_model".into(), output_model.clone().into());
    }
    if spec.strict_policy {
        map.insert("policy".into(), "strict".into());
    }
    put(&mut map, "tools", named(spec.tools.iter().map(|item| (item.name.as_str(), tool(item)))));
    canonical_json(Json::Object(map))
}

/// Returns the remaining settings of a prompt, grouped by topic. The order of keys in the file does not matter.
pub(crate) fn settings(spec: &PromptSpec) -> [(&'static str, Json); 5] {
    let mut all = spec.to_json();
    redact_literals(&mut all);
    let mut take = |path: &[&str]| {
        let (last, parents) = path.split_last()?;
        let parent = parents.iter().try_fold(&mut all, |json, key| json.get_mut(*key))?;
        parent.as_object_mut()?.shift_remove(*last)
    };
    // These are hashed separately.
    for key in ["instructions", "variants", "name"] {
        take(&[key]);
    }
    let connection = take(&["model", "connection"]).unwrap_or_default();
    let options = take(&["model", "options"]).unwrap_or_default();
    let model = take(&["model"]).unwrap_or_default();
    let tools = take(&["tools"]).unwrap_or_default();
    [("model", model), ("connection", connection), ("options", options), ("tools", tools), ("other settings", all)]
}

fn named<'a>(items: impl Iterator<Item = (&'a str, Json)>) -> Json {
    Json::Object(items.map(|(name, item)| (name.to_owned(), item)).collect())
}

/// Inserts the value unless it is empty.
fn put(map: &mut JsonMap, key: &str, value: Json) {
    let is_empty = match &value {
        Json::Null => true,
        Json::Object(map) => map.is_empty(),
        Json::Array(items) => items.is_empty(),
        _ => false,
    };
    if !is_empty {
        map.insert(key.to_owned(), value);
    }
}

/// Converts an input. Its types, its default, and how far it is trusted count; its description does not.
fn variable(input: &Property) -> Json {
    let mut map = JsonMap::new();
    map.insert("types".into(), types(input));
    put(&mut map, "nullable", input.nullable.then_some(true).into());
    map.insert("trusted".into(), input.trusted.into());
    if input.strict {
        map.insert("strict".into(), true.into());
    }
    put(&mut map, "confidential", input.confidential.then_some(true).into());
    put(&mut map, "speaker", input.speaker.map(|_| "user").into());
    if let Some(default) = &input.default {
        map.insert("default".into(), default.clone());
    }
    Json::Object(map)
}

/// Returns the kinds of a property by their JSON Schema names, sorted and without duplicates.
fn types(property: &Property) -> Json {
    let kinds = if property.kinds.is_empty() { std::slice::from_ref(&property.kind) } else { &property.kinds };
    let mut names: Vec<_> =
        kinds.iter().map(|kind| if kind.as_str() == "float" { "number" } else { kind.as_str() }).collect();
    names.sort_unstable();
    names.dedup();
    names.into()
}

/// Converts an output or a parameter. Models see all of its fields.
fn property(property: &Property) -> Json {
    let mut map = JsonMap::new();
    map.insert("types".into(), types(property));
    put(&mut map, "description", property.description.clone().into());
    put(&mut map, "required", property.required.filter(|required| *required).into());
    put(&mut map, "default", property.default.clone().into());
    put(&mut map, "enum", property.enum_values.clone().into());
    put(&mut map, "items", property.items.as_deref().map(self::property).into());
    let inner = property.properties.iter().map(|inner| (inner.name.as_str(), self::property(inner)));
    put(&mut map, "properties", named(inner));
    put(&mut map, "nullable", property.nullable.then_some(true).into());
    Json::Object(map)
}

/// Converts a tool without its connection, which holds credentials and is not visible to models.
fn tool(tool: &Tool) -> Json {
    let mut map = JsonMap::new();
    map.insert("kind".into(), tool.kind.as_str().into());
    put(&mut map, "description", tool.description.clone().into());
    let mut bound: Vec<_> = tool.bindings.iter().map(|binding| binding.parameter.as_str()).collect();
    bound.sort_unstable();
    put(&mut map, "bound", bound.into());
    match &tool.kind {
        ToolKind::Function { parameters, strict } => {
            let further = further_schema(parameters).cloned().into();
            let parameters = parameters.iter().map(|parameter| (parameter.name.as_str(), property(parameter)));
            put(&mut map, "parameters", named(parameters));
            put(&mut map, "schema", further);
            put(&mut map, "strict", strict.filter(|strict| *strict).into());
        }
        ToolKind::Mcp { server_name, allowed_tools, .. } => {
            put(&mut map, "server", server_name.clone().into());
            put(&mut map, "allowed", allowed_tools.clone().into());
        }
        ToolKind::OpenApi { specification, .. } => put(&mut map, "specification", json!(specification)),
        ToolKind::Prompty { path, mode } => {
            put(&mut map, "path", path.clone().into());
            put(&mut map, "mode", mode.clone().into());
        }
        ToolKind::Custom { .. } => {}
    }
    put(&mut map, "flow", json!(tool.declared_flow()));
    Json::Object(map)
}

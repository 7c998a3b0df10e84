//! Converts a prompt to JSON, with the names that the Prompty specification uses.

use serde_json::{Value as Json, json};

use crate::json::JsonMap;
use crate::secret::credential::{is_credential, redact};
use crate::spec::flow::{Effect, Hide};
use crate::spec::json_schema::further_schema;
use crate::spec::schema::Property;
use crate::spec::{
    Binding, BindingValue, CacheMode, Connection, Model, ModelOptions, PromptSpec, TemplateSpec, Tool, ToolKind,
    Variant,
};

impl PromptSpec {
    /// Converts the prompt to JSON for exchange between programs. Only fields that are set are included, unknown keys
    /// stay where they are, and credentials are included.
    ///
    /// Line breaks at the end of the template, which editors add, are removed from `instructions`.
    pub fn to_json(&self) -> Json {
        let mut map = JsonMap::new();
        map.insert("kind".into(), "prompt".into());
        put(&mut map, "name", self.name.clone());
        put(&mut map, "displayName", self.display_name.clone());
        put(&mut map, "description", self.description.clone());
        put_map(&mut map, "metadata", &self.metadata);
        put(&mut map, "model", self.model.as_ref().map(model));
        put_list(&mut map, "inputs", &self.inputs, property);
        put_list(&mut map, "outputs", &self.outputs, property);
        put(&mut map, "outputsSchema", further_schema(&self.outputs).cloned());
        put_list(&mut map, "tools", &self.tools, |tool| self::tool(tool, &self.inputs));
        put(&mut map, "policy", self.strict_policy.then_some("strict"));
        map.insert("template".into(), template(&self.template));
        map.insert("instructions".into(), self.instructions.trim_end_matches(['\n', '\r']).into());
        put(&mut map, "role", self.role.map(crate::spec::role::Role::as_str));
        put_map(&mut map, "variants", &self.variants.iter().map(variant).collect());
        put(&mut map, "outputModel", self.output_model.clone());
        keep(&mut map, &self.extra);
        Json::Object(map)
    }

    /// Converts the prompt to JSON for people. Credentials and the static values of bindings are replaced with
    /// `[REDACTED]`.
    pub fn to_json_redacted(&self) -> Json {
        let mut json = self.to_json();
        redact(&mut json);
        redact_properties(json.get_mut("inputs"));
        redact_properties(json.get_mut("outputs"));
        for tool in json.get_mut("tools").and_then(Json::as_array_mut).into_iter().flatten() {
            redact_properties(tool.get_mut("parameters"));
        }
        let tools = json.get_mut("tools").and_then(Json::as_array_mut).into_iter().flatten();
        for (tool, json) in self.tools.iter().zip(tools).filter(|(tool, _)| !tool.bindings.is_empty()) {
            json["bindings"] = tool.bindings.iter().map(redacted_binding).collect::<JsonMap>().into();
        }
        json
    }
}

impl Connection {
    /// Converts the connection to JSON for people. Credentials are replaced with `[REDACTED]`.
    pub fn to_json_redacted(&self) -> Json {
        let mut json = connection(self);
        redact(&mut json);
        json
    }
}

impl Property {
    /// Converts the declaration to JSON for people, together with its JSON Schema. Credentials are replaced with
    /// `[REDACTED]`.
    pub fn to_json_redacted(&self) -> Json {
        let mut json = property(self);
        redact(&mut json);
        redact_property(&mut json);
        if let Some(schema) = &self.schema {
            let mut schema = Json::clone(schema);
            redact_schema(&mut schema);
            json["schema"] = schema;
        }
        json
    }
}

/// Redacts the values in the declarations of credentials in a JSON Schema. The declarations themselves remain.
fn redact_schema(schema: &mut Json) {
    match schema {
        Json::Array(schemas) => schemas.iter_mut().for_each(redact_schema),
        Json::Object(map) => {
            for (key, value) in map {
                if SCHEMA_VALUES.contains(&key.as_str()) {
                    redact(value);
                    continue;
                }
                let named = value.as_object_mut().filter(|_| key == "properties").into_iter().flatten();
                for (_, declared) in named.filter(|(name, _)| is_credential(name)) {
                    hide(declared, &SCHEMA_VALUES);
                }
                redact_schema(value);
            }
        }
        _ => {}
    }
}

/// The keywords of JSON Schema that contain values.
const SCHEMA_VALUES: [&str; 5] = ["default", "example", "examples", "enum", "const"];

/// Replaces the values of these keys.
fn hide(json: &mut Json, keys: &[&str]) {
    for key in keys {
        if let Some(value) = json.get_mut(*key) {
            *value = crate::spec::REDACTED.into();
        }
    }
}

/// Redacts the values in declarations of credentials: an input called `apiKey` may have a default.
fn redact_properties(properties: Option<&mut Json>) {
    properties.and_then(Json::as_array_mut).into_iter().flatten().for_each(redact_property);
}

fn redact_property(property: &mut Json) {
    if property["name"].as_str().is_some_and(is_credential) {
        hide(property, &["default", "example", "enumValues"]);
    }
    redact_properties(property.get_mut("properties"));
}

fn put(map: &mut JsonMap, key: &str, value: Option<impl Into<Json>>) {
    if let Some(value) = value {
        map.insert(key.into(), value.into());
    }
}

fn put_map(map: &mut JsonMap, key: &str, value: &JsonMap) {
    if !value.is_empty() {
        map.insert(key.into(), Json::Object(value.clone()));
    }
}

fn put_list<T>(map: &mut JsonMap, key: &str, items: &[T], write: impl Fn(&T) -> Json) {
    if !items.is_empty() {
        map.insert(key.into(), items.iter().map(write).collect());
    }
}

/// Adds unknown keys. Known keys take precedence.
fn keep(map: &mut JsonMap, extra: &JsonMap) {
    for (key, value) in extra {
        if !map.contains_key(key) {
            map.insert(key.clone(), value.clone());
        }
    }
}

fn variant(variant: &Variant) -> (String, Json) {
    let mut map = JsonMap::new();
    map.insert("body".into(), variant.body.clone().into());
    put_map(&mut map, "metadata", &variant.metadata);
    (variant.name.clone(), Json::Object(map))
}

fn model(model: &Model) -> Json {
    let mut map = JsonMap::new();
    put(&mut map, "id", model.id.clone());
    put(&mut map, "provider", model.provider.clone());
    put(&mut map, "apiType", model.api_type.clone());
    put(&mut map, "connection", model.connection.as_ref().map(connection));
    put_map(&mut map, "options", &options(&model.options));
    keep(&mut map, &model.extra);
    Json::Object(map)
}

fn options(options: &ModelOptions) -> JsonMap {
    let mut map = JsonMap::new();
    let number = |number: &Option<serde_json::Number>| number.clone().map(Json::Number);
    put(&mut map, "temperature", number(&options.temperature));
    put(&mut map, "maxOutputTokens", options.max_output_tokens);
    put(&mut map, "topP", number(&options.top_p));
    put(&mut map, "topK", options.top_k);
    put(&mut map, "frequencyPenalty", number(&options.frequency_penalty));
    put(&mut map, "presencePenalty", number(&options.presence_penalty));
    put(&mut map, "seed", options.seed);
    put(&mut map, "stopSequences", options.stop_sequences.clone());
    put(&mut map, "allowMultipleToolCalls", options.allow_multiple_tool_calls);
    put(&mut map, "cache", options.cache.map(CacheMode::as_str));
    put_map(&mut map, "additionalProperties", &options.additional_properties);
    keep(&mut map, &options.extra);
    map
}

fn connection(connection: &Connection) -> Json {
    let mut map = JsonMap::new();
    map.insert("kind".into(), connection.kind.as_str().into());
    put(&mut map, "name", connection.name.clone());
    put(&mut map, "endpoint", connection.endpoint.clone());
    put(&mut map, "apiKey", connection.api_key.as_ref().map(|secret| secret.expose()));
    keep(&mut map, &connection.extra);
    Json::Object(map)
}

fn property(property: &Property) -> Json {
    let mut map = JsonMap::new();
    if !property.name.is_empty() {
        map.insert("name".into(), property.name.clone().into());
    }
    map.insert("kind".into(), property.kind.as_str().into());
    if !property.kinds.is_empty() {
        map.insert("kinds".into(), property.kinds.iter().map(|kind| kind.as_str()).collect());
    }
    put(&mut map, "description", property.description.clone());
    put(&mut map, "required", property.required);
    put(&mut map, "default", property.default.clone());
    put(&mut map, "example", property.example.clone());
    put(&mut map, "enumValues", property.enum_values.clone());
    put(&mut map, "items", property.items.as_deref().map(self::property));
    put_list(&mut map, "properties", &property.properties, self::property);
    put(&mut map, "nullable", property.nullable.then_some(true));
    put(&mut map, "trusted", property.trusted.then_some(true));
    put(&mut map, "confidential", property.confidential.then_some(true));
    put(&mut map, "speaker", property.speaker.map(|_| "user"));
    put(&mut map, "trusted_only", property.flow.trusted_only);
    put(&mut map, "destination", property.flow.destination);
    put(&mut map, "strict", property.strict.then_some(true));
    put(&mut map, "validationRequired", property.validation_required.then_some(true));
    keep(&mut map, &property.extra);
    Json::Object(map)
}

fn tool(tool: &Tool, inputs: &[Property]) -> Json {
    let mut map = JsonMap::new();
    map.insert("name".into(), tool.name.clone().into());
    map.insert("kind".into(), tool.kind.as_str().into());
    put(&mut map, "description", tool.description.clone());
    match &tool.kind {
        ToolKind::Function { parameters, strict } => {
            put(&mut map, "strict", *strict);
            map.insert("parameters".into(), parameters.iter().map(property).collect());
            put(&mut map, "schema", further_schema(parameters).cloned());
        }
        ToolKind::Mcp { connection: to, server_name, approval_mode, allowed_tools } => {
            put(&mut map, "connection", to.as_ref().map(connection));
            put(&mut map, "serverName", server_name.clone());
            put(&mut map, "approvalMode", approval_mode.clone());
            put(&mut map, "allowedTools", allowed_tools.clone());
        }
        ToolKind::OpenApi { connection: to, specification } => {
            put(&mut map, "connection", to.as_ref().map(connection));
            put(&mut map, "specification", specification.clone());
        }
        ToolKind::Prompty { path, mode } => {
            put(&mut map, "path", path.clone());
            put(&mut map, "mode", mode.clone());
        }
        ToolKind::Custom { connection: to, options, .. } => {
            put(&mut map, "connection", to.as_ref().map(connection));
            put_map(&mut map, "options", options);
        }
    }
    put(&mut map, "bindings", bindings(&tool.bindings, inputs));
    put(&mut map, "effect", tool.flow.effect.map(Effect::as_str));
    put(&mut map, "confidential", tool.flow.confidential);
    put(&mut map, "hide", tool.flow.hide.map(Hide::as_str));
    keep(&mut map, &tool.extra);
    Json::Object(map)
}

/// Converts bindings to a map, or to a list if a literal value would be read from a map as a reference to an input.
fn bindings(bindings: &[Binding], inputs: &[Property]) -> Option<Json> {
    let is_ambiguous = |binding: &Binding| match &binding.value {
        BindingValue::Input(_) => false,
        BindingValue::Static(Json::String(text)) => inputs.iter().any(|input| input.name == *text),
        BindingValue::Static(value) => value.as_object().is_some_and(|map| map.len() == 1 && map.contains_key("input")),
    };
    match bindings {
        [] => None,
        _ if bindings.iter().any(is_ambiguous) => Some(bindings.iter().map(listed_binding).collect()),
        _ => Some(Json::Object(bindings.iter().map(binding).collect())),
    }
}

fn binding(binding: &Binding) -> (String, Json) {
    let value = match &binding.value {
        BindingValue::Input(name) => json!({ "input": name }),
        BindingValue::Static(value) => value.clone(),
    };
    (binding.parameter.clone(), value)
}

fn listed_binding(binding: &Binding) -> Json {
    match &binding.value {
        BindingValue::Input(name) => json!({ "name": binding.parameter, "input": name }),
        BindingValue::Static(value) => json!({ "name": binding.parameter, "value": value }),
    }
}

fn redacted_binding(binding: &Binding) -> (String, Json) {
    let value = match &binding.value {
        BindingValue::Input(name) => json!({ "input": name }),
        BindingValue::Static(_) => crate::spec::REDACTED.into(),
    };
    (binding.parameter.clone(), value)
}

fn template(template: &TemplateSpec) -> Json {
    let mut format = JsonMap::new();
    format.insert("kind".into(), template.format.clone().into());
    put(&mut format, "strict", template.strict.then_some(true));
    put(&mut format, "undefined", template.lenient.then_some("lenient"));
    keep(&mut format, &template.format_options);
    let mut parser = JsonMap::new();
    parser.insert("kind".into(), template.parser.clone().into());
    keep(&mut parser, &template.parser_options);
    let mut map = JsonMap::new();
    map.insert("format".into(), Json::Object(format));
    map.insert("parser".into(), Json::Object(parser));
    keep(&mut map, &template.extra);
    Json::Object(map)
}

//! Converts the metadata of a directive to JSON, which becomes the metadata of the prompt.

use serde_json::{Value as Json, json};

use super::capability::Capability;
use super::document::{Context, Cost, Directive, Hook};
use crate::json::JsonMap;

impl Directive {
    /// Converts the metadata that is set. Unknown metadata keeps its own keys.
    pub(super) fn metadata_json(&self) -> JsonMap {
        let mut map = JsonMap::new();
        put(&mut map, "version", json!(self.version));
        put(&mut map, "category", json!(self.category));
        put(&mut map, "author", json!(self.author));
        let limits: JsonMap = self.limits.iter().map(|(name, limit)| (name.clone(), json!(limit))).collect();
        put(&mut map, "limits", json!(limits));
        put(&mut map, "permissions", self.permissions.iter().map(Capability::as_str).collect());
        put(&mut map, "cost", self.cost.as_ref().map_or(Json::Null, cost));
        put(&mut map, "context", self.context.as_ref().map_or(Json::Null, context));
        put(&mut map, "hooks", self.hooks.iter().map(hook).collect());
        for (name, value) in &self.extra {
            map.entry(name.clone()).or_insert_with(|| value.clone());
        }
        map
    }
}

/// Inserts the value unless it is empty.
fn put(map: &mut JsonMap, name: &str, value: Json) {
    let is_empty = match &value {
        Json::Null => true,
        Json::Array(items) => items.is_empty(),
        Json::Object(fields) => fields.is_empty(),
        _ => false,
    };
    if !is_empty {
        map.insert(name.into(), value);
    }
}

fn cost(cost: &Cost) -> Json {
    let mut map = JsonMap::new();
    put(&mut map, "tokens", json!(cost.tokens));
    put(&mut map, "estimated_usage", json!(cost.estimated_usage));
    put(&mut map, "turns", json!(cost.turns));
    put(&mut map, "spawn_threshold", json!(cost.spawn_threshold));
    put(&mut map, "duration", json!(cost.duration));
    put(&mut map, "spend", json!(cost.spend));
    put(&mut map, "currency", json!(cost.currency));
    Json::Object(map)
}

fn context(context: &Context) -> Json {
    let mut map = JsonMap::new();
    put(&mut map, "related_files", json!(context.related_files));
    put(&mut map, "dependencies", json!(context.dependencies));
    let relation = |(kind, target): &(String, String)| json!({ "kind": kind, "target": target });
    put(&mut map, "relations", context.relations.iter().map(relation).collect());
    Json::Object(map)
}

fn hook(hook: &Hook) -> Json {
    let mut map = JsonMap::new();
    put(&mut map, "when", json!(hook.when));
    if let Some((item_type, item)) = &hook.execute {
        put(&mut map, "execute", json!({ "item_type": item_type, "item": item }));
    }
    put(&mut map, "inputs", json!(hook.inputs));
    Json::Object(map)
}

//! Removes properties from a JSON Schema.

use std::cell::Cell;
use std::collections::HashSet;

use serde_json::Value as Json;

use super::keywords::DEFINITIONS;
use super::{MAX_HOPS, percent_decoded, reference, schemas_at};
use crate::spec::Binding;

/// Returns a schema of an object without some of its properties.
pub(crate) fn without(schema: &Json, is_removed: &dyn Fn(&str) -> bool) -> Json {
    let mut schema = schema.clone();
    let root = schema.clone();
    let removal = Removal { root: &root, is_removed, steps: Cell::new(MAX_STEPS) };
    removal.remove(&mut schema, 0);
    prune(&mut schema);
    schema
}

/// Removes definitions that are no longer used, because they may show what was removed.
fn prune(schema: &mut Json) {
    if !DEFINITIONS.iter().any(|word| schema.get(*word).is_some()) {
        return;
    }
    let mut used = HashSet::new();
    let mut open = vec![&*schema];
    while let Some(next) = open.pop() {
        let name = next.get("$ref").and_then(Json::as_str).and_then(definition);
        if let Some((word, name)) = name
            && let Some(definition) = schema.get(word).and_then(|named| named.get(&name))
            && used.insert((word, name))
        {
            open.push(definition);
        }
        let is_root = std::ptr::eq(next, schema);
        let inner = next.as_object().into_iter().flatten();
        open.extend(inner.filter(|(key, _)| !is_root || !DEFINITIONS.contains(&key.as_str())).flat_map(schemas_at));
    }
    for word in DEFINITIONS {
        let Some(Json::Object(named)) = schema.get_mut(word) else { continue };
        named.retain(|name, _| used.contains(&(word, name.clone())));
        if named.is_empty() {
            schema.as_object_mut().map(|map| map.shift_remove(word));
        }
    }
}

/// Returns the keyword and the name of the definition that a reference points into.
fn definition(reference: &str) -> Option<(&'static str, String)> {
    let (word, rest) = reference.strip_prefix("#/")?.split_once('/')?;
    let word = DEFINITIONS.into_iter().find(|known| *known == word)?;
    let name = rest.split('/').next().unwrap_or_default();
    Some((word, percent_decoded(name)?.replace("~1", "/").replace("~0", "~")))
}

/// Returns a schema of an object without its bound parameters.
pub(crate) fn without_bound(schema: &Json, bindings: &[Binding]) -> Json {
    if bindings.is_empty() {
        return schema.clone();
    }
    let bound: HashSet<&str> = bindings.iter().map(|binding| binding.parameter.as_str()).collect();
    without(schema, &|name| bound.contains(name))
}

/// The maximum number of schemas to visit to remove properties. References can multiply them, and the schema may come
/// from a malicious server.
const MAX_STEPS: usize = 10_000;

struct Removal<'r> {
    root: &'r Json,
    is_removed: &'r dyn Fn(&str) -> bool,
    /// The number of steps left.
    steps: Cell<usize>,
}

impl Removal<'_> {
    fn remove(&self, schema: &mut Json, depth: usize) {
        if !self.mentions(schema, depth) {
            return;
        }
        if let Some(target) = reference(schema, self.root) {
            let mut target = target.clone();
            if let (Json::Object(target), Json::Object(map)) = (&mut target, &mut *schema) {
                map.shift_remove("$ref");
                target.extend(std::mem::take(map));
            }
            *schema = target;
            return self.remove(schema, depth + 1);
        }
        let Some(map) = schema.as_object_mut() else { return };
        if let Some(Json::Array(required)) = map.get_mut("required") {
            required.retain(|name| !self.is_named(name));
        }
        for word in ["properties", "dependentRequired", "dependentSchemas", "dependencies"] {
            if let Some(Json::Object(named)) = map.get_mut(word) {
                named.retain(|name, _| !(self.is_removed)(name));
            }
        }
        for names in map.get_mut("dependentRequired").and_then(Json::as_object_mut).into_iter().flatten() {
            if let (_, Json::Array(names)) = names {
                names.retain(|name| !self.is_named(name));
            }
        }
        for word in ["allOf", "anyOf", "oneOf"] {
            for choice in map.get_mut(word).and_then(Json::as_array_mut).into_iter().flatten() {
                self.remove(choice, depth + 1);
            }
        }
    }

    fn is_named(&self, name: &Json) -> bool {
        name.as_str().is_some_and(self.is_removed)
    }

    /// Returns whether a schema, or one that it combines, mentions such a property.
    fn mentions(&self, schema: &Json, depth: usize) -> bool {
        self.steps.set(self.steps.get().saturating_sub(1));
        if depth > MAX_HOPS || self.steps.get() == 0 {
            return false;
        }
        let has = |word: &str| {
            let named = schema.get(word).and_then(Json::as_object);
            named.is_some_and(|named| named.keys().any(|name| (self.is_removed)(name)))
        };
        let listed = |word: &str| schema.get(word).and_then(Json::as_array).into_iter().flatten();
        has("properties")
            || has("dependentRequired")
            || listed("required").any(|name| self.is_named(name))
            || reference(schema, self.root).is_some_and(|target| self.mentions(target, depth + 1))
            || ["allOf", "anyOf", "oneOf"].iter().any(|word| listed(word).any(|one| self.mentions(one, depth + 1)))
    }
}

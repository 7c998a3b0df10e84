//! Differences between the definitions of two versions.

use serde_json::Value as Json;
use tympan_core::Prompt;
use tympan_core::json::JsonMap;

/// A change of what a prompt declares.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DefinitionChange {
    /// The keys that lead to the value, such as `inputs`, `name`, `kind`. The elements of lists with names are found by
    /// their name, and those of other lists by their position.
    pub path: Vec<String>,
    /// The value before the change, or `None` if there was none.
    pub before: Option<Json>,
    /// The value after the change, or `None` if there is none.
    pub after: Option<Json>,
}

/// A hash of two versions that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HashChange {
    /// What the hash is of: `definition`, or the name of a variant for its template.
    pub name: String,
    /// Whether this is the hash of a template.
    pub is_template: bool,
    /// The hash before the change, or `None` if there was none.
    pub before: Option<String>,
    /// The hash after the change, or `None` if there is none.
    pub after: Option<String>,
}

/// Compares what two prompts declare, without their templates and without credentials.
pub(super) fn compare(before: &Prompt, after: &Prompt) -> Vec<DefinitionChange> {
    let mut changes = Vec::new();
    let (before, after) = (declared(before), declared(after));
    compare_maps(&mut Vec::new(), &before, &after, &mut changes);
    changes
}

/// Returns what a prompt declares. The texts of its templates are compared after rendering.
fn declared(prompt: &Prompt) -> JsonMap {
    let Json::Object(mut spec) = prompt.spec().to_json_redacted() else { return JsonMap::new() };
    spec.shift_remove("instructions");
    if let Some(Json::Object(variants)) = spec.get_mut("variants") {
        for variant in variants.values_mut().filter_map(Json::as_object_mut) {
            variant.shift_remove("body");
        }
    }
    spec
}

/// Compares the hashes of two prompts.
pub(super) fn compare_hashes(before: &Prompt, after: &Prompt) -> Vec<HashChange> {
    let definition = HashChange {
        name: "definition".to_owned(),
        is_template: false,
        before: Some(before.definition_hash().to_owned()),
        after: Some(after.definition_hash().to_owned()),
    };
    let hash = |prompt: &Prompt, arm: &str| prompt.variant_hash(Some(arm)).ok().map(str::to_owned);
    let templates = arms(before, after).into_iter().map(|arm| HashChange {
        before: hash(before, &arm),
        after: hash(after, &arm),
        name: arm,
        is_template: true,
    });
    std::iter::once(definition).chain(templates).filter(|change| change.before != change.after).collect()
}

/// Returns the names of the variants of both prompts.
pub(super) fn arms(before: &Prompt, after: &Prompt) -> Vec<String> {
    let mut arms: Vec<String> = before.arms().map(str::to_owned).collect();
    arms.extend(after.arms().filter(|arm| !before.arms().any(|own| own == *arm)).map(str::to_owned));
    arms
}

fn compare_maps(path: &mut Vec<String>, before: &JsonMap, after: &JsonMap, changes: &mut Vec<DefinitionChange>) {
    for (key, old) in before {
        path.push(key.clone());
        compare_values(path, Some(old), after.get(key), changes);
        path.pop();
    }
    for (key, new) in after.iter().filter(|(key, _)| !before.contains_key(*key)) {
        path.push(key.clone());
        compare_values(path, None, Some(new), changes);
        path.pop();
    }
}

fn compare_values(
    path: &mut Vec<String>,
    before: Option<&Json>,
    after: Option<&Json>,
    changes: &mut Vec<DefinitionChange>,
) {
    match (before, after) {
        (before, after) if before == after => {}
        (Some(Json::Object(before)), Some(Json::Object(after))) => compare_maps(path, before, after, changes),
        // A list of declarations that is new has one change for each of them.
        (before, after) if is_named(before) && is_named(after) => {
            let (old, new) = (by_name(before), by_name(after));
            let count = changes.len();
            compare_maps(path, &old, &new, changes);
            if changes.len() == count {
                // The declarations are the same, in another order.
                changes.push(change(path, before, after));
            }
        }
        (Some(Json::Array(old)), Some(Json::Array(new))) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                path.push(index.to_string());
                compare_values(path, Some(old), Some(new), changes);
                path.pop();
            }
        }
        (before, after) => changes.push(change(path, before, after)),
    }
}

fn change(path: &[String], before: Option<&Json>, after: Option<&Json>) -> DefinitionChange {
    DefinitionChange { path: path.to_vec(), before: before.cloned(), after: after.cloned() }
}

/// Returns whether a value is a list of maps with different names, or missing.
fn is_named(value: Option<&Json>) -> bool {
    let Some(value) = value else { return true };
    let Some(items) = value.as_array() else { return false };
    let mut names = std::collections::HashSet::new();
    !items.is_empty() && items.iter().all(|item| item["name"].as_str().is_some_and(|name| names.insert(name)))
}

/// Returns the elements of a list by their names.
fn by_name(value: Option<&Json>) -> JsonMap {
    let items = value.and_then(Json::as_array).into_iter().flatten();
    items.filter_map(|item| Some((item["name"].as_str()?.to_owned(), item.clone()))).collect()
}

//! The reach map as JSON.

use serde_json::Value as Json;
use tympan_lint::ReachMap;

use super::Prompt;

/// Converts a map to the JSON that `tympan inspect --reach --json` writes, with spans in addition to lines and columns.
pub(super) fn to_json(map: &ReachMap, file: &Prompt) -> Json {
    let offsets = &file.offsets;
    let mut json = map.to_json(&file.source);
    for (json, message) in list(&mut json["messages"]).zip(&map.messages) {
        json["span"] = message.span.map(|span| offsets.span(span)).into();
        for (json, input) in list(&mut json["inputs"]).zip(&message.inputs) {
            for (json, place) in list(&mut json["places"]).zip(&input.places) {
                json["span"] = offsets.span(place.span);
                for (json, (span, _)) in list(&mut json["path"]).zip(&place.path) {
                    json["span"] = offsets.span(*span);
                }
            }
        }
    }
    for (json, binding) in list(&mut json["bindings"]).zip(&map.bindings) {
        json["span"] = binding.span.map(|span| offsets.span(span)).into();
    }
    json
}

fn list(json: &mut Json) -> impl Iterator<Item = &mut Json> {
    json.as_array_mut().into_iter().flatten()
}

//! The places in the value of an input that text can be written to.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json, json};
use tympan_core::spec::schema::{Property, PropertyKind};

/// The maximum number of groups of places. Values can have any number of keys.
const MAX_GROUPS: usize = 64;

/// Places that are filled at the same time.
pub(super) type Group = Vec<Place>;

/// A place in a value. Items of lists count as the same place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    steps: Vec<Step>,
    /// Whether the text becomes a key of the map there.
    pub(super) is_key: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Key(String),
    Item,
}

/// Returns a value for an input in which there is a place for text, if its declaration allows one: the value of the case,
/// the default, the example, or one that is made up.
pub(super) fn value(own: Option<&Json>, declared: Option<&Property>) -> Json {
    let written =
        [own, declared.and_then(|input| input.default.as_ref()), declared.and_then(|input| input.example.as_ref())];
    let has_place = |value: &&Json| !value.is_null() && !places(value, is_thread(declared)).is_empty();
    let written = written.into_iter().flatten().find(has_place);
    written.cloned().unwrap_or_else(|| declared.map_or_else(|| json!(""), made_up))
}

/// Returns the places in the value of an input, in groups.
pub(super) fn groups(value: &Json, declared: Option<&Property>) -> Vec<Group> {
    let places: Vec<_> = places(value, is_thread(declared)).into_iter().collect();
    let size = places.len().div_ceil(MAX_GROUPS).max(1);
    places.chunks(size).map(<[Place]>::to_vec).collect()
}

/// Writes a text to places in a value.
pub(super) fn write(value: &mut Json, group: &[Place], text: &str) {
    group.iter().for_each(|place| write_at(value, &place.steps, place.is_key, text));
}

fn is_thread(declared: Option<&Property>) -> bool {
    declared.is_some_and(|input| input.kind == PropertyKind::Thread)
}

/// Makes up a value of the declared kind.
fn made_up(declared: &Property) -> Json {
    match declared.kind {
        PropertyKind::Array => json!([declared.items.as_deref().map_or_else(|| json!(""), made_up)]),
        PropertyKind::Object if declared.properties.is_empty() => json!({"text": ""}),
        PropertyKind::Object => {
            let properties = declared.properties.iter().map(|property| (property.name.clone(), made_up(property)));
            Json::Object(properties.collect())
        }
        PropertyKind::Thread => json!([{"role": "user", "content": ""}]),
        PropertyKind::Integer | PropertyKind::Float => json!(0),
        PropertyKind::Boolean => json!(false),
        _ => match declared.enum_values.as_deref() {
            Some([first, ..]) => first.clone(),
            _ => json!(""),
        },
    }
}

fn places(value: &Json, is_thread: bool) -> BTreeSet<Place> {
    let mut found = BTreeSet::new();
    collect(value, is_thread, &mut Vec::new(), &mut found);
    found
}

fn collect(value: &Json, is_thread: bool, steps: &mut Vec<Step>, found: &mut BTreeSet<Place>) {
    match value {
        Json::Array(items) => {
            steps.push(Step::Item);
            items.iter().for_each(|item| collect(item, is_thread, steps, found));
            steps.pop();
        }
        Json::Object(map) => {
            if !is_thread && !map.is_empty() {
                found.insert(Place { steps: steps.clone(), is_key: true });
            }
            // In a thread, only contents are texts: the roles are the host's.
            let is_text = |key: &str| !is_thread || matches!(key, "content" | "parts" | "text" | "value");
            for (key, value) in map.iter().filter(|(key, _)| is_text(key)) {
                steps.push(Step::Key(key.clone()));
                collect(value, is_thread, steps, found);
                steps.pop();
            }
        }
        _ => {
            found.insert(Place { steps: steps.clone(), is_key: false });
        }
    }
}

fn write_at(value: &mut Json, steps: &[Step], is_key: bool, text: &str) {
    match (steps.split_first(), value) {
        (None, Json::Object(map)) if is_key => rename_first(map, text),
        (None, value) => *value = Json::String(text.to_owned()),
        (Some((Step::Item, rest)), Json::Array(items)) => {
            items.iter_mut().for_each(|item| write_at(item, rest, is_key, text));
        }
        (Some((Step::Key(key), rest)), Json::Object(map)) => {
            map.get_mut(key).into_iter().for_each(|value| write_at(value, rest, is_key, text));
        }
        _ => {}
    }
}

/// Renames the first key of a map. The others stay, so that most of the map has the declared form.
fn rename_first(map: &mut Map<String, Json>, text: &str) {
    let old = std::mem::take(map);
    let names = old.into_iter().enumerate();
    map.extend(names.map(|(index, (key, value))| (if index == 0 { text.to_owned() } else { key }, value)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(value: &Json, declared: Option<&Property>) -> Vec<String> {
        let fill = |group: &Group| {
            let mut value = value.clone();
            write(&mut value, group, "T");
            value.to_string()
        };
        groups(value, declared).iter().map(fill).collect()
    }

    #[test]
    fn each_place_is_filled_on_its_own() {
        let value = json!({"docs": [{"title": "a", "year": 1}, {"title": "b"}], "tags": []});
        let expected = [
            r#"{"T":[{"title":"a","year":1},{"title":"b"}],"tags":[]}"#,
            r#"{"docs":[{"T":"a","year":1},{"T":"b"}],"tags":[]}"#,
            r#"{"docs":[{"title":"T","year":1},{"title":"T"}],"tags":[]}"#,
            r#"{"docs":[{"title":"a","year":"T"},{"title":"b"}],"tags":[]}"#,
        ];
        let mut found = filled(&value, None);
        found.sort_unstable();
        assert_eq!(found, expected);
    }

    #[test]
    fn only_contents_of_threads_are_texts() {
        let thread = Property::new("history", PropertyKind::Thread);
        let value = value(None, Some(&thread));
        assert_eq!(filled(&value, Some(&thread)), [r#"[{"role":"user","content":"T"}]"#]);
    }

    #[test]
    fn values_that_are_missing_are_made_up() {
        let item = Property {
            properties: vec![Property::new("q", PropertyKind::String)],
            ..Property::new("", PropertyKind::Object)
        };
        let mut list = Property { items: Some(Box::new(item)), ..Property::new("list", PropertyKind::Array) };
        list.default = Some(json!([]));
        assert_eq!(value(Some(&json!([])), Some(&list)), json!([{"q": ""}]));
        list.example = Some(json!([{"q": "why?"}]));
        assert_eq!(value(Some(&json!(null)), Some(&list)), json!([{"q": "why?"}]));
        assert_eq!(value(None, None), json!(""));
    }

    #[test]
    fn many_places_are_filled_together() {
        let value: Json = (0..10_000).map(|number| (format!("k{number}"), json!("a"))).collect::<Map<_, _>>().into();
        let groups = groups(&value, None);
        assert!(groups.len() <= MAX_GROUPS && groups.iter().map(Vec::len).sum::<usize>() == 10_001);
    }
}

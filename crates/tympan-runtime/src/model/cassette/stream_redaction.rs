//! Redacts secrets that a stream splits across several events, so that no single event contains them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

/// Redacts secrets that span several events of a stream.
///
/// The strings at the same path in all events are concatenated. If the result contains a secret, the first of these
/// strings is replaced by the whole redacted text, and the others by empty strings.
pub(super) fn scrub(stream: &str, scrub: &dyn Fn(Json) -> Json) -> String {
    let mut lines: Vec<Line<'_>> = stream.split_inclusive(['\n', '\r']).map(Line::read).collect();
    let mut places: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for (number, line) in lines.iter_mut().enumerate() {
        visit(&mut line.event, String::new(), &mut |place, text| {
            places.entry(place.to_owned()).or_default().insert(number);
            texts.entry(place.to_owned()).or_default().push_str(text);
        });
    }
    for (place, text) in texts {
        let whole = Json::String(text);
        let Json::String(mut clean) = scrub(whole.clone()) else { continue };
        if whole == clean.as_str() {
            continue;
        }
        for number in places.get(&place).into_iter().flatten() {
            let line = &mut lines[*number];
            line.is_changed = true;
            visit(&mut line.event, String::new(), &mut |other, text| {
                if other == place {
                    *text = std::mem::take(&mut clean);
                }
            });
        }
    }
    lines.iter().map(Line::write).collect()
}

/// A line of a stream and the event in it.
struct Line<'a> {
    text: &'a str,
    event: Json,
    is_changed: bool,
}

impl<'a> Line<'a> {
    fn read(text: &'a str) -> Self {
        let event = text.strip_prefix("data:").and_then(|data| serde_json::from_str(data).ok());
        Self { text, event: event.unwrap_or_default(), is_changed: false }
    }

    fn write(&self) -> String {
        if !self.is_changed {
            return self.text.to_owned();
        }
        let end = &self.text[self.text.trim_end_matches(['\n', '\r']).len()..];
        format!("data: {}{end}", self.event)
    }
}

/// Visits all strings in a value, with their paths. A path includes the fields that distinguish interleaved parts of a
/// response, such as the index of a tool call.
fn visit(value: &mut Json, place: String, visitor: &mut dyn FnMut(&str, &mut String)) {
    match value {
        Json::String(text) => visitor(&place, text),
        Json::Array(items) => items.iter_mut().for_each(|item| visit(item, format!("{place}[]"), visitor)),
        Json::Object(map) => {
            let parts = map.iter().filter(|(key, _)| key.ends_with("index") || *key == "type");
            let part: String = parts.map(|(key, value)| format!("{key}={value};")).collect();
            map.iter_mut().for_each(|(key, value)| visit(value, format!("{place}.{part}{key}"), visitor));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tympan_core::Redactor;

    fn scrubbed(stream: &str) -> String {
        let mut redactor = Redactor::default();
        redactor.register("horse-battery");
        scrub(stream, &|json| redactor.json(&json))
    }

    #[test]
    fn secrets_in_pieces_are_found() {
        let event = |text: &str| format!("data: {}\r\n\r\n", json!({ "id": "1", "delta": { "text": text } }));
        let stream = ["It is ", "horse", "-batt", "ery!", " Yes."].map(event).concat();
        let clean = scrubbed(&stream);
        assert!(!clean.contains("horse") && !clean.contains("ery"), "{clean}");
        assert!(clean.starts_with(&event("It is [REDACTED]! Yes.")), "{clean}");
        assert!(clean.ends_with(&event("")), "{clean}");
    }

    #[test]
    fn secrets_in_pieces_of_one_event_are_found_too() {
        let stream = format!("data: {}\n\n", json!({ "parts": ["a horse-", "battery"] }));
        assert_eq!(scrubbed(&stream), format!("data: {}\n\n", json!({ "parts": ["a [REDACTED]", ""] })));
    }

    #[test]
    fn what_holds_none_stays_as_it_is() {
        let stream = "\u{feff}: comment\ndata:  {\"a\" : \"horse\"}\n\nevent: x\rdata: [DONE]\r\r";
        assert_eq!(scrubbed(stream), stream);
    }

    #[test]
    fn parts_that_arrive_together_are_told_apart() {
        let event = |index: usize, text: &str| format!("data: {}\n\n", json!([{ "index": index, "text": text }]));
        let stream = [event(0, "horse-"), event(1, "a"), event(0, "battery"), event(1, "b")].concat();
        let expected = [event(0, "[REDACTED]"), event(1, "a"), event(0, ""), event(1, "b")].concat();
        assert_eq!(scrubbed(&stream), expected);
    }
}

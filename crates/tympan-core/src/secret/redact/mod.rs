//! Secrets out of everything that is kept: by key, by value, and by the looks of well-known credentials.

mod decode;
mod needles;
mod patterns;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value as Json;

use super::{REDACTED, Secret};
use crate::error::Error;
use crate::json::JsonMap;
use crate::secret::credential::{hides, is_credential};

/// Secrets of fewer bytes are not looked for in values: they would be found in the middle of words.
pub const MIN_SECRET_BYTES: usize = 4;

/// JSON within strings of JSON is looked into this deep.
const MAX_NESTED_TEXTS: usize = 4;

/// Takes secrets out of values and texts.
///
/// A value is hidden if its key names a credential ([`is_credential`]). A secret that was registered is taken out
/// wherever it is, in keys too, in capital and small letters alike. It is also found where some or all of its characters
/// are percent-encoded, escaped as in JSON or in HTML, also several times over, and, from 8 bytes on, as base64 and in
/// hexadecimal digits. A search takes as long as the text is, however many secrets there are.
/// Secrets of fewer than [`MIN_SECRET_BYTES`] bytes are only known by their keys. Credentials with an unmistakable
/// look, such as `AKIA…`, `Bearer …` or a private key, are taken out too, unless that is switched off.
#[derive(Clone)]
pub struct Redactor {
    needles: Arc<needles::Needles>,
    known: HashSet<String>,
    redact_values: bool,
}

impl Default for Redactor {
    fn default() -> Self {
        Self::new(true)
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor")
            .field("secrets", &self.known.len())
            .field("redact_values", &self.redact_values)
            .finish_non_exhaustive()
    }
}

impl Redactor {
    /// A redactor that knows no secrets yet. `redact_values`: whether credentials are also known by their looks.
    pub fn new(redact_values: bool) -> Self {
        Self { needles: Arc::default(), known: HashSet::new(), redact_values }
    }

    /// Makes a secret known.
    pub fn register(&mut self, secret: &str) {
        let secret = secret.trim();
        if secret.len() >= MIN_SECRET_BYTES && self.known.insert(secret.to_owned()) {
            Arc::make_mut(&mut self.needles).add_forms_of(secret);
        }
    }

    /// Makes secrets known.
    pub fn register_all<'s>(&mut self, secrets: impl IntoIterator<Item = &'s Secret>) {
        secrets.into_iter().for_each(|secret| self.register(secret.expose()));
    }

    /// A value without its secrets.
    pub fn json(&self, json: &Json) -> Json {
        self.value(json, 0)
    }

    fn value(&self, json: &Json, depth: usize) -> Json {
        match json {
            Json::String(text) => Json::String(self.nested(text, depth).into_owned()),
            Json::Array(items) => items.iter().map(|item| self.value(item, depth)).collect(),
            Json::Object(map) => Json::Object(self.map(map, depth)),
            other => other.clone(),
        }
    }

    fn map(&self, map: &JsonMap, depth: usize) -> JsonMap {
        // Headers and the like are often pairs of a name and a value.
        let named = ["name", "key"].into_iter().find_map(|key| map.get(key)?.as_str());
        let is_pair = named.is_some_and(is_credential);
        let mut redacted = JsonMap::with_capacity(map.len());
        let mut numbers = HashMap::new();
        for (key, value) in map {
            let hidden = hides(key, value) || (is_pair && key == "value");
            let value = if hidden { REDACTED.into() } else { self.value(value, depth) };
            redacted.insert(free_key(&redacted, &mut numbers, self.text(key).into_owned()), value);
        }
        redacted
    }

    /// A text that may be JSON itself, as the arguments of tools are: its keys count too.
    fn nested<'t>(&self, text: &'t str, depth: usize) -> Cow<'t, str> {
        let begins_as_json = text.trim_start().starts_with(['{', '[']);
        if begins_as_json
            && depth < MAX_NESTED_TEXTS
            && let Ok(json) = serde_json::from_str::<Json>(text)
        {
            let redacted = self.value(&json, depth + 1);
            // What holds no secret stays as it was written, to the last space.
            if redacted != json {
                return Cow::Owned(self.text(&redacted.to_string()).into_owned());
            }
        }
        self.text(text)
    }

    /// A text without its secrets. Keys in it are not known: it is only searched.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut found = self.find(text);
        if self.redact_values {
            patterns::find(text, &mut found);
        }
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        Cow::Owned(without(text, found))
    }
}

impl Redactor {
    /// Where secrets that were registered are in a text.
    fn find(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        if self.needles.is_empty() {
            return found;
        }
        self.needles.find(text.to_ascii_lowercase().as_bytes(), |range| found.push(range));
        for mut decoded in decode::passes(text.as_bytes()) {
            decoded.bytes.make_ascii_lowercase();
            self.needles.find(&decoded.bytes, |range| {
                let place = decoded.place(&range);
                found.push(text.floor_char_boundary(place.start)..text.ceil_char_boundary(place.end));
            });
        }
        found
    }

    /// A value without the secrets that were registered. Other than in [`Redactor::json`], nothing is hidden by its key or
    /// by its looks: what is written for a program to read again keeps its form.
    ///
    /// Keys that are words in small letters, as the fields of a record are, stay as they are.
    pub fn known_json(&self, json: Json) -> Json {
        let is_word = |key: &str| key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        match json {
            Json::String(text) => Json::String(self.known_text(text)),
            Json::Array(items) => items.into_iter().map(|item| self.known_json(item)).collect(),
            Json::Object(map) => {
                let mut redacted = JsonMap::with_capacity(map.len());
                let mut numbers = HashMap::new();
                for (key, value) in map {
                    let key = if is_word(&key) { key } else { free_key(&redacted, &mut numbers, self.known_text(key)) };
                    redacted.insert(key, self.known_json(value));
                }
                Json::Object(redacted)
            }
            other => other,
        }
    }

    /// A text without the secrets that were registered.
    pub fn known_text(&self, text: String) -> String {
        let found = self.find(&text);
        if found.is_empty() { text } else { without(&text, found) }
    }
}

/// The text with `[REDACTED]` in place of these ranges; what overlaps is one.
fn without(text: &str, mut ranges: Vec<Range<usize>>) -> String {
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    let mut ranges = ranges.into_iter().peekable();
    while let Some(mut range) = ranges.next() {
        while let Some(next) = ranges.next_if(|next| next.start < range.end) {
            range.end = range.end.max(next.end);
        }
        out.push_str(&text[at..range.start]);
        out.push_str(REDACTED);
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}

/// The key, or one like it that the map does not have: nothing is lost where two keys hold secrets.
/// The next number of each such key is remembered: a map can have very many.
fn free_key(map: &JsonMap, numbers: &mut HashMap<String, usize>, key: String) -> String {
    let mut free = key.clone();
    while map.contains_key(&free) {
        let number = numbers.entry(key.clone()).or_insert(1);
        *number += 1;
        free = format!("{key} ({number})");
    }
    free
}

impl Error {
    /// Returns the error with all secrets removed from its message and its help, for text that quotes someone else.
    #[must_use]
    pub fn without_secrets(self, redactor: &Redactor) -> Self {
        self.map_words(|words| redactor.text(words).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn redactor() -> Redactor {
        let mut redactor = Redactor::default();
        redactor.register("hunter2/with space+\"quote\"");
        redactor.register("plain-secret-1");
        redactor.register("abc");
        redactor
    }

    #[test]
    fn secrets_go_wherever_they_stand() {
        let value = json!({
            "a plain-secret-1 key": 1,
            "list": ["x plain-secret-1 y plain-secret-1", { "deep": "plain-secret-1" }],
            "url": "https://h/?q=hunter2%2Fwith%20space%2B%22quote%22",
            "form": "q=hunter2%2Fwith+space%2B%22quote%22",
            "lower": "hunter2%2fwith%20space%2b%22quote%22",
            "text of JSON": "{\"note\": \"hunter2/with space+\\\"quote\\\"\"} and more",
            "abc": "abc",
        });
        let shown = redactor().json(&value).to_string();
        for leak in ["plain-secret", "hunter2", "quote"] {
            assert!(!shown.contains(leak), "{leak}: {shown}");
        }
        // Too short to be told from words.
        assert!(shown.contains(r#""abc":"abc""#), "{shown}");
    }

    #[test]
    fn base64_hides_no_secret_at_any_place() {
        use base64::Engine;
        for prefix in ["", "u", "us", "user:", "a longer one:"] {
            for suffix in ["", "x", "yz", "\n"] {
                let text = format!("{prefix}plain-secret-1{suffix}");
                let encoded = base64::engine::general_purpose::STANDARD.encode(&text);
                let shown = redactor().text(&encoded).into_owned();
                assert!(shown.contains(REDACTED), "{text}: {shown}");
                assert!(shown.len() - REDACTED.len() < encoded.len() - 16, "{text}: {shown}");
            }
        }
    }

    /// What templates and programs make of a secret.
    fn disguises(secret: &str) -> Vec<String> {
        let each = |write: &dyn Fn(char) -> String| secret.chars().map(write).collect::<String>();
        let bytes = |write: &dyn Fn(u8) -> String| secret.bytes().map(write).collect::<String>();
        let json = serde_json::to_string(secret).expect("it is a string");
        vec![
            secret.to_uppercase(),
            secret.to_lowercase(),
            bytes(&|byte| format!("%{byte:02X}")),
            bytes(&|byte| format!("%{byte:02x}")),
            bytes(&|byte| if byte % 2 == 0 { format!("%{byte:02x}") } else { char::from(byte).to_string() }),
            each(&|char| format!("\\u{:04x}", u32::from(char))),
            each(&|char| format!("\\u{:04X}", u32::from(char))),
            each(&|char| format!("\\\\u{:04X}", u32::from(char))),
            each(&|char| format!("\\u{{{:x}}}", u32::from(char))),
            each(&|char| format!("\\x{:02x}", u32::from(char))),
            each(&|char| format!("&#{};", u32::from(char))),
            each(&|char| format!("&#x{:X};", u32::from(char))),
            each(&|char| format!("%u{:04x}", u32::from(char))),
            bytes(&|byte| format!("{byte:02x}")),
            bytes(&|byte| format!("{byte:02X}")),
            bytes(&|byte| format!("%25{byte:02X}")),
            json.clone(),
            serde_json::to_string(&json).expect("it is a string"),
        ]
    }

    #[test]
    fn no_disguise_hides_a_secret() {
        for secret in ["hunter2/With space+\"quote\"", "plain-Secret-1", "back\\slash%41&amp;x", "pa%73s\\u0041word"] {
            let mut redactor = Redactor::new(false);
            redactor.register(secret);
            for disguise in disguises(secret).into_iter().chain([secret.to_owned()]) {
                let text = format!("before {disguise} after");
                let shown = redactor.text(&text);
                assert!(shown.contains(REDACTED), "{secret}: {disguise}: {shown}");
                // Quotes around the secret may be left.
                assert!(shown.len() <= "before [REDACTED] after".len() + 6, "{secret}: {disguise}: {shown}");
            }
        }
    }

    #[test]
    fn other_alphabets_have_letters_of_two_sizes_too() {
        let mut redactor = Redactor::new(false);
        redactor.register("Straße-Épée");
        for text in ["STRASSE-ÉPÉE", "straße-épée", "Stra%C3%9Fe-%C3%89p%C3%A9e", r"Stra\u00dfe-\u00C9p\u00e9e"] {
            assert_eq!(redactor.text(text), REDACTED, "{text}");
        }
    }

    #[test]
    fn records_keep_their_form() {
        let mut redactor = Redactor::new(true);
        redactor.register("response-key-1");
        let record = json!({
            "response": { "api_key": "other", "text": "is RESPONSE-KEY-1.", "response-key-1": 1, "n": 2.5 },
            "arguments": "{\"password\": \"x\", \"a\": \"response-key-1\"}",
        });
        let expected = json!({
            "response": { "api_key": "other", "text": "is [REDACTED].", "[REDACTED]": 1, "n": 2.5 },
            "arguments": "{\"password\": \"x\", \"a\": \"[REDACTED]\"}",
        });
        assert_eq!(redactor.known_json(record), expected);
    }

    #[test]
    fn texts_of_json_are_looked_into() {
        let call = json!({ "arguments": "{\"api_key\": \"k\", \"n\":  1}", "other": "{\"n\":  1}" });
        let shown = redactor().json(&call);
        assert_eq!(shown["arguments"], r#"{"api_key":"[REDACTED]","n":1}"#);
        assert_eq!(shown["other"], "{\"n\":  1}");
    }

    #[test]
    fn pairs_are_read_as_keys_and_values() {
        let shown = redactor().json(&json!([{ "name": "Api-Key", "value": "v" }, { "name": "n", "value": "v" }]));
        assert_eq!(shown, json!([{ "name": "Api-Key", "value": REDACTED }, { "name": "n", "value": "v" }]));
    }

    #[test]
    fn no_entry_is_lost_where_keys_hold_secrets() {
        let mut redactor = Redactor::default();
        redactor.register("first value");
        redactor.register("other value");
        let shown = redactor.json(&json!({ "first value": 1, "other value": 2 }));
        assert_eq!(shown, json!({ "[REDACTED]": 1, "[REDACTED] (2)": 2 }));
    }

    #[test]
    fn nothing_prints_the_secrets() {
        assert!(!format!("{:?}", redactor()).contains("secret-1"));
    }
}

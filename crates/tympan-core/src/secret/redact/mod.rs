//! Removes secrets from everything that is saved: by key, by value, and by the patterns of well-known credentials.

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

/// Shorter secrets are not searched for in values, because they would match in the middle of words.
pub const MIN_SECRET_BYTES: usize = 4;

/// The maximum nesting depth of JSON inside JSON strings that is searched.
const MAX_NESTED_TEXTS: usize = 4;

/// Removes secrets from JSON values and text.
///
/// A value is redacted if its key names a credential ([`is_credential`]).
///
/// A registered secret is removed wherever it occurs, including in keys. The search ignores case. It also finds secrets
/// of which some or all characters are percent-encoded or escaped as in JSON or HTML, even several times over. Secrets
/// of at least 8 bytes are also found as base64 and in hexadecimal. Secrets shorter than [`MIN_SECRET_BYTES`] bytes are
/// not searched for: only their keys identify them. The search time is linear in the length of the text, however many
/// secrets are registered.
///
/// Credentials with an unmistakable pattern, such as `AKIA…`, `Bearer …` or a private key, are removed too, unless that
/// is turned off.
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
    /// Creates a redactor without registered secrets. `redact_values` sets whether credentials are also detected by
    /// their pattern.
    pub fn new(redact_values: bool) -> Self {
        Self { needles: Arc::default(), known: HashSet::new(), redact_values }
    }

    /// Registers a secret. Whitespace around it is trimmed, and secrets shorter than [`MIN_SECRET_BYTES`] bytes are
    /// ignored.
    pub fn register(&mut self, secret: &str) {
        let secret = secret.trim();
        if secret.len() >= MIN_SECRET_BYTES && self.known.insert(secret.to_owned()) {
            Arc::make_mut(&mut self.needles).add_forms_of(secret);
        }
    }

    /// Registers several secrets.
    pub fn register_all<'s>(&mut self, secrets: impl IntoIterator<Item = &'s Secret>) {
        secrets.into_iter().for_each(|secret| self.register(secret.expose()));
    }

    /// Returns a JSON value without its secrets.
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
        // Headers and the like are often written as pairs of a name and a value.
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

    /// Redacts a string that may itself contain JSON, such as the arguments of a tool call. Keys in it count too.
    fn nested<'t>(&self, text: &'t str, depth: usize) -> Cow<'t, str> {
        let begins_as_json = text.trim_start().starts_with(['{', '[']);
        if begins_as_json
            && depth < MAX_NESTED_TEXTS
            && let Ok(json) = serde_json::from_str::<Json>(text)
        {
            let redacted = self.value(&json, depth + 1);
            // JSON without secrets keeps its exact formatting.
            if redacted != json {
                return Cow::Owned(self.text(&redacted.to_string()).into_owned());
            }
        }
        self.text(text)
    }

    /// Returns the text without its secrets. The text is only searched; keys in it are not interpreted.
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

/// Returns the ranges of well-known services' keys and of private keys in a text, sorted.
pub fn well_known_keys(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    patterns::keys(text, &mut found);
    found.sort_by_key(|range| (range.start, range.end));
    found
}

impl Redactor {
    /// Returns the ranges of registered secrets in a text.
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

    /// Returns a JSON value without the registered secrets.
    ///
    /// Unlike [`Redactor::json`], this does not redact values by key or by pattern, so that a program can read the
    /// value back.
    ///
    /// Keys that consist of lowercase letters and underscores, such as the field names of a record, are unchanged.
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

    /// Returns the text without the registered secrets.
    pub fn known_text(&self, text: String) -> String {
        let found = self.find(&text);
        if found.is_empty() { text } else { without(&text, found) }
    }
}

/// Replaces these ranges of the text with `[REDACTED]`. Overlapping ranges are merged.
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

/// Returns the key, or the key with a number if the map already has it, so that no entry is lost if two redacted keys
/// are equal. `numbers` stores the last number used for each key, because a map can have very many of them.
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
    /// Returns the error with all secrets removed from its message and its help. Use it for errors that quote text from
    /// elsewhere, such as a provider's response.
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
        // Too short to be distinguished from words.
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

    /// Returns the forms that templates and programs may convert a secret to.
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
                // Quotes around the secret may remain.
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

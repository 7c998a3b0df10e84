//! Decides which keys name a credential. Everything that people see, from `Debug` output to traces, uses this module.

use serde_json::Value as Json;

use super::REDACTED;

/// Names of credentials, in lowercase and without separators, that match anywhere in a key.
const PARTS: [&str; 20] = [
    "secret",
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "apikey",
    "accesskey",
    "privatekey",
    "signingkey",
    "encryptionkey",
    "masterkey",
    "sharedkey",
    "subscriptionkey",
    "accountkey",
    "credential",
    "cookie",
    "connectionstring",
    "sessionid",
    "sessionkey",
    "sastoken",
];

/// Names of credentials that have to match the whole key.
const WHOLE: [&str; 9] = ["auth", "bearer", "pwd", "sas", "session", "sid", "jwt", "creds", "oauth"];

/// Words about authentication. They name a credential unless the last word of the key is one of [`MANNERS`].
const PROOFS: [&str; 5] = ["auth", "oauth", "oauth2", "authentication", "authorization"];

/// Last words that describe the method of authentication rather than a credential.
const MANNERS: [&str; 14] = [
    "mode", "type", "method", "methods", "scheme", "kind", "url", "uri", "endpoint", "provider", "required", "enabled",
    "name", "style",
];

/// Words before `tokens` that indicate text tokens rather than credentials.
const COUNTS: [&str; 25] = [
    "max",
    "min",
    "total",
    "prompt",
    "completion",
    "input",
    "output",
    "cached",
    "cache",
    "reasoning",
    "thinking",
    "prediction",
    "audio",
    "text",
    "image",
    "num",
    "number",
    "count",
    "limit",
    "budget",
    "new",
    "special",
    "stop",
    "creation",
    "read",
];

/// Words before `token` that indicate a special token in a model's vocabulary.
const MARKS: [&str; 7] = ["eos", "bos", "pad", "unk", "sep", "cls", "stop"];

/// Words after `token` that do not change its meaning as a credential.
const SAME: [&str; 5] = ["value", "string", "data", "raw", "header"];

/// Returns whether a key names a credential: `apiKey`, `client_secret`, `Authorization`, … but not `max_tokens` or
/// `authors`.
///
/// Letters that look like Latin letters count as those letters, and invisible characters are ignored.
pub fn is_credential(key: &str) -> bool {
    let words = words(key);
    let name = words.concat();
    WHOLE.contains(&name.as_str())
        || PARTS.iter().any(|part| name.contains(part))
        || words.iter().any(|word| word == "pwd")
        || names_token(&words, &name)
        || names_proof(&words)
}

/// Returns whether the last significant word is `token` or `tokens` and does not refer to text tokens.
fn names_token(words: &[String], name: &str) -> bool {
    let rest = words.iter().rev().skip_while(|word| SAME.contains(&word.as_str()) || is_number(word));
    let mut rest = rest.map(String::as_str);
    match rest.next() {
        Some("tokens") => !rest.any(|word| COUNTS.contains(&word)),
        Some("token") => !rest.next().is_some_and(|word| MARKS.contains(&word)),
        // Written as one word: `accesstoken`.
        _ => name.ends_with("token"),
    }
}

fn names_proof(words: &[String]) -> bool {
    words.iter().any(|word| PROOFS.contains(&word.as_str()))
        && words.last().is_some_and(|last| !MANNERS.contains(&last.as_str()))
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Splits a key into words in lowercase: `AWS_accessKey-id` has four.
fn words(key: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    let mut folded = key.chars().filter_map(fold).peekable();
    while let Some(char) = folded.next() {
        if !char.is_ascii_alphanumeric() {
            words.push(String::new());
            was_lower = false;
            continue;
        }
        // A word ends before `K` in `accessKey`, and also in `APIKey`, because a lowercase letter follows the `K`.
        let begins = char.is_ascii_uppercase()
            && (was_lower || (folded.peek().is_some_and(char::is_ascii_lowercase) && is_capitals(words.last())));
        if begins {
            words.push(String::new());
        }
        was_lower = char.is_ascii_lowercase() || char.is_ascii_digit();
        if let Some(word) = words.last_mut() {
            word.push(char.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns whether the word has at least two letters. The caller knows that the last letter is a capital. Then all
/// letters are, because a capital after a lowercase letter starts a new word.
fn is_capitals(word: Option<&String>) -> bool {
    word.is_some_and(|word| word.len() > 1)
}

/// Returns the ASCII character that a character looks like, or `None` for an invisible character.
fn fold(char: char) -> Option<char> {
    Some(match char {
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}' => {
            return None;
        }
        '\u{ff01}'..='\u{ff5e}' => offset(char, 0xff01, '!'),
        // Mathematical letters: consecutive alphabets of 26 capitals and 26 lowercase letters.
        '\u{1d400}'..='\u{1d6a3}' => match (u32::from(char) - 0x1d400) % 52 {
            place @ 0..26 => char::from_u32(place + u32::from('A')).unwrap_or(char),
            place => char::from_u32(place - 26 + u32::from('a')).unwrap_or(char),
        },
        'а' | 'α' | 'ɑ' => 'a',
        'в' | 'ь' | 'Ь' => 'b',
        'с' | 'ϲ' => 'c',
        'ԁ' => 'd',
        'е' | 'ё' | 'є' | 'ε' => 'e',
        'һ' => 'h',
        'і' | 'ї' | 'ι' | 'ı' => 'i',
        'ј' => 'j',
        'к' | 'κ' => 'k',
        'ӏ' | 'ǀ' => 'l',
        'м' => 'm',
        'п' | 'η' => 'n',
        'о' | 'ο' | 'σ' => 'o',
        'р' | 'ρ' => 'p',
        'ԛ' => 'q',
        'г' | 'ɡ' => {
            if char == 'ɡ' {
                'g'
            } else {
                'r'
            }
        }
        'ѕ' => 's',
        'т' | 'τ' => 't',
        'υ' => 'u',
        'ν' | 'ѵ' => 'v',
        'ԝ' | 'ω' => 'w',
        'х' | 'χ' => 'x',
        'у' | 'γ' => 'y',
        'А' | 'Α' => 'A',
        'В' | 'Β' => 'B',
        'С' | 'Ϲ' => 'C',
        'Е' | 'Ε' => 'E',
        'Н' | 'Η' => 'H',
        'І' | 'Ι' | 'Ӏ' => 'I',
        'Ј' => 'J',
        'К' | 'Κ' => 'K',
        'М' | 'Μ' => 'M',
        'Ν' => 'N',
        'О' | 'Ο' => 'O',
        'Р' | 'Ρ' => 'P',
        'Ѕ' => 'S',
        'Т' | 'Τ' => 'T',
        'Х' | 'Χ' => 'X',
        'У' | 'Υ' => 'Y',
        'Ζ' => 'Z',
        other => other,
    })
}

/// Maps a character from the range that starts at `from` to the range that starts at `to`.
fn offset(char: char, from: u32, to: char) -> char {
    char::from_u32(u32::from(char) - from + u32::from(to)).unwrap_or(char)
}

/// Redacts every value whose key names a credential.
pub(crate) fn redact(json: &mut Json) {
    match json {
        Json::Array(items) => items.iter_mut().for_each(redact),
        Json::Object(map) => {
            for (key, value) in map.iter_mut() {
                if hides(key, value) {
                    *value = Json::String(REDACTED.into());
                } else {
                    redact(value);
                }
            }
        }
        _ => {}
    }
}

/// Redacts every value whose key names a credential, except for references to environment variables (`${env:NAME}`).
pub(crate) fn redact_literals(json: &mut Json) {
    match json {
        Json::Array(items) => items.iter_mut().for_each(redact_literals),
        Json::Object(map) => {
            for (key, value) in map.iter_mut() {
                let is_reference = value.as_str().is_some_and(|text| text.starts_with("${env:") && text.ends_with('}'));
                if hides(key, value) && !is_reference {
                    *value = Json::String(REDACTED.into());
                } else {
                    redact_literals(value);
                }
            }
        }
        _ => {}
    }
}

/// Returns whether the value of a key has to be redacted. Nulls and booleans never are credentials, and a number under
/// a key that ends in `tokens` is a count.
pub(crate) fn hides(key: &str, value: &Json) -> bool {
    match value {
        Json::Null | Json::Bool(_) => false,
        Json::Number(_) => is_credential(key) && !key.to_ascii_lowercase().ends_with("tokens"),
        _ => is_credential(key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_known_by_their_names() {
        let keys = [
            "apiKey",
            "api_key",
            "API-KEY",
            "APIKey",
            "clientSecret",
            "PASSWORD",
            "access_token",
            "accesstoken",
            "Authorization",
            "Proxy-Authorization",
            "Set-Cookie",
            "access_tokens",
            "refreshTokens",
            "token",
            "token_2",
            "tokenValue",
            "sas",
            "pwd",
            "db_pwd",
            "session",
            "session_id",
            "AWS_ACCESS_KEY_ID",
            "connectionString",
            "auth",
            "authHeader",
            "x-auth",
            "аpi_key",
            "api\u{200b}_key",
            "ａｐｉ＿ｋｅｙ",
            "𝐩𝐚𝐬𝐬𝐰𝐨𝐫𝐝",
            "ѕecret",
        ];
        for key in keys {
            assert!(is_credential(key), "{key}");
        }
        let keys = [
            "maxOutputTokens",
            "max_tokens",
            "prompt_tokens_details",
            "cached_tokens",
            "gen_ai.usage.input_tokens",
            "authors",
            "author",
            "authenticationMode",
            "auth_type",
            "endpoint",
            "key",
            "keywords",
            "primary_key",
            "tokenizer",
            "token_count",
            "token_type",
            "eos_token",
            "cache_creation_input_tokens",
            "assassin",
            "passage",
            "автор",
            "",
        ];
        for key in keys {
            assert!(!is_credential(key), "{key}");
        }
    }

    #[test]
    fn counts_stay() {
        let mut json = serde_json::json!({ "tokens": 5, "pwd": 5, "auth": true, "token": null, "tokens_": ["a"] });
        redact(&mut json);
        assert_eq!(
            json,
            serde_json::json!({
                "tokens": 5, "pwd": REDACTED, "auth": true, "token": null, "tokens_": REDACTED,
            })
        );
    }
}

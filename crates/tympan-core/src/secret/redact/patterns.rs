//! Finds credentials by their pattern. Every search is linear in the length of the text.

use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem::find_iter;

use crate::secret::credential::is_credential;

/// Prefixes of well-known services' keys, and the minimum number of characters that follow each.
const PREFIXES: [(&str, usize); 21] = [
    ("sk-", 16),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("gsk_", 20),
    ("xai-", 20),
    ("pplx-", 20),
    ("hf_", 20),
    ("npm_", 20),
    ("glpat-", 16),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xoxa-", 10),
    ("xoxs-", 10),
    ("AIza", 30),
];

/// The minimum length of a token after `Bearer ` that counts as a credential.
const MIN_BEARER: usize = 8;

/// Adds the ranges of everything that looks like a credential.
pub(super) fn find(text: &str, found: &mut Vec<Range<usize>>) {
    keys(text, found);
    addresses(text, found);
    schemes(text, found);
    web_tokens(text, found);
    assigned(text, found);
}

/// Adds the ranges of keys that are recognized without what is around them.
pub(super) fn keys(text: &str, found: &mut Vec<Range<usize>>) {
    aws(text, found);
    for (prefix, least) in PREFIXES {
        prefixed(text, prefix, least, found);
    }
    private_keys(text, found);
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_key(byte: u8) -> bool {
    is_word(byte) || byte == b'-'
}

/// Returns the end of the run of matching bytes that starts at `start`.
fn run(text: &str, start: usize, is_inside: impl Fn(u8) -> bool) -> usize {
    let rest = &text.as_bytes()[start..];
    start + rest.iter().position(|byte| !is_inside(*byte)).unwrap_or(rest.len())
}

/// Returns whether a word starts at this offset.
fn begins_word(text: &str, at: usize) -> bool {
    at == 0 || !is_word(text.as_bytes()[at - 1])
}

/// Finds AWS access key IDs, which have 20 characters.
fn aws(text: &str, found: &mut Vec<Range<usize>>) {
    for prefix in ["AKIA", "ASIA"] {
        for start in find_iter(text.as_bytes(), prefix) {
            let rest = text.as_bytes()[start..].iter().take(21);
            let length = rest.take_while(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()).count();
            if length == 20 && begins_word(text, start) {
                found.push(start..start + length);
            }
        }
    }
}

fn prefixed(text: &str, prefix: &str, least: usize, found: &mut Vec<Range<usize>>) {
    let mut scanned = 0;
    for start in find_iter(text.as_bytes(), prefix) {
        if start < scanned || !begins_word(text, start) {
            continue;
        }
        let end = run(text, start, is_key);
        scanned = end;
        let tail = &text[start + prefix.len()..end];
        // Require a digit, because ordinary words joined by dashes rarely have one.
        if tail.len() >= least && tail.bytes().any(|byte| byte.is_ascii_digit()) {
            found.push(start..end);
        }
    }
}

/// Finds private keys in PEM format, up to their end marker or the end of the text.
fn private_keys(text: &str, found: &mut Vec<Range<usize>>) {
    const LONGEST_HEADER: usize = 64;
    let mut scanned = 0;
    for start in find_iter(text.as_bytes(), "-----BEGIN ") {
        if start < scanned {
            continue;
        }
        let header = start + "-----BEGIN ".len();
        let end_of_header = text.as_bytes()[header..].iter().take(LONGEST_HEADER).position(|byte| *byte == b'-');
        let Some(name) = end_of_header.map(|length| &text[header..header + length]) else { continue };
        if name.contains("PRIVATE KEY") {
            let close = text[header..].find("-----END ").map(|at| header + at + "-----END ".len());
            let end = close.map_or(text.len(), |at| text[at..].find("-----").map_or(text.len(), |end| at + end + 5));
            scanned = end;
            found.push(start..end);
        }
    }
}

/// Finds `user:password@` in URLs, and credentials in their queries.
fn addresses(text: &str, found: &mut Vec<Range<usize>>) {
    let ends_address = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'<' | b'>' | b'`');
    let mut scanned = 0;
    for start in find_iter(text.as_bytes(), "://").map(|at| at + 3) {
        let host = run(text, start, |byte| !ends_address(byte) && !matches!(byte, b'/' | b'?' | b'#' | b'\\'));
        if let Some((user, _)) = text[start..host].rsplit_once('@')
            && user.contains(':')
        {
            found.push(start..start + user.len());
        }
        // The query of an outer URL has already been searched, including the URLs in it.
        if start >= scanned {
            scanned = run(text, host, |byte| !ends_address(byte));
            query(text, host..scanned, found);
        }
    }
}

fn query(text: &str, range: Range<usize>, found: &mut Vec<Range<usize>>) {
    let mut at = range.start;
    for pair in text[range].split(['?', '&', ';', '#']) {
        if let Some((name, value)) = pair.split_once('=')
            && !value.is_empty()
            && (is_credential(name) || matches!(name, "key" | "sig" | "signature" | "code" | "X-Amz-Signature"))
        {
            found.push(at + name.len() + 1..at + pair.len());
        }
        at += pair.len() + 1;
    }
}

/// Finds the tokens after `Bearer ` and `Basic `.
fn schemes(text: &str, found: &mut Vec<Range<usize>>) {
    let is_token = |byte: u8| is_key(byte) || matches!(byte, b'.' | b'~' | b'+' | b'/' | b'=');
    for at in memchr::memchr2_iter(b'B', b'b', text.as_bytes()) {
        let begins_with = |scheme: &str| {
            text.as_bytes()
                .get(at..at + scheme.len())
                .is_some_and(|bytes| bytes.eq_ignore_ascii_case(scheme.as_bytes()))
        };
        let is_bearer = begins_with("bearer ");
        if !(is_bearer || begins_with("basic ")) || !begins_word(text, at) {
            continue;
        }
        let start = at + if is_bearer { "bearer ".len() } else { "basic ".len() };
        let end = run(text, start, is_token);
        let token = text[start..end].trim_end_matches('.');
        let is_hidden = if is_bearer {
            // An ordinary word is not a token: leave phrases such as "bearer certificates" alone.
            token.len() >= MIN_BEARER && !token.bytes().all(|byte| byte.is_ascii_lowercase())
        } else {
            STANDARD.decode(token).is_ok_and(|pair| pair.contains(&b':') && pair.is_ascii())
        };
        if is_hidden {
            found.push(start..start + token.len());
        }
    }
}

/// Finds JSON Web Tokens: three parts, of which the first is a JSON object.
fn web_tokens(text: &str, found: &mut Vec<Range<usize>>) {
    let mut scanned = 0;
    for start in find_iter(text.as_bytes(), "eyJ") {
        if start < scanned || !begins_word(text, start) {
            continue;
        }
        let end = run(text, start, |byte| is_key(byte) || byte == b'.');
        scanned = end;
        let token = text[start..end].trim_end_matches('.');
        let parts: Vec<usize> = token.split('.').map(str::len).collect();
        if matches!(parts[..], [header, payload, signature] if header >= 8 && payload >= 4 && signature >= 1) {
            found.push(start..start + token.len());
        }
    }
}

/// Finds keys in Azure connection strings.
fn assigned(text: &str, found: &mut Vec<Range<usize>>) {
    for name in ["AccountKey=", "SharedAccessKey=", "SharedAccessSignature="] {
        let mut end = 0;
        for start in find_iter(text.as_bytes(), name).map(|at| at + name.len()) {
            if start < end {
                continue;
            }
            end = run(text, start, |byte| !byte.is_ascii_whitespace() && !matches!(byte, b';' | b'"' | b'\''));
            if end > start {
                found.push(start..end);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::secret::redact::Redactor;

    #[test]
    fn well_known_credentials_are_found() {
        let cases = [
            ("my key is AKIAIOSFODNN7EXAMPLE.", "my key is [REDACTED]."),
            ("-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- after", "[REDACTED] after"),
            ("-----BEGIN PRIVATE KEY-----\nMII", "[REDACTED]"),
            ("https://user:hunter2@host/x", "https://[REDACTED]@host/x"),
            ("postgres://u:p@ss@h:5/db?sslmode=on", "postgres://[REDACTED]@h:5/db?sslmode=on"),
            ("http://h/x?key=sk-SECRET&a=1", "http://h/x?key=[REDACTED]&a=1"),
            ("http://h/?u=http://i/?token=t", "http://h/?u=http://i/?token=[REDACTED]"),
            ("Authorization: Bearer abc.def.ghi", "Authorization: Bearer [REDACTED]"),
            ("authorization: basic dXNlcjpwYXNz", "authorization: basic [REDACTED]"),
            ("sk-ant-api03-abcdefghij0123456789", "[REDACTED]"),
            ("ghp_abcdefghijklmnopqrst0123456789", "[REDACTED]"),
            ("xoxb-1234567890-abc", "[REDACTED]"),
            ("AIzaSyA1234567890abcdefghijklmnopqrstuv", "[REDACTED]"),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln.", "[REDACTED]."),
            ("AccountName=a;AccountKey=Zm9v==;Suffix=x", "AccountName=a;AccountKey=[REDACTED];Suffix=x"),
        ];
        let redactor = Redactor::default();
        for (text, expected) in cases {
            assert_eq!(redactor.text(text), expected);
        }
    }

    #[test]
    fn ordinary_text_stays() {
        let texts = [
            "a bearer certificates market",
            "Basic instructions follow",
            "task-oriented-dialogue-systems-2024",
            "https://example.org:8080/a?page=2",
            "mailto:a@b.c, at 10:30@noon",
            "AKIA is a prefix",
            "eyJ.x.y",
            "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----",
            "sk-learn-is-a-library-of-python",
            "Bearer ",
            "://",
            "ünïcödé Bearer é",
            "-----BEGIN ééééééééééééééééééééééééééééééééééééé",
        ];
        for text in texts {
            assert_eq!(Redactor::default().text(text), text);
        }
        assert_eq!(Redactor::new(false).text("AKIAIOSFODNN7EXAMPLE"), "AKIAIOSFODNN7EXAMPLE");
    }
}

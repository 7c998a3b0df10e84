//! Credentials that are written in a file.

use tympan_core::diagnostic::Severity;
use tympan_core::format::outline::Field;
use tympan_core::secret::redact::well_known_keys;
use tympan_core::spec::is_credential;
use tympan_core::text::source::Span;

use crate::context::Context;
use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY304",
    name: "literal_api_key",
    group: Group::Trust,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports a key or another credential that is written directly into a connection, and keys of well-known \
        services anywhere in the file.",
    why: "Everybody who can read the file can use the key, and it stays in the repository's history.",
    example: "connection: {kind: key, apiKey: sk-proj-abcdefgh12345678}",
    how_to_fix: "Refer to an environment variable: `apiKey: ${env:OPENAI_API_KEY}`. Revoke the key if the file was \
        shared.",
    check: Some(check),
};

/// Shorter values are placeholders, such as `none` for a local server.
const MIN_LENGTH: usize = 8;

fn check(context: &Context<'_>, findings: &mut Findings) {
    let mut fields = Vec::new();
    for connection in context.connections() {
        literal_keys(connection, false, &mut fields);
    }
    let text = context.prompt.source().text();
    let keys = if may_have_key(text) { well_known_keys(text) } else { Vec::new() };
    for range in keys {
        let is_reported = |field: &Field<'_>| field.span.start <= range.start && range.end <= field.span.end;
        if !fields.iter().any(is_reported) {
            let finding =
                Finding::new(&RULE, Span::from(range), "a key of a well-known service is written in the file");
            findings.push(finding.with_help("remove it, and revoke the key if the file was shared"));
        }
    }
    findings.extend(fields.into_iter().map(|field| {
        let message = format!("`{}` is written in the file", field.key.unwrap_or_default());
        Finding::new(&RULE, field.span, message).with_help("refer to an environment variable: `${env:NAME}`")
    }));
}

/// Returns whether a text has anything that is as long as a key. Most prompts have not, and one pass finds this out.
fn may_have_key(text: &str) -> bool {
    const SHORTEST: usize = 15;
    let (mut length, mut has_digit) = (0, false);
    let has_word = text.bytes().any(|byte| {
        if !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'-') {
            (length, has_digit) = (0, false);
            return false;
        }
        length += 1;
        has_digit |= byte.is_ascii_digit();
        has_digit && length >= SHORTEST
    });
    has_word || text.contains("-----BEGIN ")
}

/// Collects the keys at and below a field. `is_secret` is whether a key above it names a credential.
fn literal_keys<'p>(field: Field<'p>, is_secret: bool, found: &mut Vec<Field<'p>>) {
    let key = field.key.unwrap_or_default();
    let is_secret = is_secret || is_credential(key);
    if field.text().is_some_and(|text| is_secret && is_literal_key(text)) {
        found.push(field);
    }
    field.entries().chain(field.items()).for_each(|inner| literal_keys(inner, is_secret, found));
}

/// Returns whether a text is a key, and not a reference or a placeholder.
fn is_literal_key(text: &str) -> bool {
    let text = text.trim();
    let text = match text.strip_prefix("${") {
        // The default of a reference may be a key as well.
        Some(reference) => reference.splitn(3, ':').nth(2).unwrap_or_default().trim_end_matches('}'),
        None => text,
    };
    // Headers name the scheme before the key.
    let key = ["Bearer ", "Basic "].iter().find_map(|scheme| text.strip_prefix(scheme)).unwrap_or(text);
    let is_placeholder = key.contains(char::is_whitespace) || key.contains("...") || key.contains('…');
    key.len() >= MIN_LENGTH && !is_placeholder && !key.starts_with("${")
}

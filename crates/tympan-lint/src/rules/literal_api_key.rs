//! Credentials that are written in a file.

use tympan_core::diagnostic::Severity;
use tympan_core::format::outline::Field;
use tympan_core::spec::is_credential;

use crate::context::Context;
use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY304",
    name: "literal_api_key",
    group: Group::Trust,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports a key or another credential that is written directly into a connection.",
    why: "Everybody who can read the file can use the key, and it stays in the repository's history.",
    example: "connection: {kind: key, apiKey: sk-proj-abcdefgh12345678}",
    how_to_fix: "Refer to an environment variable: `apiKey: ${env:OPENAI_API_KEY}`. Revoke the key if the file was \
        shared.",
    check: Some(check),
};

/// Shorter values are placeholders, such as `none` for a local server.
const MIN_LENGTH: usize = 8;

fn check(context: &Context<'_>, findings: &mut Findings) {
    for connection in context.connections() {
        literal_keys(connection, false, findings);
    }
}

/// Reports the keys at and below a field. `is_secret` is whether a key above it names a credential.
fn literal_keys(field: Field<'_>, is_secret: bool, findings: &mut Findings) {
    let key = field.key.unwrap_or_default();
    let is_secret = is_secret || is_credential(key);
    if field.text().is_some_and(|text| is_secret && is_literal_key(text)) {
        let finding = Finding::new(&RULE, field.span, format!("`{key}` is written in the file"));
        findings.push(finding.with_help("refer to an environment variable: `${env:NAME}`"));
    }
    field.entries().chain(field.items()).for_each(|inner| literal_keys(inner, is_secret, findings));
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

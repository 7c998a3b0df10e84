//! Credentials that are written in a file.

use tympan_core::diagnostic::Severity;
use tympan_core::format::outline::Field;
use tympan_core::spec::is_credential;

use crate::context::{Context, is_reference};
use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY304",
    name: "literal_api_key",
    group: Group::Trust,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports a key or another credential that is written in a connection.",
    why: "Everybody who can read the file can use the key, and it stays in the history of the repository.",
    example: "connection: {kind: key, apiKey: sk-proj-abcdefgh12345678}",
    how_to_fix: "Refer to an environment variable: `apiKey: ${env:OPENAI_API_KEY}`. Revoke the key if the file was shared.",
    check: Some(check),
};

/// Shorter values are placeholders, such as `none` for a local server.
const MIN_LENGTH: usize = 8;

fn check(context: &Context<'_>, findings: &mut Findings) {
    for connection in context.connections() {
        literal_keys(connection, false, findings);
    }
}

/// Reports the texts below keys that name a credential.
fn literal_keys(field: Field<'_>, is_below: bool, findings: &mut Findings) {
    let key = field.key.unwrap_or_default();
    let is_key = is_below || is_credential(key);
    if let Some(text) = field.text().filter(|_| is_key) {
        let text = text.trim();
        let is_placeholder = text.len() < MIN_LENGTH || text.contains(char::is_whitespace) || text.contains("...");
        if !is_reference(text) && !is_placeholder && !text.contains('…') {
            let finding = Finding::new(&RULE, field.span, format!("`{key}` is written in the file"));
            findings.push(finding.with_help("refer to an environment variable: `${env:NAME}`"));
        }
    }
    for inner in field.entries().chain(field.items()) {
        literal_keys(inner, is_key && field.key != Some("connection"), findings);
    }
}

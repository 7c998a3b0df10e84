//! JSON paths that are not valid.

use tympan_core::diagnostic::Severity;

use crate::finding::{Finding, Findings, Fix};
use crate::rule::{FixAvailability, Group, Rule};
use crate::suite::SuiteContext;

pub(crate) static RULE: Rule = Rule {
    code: "TY510",
    name: "invalid_test_path",
    group: Group::Tests,
    severity: Severity::Error,
    fix: FixAvailability::Sometimes,
    summary: "Reports a `path` that is not a JSON path.",
    why: "The assertion cannot be checked, so the case fails.",
    example: "cases:\n  - expect:\n      - request: {path: messages.0.content, contains: Ada}",
    how_to_fix: "Write `$`, then `.name`, `['a name']` or `[0]` for each step, as in `$.messages[0].content`.",
    check: None,
};

pub(super) fn check(context: &SuiteContext<'_>, findings: &mut Findings) {
    for written in context.assertions() {
        let Some(field) = written.field.get("path") else { continue };
        let Some(path) = field.text() else { continue };
        let Some(problem) = problem(path) else { continue };
        let mut finding = Finding::new(&RULE, field.span, format!("invalid JSON path `{path}`: {problem}"))
            .with_help("write a path such as `$.messages[0].content`");
        let whole = format!("$.{path}");
        if !path.starts_with('$') && self::problem(&whole).is_none() {
            finding.fix = context.exact(field.span, path).map(|span| Fix::needs_review(span, whole));
        }
        findings.push(finding);
    }
}

/// Returns what is wrong with a JSON path. Filters are only checked for their brackets.
fn problem(path: &str) -> Option<String> {
    let Some(mut rest) = path.strip_prefix('$') else { return Some("it does not start with `$`".to_owned()) };
    while !rest.is_empty() {
        match step(rest) {
            Ok(after) => rest = after,
            Err(problem) => return Some(problem),
        }
    }
    None
}

/// Returns what comes behind the first step.
fn step(path: &str) -> Result<&str, String> {
    if let Some(inside) = path.strip_prefix('[').or_else(|| path.strip_prefix("..[")) {
        let end = closing(inside).ok_or("`[` is not closed")?;
        if !is_selector(&inside[..end]) {
            return Err(format!("expected a number, `*` or a name in quotes, found `[{}]`", &inside[..end]));
        }
        return Ok(&inside[end + 1..]);
    }
    let Some(named) = path.strip_prefix("..").or_else(|| path.strip_prefix('.')) else {
        let found = path.chars().next().unwrap_or_default();
        return Err(format!("expected `.` or `[`, found `{found}`"));
    };
    if let Some(after) = named.strip_prefix('*') {
        return Ok(after);
    }
    let is_name = |char: char| char.is_alphanumeric() || matches!(char, '_' | '-') || !char.is_ascii();
    let end = named.find(|char| !is_name(char)).unwrap_or(named.len());
    if end == 0 || named.starts_with(|char: char| char.is_ascii_digit()) {
        return Err("expected a name behind `.`; a number is written in brackets, as in `[0]`".to_owned());
    }
    Ok(&named[end..])
}

/// Returns the offset of the bracket that closes what starts here. Brackets in quotes do not count.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quote, mut is_escaped) = (0_usize, None, false);
    for (at, char) in text.char_indices() {
        match (quote, char) {
            _ if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some(open), _) if open == char => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(char),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']') => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Returns whether the text in brackets selects something: a filter, or numbers, slices and names in quotes.
fn is_selector(text: &str) -> bool {
    let is_integer = |text: &str| text.trim().parse::<i64>().is_ok();
    let is_one = |text: &str| {
        let text = text.trim();
        let is_quoted = |quote| text.len() > 1 && text.starts_with(quote) && text.ends_with(quote);
        let is_slice = text.contains(':') && text.split(':').all(|part| part.trim().is_empty() || is_integer(part));
        text == "*" || is_integer(text) || is_slice || is_quoted('"') || is_quoted('\'')
    };
    text.trim_start().starts_with('?') || is_one(text) || text.split(',').all(is_one)
}

#[cfg(test)]
mod tests {
    use super::problem;

    #[test]
    fn paths() {
        for path in [
            "$",
            "$.a",
            "$.a.b[0].c",
            "$['a b'][\"c\"]",
            "$[-1]",
            "$.*",
            "$[*]",
            "$..a",
            "$..[0]",
            "$..*",
            "$[0:2]",
            "$[::2]",
            "$[0, 1]",
            "$['a','b']",
            "$['a,b']",
            "$['it\\'s']",
            "$['[']",
            "$[?@.a == ']']",
            "$[?(@.a[0] > 1)].b",
            "$.größe",
            "$.a-b",
        ] {
            assert_eq!(problem(path), None, "{path}");
        }
        for path in [
            "", "a", "$a", "$.", "$.a.", "$..", "$...a", "$[", "$[]", "$[a]", "$['a]", "$.0", "$.a b", "$[0]]", "$.a()",
        ] {
            assert!(problem(path).is_some(), "{path}");
        }
    }
}

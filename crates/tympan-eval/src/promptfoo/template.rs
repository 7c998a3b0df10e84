//! Templates in the values of a configuration.
//!
//! promptfoo renders most values with Nunjucks. An import runs no templates: it only replaces references to variables by
//! their values, and reports everything else.

use super::node::{Node, Value};

/// The maximum size in bytes of a text whose references were replaced.
const MAX_FILLED: usize = 1 << 20;

/// Returns whether a text contains template syntax.
pub(super) fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%") || text.contains("{#")
}

/// Replaces the references of a text by the values of variables. Returns `None` if the text contains anything else than
/// references to variables that have a value, or if the result is too long.
pub(super) fn filled(text: &str, variables: &[(String, Node)]) -> Option<String> {
    let mut out = String::new();
    for part in parts(text) {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Reference(path) => out.push_str(&lookup(variables, path)?.script_text()?),
            Part::Other => return None,
        }
        if out.len() > MAX_FILLED {
            return None;
        }
    }
    Some(out)
}

/// Returns whether a text refers to environment variables.
pub(super) fn reads_environment(text: &str) -> bool {
    let after = text.split("{{").skip(1).chain(text.split("{%").skip(1));
    after.map(|rest| rest.split("}}").next().unwrap_or_default().split("%}").next().unwrap_or_default()).any(|inner| {
        inner.match_indices("env").any(|(at, _)| {
            let before = inner[..at].chars().next_back();
            let starts = before.is_none_or(|char| !char.is_alphanumeric() && !matches!(char, '_' | '.'));
            starts && inner[at + 3..].trim_start().starts_with(['.', '['])
        })
    })
}

/// Returns the names of variables that a text writes as they are, such as `{{ name }}`.
pub(super) fn written(text: &str) -> impl Iterator<Item = &str> {
    parts(text).filter_map(|part| match part {
        Part::Reference(path) if !path.contains('.') => Some(path),
        _ => None,
    })
}

enum Part<'t> {
    Text(&'t str),
    /// A reference such as `name` or `user.name`.
    Reference(&'t str),
    /// An expression, a statement or a comment.
    Other,
}

fn parts(text: &str) -> impl Iterator<Item = Part<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let start = ["{{", "{%", "{#"].iter().filter_map(|open| rest.find(open)).min();
        let (part, after) = match start {
            None => (Part::Text(rest), ""),
            Some(0) => tag(rest),
            Some(start) => (Part::Text(&rest[..start]), &rest[start..]),
        };
        rest = after;
        Some(part)
    })
}

/// Splits a text after the tag that it starts with.
fn tag(text: &str) -> (Part<'_>, &str) {
    let Some((inner, after)) = text.strip_prefix("{{").and_then(|inner| inner.split_once("}}")) else {
        let close = text.find("%}").or_else(|| text.find("#}"));
        return (Part::Other, close.map_or("", |close| &text[close + 2..]));
    };
    let path = inner.trim();
    match path.split('.').all(is_name) {
        true => (Part::Reference(path), after),
        false => (Part::Other, after),
    }
}

/// Returns whether a word is a name in templates.
pub(super) fn is_name(word: &str) -> bool {
    const CONSTANTS: [&str; 7] = ["true", "false", "none", "null", "True", "False", "None"];
    word.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_')
        && word.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
        && !CONSTANTS.contains(&word)
}

fn lookup<'v>(variables: &'v [(String, Node)], path: &str) -> Option<&'v Node> {
    let mut names = path.split('.');
    let first = names.next()?;
    let mut node = variables.iter().find(|(name, _)| name == first).map(|(_, node)| node)?;
    for name in names {
        node = node.get(name)?;
    }
    (node.value != Value::Null).then_some(node)
}

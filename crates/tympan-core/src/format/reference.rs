//! `${env:NAME}`, `${env:NAME:default}` and `${file:path}` in the strings of a front matter.
//!
//! Every string is scanned once, and what a reference stands for is never scanned again: neither the text of a file,
//! nor the value of a variable, nor a default. A reference ends at the brace that closes it, counting the braces
//! inside, so `${env:A:${env:B}}` is one reference to `A`, whose default is the text `${env:B}`.

use std::borrow::Cow;

use super::Resolve;
use super::report::{Report, error, from_error};
use super::yaml::{Node, Value, parse};
use crate::diagnostic::{Diagnostic, guess};
use crate::error::{Error, Kind};
use crate::source::{SourceFile, Span};

/// Replaces the references in all strings of a tree.
pub(super) fn resolve_tree(node: &mut Node<'_>, source: &SourceFile, resolve: &mut dyn Resolve, report: &mut Report) {
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(|item| resolve_tree(item, source, resolve, report)),
        Value::Map(entries) => {
            entries.iter_mut().for_each(|entry| resolve_tree(&mut entry.value, source, resolve, report));
        }
        Value::String(text) if text.contains("${") => {
            let text = std::mem::take(text);
            let mut resolver = Resolver { source, node: node.span, resolve, report };
            node.value = resolver.string(text);
        }
        _ => {}
    }
}

/// One reference in a string.
#[derive(Debug, PartialEq)]
struct Reference<'t> {
    /// All of it, with the braces.
    whole: &'t str,
    /// The part before the first colon, as written.
    protocol: &'t str,
    /// The part after the first colon.
    content: &'t str,
}

struct Resolver<'a> {
    source: &'a SourceFile,
    node: Span,
    resolve: &'a mut dyn Resolve,
    report: &'a mut Report,
}

impl Resolver<'_> {
    fn string<'s>(&mut self, text: Cow<'s, str>) -> Value<'s> {
        let trimmed = text.trim();
        if let Some(reference) = reference_at(trimmed, 0)
            && reference.whole.len() == trimmed.len()
            && reference.protocol.eq_ignore_ascii_case("file")
        {
            return self.whole_file(&reference);
        }
        let mut resolved = String::with_capacity(text.len());
        let mut at = 0;
        while let Some(found) = text[at..].find("${") {
            let start = at + found;
            resolved.push_str(&text[at..start]);
            match reference_at(&text, start) {
                Some(reference) => {
                    resolved.push_str(&self.text_of(&reference));
                    at = start + reference.whole.len();
                }
                None => {
                    resolved.push_str("${");
                    at = start + 2;
                }
            }
        }
        resolved.push_str(&text[at..]);
        Value::String(Cow::Owned(resolved))
    }

    /// What a reference inside a string stands for; nothing, if that has been reported.
    fn text_of<'t>(&mut self, reference: &Reference<'t>) -> Cow<'t, str> {
        if reference.protocol.eq_ignore_ascii_case("env") {
            self.env(reference)
        } else if reference.protocol.eq_ignore_ascii_case("file") {
            self.file(reference).map_or(Cow::Borrowed(""), Cow::Owned)
        } else {
            self.unknown_protocol(reference);
            Cow::Borrowed(reference.whole)
        }
    }

    fn env<'t>(&mut self, reference: &Reference<'t>) -> Cow<'t, str> {
        let (name, default) = match reference.content.split_once(':') {
            // An empty default counts as none: the format says so.
            Some((name, default)) => (name.trim(), Some(default).filter(|default| !default.is_empty())),
            None => (reference.content.trim(), None),
        };
        let failure = match (self.resolve.env(name), default) {
            (Ok(Some(value)), _) => return Cow::Owned(value),
            (Ok(None), Some(default)) => return Cow::Borrowed(default),
            (Ok(None), None) => Error::new(Kind::EnvNotSet, name)
                .with_help(format!("set it, or give a default: `${{env:{name}:some value}}`")),
            (Err(failure), _) => failure,
        };
        self.fail(reference, &failure);
        Cow::Borrowed("")
    }

    fn file(&mut self, reference: &Reference<'_>) -> Option<String> {
        match self.resolve.file(reference.content.trim()) {
            Ok(file) => Some(match file.text.strip_prefix('\u{feff}') {
                Some(rest) => rest.to_owned(),
                None => file.text,
            }),
            Err(failure) => {
                self.fail(reference, &failure);
                None
            }
        }
    }

    /// A string that is nothing but a reference to a file: JSON and YAML become what they say.
    fn whole_file<'s>(&mut self, reference: &Reference<'_>) -> Value<'s> {
        let Some(text) = self.file(reference) else { return Value::Null };
        let span = self.place(reference);
        let parsed = match extension(reference.content).as_str() {
            "json" => serde_json::from_str(&text)
                .map(|json| Node::from_json(json, span).value)
                .map_err(|failure| format!("{}: {failure}", reference.content.trim())),
            "yaml" | "yml" => match parse(&text, 0) {
                (Some(node), problems) if problems.is_empty() => Ok(node.moved_to(span).value),
                (_, problems) => Err(describe_problem(reference.content.trim(), &text, problems)),
            },
            _ => Ok(Value::String(Cow::Owned(text))),
        };
        parsed.unwrap_or_else(|details| {
            self.report.push(error(Kind::InvalidReferencedFile, span, details));
            Value::Null
        })
    }

    fn unknown_protocol(&mut self, reference: &Reference<'_>) {
        let span = self.place(reference);
        let message = format!("`{}` is not a kind of reference, so this is kept as text", reference.protocol);
        let warning = Diagnostic::warning("unknown_reference", span, message);
        self.report.push(match guess(reference.protocol, ["env", "file"]) {
            Some(meant) => warning.with_help(format!("did you mean `${{{meant}:…}}`?")),
            None => warning.with_help("there are `${env:NAME}`, `${env:NAME:default}` and `${file:path}`"),
        });
    }

    fn fail(&mut self, reference: &Reference<'_>, failure: &Error) {
        let span = self.place(reference);
        self.report.push(from_error(failure, span));
    }

    /// Where a reference stands: inside its string, if it is written there as it reads.
    fn place(&self, reference: &Reference<'_>) -> Span {
        match self.source.slice(self.node).find(reference.whole) {
            Some(at) => Span::new(self.node.start + at, self.node.start + at + reference.whole.len()),
            None => self.node,
        }
    }
}

/// The reference that starts at `start` with `${`, if it is one.
fn reference_at(text: &str, start: usize) -> Option<Reference<'_>> {
    let inner = text[start..].strip_prefix("${")?;
    let colon = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-')?;
    if colon == 0 || !inner[colon..].starts_with(':') {
        return None;
    }
    let end = closing_brace(inner).or_else(|| inner.find('}'))?;
    Some(Reference {
        whole: &text[start..start + 2 + end + 1],
        protocol: &inner[..colon],
        content: inner.get(colon + 1..end)?,
    })
}

/// Where the brace is that closes what stands before `text`, counting the braces in between.
fn closing_brace(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 0 => return Some(at),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn extension(path: &str) -> String {
    let name = path.trim().rsplit('/').next().unwrap_or_default();
    name.rsplit_once('.').map_or_else(String::new, |(_, extension)| extension.to_ascii_lowercase())
}

fn describe_problem(path: &str, text: &str, problems: Vec<super::yaml::Problem>) -> String {
    let Some(problem) = problems.into_iter().next() else { return path.to_owned() };
    let place = SourceFile::new(path, text).line_column(problem.span.start);
    format!("{path}:{}:{}: {}", place.line, place.column, problem.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_end_where_their_brace_closes() {
        let cases = [
            ("${env:A}", Some(("${env:A}", "env", "A"))),
            ("${ENV:A:b:c} d", Some(("${ENV:A:b:c}", "ENV", "A:b:c"))),
            ("${env:A:${env:B}}", Some(("${env:A:${env:B}}", "env", "A:${env:B}"))),
            ("${env:A:{\"a\": {}}} }", Some(("${env:A:{\"a\": {}}}", "env", "A:{\"a\": {}}"))),
            ("${env:A:{} rest", Some(("${env:A:{}", "env", "A:{"))),
            ("${env:}", Some(("${env:}", "env", ""))),
            ("${name}", None),
            ("${:x}", None),
            ("${env:A", None),
            ("${", None),
        ];
        for (text, expected) in cases {
            let found = reference_at(text, 0).map(|found| (found.whole, found.protocol, found.content));
            assert_eq!(found, expected, "{text}");
        }
    }
}

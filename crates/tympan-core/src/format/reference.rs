//! Resolves `${env:NAME}`, `${env:NAME:default}` and `${file:path}` in the strings of a front matter.
//!
//! A reference is resolved only if it is the whole value. Inside prose, such as a description, it stays text. Inside a
//! longer value of the model or of a tool, where text would be wrong, it is an error.
//!
//! Every string is scanned once, and the result of a reference is never scanned again, whether it is the text of a
//! file, the value of a variable or a default. A reference ends at its matching closing brace: `${env:A:${env:B}}` is
//! one reference to `A`, whose default is the text `${env:B}`.

use std::borrow::Cow;

use super::Resolve;
use super::report::{Report, error, from_error, invalid};
use super::yaml::{Entry, Node, Value, parse};
use crate::diagnostic::{Diagnostic, guess, short};
use crate::error::{Error, Kind};
use crate::secret::env_value::{EnvPlace, EnvValue, EnvValues, UnresolvedEnv};
use crate::spec::Secret;
use crate::text::source::{SourceFile, Span};

/// The maximum number of bytes that all references in a file may insert.
const MAX_BYTES: usize = 16 << 20;
/// The maximum number of values that referenced files may insert. The YAML parser limits each file; this limits their
/// total.
const MAX_VALUES: usize = 300_000;

/// Replaces the references in all strings of a front matter. Returns the values from the environment, and the references
/// that remain unresolved.
pub(super) fn resolve_tree(
    root: &mut Node<'_>,
    source: &SourceFile,
    resolve: &mut dyn Resolve,
    report: &mut Report,
) -> EnvValues {
    let (part, section) = (EnvPlace::Elsewhere, String::new());
    let env = EnvValues::default();
    let mut resolver = Resolver { source, part, section, resolve, report, env, bytes: 0, values: 0 };
    resolver.tree(root, 0, None);
    resolver.env
}

/// One reference in a string.
#[derive(Debug, PartialEq)]
struct Reference<'t> {
    /// The whole reference, including the braces.
    whole: &'t str,
    /// The part before the first colon, as written.
    protocol: &'t str,
    /// The part after the first colon.
    content: &'t str,
}

struct Resolver<'a> {
    source: &'a SourceFile,
    /// The part of the prompt that is being resolved.
    part: EnvPlace,
    /// The top-level key of that part.
    section: String,
    resolve: &'a mut dyn Resolve,
    report: &'a mut Report,
    env: EnvValues,
    /// The number of bytes that the references have inserted so far.
    bytes: usize,
    values: usize,
}

/// The position of the string that is being resolved, and the offset up to which its references have been located.
struct Place {
    node: Span,
    at: usize,
    /// The last reference that was located, identified by the address of its text.
    last: Option<(*const u8, Span)>,
}

impl Place {
    fn of(node: Span) -> Self {
        Self { node, at: node.start, last: None }
    }
}

impl Resolver<'_> {
    /// Replaces the references in a part of the front matter at this depth, below this key.
    fn tree(&mut self, node: &mut Node<'_>, depth: usize, parent: Option<&str>) {
        let part = self.part;
        match &mut node.value {
            Value::List(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.part = part.below(depth, "", index, parent);
                    self.tree(item, depth + 1, None);
                }
            }
            Value::Map(entries) => {
                for (index, Entry { key, value, .. }) in entries.iter_mut().enumerate() {
                    self.part = part.below(depth, key, index, parent);
                    if depth == 0 {
                        self.section.clear();
                        self.section.push_str(key);
                    }
                    // Older files declare the tools in the model's options.
                    let is_old = depth == 2 && self.part == EnvPlace::Model && matches!(&**key, "tools" | "functions");
                    let (depth, key) = if is_old { (1, "tools") } else { (depth + 1, &**key) };
                    self.tree(value, depth, Some(key));
                }
            }
            Value::String(text) if text.contains("${") => {
                let text = std::mem::take(text);
                let is_prose = is_prose(part, parent);
                node.value = self.string(text, is_prose, &mut Place::of(node.span));
            }
            _ => {}
        }
        self.part = part;
    }

    /// Resolves a string that is a reference, and reports the references inside a longer string.
    fn string<'s>(&mut self, text: Cow<'s, str>, is_prose: bool, place: &mut Place) -> Value<'s> {
        let references = References::new(&text);
        let start = text.len() - text.trim_start().len();
        let Some(reference) =
            references.at(start).filter(|reference| reference.whole.len() == text[start..].trim_end().len())
        else {
            self.inner(&text, &references, is_prose, place);
            return Value::String(text);
        };
        if reference.protocol.eq_ignore_ascii_case("file") {
            return self.whole_file(&reference, place);
        }
        if !reference.protocol.eq_ignore_ascii_case("env") {
            self.unknown_protocol(&reference, place);
            return Value::String(text);
        }
        let value = self.env(&reference, place).into_owned();
        match self.has_room(value.len(), 0, &reference, place) {
            true => Value::String(Cow::Owned(value)),
            false => Value::Null,
        }
    }

    /// Reports the references inside a longer string, of which only the first that could be resolved.
    fn inner(&mut self, text: &str, references: &References<'_>, is_prose: bool, place: &mut Place) {
        let (mut at, mut is_reported) = (0, false);
        while let Some(found) = text[at..].find("${") {
            let start = at + found;
            let Some(reference) = references.at(start) else {
                at = start + 2;
                continue;
            };
            at = start + reference.whole.len();
            if !["env", "file"].iter().any(|known| reference.protocol.eq_ignore_ascii_case(known)) {
                self.unknown_protocol(&reference, place);
            } else if !is_reported {
                is_reported = true;
                self.inside(&reference, is_prose, place);
            }
        }
    }

    /// Reports a reference that is not the whole value.
    fn inside(&mut self, reference: &Reference<'_>, is_prose: bool, place: &mut Place) {
        let span = self.place(reference, place);
        let shown = short(reference.whole);
        self.report.push(if is_prose {
            let message = format!("`{shown}` is inside a longer text, kept as text");
            Diagnostic::warning("reference_in_text", span, message)
                .with_help("a reference is resolved only if it is the whole value; pass text that varies as an input")
        } else {
            invalid(span, format_args!("`{shown}` is only a part of the value"))
                .with_help("a reference has to be the whole value: let the variable or file contain all of it")
        });
    }

    /// Counts what a reference inserts. Exceeding the limit is reported once, and nothing more is inserted after that.
    fn has_room(&mut self, bytes: usize, values: usize, reference: &Reference<'_>, place: &mut Place) -> bool {
        let is_full = |resolver: &Self| resolver.bytes > MAX_BYTES || resolver.values > MAX_VALUES;
        let was_full = is_full(self);
        self.bytes = self.bytes.saturating_add(bytes);
        self.values = self.values.saturating_add(values);
        if !is_full(self) {
            return true;
        }
        if !was_full {
            let details = format!("references add more than {MAX_BYTES} bytes or {MAX_VALUES} values");
            let span = self.place(reference, place);
            let finding = error(Kind::InvalidReferencedFile, span, details);
            self.report.push(finding.with_help("reference each file once, and pass large data as inputs"));
        }
        false
    }

    /// Returns the value of a variable. It is empty if an error has been reported.
    fn env<'t>(&mut self, reference: &Reference<'t>, place: &mut Place) -> Cow<'t, str> {
        let (name, default) = match reference.content.split_once(':') {
            // The format defines that an empty default counts as no default.
            Some((name, default)) => (name.trim(), Some(default).filter(|default| !default.is_empty())),
            None => (reference.content.trim(), None),
        };
        let failure = match (self.resolve.env(name), default) {
            (Ok(Some(value)), _) => {
                // If the host leaves references unresolved, the value is not a secret.
                if value == reference_to(name) {
                    self.defer(name, reference, place);
                } else {
                    self.remember(name, &value);
                }
                return Cow::Owned(value);
            }
            (Ok(None), Some(default)) => return Cow::Borrowed(default),
            (Ok(None), None) if self.resolve.defers_env() => {
                self.defer(name, reference, place);
                return Cow::Owned(reference_to(name));
            }
            (Ok(None), None) => Error::new(Kind::EnvNotSet, name)
                .with_help(format!("set it, or add a default: `${{env:{name}:some value}}`")),
            (Err(failure), _) => failure,
        };
        self.fail(reference, &failure, place);
        Cow::Borrowed("")
    }

    fn remember(&mut self, variable: &str, value: &str) {
        let (source, value) = (self.resolve.env_source(variable), Secret::new(value));
        self.env.add(EnvValue { variable: variable.to_owned(), source, place: self.part, value });
    }

    /// Records a reference that is resolved when something needs its value.
    fn defer(&mut self, variable: &str, reference: &Reference<'_>, place: &mut Place) {
        let span = self.place(reference, place);
        self.report.defer(place.node);
        self.env.unresolved.push(UnresolvedEnv {
            variable: variable.to_owned(),
            place: self.part,
            section: self.section.clone(),
            span,
        });
    }

    fn file(&mut self, reference: &Reference<'_>, place: &mut Place) -> Option<String> {
        // Once the limit is exceeded, no more files are read.
        if !self.has_room(0, 0, reference, place) {
            return None;
        }
        match self.resolve.file(reference.content.trim()) {
            Ok(file) => Some(match file.text.strip_prefix('\u{feff}') {
                Some(rest) => rest.to_owned(),
                None => file.text,
            }),
            Err(failure) => {
                self.fail(reference, &failure, place);
                None
            }
        }
    }

    /// Resolves a string that consists only of a file reference. JSON and YAML files are parsed.
    fn whole_file<'s>(&mut self, reference: &Reference<'_>, place: &mut Place) -> Value<'s> {
        let Some(text) = self.file(reference, place) else { return Value::Null };
        let span = self.place(reference, place);
        // The number of separators limits how many values there can be.
        let values = text.bytes().filter(|byte| matches!(byte, b',' | b'[' | b'{' | b'\n')).count();
        if !self.has_room(text.len(), values, reference, place) {
            return Value::Null;
        }
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

    fn unknown_protocol(&mut self, reference: &Reference<'_>, place: &mut Place) {
        let span = self.place(reference, place);
        let message = format!("unknown reference `{}`, kept as text", reference.protocol);
        let warning = Diagnostic::warning("unknown_reference", span, message);
        self.report.push(match guess(reference.protocol, ["env", "file"]) {
            Some(meant) => warning.with_help(format!("did you mean `${{{meant}:…}}`?")),
            None => warning.with_help("write `${env:NAME}`, `${env:NAME:default}` or `${file:path}`"),
        });
    }

    fn fail(&mut self, reference: &Reference<'_>, failure: &Error, place: &mut Place) {
        let span = self.place(reference, place);
        self.report.push(from_error(failure, span));
        // One finding about the value is enough.
        self.report.fail(place.node);
    }

    /// Returns the position of a reference within its string, or that of the whole string if the reference is written
    /// differently there, for example with escapes. References are located in order, so the search continues after the
    /// last one.
    fn place(&self, reference: &Reference<'_>, place: &mut Place) -> Span {
        if let Some((_, span)) = place.last.filter(|(last, _)| *last == reference.whole.as_ptr()) {
            return span;
        }
        let rest = self.source.slice(Span::new(place.at, place.node.end.max(place.at)));
        let span = rest.find(reference.whole).map(|found| {
            let start = place.at + found;
            Span::new(start, start + reference.whole.len())
        });
        // If a reference is not found, the string is written differently. Do not search for the others.
        place.at = span.unwrap_or(place.node).end;
        let span = span.unwrap_or(place.node);
        place.last = Some((reference.whole.as_ptr(), span));
        span
    }
}

/// An index of the references in a string.
struct References<'t> {
    text: &'t str,
    /// For each `${` that is closed: the offsets of its opening brace and of the matching closing brace.
    closed: Vec<(usize, usize)>,
    /// The offset of the last closing brace, whatever it closes.
    last: usize,
}

impl<'t> References<'t> {
    fn new(text: &'t str) -> Self {
        let bytes = text.as_bytes();
        let (mut open, mut closed) = (Vec::new(), Vec::new());
        for at in memchr::memchr2_iter(b'{', b'}', bytes) {
            if bytes[at] == b'{' {
                open.push(at);
            } else if let Some(start) = open.pop()
                && start > 0
                && bytes[start - 1] == b'$'
            {
                closed.push((start, at));
            }
        }
        closed.sort_unstable();
        Self { text, closed, last: memchr::memrchr(b'}', bytes).unwrap_or(0) }
    }

    /// Returns the reference that starts with `${` at `start`, if it is valid.
    fn at(&self, start: usize) -> Option<Reference<'t>> {
        let inner = self.text[start..].strip_prefix("${")?;
        let colon = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-')?;
        if colon == 0 || !inner[colon..].starts_with(':') || start > self.last {
            return None;
        }
        let offset = start + 2;
        let closing = self.closed.binary_search_by_key(&(offset - 1), |(open, _)| *open).ok();
        let end = match closing {
            Some(index) => self.closed[index].1 - offset,
            None => inner.find('}')?,
        };
        Some(Reference {
            whole: &self.text[start..offset + end + 1],
            protocol: &inner[..colon],
            content: inner.get(colon + 1..end)?,
        })
    }
}

/// Returns whether the value of a key is text for people or models, in which a reference may be just mentioned.
fn is_prose(part: EnvPlace, key: Option<&str>) -> bool {
    match part {
        EnvPlace::ModelConnection | EnvPlace::ToolConnection(_) => false,
        EnvPlace::Model | EnvPlace::Tool(_) | EnvPlace::Specification(_) => {
            matches!(key, Some("name" | "displayName" | "description" | "summary" | "title"))
        }
        EnvPlace::Elsewhere => true,
    }
}

/// Formats a reference to a variable.
fn reference_to(variable: &str) -> String {
    format!("${{env:{variable}}}")
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
            let found = References::new(text).at(0).map(|found| (found.whole, found.protocol, found.content));
            assert_eq!(found, expected, "{text}");
        }
    }
}

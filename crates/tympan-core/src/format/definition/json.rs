//! Parses JSON into the same tree as YAML, with positions.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::Value as Json;

use super::super::yaml::{Entry, MAX_NODES, Node, Problem, Value, too_deep, too_many};
use crate::text::source::Span;

/// The maximum nesting depth that serde_json supports.
const MAX_DEPTH: usize = 127;

/// Parses a JSON document. Returns a tree whenever the text is valid JSON within the limits, even if it has duplicate
/// keys.
pub(super) fn parse(text: &str) -> (Option<Node<'_>>, Vec<Problem>) {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    // serde_json validates the text first. The reader then only determines positions, and does not look for mistakes.
    if let Err(error) = serde_json::from_str::<IgnoredAny>(body) {
        return (None, vec![not_json(text, text.len() - body.len(), &error)]);
    }
    let mut reader =
        Reader { text, at: text.len() - body.len(), nodes: 0, depth: 0, failure: None, problems: Vec::new() };
    let root = reader.value();
    match reader.failure {
        Some(failure) => (None, vec![failure]),
        None => (Some(root), reader.problems),
    }
}

fn not_json(text: &str, offset: usize, error: &serde_json::Error) -> Problem {
    let lines = text[offset..].split_inclusive('\n').take(error.line().saturating_sub(1));
    let at = offset + lines.map(str::len).sum::<usize>() + error.column().saturating_sub(1);
    let at = text.floor_char_boundary(at.min(text.len()));
    // serde_json repeats the position at the end of the message.
    let message = error.to_string();
    let reason = message.split(" at line ").next().unwrap_or_default();
    Problem { span: Span::new(at, at), message: format!("invalid JSON: {reason}"), help: None }
}

/// Creates the problem for a string or number that is well-formed but has no value: half of a surrogate pair, or a
/// number out of range.
fn unreadable(at: usize, error: &serde_json::Error) -> Problem {
    let message = error.to_string();
    let reason = message.split(" at line ").next().unwrap_or_default();
    Problem { span: Span::new(at, at), message: format!("invalid JSON: {reason}"), help: None }
}

/// Reads a text that is known to be valid JSON.
struct Reader<'s> {
    text: &'s str,
    at: usize,
    nodes: usize,
    depth: usize,
    /// The reason why reading stopped.
    failure: Option<Problem>,
    problems: Vec<Problem>,
}

impl<'s> Reader<'s> {
    fn value(&mut self) -> Node<'s> {
        self.skip_space();
        let start = self.at;
        self.nodes += 1;
        self.depth += 1;
        let here = Span::new(start, start);
        if self.nodes > MAX_NODES {
            self.fail(too_many(here, ""));
        } else if self.depth > MAX_DEPTH {
            self.fail(too_deep(here, MAX_DEPTH));
        }
        let value = match self.peek() {
            b'{' => self.map(),
            b'[' => self.list(),
            b'"' => Value::String(self.string()),
            _ => self.scalar(),
        };
        self.depth -= 1;
        Node { value, span: Span::new(start, self.at) }
    }

    /// Stops reading by moving to the end of the text.
    fn fail(&mut self, problem: Problem) {
        self.failure.get_or_insert(problem);
        self.at = self.text.len();
    }

    fn map(&mut self) -> Value<'s> {
        let mut entries: Vec<Entry<'s>> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        while self.goes_on(b'}') {
            let start = self.at;
            let key = self.string();
            let key_span = Span::new(start, self.at);
            self.skip_space();
            self.at += 1; // the colon
            let value = self.value();
            if seen.insert(key.clone()) {
                entries.push(Entry { key, key_span, value });
            } else {
                let message = format!("duplicate key `{key}`");
                self.problems.push(Problem { span: key_span, message, help: Some("remove one of the two") });
            }
        }
        Value::Map(entries)
    }

    fn list(&mut self) -> Value<'s> {
        let mut items = Vec::new();
        while self.goes_on(b']') {
            items.push(self.value());
        }
        Value::List(items)
    }

    /// Advances past an opening bracket or a comma to the next item and returns `true`, or past the closing bracket and
    /// returns `false`.
    fn goes_on(&mut self, close: u8) -> bool {
        self.skip_space();
        let is_closed = self.peek() == close || self.failure.is_some();
        self.at += 1;
        if is_closed {
            return false;
        }
        self.skip_space();
        // An empty list or map closes right after its opening bracket.
        let is_empty = self.peek() == close;
        self.at += usize::from(is_empty);
        !is_empty
    }

    fn string(&mut self) -> Cow<'s, str> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        self.at += 1;
        let mut is_plain = true;
        while bytes.get(self.at).is_some_and(|byte| *byte != b'"') {
            let is_escape = bytes[self.at] == b'\\';
            is_plain &= !is_escape;
            self.at += 1 + usize::from(is_escape);
        }
        self.at = (self.at + 1).min(self.text.len());
        let written = &self.text[start..self.at];
        if is_plain {
            return Cow::Borrowed(written.trim_matches('"'));
        }
        match serde_json::from_str(written) {
            Ok(text) => Cow::Owned(text),
            Err(error) => {
                self.fail(unreadable(start, &error));
                Cow::Borrowed("")
            }
        }
    }

    /// Reads a number, a boolean or null.
    fn scalar(&mut self) -> Value<'s> {
        let start = self.at;
        let Some(rest) = self.text.get(start..).filter(|rest| !rest.is_empty()) else { return Value::Null };
        let length = rest.find([',', '}', ']', ' ', '\t', '\n', '\r']).unwrap_or(rest.len());
        self.at += length.max(1).min(rest.len());
        match serde_json::from_str(&rest[..length]) {
            Ok(Json::Bool(value)) => Value::Bool(value),
            Ok(Json::Number(value)) => Value::Number(value),
            Ok(_) => Value::Null,
            Err(error) => {
                self.fail(unreadable(start, &error));
                Value::Null
            }
        }
    }

    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or_default()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_the_one_that_serde_json_reads() {
        let texts = [
            r#"{"a": [1, -2.5e3, "x\"y\u00e9", {}, [], [[]], {"b": null}], "": true, "c": "", "d":{"e":false}}"#,
            " [ ] ",
            "\u{feff}{ }",
            "\"x\"",
            "3",
        ];
        for text in texts {
            let expected: Json = serde_json::from_str(text.trim_start_matches('\u{feff}')).expect("it is JSON");
            let (root, problems) = parse(text);
            assert_eq!((root.map(Node::into_json), problems), (Some(expected), vec![]), "{text}");
        }
    }

    #[test]
    fn what_is_too_much_or_no_json_is_refused() {
        let message = |text: &str| {
            let (root, problems) = parse(text);
            assert!(root.is_none(), "{text:.40}");
            problems[0].message.clone()
        };
        assert!(message(&format!("[{}1]", "1,".repeat(200_000))).starts_with("more than 100000 values"));
        assert!(message(&format!("[{}1{}]", "[".repeat(100_000), "]".repeat(100_000))).contains("levels"));
        assert!(message("[1, 1e999]").contains("out of range"));
        assert!(message(r#"["\ud800", 1]"#).starts_with("invalid JSON"));
        assert!(message("[1, ]").starts_with("invalid JSON"));
    }

    #[test]
    fn places_and_duplicates() {
        let text = "{\n  \"a\": \"xß\",\n  \"a\": 2\n}";
        let (root, problems) = parse(text);
        let Some(Value::Map(entries)) = root.map(|root| root.value) else { panic!("a map") };
        assert_eq!(&text[entries[0].value.span.range()], "\"xß\"");
        assert_eq!((entries.len(), problems[0].span.start), (1, text.rfind("\"a\"").expect("twice")));
    }
}

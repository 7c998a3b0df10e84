//! Tests in tables: columns with special names, and assertions as short texts.

use serde_json::Number;

use super::finding::{Findings, Remark};
use super::node::{Node, Place, Value};
use super::provider::shown;

/// The types of assertions, as promptfoo's reference lists them.
pub(super) const TYPES: [&str; 69] = [
    "agent-rubric",
    "answer-relevance",
    "bleu",
    "classifier",
    "contains",
    "contains-all",
    "contains-any",
    "contains-html",
    "contains-json",
    "contains-sql",
    "contains-xml",
    "context-faithfulness",
    "context-recall",
    "context-relevance",
    "conversation-relevance",
    "cost",
    "equals",
    "f-score",
    "factuality",
    "finish-reason",
    "g-eval",
    "gleu",
    "guardrails",
    "icontains",
    "icontains-all",
    "icontains-any",
    "is-html",
    "is-json",
    "is-refusal",
    "is-sql",
    "is-valid-function-call",
    "is-valid-openai-function-call",
    "is-valid-openai-tools-call",
    "is-xml",
    "javascript",
    "latency",
    "levenshtein",
    "llm-rubric",
    "pi",
    "meteor",
    "model-graded-closedqa",
    "model-graded-factuality",
    "moderation",
    "perplexity",
    "perplexity-score",
    "python",
    "regex",
    "rouge-n",
    "ruby",
    "similar",
    "similar:cosine",
    "similar:dot",
    "similar:euclidean",
    "starts-with",
    "tool-call-f1",
    "skill-used",
    "trajectory:goal-success",
    "trajectory:tool-args-match",
    "trajectory:step-count",
    "trajectory:tool-sequence",
    "trajectory:tool-used",
    "trace-error-spans",
    "trace-span-count",
    "trace-span-duration",
    "search-rubric",
    "webhook",
    "word-count",
    "select-best",
    "max-score",
];

/// The threshold of assertions in a table that state none.
const THRESHOLD: f64 = 0.75;

/// The threshold of `similar` in a table.
const SIMILAR_THRESHOLD: f64 = 0.8;

/// Types that have a threshold in a table even if it states none.
const WITH_THRESHOLD: [&str; 13] = [
    "answer-relevance",
    "classifier",
    "context-faithfulness",
    "context-recall",
    "context-relevance",
    "cost",
    "latency",
    "levenshtein",
    "perplexity-score",
    "perplexity",
    "rouge-n",
    "similar",
    "starts-with",
];

/// Converts a row to a test.
pub(super) fn test_of_row<'r>(
    cells: impl Iterator<Item = (&'r str, &'r str)>,
    number: usize,
    place: &Place,
    findings: &mut Findings,
) -> Node {
    let text = |text: &str| Node::of_text(text, place.clone());
    let mut test = vec![("description".to_owned(), text(&format!("Row #{number}")))];
    let (mut vars, mut asserts, mut options) = (Vec::new(), Vec::new(), Vec::new());
    let (mut metric, mut thresholds) = (None, Vec::new());
    for (column, cell) in cells {
        let is_empty = cell.trim().is_empty();
        match column {
            _ if column.starts_with("__expected") => {
                if !is_empty {
                    asserts.push(assertion(cell.trim()));
                }
            }
            "__prefix" | "__suffix" if is_empty => {}
            "__prefix" => options.push(("prefix".to_owned(), text(cell))),
            "__suffix" => options.push(("suffix".to_owned(), text(cell))),
            "__description" if is_empty => {}
            "__description" => test[0].1 = text(cell),
            "__providerOutput" if is_empty => {}
            "__providerOutput" => test.push(("providerOutput".to_owned(), text(cell))),
            "__metric" => metric = (!is_empty).then(|| text(cell)),
            "__threshold" => test.extend(number_node(cell, place).map(|node| ("threshold".to_owned(), node))),
            _ if column.starts_with("__metadata") => {
                if !is_empty {
                    test.push(("metadata".to_owned(), text(cell)));
                }
            }
            _ if column.starts_with("__config:") => match (config_index(column), number_node(cell, place)) {
                (Some(index), Some(node)) => thresholds.push((index, node)),
                _ => {
                    let reason = "expected the column `__config:__expected:threshold` with a number";
                    let remark = Remark::new(format!("column `{}`", shown(column)), reason, "correct the column");
                    findings.not_carried(place, remark);
                }
            },
            _ => vars.push((column.to_owned(), text(cell))),
        }
    }
    let asserts = asserts.into_iter().enumerate().map(|(index, parsed)| {
        let own = thresholds.iter().rfind(|(at, _)| *at == index).map(|(_, node)| node.clone());
        parsed.into_node(own, metric.clone(), place)
    });
    test.push(("assert".to_owned(), Node { value: Value::List(asserts.collect()), place: place.clone() }));
    test.push(("vars".to_owned(), Node::of_map(vars, place.clone())));
    test.push(("options".to_owned(), Node::of_map(options, place.clone())));
    Node::of_map(test, place.clone())
}

/// Returns the index of the assertion that a column such as `__config:__expected2:threshold` is about.
fn config_index(column: &str) -> Option<usize> {
    let which = column.strip_prefix("__config:__expected")?.strip_suffix(":threshold")?;
    match which {
        "" => Some(0),
        number => number.parse::<usize>().ok()?.checked_sub(1),
    }
}

fn number_node(cell: &str, place: &Place) -> Option<Node> {
    let number = Number::from_f64(cell.trim().parse().ok()?)?;
    Some(Node { value: Value::Number(number), place: place.clone() })
}

/// An assertion that was written as a short text.
struct Short {
    kind: String,
    value: Option<ShortValue>,
    threshold: Option<f64>,
}

enum ShortValue {
    Text(String),
    List(Vec<String>),
}

impl Short {
    fn of(kind: &str, value: &str) -> Self {
        Self { kind: kind.to_owned(), value: Some(ShortValue::Text(value.to_owned())), threshold: None }
    }

    fn into_node(self, threshold: Option<Node>, metric: Option<Node>, place: &Place) -> Node {
        let text = |text: String| Node::of_text(text, place.clone());
        let mut entries = vec![("type".to_owned(), text(self.kind))];
        entries.extend(self.value.map(|value| {
            let node = match value {
                ShortValue::Text(value) => text(value),
                ShortValue::List(items) => {
                    Node { value: Value::List(items.into_iter().map(text).collect()), place: place.clone() }
                }
            };
            ("value".to_owned(), node)
        }));
        let own = self.threshold.and_then(Number::from_f64);
        let own = own.map(|number| Node { value: Value::Number(number), place: place.clone() });
        entries.extend(threshold.or(own).map(|node| ("threshold".to_owned(), node)));
        entries.extend(metric.map(|node| ("metric".to_owned(), node)));
        Node::of_map(entries, place.clone())
    }
}

/// Parses an assertion such as `contains: Ada`. Everything else is a text that the answer must equal.
fn assertion(text: &str) -> Short {
    for (start, kind) in [
        ("javascript:", "javascript"),
        ("fn:", "javascript"),
        ("eval:", "javascript"),
        ("grade:", "llm-rubric"),
        ("llm-rubric:", "llm-rubric"),
        ("python:", "python"),
    ] {
        if let Some(value) = text.strip_prefix(start) {
            return Short::of(kind, if kind == "llm-rubric" { value } else { value.trim() });
        }
    }
    if text.starts_with("file://") && super::files::is_program(text) {
        return Short::of(if text.contains(".py") { "python" } else { "javascript" }, text);
    }
    typed(text).unwrap_or_else(|| Short::of("equals", text))
}

/// Parses a type, an optional threshold in parentheses, and an optional value after a colon.
fn typed(text: &str) -> Option<Short> {
    let bare = text.strip_prefix("not-").unwrap_or(text);
    let matching = TYPES.iter().filter_map(|kind| Some((*kind, after_type(bare.strip_prefix(kind)?)?)));
    let (kind, (threshold, value)) = matching.max_by_key(|(kind, _)| kind.len())?;
    let full = if bare.len() == text.len() { kind.to_owned() } else { format!("not-{kind}") };
    let default = if kind == "similar" { SIMILAR_THRESHOLD } else { THRESHOLD };
    let is_list = matches!(kind, "contains-all" | "contains-any" | "icontains-all" | "icontains-any");
    let value = value.map(|value| match kind {
        _ if is_list => ShortValue::List(comma_separated(value)),
        "contains-json" | "is-json" => ShortValue::Text(value.to_owned()),
        _ => ShortValue::Text(value.trim().to_owned()),
    });
    let threshold = WITH_THRESHOLD.contains(&kind).then(|| threshold.unwrap_or(default));
    Some(Short { kind: full, value, threshold })
}

/// Splits what follows a type. Returns `None` if it does not end there.
fn after_type(rest: &str) -> Option<(Option<f64>, Option<&str>)> {
    let (threshold, rest) = match rest.strip_prefix('(') {
        Some(inner) => {
            let (number, rest) = inner.split_once(')')?;
            let is_plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            (Some(number.parse().ok().filter(|_| is_plain)?), rest)
        }
        None => (None, rest),
    };
    match rest.strip_prefix(':') {
        Some(value) => Some((threshold, Some(value))),
        None => rest.is_empty().then_some((threshold, None)),
    }
}

/// Splits a list such as `a, "b, c"`.
pub(super) fn comma_separated(text: &str) -> Vec<String> {
    let mut items = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|char: char| char.is_whitespace() || char == ',');
        if rest.is_empty() {
            return items;
        }
        let (item, after) = match rest.strip_prefix('"') {
            Some(inner) => quoted(inner),
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                (rest[..end].trim().to_owned(), &rest[end..])
            }
        };
        items.push(item);
        rest = after;
    }
}

/// Reads a quoted item. `""` and `\"` are quotes in it.
fn quoted(inner: &str) -> (String, &str) {
    let mut item = String::new();
    let mut chars = inner.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        let next = chars.peek().map(|(_, char)| *char);
        match (char, next) {
            ('\\', Some(escaped @ ('"' | '\\'))) | ('"', Some(escaped @ '"')) => {
                item.push(escaped);
                chars.next();
            }
            ('"', _) => return (item, &inner[at + 1..]),
            _ => item.push(char),
        }
    }
    (item, "")
}

//! Assertions: the expectations that mean the same, and the reasons why others have none.

use serde_json::{Value as Json, json};
use tympan_core::text::pattern::Pattern;

use super::Importer;
use super::files::{SCHEME, ending, is_program};
use super::finding::Remark;
use super::node::{Node, Place, Value};
use super::provider::shown;
use super::table::comma_separated;
use super::template::{filled, is_template};
use super::unsupported::unsupported;

/// The maximum nesting of references to templates of assertions.
const MAX_REFERENCES: usize = 8;

/// The finish reasons that both programs call the same.
const FINISH_REASONS: [&str; 4] = ["stop", "length", "tool_calls", "content_filter"];

/// What an assertion can use of its test.
pub(super) struct Scope<'s> {
    pub(super) variables: &'s [(String, Node)],
    /// The options of the test.
    pub(super) options: Option<&'s Node>,
}

/// The expectations for the assertions of a test.
#[derive(Debug, Default)]
pub(super) struct Expectations {
    pub(super) carried: Vec<Json>,
    /// The number of assertions that were not carried over.
    pub(super) lost: usize,
    /// Whether a model decides about one of them, with a score that is not only 0 or 1.
    pub(super) is_graded: bool,
}

impl<'r> Importer<'r> {
    /// Converts the assertions of a test.
    pub(super) fn expectations(&mut self, list: &[Node], scope: &Scope<'_>) -> Expectations {
        self.expectations_of(list, scope, false)
    }

    fn expectations_of(&mut self, list: &[Node], scope: &Scope<'_>, is_set: bool) -> Expectations {
        let mut expectations = Expectations::default();
        for written in list {
            let node = self.dereferenced(written);
            let item = match kind_of(node) {
                "" => "assertion".to_owned(),
                kind => format!("assertion `{}`", shown(kind)),
            };
            if kind_of(node) == "assert-set" && !is_set {
                self.set(node, &item, scope, &mut expectations);
                continue;
            }
            match self.assertion(node, scope) {
                Ok(expectation) => {
                    expectations.is_graded |=
                        expectation.get("judge").or_else(|| expectation.pointer("/not/judge")).is_some();
                    expectations.carried.push(expectation);
                    self.note_metric(node);
                }
                Err((reason, help)) => {
                    expectations.lost += 1;
                    self.findings.not_carried(&written.place, Remark::new(item, reason, help));
                }
            }
        }
        expectations
    }

    /// Follows references such as `$ref: "#/assertionTemplates/polite"`.
    fn dereferenced<'n>(&self, node: &'n Node) -> &'n Node
    where
        'r: 'n,
    {
        let mut node = node;
        for _ in 0..MAX_REFERENCES {
            let Some(path) = node.get("$ref").and_then(Node::text).and_then(|path| path.strip_prefix("#/")) else {
                break;
            };
            let Some(target) = path.split('/').try_fold(self.root, |at, key| at.get(key)) else { break };
            node = target;
        }
        node
    }

    /// Converts the assertions of a set, if the set passes exactly if all of them do.
    fn set(&mut self, node: &Node, item: &str, scope: &Scope<'_>, expectations: &mut Expectations) {
        let own = node.get("assert").map_or(&[][..], Node::items);
        let inner = self.expectations_of(own, scope, true);
        match threshold_problem(node.get("threshold"), own.len(), inner.is_graded) {
            None if node.get("weight").and_then(Node::number) != Some(0.0) => {
                expectations.lost += inner.lost;
                expectations.is_graded |= inner.is_graded;
                expectations.carried.extend(inner.carried);
                self.note_metric(node);
            }
            problem => {
                let (reason, help) = problem.unwrap_or_else(no_weight);
                expectations.lost += 1;
                self.findings.not_carried(&node.place, Remark::new(item, reason, help));
            }
        }
    }

    fn note_metric(&mut self, node: &Node) {
        if let Some(metric) = node.get("metric") {
            let remark = Remark::new(
                "`metric` of an assertion",
                "Tympan's reports have no named metrics",
                "give the cases names, and select them with `tympan test -k NAME`",
            );
            self.findings.note(&metric.place, remark);
        }
    }

    fn assertion(&mut self, node: &Node, scope: &Scope<'_>) -> Result<Json, Refusal> {
        let kind = kind_of(node);
        if kind.is_empty() {
            return Err(("it has no `type`".to_owned(), "write the type of the assertion".to_owned()));
        }
        if node.get("transform").is_some() || node.get("contextTransform").is_some() {
            return Err(("it runs code that changes the answer first".to_owned(), PROGRAM.to_owned()));
        }
        if node.get("weight").and_then(Node::number) == Some(0.0) {
            return Err(no_weight());
        }
        let (is_negated, base) = kind.strip_prefix("not-").map_or((false, kind), |base| (true, base));
        if let Some(refusal) = unsupported(base) {
            return Err(refusal);
        }
        let expectation = self.expectation(base, is_negated, node, scope)?;
        self.spend(expectation.to_string().len())?;
        Ok(expectation)
    }

    fn expectation(&mut self, base: &str, is_negated: bool, node: &Node, scope: &Scope<'_>) -> Result<Json, Refusal> {
        let negate = |plain: Json| if is_negated { json!({ "not": plain }) } else { plain };
        let result = |conditions: Json| json!({ "result": conditions });
        let ignores_case = base.starts_with('i') && base.contains("contains");
        let folded = |mut conditions: Json| {
            if ignores_case {
                conditions["ignore_case"] = true.into();
            }
            result(conditions)
        };
        let key = if is_negated { "not_contains" } else { "contains" };
        Ok(match base {
            "contains" | "icontains" => folded(json!({ key: self.text(node, scope)? })),
            "contains-all" | "icontains-all" => negate(folded(json!({ "contains": self.texts(node, scope)? }))),
            "contains-any" | "icontains-any" if is_negated => folded(json!({ key: self.texts(node, scope)? })),
            "contains-any" | "icontains-any" => folded(any_of(&self.texts(node, scope)?)?),
            "starts-with" => negate(result(json!({ "starts_with": self.text(node, scope)? }))),
            "regex" => negate(result(json!({ "matches": pattern(self.text(node, scope)?)? }))),
            "equals" => negate(result(self.equals(node, scope)?)),
            "is-json" => negate(result(self.is_json(node, scope)?)),
            "word-count" => negate(result(json!({ "matches": self.word_count(node, scope)? }))),
            "cost" => negate(json!({ "cost": { "max": threshold(node)? } })),
            "latency" => negate(json!({ "latency": { "max_seconds": threshold(node)? / 1000.0 } })),
            "finish-reason" => negate(json!({ "finish_reason": finish_reason(&self.text(node, scope)?)? })),
            "levenshtein" if node.get("threshold").and_then(Node::number).is_some_and(|number| number < 1.0) => {
                negate(result(json!({ "equals": self.text(node, scope)? })))
            }
            "levenshtein" => {
                return Err((
                    "it limits the number of edits, and Tympan's `similar` measures their share of the text".to_owned(),
                    "write `similar: {to: …, measure: characters, min: 0.9}` with a share of your choice".to_owned(),
                ));
            }
            "llm-rubric" => negate(self.judge(node, scope)?),
            other => {
                return Err((
                    format!("promptfoo's reference has no assertion `{}`", shown(other)),
                    "correct the type".to_owned(),
                ));
            }
        })
    }

    fn equals(&mut self, node: &Node, scope: &Scope<'_>) -> Result<Json, Refusal> {
        let value = self.value(node, scope)?;
        match &value.value {
            Value::Map(_) | Value::List(_) | Value::Null => Ok(json!({ "json": true, "equals": value.json() })),
            _ => Ok(json!({ "equals": script_text(&value)? })),
        }
    }

    fn is_json(&mut self, node: &Node, scope: &Scope<'_>) -> Result<Json, Refusal> {
        if node.get("value").is_none() {
            return Ok(json!({ "json": true }));
        }
        let value = self.value(node, scope)?;
        let schema = match value.text() {
            Some(text) if text.trim().is_empty() => return Ok(json!({ "json": true })),
            Some(text) => parsed_schema(text, &value.place)?,
            None => value,
        };
        match schema.is_map() {
            true => Ok(json!({ "json": true, "schema": schema.json() })),
            false => Err((
                format!("expected a JSON Schema, found {}", schema.describe()),
                "write the schema as a map".to_owned(),
            )),
        }
    }

    fn word_count(&mut self, node: &Node, scope: &Scope<'_>) -> Result<String, Refusal> {
        let value = self.value(node, scope)?;
        let bound = |node: Option<&Node>| node.and_then(Node::script_text).and_then(|text| text.parse::<usize>().ok());
        let (min, max) = match value.is_map() {
            true => (bound(value.get("min")), bound(value.get("max"))),
            false => (bound(Some(&value)), bound(Some(&value))),
        };
        let words = match (min.unwrap_or(0), max) {
            _ if min.is_none() && max.is_none() => {
                let help = "write a number of words, or `min` and `max`";
                return Err((format!("expected numbers of words, found {}", value.describe()), help.to_owned()));
            }
            (0, Some(0)) => String::new(),
            (0, Some(max)) => format!(r"(?:\S+(?:\s+\S+){{0,{}}})?", max - 1),
            (0, None) => r"(?s:.*)".to_owned(),
            (min, Some(max)) => format!(r"\S+(?:\s+\S+){{{},{}}}", min - 1, max.max(1) - 1),
            (min, None) => format!(r"\S+(?:\s+\S+){{{},}}", min - 1),
        };
        pattern(format!(r"^\s*{words}\s*$"))
    }

    /// Returns the value of an assertion. Files are read, and references to variables are filled in.
    fn value(&mut self, node: &Node, scope: &Scope<'_>) -> Result<Node, Refusal> {
        let Some(value) = node.get("value") else {
            return match node.entries().iter().find(|entry| entry.key == "value") {
                Some(entry) => Ok(entry.value.clone()),
                None => Err(("it has no `value`".to_owned(), "write the value".to_owned())),
            };
        };
        let items = match &value.value {
            Value::Text(text) => return self.filled_value(text, &value.place, scope),
            Value::List(items) => items,
            _ => return Ok(value.clone()),
        };
        let fill = |item: &Node| match item.text() {
            Some(text) => self.filled_value(text, &item.place, scope),
            None => Ok(item.clone()),
        };
        let items: Result<_, _> = items.iter().map(fill).collect();
        Ok(Node { value: Value::List(items?), place: value.place.clone() })
    }

    fn filled_value(&mut self, text: &str, place: &Place, scope: &Scope<'_>) -> Result<Node, Refusal> {
        let Some(path) = text.strip_prefix(SCHEME) else {
            let filled = if is_template(text) { filled(text, scope.variables) } else { Some(text.to_owned()) };
            let reason =
                || format!("its value `{}` is a template with more than variables that have a value", shown(text));
            let help = "write the value itself, or let a column of a table fill in `${row:NAME}`";
            return filled.map(|text| Node::of_text(text, place.clone())).ok_or_else(|| (reason(), help.to_owned()));
        };
        if is_program(path) {
            return Err(("its value comes from a program, and an import runs none".to_owned(), PROGRAM.to_owned()));
        }
        let read = match ending(path).as_str() {
            "txt" => self.files.read(path).map(|source| Node::of_text(source.text().trim(), place.clone())),
            _ => self.files.parse(path),
        };
        read.map_err(|unusable| (unusable.reason, unusable.help))
    }

    /// Returns the value as a text.
    pub(super) fn text(&mut self, node: &Node, scope: &Scope<'_>) -> Result<String, Refusal> {
        let text = script_text(&self.value(node, scope)?)?;
        match text.is_empty() {
            true => Err(("its value is empty".to_owned(), "write the text".to_owned())),
            false => Ok(text),
        }
    }

    /// Returns the value as a list of texts.
    fn texts(&mut self, node: &Node, scope: &Scope<'_>) -> Result<Vec<String>, Refusal> {
        let value = self.value(node, scope)?;
        let texts = match (value.is_list(), value.text()) {
            (true, _) => value.items().iter().map(script_text).collect::<Result<_, _>>()?,
            (_, Some(text)) => comma_separated(text),
            _ => {
                return Err((
                    format!("expected a list of texts, found {}", value.describe()),
                    "write a list".to_owned(),
                ));
            }
        };
        match texts.is_empty() {
            true => Err(("its list is empty".to_owned(), "write at least one text".to_owned())),
            false => Ok(texts),
        }
    }
}

/// Why an assertion has no equivalent, and what to do.
pub(super) type Refusal = (String, String);

/// What to do about code.
pub(super) const PROGRAM: &str = "move the code to a program that reads the case from standard input and prints a verdict, and \
    name it in an assertion `program`; it runs with `--allow-programs`";

/// Returns the type of an assertion.
fn kind_of(node: &Node) -> &str {
    node.get("type").and_then(Node::text).unwrap_or_default()
}

fn no_weight() -> Refusal {
    (
        "its weight is 0, so it never fails; Tympan's assertions always count".to_owned(),
        "leave it out, or let it count".to_owned(),
    )
}

/// Returns why a threshold means something else than that all assertions must pass.
pub(super) fn threshold_problem(threshold: Option<&Node>, count: usize, is_graded: bool) -> Option<Refusal> {
    let number = threshold?.number();
    let means_all = match number {
        Some(number) if !is_graded => number > 0.0 && (count == 1 && number <= 1.0 || number == 1.0),
        _ => false,
    };
    (!means_all).then(|| {
        let reason = "its threshold lets it pass even if an assertion fails, or demands more; in Tympan all assertions must pass";
        (reason.to_owned(), "keep the assertions that must hold, or state conditions of your own".to_owned())
    })
}

fn script_text(node: &Node) -> Result<String, Refusal> {
    node.script_text().ok_or_else(|| (format!("expected a text, found {}", node.describe()), "write a text".to_owned()))
}

fn threshold(node: &Node) -> Result<f64, Refusal> {
    let number = node.get("threshold").and_then(Node::number).filter(|number| *number >= 0.0);
    number.ok_or_else(|| ("it has no `threshold`".to_owned(), "write the limit as `threshold`".to_owned()))
}

/// Returns a regular expression that finds any of some texts.
fn any_of(texts: &[String]) -> Result<Json, Refusal> {
    if let [text] = texts {
        return Ok(json!({ "contains": text }));
    }
    let escaped: Vec<_> = texts.iter().map(|text| escaped(text)).collect();
    Ok(json!({ "matches": compiled(escaped.join("|"))? }))
}

fn escaped(text: &str) -> String {
    let special = |char: char| r"\.+*?()|[]{}^$#&-~".contains(char);
    text.chars().flat_map(|char| special(char).then_some('\\').into_iter().chain([char])).collect()
}

/// Checks that a regular expression of JavaScript means the same in Tympan.
fn pattern(pattern: String) -> Result<String, Refusal> {
    match differs_from_javascript(&pattern) {
        Some(part) => Err((
            format!("`{part}` has another meaning in regular expressions of JavaScript"),
            "rewrite the expression without it".to_owned(),
        )),
        None => compiled(pattern),
    }
}

fn compiled(pattern: String) -> Result<String, Refusal> {
    match Pattern::new(&pattern, false) {
        Ok(_) => Ok(pattern),
        Err(error) => Err((
            format!("Tympan cannot use the regular expression: {error}"),
            "rewrite it without look-around and references to groups, or split it into several assertions".to_owned(),
        )),
    }
}

/// Returns the first part of a regular expression that means something else in JavaScript.
fn differs_from_javascript(pattern: &str) -> Option<&str> {
    const ESCAPES: [char; 9] = ['A', 'z', 'Z', 'a', 'p', 'P', '<', '>', 'U'];
    const IN_CLASSES: [&str; 4] = ["[", "&&", "--", "~~"];
    let mut in_class = false;
    let mut chars = pattern.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => {
                let (next, escaped) = chars.next()?;
                if ESCAPES.contains(&escaped) {
                    return pattern.get(at..next + escaped.len_utf8());
                }
            }
            ']' => in_class = false,
            '[' if !in_class => in_class = true,
            _ if in_class => {
                let rest = &pattern[at..];
                if let Some(part) = IN_CLASSES.iter().find(|part| rest.starts_with(**part)) {
                    return rest.get(..part.len());
                }
            }
            _ => {}
        }
    }
    None
}

fn finish_reason(text: &str) -> Result<String, Refusal> {
    let lower = text.to_lowercase();
    match FINISH_REASONS.contains(&lower.as_str()) {
        true => Ok(lower),
        false => Err((
            format!("Tympan does not know the finish reason `{}`", shown(text)),
            format!("use one of {}", FINISH_REASONS.join(", ")),
        )),
    }
}

/// Parses a JSON Schema in a text.
fn parsed_schema(text: &str, place: &Place) -> Result<Node, Refusal> {
    let source = tympan_core::text::source::SourceFile::new("schema", text);
    let parsed = Node::parse(&source, tympan_core::format::definition::Syntax::Yaml);
    parsed.map(|node| Node { place: place.clone(), ..node }).map_err(|error| {
        (format!("its schema does not parse: {}", error.message()), "write the schema as a map".to_owned())
    })
}

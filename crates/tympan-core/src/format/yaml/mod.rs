//! Parses YAML into a small tree in which every key and value has its position.
//!
//! The parser is stricter than YAML, so that a file means the same to every reader. It accepts a single document,
//! rejects duplicate keys and tags outside the core schema, and limits depth and size. Aliases count towards the
//! limits. Merge keys (`<<`) are resolved: a map's own keys take precedence over merged ones, and earlier maps over later
//! ones.

mod merge;
pub(super) mod scalar;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::{Number, Value as Json};
use serde_saphyr::granit_parser::{
    ErrorKind, Event, Parser, ScalarStyle, ScanError, Span as Range, StructureStyle, Tag,
};

use self::merge::Merge;
use crate::json::JsonMap;
use crate::text::source::Span;

/// The maximum nesting depth: more than any prompt needs, and low enough for recursion on a small stack.
const MAX_DEPTH: usize = 64;
/// The maximum number of values: more than any prompt needs. Values that aliases repeat are counted each time.
pub(super) const MAX_NODES: usize = 100_000;
/// The maximum number of bytes of text that aliases may repeat in total. A larger document may repeat as many bytes as
/// it has.
const MAX_REPEATED: usize = 1 << 20;
/// The anchor ID that the parser uses for a value without an anchor.
const NO_ANCHOR: usize = 0;
/// Smaller maps are searched linearly for duplicates, and larger ones use a set.
const SMALL_MAP: usize = 16;

/// A value and its position.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node<'s> {
    pub(crate) value: Value<'s>,
    pub(crate) span: Span,
}

/// A value in YAML's core schema.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value<'s> {
    Null,
    Bool(bool),
    Number(Number),
    String(Cow<'s, str>),
    List(Vec<Node<'s>>),
    Map(Vec<Entry<'s>>),
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry<'s> {
    pub(crate) key: Cow<'s, str>,
    pub(crate) key_span: Span,
    pub(crate) value: Node<'s>,
}

/// The reason why YAML is rejected.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Problem {
    pub(crate) span: Span,
    pub(crate) message: String,
    pub(crate) help: Option<&'static str>,
}

impl<'s> Node<'s> {
    /// Describes the type of the value, for messages.
    pub(crate) fn describe(&self) -> &'static str {
        match self.value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }

    /// Returns the text for messages, but only if it comes from the file itself. Text from a reference may be secret.
    pub(crate) fn quote(&self) -> &str {
        match &self.value {
            Value::String(Cow::Borrowed(text)) => text,
            _ => "…",
        }
    }

    pub(crate) fn into_json(self) -> Json {
        match self.value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(value),
            Value::Number(value) => Json::Number(value),
            Value::String(value) => Json::String(value.into_owned()),
            Value::List(items) => Json::Array(items.into_iter().map(Node::into_json).collect()),
            Value::Map(entries) => Json::Object(into_json_map(entries)),
        }
    }

    /// Moves the value and everything in it to another position, and makes its text owned.
    pub(crate) fn moved_to(self, span: Span) -> Node<'static> {
        let value = match self.value {
            Value::Null => Value::Null,
            Value::Bool(value) => Value::Bool(value),
            Value::Number(value) => Value::Number(value),
            Value::String(value) => Value::String(Cow::Owned(value.into_owned())),
            Value::List(items) => Value::List(items.into_iter().map(|item| item.moved_to(span)).collect()),
            Value::Map(entries) => Value::Map(
                entries
                    .into_iter()
                    .map(|entry| Entry {
                        key: Cow::Owned(entry.key.into_owned()),
                        key_span: span,
                        value: entry.value.moved_to(span),
                    })
                    .collect(),
            ),
        };
        Node { value, span }
    }

    /// Converts a JSON value. Everything in it gets the same position.
    pub(crate) fn from_json(json: Json, span: Span) -> Node<'static> {
        let value = match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(value),
            Json::Number(value) => Value::Number(value),
            Json::String(value) => Value::String(Cow::Owned(value)),
            Json::Array(items) => Value::List(items.into_iter().map(|item| Node::from_json(item, span)).collect()),
            Json::Object(map) => Value::Map(
                map.into_iter()
                    .map(|(key, value)| Entry {
                        key: Cow::Owned(key),
                        key_span: span,
                        value: Node::from_json(value, span),
                    })
                    .collect(),
            ),
        };
        Node { value, span }
    }

    /// Returns the size of a copy of the value.
    fn size(&self) -> Size {
        let mut total = Size { nodes: 1, depth: 1, bytes: 0 };
        match &self.value {
            Value::String(text) => total.bytes = text.len(),
            Value::List(items) => items.iter().for_each(|item| total.add(item.size())),
            Value::Map(entries) => entries.iter().for_each(|entry| {
                total.bytes += entry.key.len();
                total.add(entry.value.size());
            }),
            _ => {}
        }
        total
    }
}

/// The size of a copy of a value.
#[derive(Clone, Copy)]
struct Size {
    /// The number of values, including itself.
    nodes: usize,
    /// The nesting depth.
    depth: usize,
    /// The number of bytes in its strings and keys.
    bytes: usize,
}

impl Size {
    fn add(&mut self, inner: Self) {
        self.nodes += inner.nodes;
        self.depth = self.depth.max(inner.depth + 1);
        self.bytes += inner.bytes;
    }
}

/// The value of an anchor.
struct Anchored<'s> {
    node: Node<'s>,
    size: Size,
}

/// Converts the entries of a map to JSON.
pub(crate) fn into_json_map(entries: Vec<Entry<'_>>) -> JsonMap {
    entries.into_iter().map(|entry| (entry.key.into_owned(), entry.value.into_json())).collect()
}

/// Parses one YAML document that starts `offset` bytes into its file.
///
/// Returns a tree whenever one can be built, even if there are problems with it.
pub(crate) fn parse(text: &str, offset: usize) -> (Option<Node<'_>>, Vec<Problem>) {
    let (text, offset) = match text.strip_prefix('\u{feff}') {
        Some(rest) => (rest, offset + '\u{feff}'.len_utf8()),
        None => (text, offset),
    };
    let mut builder = Builder { text, offset, ..Builder::default() };
    let outcome = builder.run();
    let root = match outcome {
        Ok(()) => Some(builder.root.unwrap_or(Node { value: Value::Null, span: Span::new(offset, offset) })),
        Err(problem) => {
            builder.problems.push(problem);
            None
        }
    };
    (root, builder.problems)
}

/// A list or map that is not complete yet.
struct Frame<'s> {
    collection: Collection<'s>,
    anchor: usize,
    span: Span,
}

enum Collection<'s> {
    List(Vec<Node<'s>>),
    Map {
        entries: Vec<Entry<'s>>,
        key: Option<Key<'s>>,
        seen: HashSet<Cow<'s, str>>,
        /// What the merge key of the map refers to, if it has one.
        merge: Option<Merge<'s>>,
    },
}

/// A key whose value has not been parsed yet.
struct Key<'s> {
    text: Cow<'s, str>,
    span: Span,
    is_merge: bool,
}

#[derive(Default)]
struct Builder<'s> {
    text: &'s str,
    offset: usize,
    stack: Vec<Frame<'s>>,
    anchors: HashMap<usize, Anchored<'s>>,
    nodes: usize,
    /// The number of bytes that anchors and aliases have repeated.
    repeated: usize,
    root: Option<Node<'s>>,
    problems: Vec<Problem>,
}

impl<'s> Builder<'s> {
    fn run(&mut self) -> Result<(), Problem> {
        let options = serde_saphyr::granit_parser::options! { disallow_directives: true };
        let mut parser = Parser::new_from_str_with_options(self.text, options);
        while let Some(event) = parser.next_event() {
            let (event, range) = event.map_err(|error| self.scan_problem(&error))?;
            self.event(event, &range)?;
        }
        Ok(())
    }

    fn event(&mut self, event: Event<'s>, range: &Range) -> Result<(), Problem> {
        let span = self.span(range);
        match event {
            Event::DocumentStart(true, _) => Err(one_document(span)),
            Event::DocumentEnd if range.slice(self.text).is_some_and(|text| text.starts_with("...")) => {
                Err(one_document(span))
            }
            Event::Scalar(text, style, anchor, tag) => self.scalar(text, style, anchor, tag.as_deref(), span),
            Event::SequenceStart(style, anchor, tag) => {
                check_collection_tag(tag.as_deref(), "seq", span)?;
                let start = if style == StructureStyle::Block { self.dash(span.start) } else { span.start };
                self.open(Collection::List(Vec::new()), anchor, Span::new(start, span.end))
            }
            Event::MappingStart(_, anchor, tag) => {
                check_collection_tag(tag.as_deref(), "map", span)?;
                let map = Collection::Map { entries: Vec::new(), key: None, seen: HashSet::new(), merge: None };
                self.open(map, anchor, span)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(anchor) => self.alias(anchor, span),
            _ => Ok(()),
        }
    }

    fn scalar(
        &mut self,
        text: Cow<'s, str>,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        span: Span,
    ) -> Result<(), Problem> {
        if let Some(Collection::Map { key: key @ None, .. }) = self.stack.last_mut().map(|frame| &mut frame.collection)
        {
            if tag.is_some_and(|tag| tag.core_suffix() != Some("str")) {
                return Err(Problem { span, message: "a key cannot have a tag".into(), help: Some("remove the tag") });
            }
            let anchored = (anchor != NO_ANCHOR).then(|| Node { value: Value::String(text.clone()), span });
            let is_merge = text == "<<" && style == ScalarStyle::Plain && tag.is_none();
            *key = Some(Key { text, span, is_merge });
            return anchored.map_or(Ok(()), |node| self.anchor(anchor, &node));
        }
        let value = scalar::resolve(text, style == ScalarStyle::Plain, tag).map_err(|message| Problem {
            span,
            message,
            help: Some("supported tags: !!str, !!int, !!float, !!bool, !!null, !!seq and !!map"),
        })?;
        self.count(1, span)?;
        self.finish(Node { value, span }, anchor)
    }

    fn open(&mut self, collection: Collection<'s>, anchor: usize, span: Span) -> Result<(), Problem> {
        if self.at_key() {
            return Err(Problem { span, message: "a list or map cannot be a key".into(), help: Some("use a string") });
        }
        if self.stack.len() >= MAX_DEPTH {
            return Err(too_deep(span, MAX_DEPTH));
        }
        self.count(1, span)?;
        self.stack.push(Frame { collection, anchor, span });
        Ok(())
    }

    fn close(&mut self) -> Result<(), Problem> {
        let Some(frame) = self.stack.pop() else { return Ok(()) };
        let (value, end) = match frame.collection {
            Collection::List(items) => {
                let end = items.last().map(|item| item.span.end);
                (Value::List(items), end)
            }
            Collection::Map { entries, merge, .. } => {
                let end = entries.last().map(|entry| entry.value.span.end.max(entry.key_span.end));
                match merge {
                    None => (Value::Map(entries), end),
                    Some(merge) => {
                        let end = end.max(Some(merge.end));
                        (Value::Map(merge.into_entries(entries)), end)
                    }
                }
            }
        };
        let span = Span::new(frame.span.start, end.unwrap_or(frame.span.end).max(frame.span.start));
        self.finish(Node { value, span }, frame.anchor)
    }

    /// Inserts a copy of an anchor's value at the position of an alias.
    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), Problem> {
        if self.at_key() {
            return Err(Problem { span, message: "an alias cannot be a key".into(), help: Some("write the key out") });
        }
        let Some(target) = self.anchors.get(&anchor) else {
            let help = Some("an alias can only refer to an anchor that comes before it and does not contain it");
            return Err(Problem { span, message: "alias refers to itself".into(), help });
        };
        let size = target.size;
        if self.stack.len() + size.depth > MAX_DEPTH {
            return Err(too_deep(span, MAX_DEPTH));
        }
        // Check the limits before copying.
        self.repeat(size, span)?;
        let Some(target) = self.anchors.get(&anchor) else { return Ok(()) };
        let node = Node { value: target.node.value.clone(), span };
        self.finish(node, NO_ANCHOR)
    }

    /// Stores the value of an anchor.
    #[cold]
    fn anchor(&mut self, anchor: usize, node: &Node<'s>) -> Result<(), Problem> {
        let size = node.size();
        self.repeat(size, node.span)?;
        self.anchors.insert(anchor, Anchored { node: node.clone(), size });
        Ok(())
    }

    /// Adds a complete value to the enclosing list or map.
    fn finish(&mut self, node: Node<'s>, anchor: usize) -> Result<(), Problem> {
        if anchor != NO_ANCHOR {
            self.anchor(anchor, &node)?;
        }
        match self.stack.last_mut().map(|frame| &mut frame.collection) {
            None => self.root = Some(node),
            Some(Collection::List(items)) => items.push(node),
            Some(Collection::Map { entries, key, seen, merge }) => {
                let Some(Key { text: key, span: key_span, is_merge }) = key.take() else { return Ok(()) };
                if is_merge && merge.is_none() {
                    *merge = Some(Merge::new(node, entries.len())?);
                } else if is_merge {
                    self.problems.push(Problem {
                        span: key_span,
                        message: "duplicate key `<<`".into(),
                        help: Some("merge several maps with a list, as in `<<: [*first, *second]`"),
                    });
                } else if is_duplicate(entries, seen, &key) {
                    self.problems.push(Problem {
                        span: key_span,
                        message: format!("duplicate key `{key}`"),
                        help: Some("remove one of the two"),
                    });
                } else {
                    if !seen.is_empty() {
                        seen.insert(key.clone());
                    }
                    entries.push(Entry { key, key_span, value: node });
                }
            }
        }
        Ok(())
    }

    fn at_key(&self) -> bool {
        matches!(self.stack.last().map(|frame| &frame.collection), Some(Collection::Map { key: None, .. }))
    }

    fn count(&mut self, nodes: usize, span: Span) -> Result<(), Problem> {
        self.nodes += nodes;
        if self.nodes <= MAX_NODES {
            return Ok(());
        }
        Err(too_many(span, ", including those repeated by aliases"))
    }

    /// Counts a copy towards the limits.
    fn repeat(&mut self, size: Size, span: Span) -> Result<(), Problem> {
        self.count(size.nodes, span)?;
        self.repeated = self.repeated.saturating_add(size.bytes);
        let most = MAX_REPEATED.max(self.text.len());
        if self.repeated <= most {
            return Ok(());
        }
        let message = format!("aliases repeat more than {most} bytes of text");
        Err(Problem { span, message, help: Some("write the text once, and reuse it in the template") })
    }

    fn span(&self, range: &Range) -> Span {
        match range.byte_range() {
            Some(bytes) => Span::from(bytes).shifted(self.offset),
            None => Span::new(self.offset, self.offset),
        }
    }

    /// Returns the position of the first dash of a list. The scanner reports that of the first item, if the list is
    /// not indented more than its key. Without this, a list of one item would have the position of the item.
    fn dash(&self, start: usize) -> usize {
        let before = &self.text[..start - self.offset];
        let indented = &before[before.rfind('\n').map_or(0, |newline| newline + 1)..];
        let line = indented.trim_start_matches(' ');
        if line.starts_with('-') { start - line.len() } else { start }
    }

    fn scan_problem(&self, error: &ScanError) -> Problem {
        let at = self.offset + error.marker().byte_offset().unwrap_or(0).min(self.text.len());
        if matches!(error.kind(), ErrorKind::RecursionLimitExceeded) {
            return too_deep(Span::new(at, at), MAX_DEPTH);
        }
        Problem { span: Span::new(at, at), message: error.info(), help: self.scan_help(error.kind(), at) }
    }

    /// Returns advice about a syntax error, most often for a value that needs quotes.
    fn scan_help(&self, kind: &ErrorKind, at: usize) -> Option<&'static str> {
        let before = self.text.get(..at - self.offset).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        scan_help(kind, line)
    }
}

/// Returns advice about a syntax error after this part of a line.
fn scan_help(kind: &ErrorKind, line: &str) -> Option<&'static str> {
    let colon = Some("this value contains a colon, so quote it, as in `description: \"Note: …\"`");
    match kind {
        ErrorKind::MappingValueNotAllowed
        | ErrorKind::InvalidColonPlacement
        | ErrorKind::ExpectedFlowMappingSeparator
        | ErrorKind::ExpectedFlowSequenceSeparator
            if has_key(line) =>
        {
            colon
        }
        ErrorKind::MappingValueNotAllowed => Some("indent this line like the other keys of its map"),
        ErrorKind::UnexpectedCharacter { .. } => {
            Some("if the value starts with a special character, quote it, as in `name: \"@home\"`")
        }
        ErrorKind::TabNotAllowed | ErrorKind::TabInBlockIndentation | ErrorKind::TabInIndentation => {
            Some("indent with spaces")
        }
        _ => None,
    }
}

/// Returns whether a part of a line contains a key with the beginning of its value.
fn has_key(line: &str) -> bool {
    line.match_indices(": ").any(|(at, _)| !line[at + 2..].trim_matches([' ', '{', '[']).is_empty())
}

fn is_duplicate<'s>(entries: &[Entry<'s>], seen: &mut HashSet<Cow<'s, str>>, key: &str) -> bool {
    if entries.len() < SMALL_MAP {
        return entries.iter().any(|entry| entry.key == *key);
    }
    if seen.is_empty() {
        seen.extend(entries.iter().map(|entry| entry.key.clone()));
    }
    seen.contains(key)
}

fn check_collection_tag(tag: Option<&Tag>, expected: &str, span: Span) -> Result<(), Problem> {
    match tag {
        Some(tag) if !tag.is_yaml_core_schema_tag(expected) => Err(Problem {
            span,
            message: format!("unsupported tag `{}`", tag.original()),
            help: Some("supported tags: !!str, !!int, !!float, !!bool, !!null, !!seq and !!map"),
        }),
        _ => Ok(()),
    }
}

fn one_document(span: Span) -> Problem {
    Problem {
        span,
        message: "expected one YAML document, found a second one".into(),
        help: Some("remove the `...` or `---` that ends the first one"),
    }
}

/// Creates the problem for a document in any syntax with too many values.
pub(super) fn too_many(span: Span, how: &str) -> Problem {
    let message = format!("more than {MAX_NODES} values{how}");
    Problem { span, message, help: Some("move the data to a file and include it with ${file:…}") }
}

pub(super) fn too_deep(span: Span, levels: usize) -> Problem {
    Problem { span, message: format!("more than {levels} levels of nesting"), help: Some("use a flatter structure") }
}

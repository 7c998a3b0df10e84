//! The messages that each place of a template may write to.
//!
//! A role marker starts a message, and what follows belongs to it until the next marker. Markers in branches and loops
//! may or may not be written, so a place may belong to several messages. Values are not known here, so every branch
//! counts.

use std::collections::BTreeSet;

use tympan_core::prompt::analysis::WrittenMessage;
use tympan_core::text::source::Span;

use super::items::{Item, Outline};
use super::marker_text::{Neighbors, may_end_marker};

/// The maximum number of messages that a place may belong to. Above it, the place may belong to any message.
const MAX_OPEN: usize = 256;

/// Messages, by their index.
pub(super) type Messages = BTreeSet<usize>;

/// The messages of each place.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// The tags and the messages that they may write to or decide about, by position.
    places: Vec<(Span, Messages)>,
    /// Whether expressions of the template may assemble role markers, so that any place may belong to a message of any
    /// role.
    pub(super) is_assembled: bool,
}

impl Layout {
    /// Finds the messages of each place. `messages` are those of the template, in order.
    pub(super) fn new(source: &str, outline: &Outline, messages: &[WrittenMessage]) -> Self {
        let markers = messages.iter().enumerate().filter_map(|(index, message)| {
            let line = message.marker?;
            let text = source.get(line.range()).unwrap_or_default();
            Some(Marker { message: index, line, start: line.start + start_of_text(text), is_certain: is_certain(text) })
        });
        let mut reader = Reader { source, markers: markers.collect(), ..Reader::default() };
        // What is written before the marker may depend on statements that begin on another line.
        let lines = messages.iter().filter_map(|message| source.get(message.marker?.range()));
        reader.layout.is_assembled = { lines }.any(|line| line.contains("{%")) || outline.is_ragged;
        reader.find_set_aside(&outline.items, false);
        // The others are in comments, where they keep white space control from joining lines.
        if reader.found < reader.markers.len() || reader.set_aside.len() > MAX_OPEN {
            reader.layout.is_assembled = true;
            reader.set_aside.clear();
        }
        let start =
            if messages.first().is_some_and(|message| message.marker.is_none()) { [0].into() } else { [].into() };
        reader.block(&outline.items, start, None);
        reader.layout.is_assembled |= outline.strings.iter().any(|text| {
            let known = Neighbors { before: text.is_between_inputs, after: text.is_between_inputs };
            may_end_marker(&text.value, known, |_| false)
        });
        reader.layout.places.sort_by_key(|(span, _)| span.start);
        reader.layout
    }

    /// Returns the messages that an expression at this position may write to, or that it decides about.
    pub(super) fn messages_at(&self, offset: usize) -> Option<&Messages> {
        let index = self.places.partition_point(|(span, _)| span.start <= offset).checked_sub(1)?;
        let (span, messages) = &self.places[index];
        (offset < span.end).then_some(messages)
    }
}

/// A role marker in the source.
struct Marker {
    message: usize,
    line: Span,
    /// The position of its first character that is not in a tag.
    start: usize,
    /// Whether the line starts a message whatever its tags evaluate to.
    is_certain: bool,
}

/// What a block does to the set of open messages.
struct Effect {
    /// The messages that may be open after it, apart from those before it.
    opened: Messages,
    /// Whether the messages before it may still be open after it.
    passes: bool,
}

#[derive(Default)]
struct Reader<'s> {
    source: &'s str,
    markers: Vec<Marker>,
    /// The messages in macros and in text that is captured. Any expression that is not just an input may write them.
    set_aside: Messages,
    /// The number of markers in text.
    found: usize,
    layout: Layout,
}

/// The loop around a block: the messages that may be open in it or after it.
type Around<'a> = Option<&'a Messages>;

impl Reader<'_> {
    /// Collects the messages in macros and captured text, and looks for markers that are assembled from several parts.
    fn find_set_aside(&mut self, items: &[Item], is_aside: bool) {
        for (index, item) in items.iter().enumerate() {
            match item {
                Item::Text(span) => {
                    let before = index.checked_sub(1).map(|before| &items[before]);
                    let known = Neighbors { before: is_input(before), after: is_input(items.get(index + 1)) };
                    self.text(*span, known);
                    self.found += self.markers_in(*span).count();
                    if is_aside {
                        let own: Vec<_> = self.markers_in(*span).map(|marker| marker.message).collect();
                        self.set_aside.extend(own);
                    }
                }
                Item::Output { .. } | Item::Jump => {}
                Item::Branches { branches, .. } => {
                    branches.iter().for_each(|(_, body)| self.find_set_aside(body, is_aside));
                }
                Item::Loop { body, otherwise, is_recursive, .. } => {
                    self.find_set_aside(body, is_aside || *is_recursive);
                    self.find_set_aside(otherwise, is_aside);
                }
                Item::Aside { body, .. } => self.find_set_aside(body, true),
            }
        }
    }

    /// Looks for lines of a text that may end a role marker which starts in front of the text.
    fn text(&mut self, span: Span, known: Neighbors) {
        let text = self.source.get(span.range()).unwrap_or_default();
        let first = self.markers.partition_point(|marker| marker.line.end < span.start);
        let is_written = |offset: usize| {
            let at = span.start + offset;
            let mut near = self.markers[first..].iter().take_while(|marker| marker.line.start <= at);
            near.any(|marker| at <= marker.line.end)
        };
        let is_assembled = may_end_marker(text, known, is_written);
        self.layout.is_assembled |= is_assembled;
    }

    fn markers_in(&self, span: Span) -> impl Iterator<Item = &Marker> {
        let first = self.markers.partition_point(|marker| marker.start < span.start);
        self.markers[first..].iter().take_while(move |marker| marker.start < span.end)
    }

    /// Records the messages of all tags in a block, and returns those that may be open after it.
    fn block(&mut self, items: &[Item], mut open: Messages, around: Around<'_>) -> Messages {
        for item in items {
            open = self.item(item, open, around);
            if open.len() > MAX_OPEN {
                self.layout.is_assembled = true;
                open.clear();
            }
        }
        open
    }

    fn item(&mut self, item: &Item, mut open: Messages, around: Around<'_>) -> Messages {
        match item {
            Item::Text(span) => {
                let effect = self.text_effect(*span);
                return effect.apply(open);
            }
            Item::Jump => {}
            Item::Output { span, is_input } => {
                if !is_input {
                    open.extend(&self.set_aside);
                }
                self.layout.places.push((*span, open.clone()));
            }
            Item::Aside { span, body, is_written } => {
                if *is_written {
                    open.extend(self.all_in(body));
                    open.extend(&self.set_aside);
                }
                self.layout.places.push((*span, open.clone()));
                self.block(body, open.clone(), None);
            }
            Item::Branches { branches, has_else } => {
                let mut decided = open.clone();
                branches.iter().for_each(|(_, body)| decided.extend(self.all_in(body)));
                if branches.iter().any(|(_, body)| has_jump(body)) {
                    decided.extend(around.into_iter().flatten());
                }
                let mut after = if *has_else { Messages::new() } else { open.clone() };
                for (tag, body) in branches {
                    self.layout.places.extend(tag.map(|tag| (tag, decided.clone())));
                    after.extend(self.block(body, open.clone(), around));
                }
                return after;
            }
            Item::Loop { tag, body, otherwise, .. } => {
                let mut inside = open.clone();
                let mut all = open.clone();
                all.extend(self.all_in(body));
                all.extend(self.all_in(otherwise));
                self.layout.places.push((*tag, all.clone()));
                if has_jump(body) {
                    inside.extend(&all);
                } else {
                    inside.extend(self.effect(body).opened);
                }
                let mut after = self.block(body, inside.clone(), Some(&all));
                after.extend(inside);
                after.extend(self.block(otherwise, open, around));
                return after;
            }
        }
        open
    }

    fn text_effect(&self, span: Span) -> Effect {
        let mut effect = Effect { opened: Messages::new(), passes: true };
        for marker in self.markers_in(span) {
            if marker.is_certain {
                effect = Effect { opened: Messages::new(), passes: false };
            }
            effect.opened.insert(marker.message);
        }
        effect
    }

    fn effect(&self, items: &[Item]) -> Effect {
        let mut effect = Effect { opened: Messages::new(), passes: true };
        for item in items {
            let next = match item {
                Item::Text(span) => self.text_effect(*span),
                Item::Output { is_input: true, .. } | Item::Jump | Item::Aside { is_written: false, .. } => continue,
                Item::Output { .. } => Effect { opened: self.set_aside.clone(), passes: true },
                Item::Aside { body, .. } => {
                    Effect { opened: self.all_in(body).chain(self.set_aside.iter().copied()).collect(), passes: true }
                }
                Item::Branches { branches, has_else } => {
                    let bodies = branches.iter().map(|(_, body)| self.effect(body));
                    bodies.fold(Effect { opened: Messages::new(), passes: !has_else }, Effect::or)
                }
                Item::Loop { body, otherwise, .. } if has_jump(body) => {
                    Effect { passes: true, opened: self.all_in(body).chain(self.all_in(otherwise)).collect() }
                }
                Item::Loop { body, otherwise, .. } => {
                    Effect { passes: true, ..self.effect(body).or(self.effect(otherwise)) }
                }
            };
            effect = Effect { passes: effect.passes && next.passes, opened: next.apply(effect.opened) };
        }
        effect
    }

    /// Returns the messages whose markers are in a block, at any depth.
    fn all_in(&self, items: &[Item]) -> impl Iterator<Item = usize> + use<> {
        let mut all = Messages::new();
        let mut rest: Vec<&[Item]> = vec![items];
        while let Some(items) = rest.pop() {
            for item in items {
                match item {
                    Item::Text(span) => all.extend(self.markers_in(*span).map(|marker| marker.message)),
                    Item::Output { is_input: false, .. } => all.extend(&self.set_aside),
                    Item::Output { .. } | Item::Jump => {}
                    Item::Branches { branches, .. } => rest.extend(branches.iter().map(|(_, body)| body.as_slice())),
                    Item::Loop { body, otherwise, .. } => rest.extend([body.as_slice(), otherwise]),
                    Item::Aside { body, is_written, .. } => {
                        if *is_written {
                            all.extend(&self.set_aside);
                        }
                        rest.push(body);
                    }
                }
            }
        }
        all.into_iter()
    }
}

impl Effect {
    fn apply(self, before: Messages) -> Messages {
        let mut after = self.opened;
        if self.passes {
            after.extend(before);
        }
        after
    }

    /// Returns the effect of one of two blocks.
    fn or(mut self, other: Self) -> Self {
        self.opened.extend(other.opened);
        Self { passes: self.passes || other.passes, ..self }
    }
}

fn is_input(item: Option<&Item>) -> bool {
    matches!(item, Some(Item::Output { is_input: true, .. }))
}

/// Returns whether a block may leave the loop around it, or its current pass.
fn has_jump(items: &[Item]) -> bool {
    items.iter().any(|item| match item {
        Item::Jump => true,
        Item::Branches { branches, .. } => branches.iter().any(|(_, body)| has_jump(body)),
        _ => false,
    })
}

/// Returns whether a line with a role marker starts a message whatever its tags evaluate to. Inputs cannot break it, but
/// statements and text in expressions may.
fn is_certain(line: &str) -> bool {
    !line.contains("{%")
        && !line.contains("{#")
        && line.split("{{").skip(1).all(|tag| {
            let tag = tag.split("}}").next().unwrap_or_default();
            !tag.trim_start().starts_with(['#', '^', '/', '!', '=']) && !tag.contains(['\'', '"', '('])
        })
}

/// Returns the offset of the first character of a line that is neither white space nor in a tag.
fn start_of_text(line: &str) -> usize {
    let mut rest = line;
    loop {
        rest = rest.trim_start();
        let close = match rest.get(..2) {
            Some("{%") => "%}",
            Some("{#") => "#}",
            _ => return line.len() - rest.len(),
        };
        let Some(end) = rest.find(close) else { return line.len() - rest.len() };
        rest = &rest[end + 2..];
    }
}

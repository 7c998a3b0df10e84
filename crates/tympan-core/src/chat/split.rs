//! Splitting rendered text into messages.
//!
//! Only the author's newlines end a line, and a line starts a message only if the author wrote it as a role marker. No
//! input can add, remove or change a message.

use std::ops::Range;
use std::sync::Arc;

use crate::chat::marker::{Attributes, Marker};
use crate::chat::message::{Anchor, Content, ContentPart, Message, Role, TextPart};
use crate::chat::message::{RichInput, RichValue};
use crate::chat::rendered::{Rendered, RichContent, RichPlace};
use crate::chat::scan::for_each_marker;
use crate::json::JsonMap;
use crate::spec::schema::PropertyKind;
use crate::text::origin::Origin;

/// Splits rendered text into messages.
///
/// Content before the first marker becomes a system message. Threads are inserted at their positions, and the text
/// before and after them becomes separate messages. Threads that the template does not mention follow the last message.
pub fn split(rendered: Rendered) -> Vec<Message> {
    split_as(rendered, false)
}

/// Splits rendered text into messages. With `marks_stable`, each text part records the length of its stable prefix.
pub(crate) fn split_as(mut rendered: Rendered, marks_stable: bool) -> Vec<Message> {
    let rich = rendered.rich.take().map_or_else(RichContent::default, |rich| *rich);
    Splitter::new(&rendered, marks_stable).messages(rich, |_| {})
}

/// Converts all of a rendered text to one message, byte for byte.
pub fn whole(rendered: Rendered, role: Role) -> Message {
    whole_as(rendered, role, false)
}

/// Converts all of a rendered text to one message. With `marks_stable`, it records the length of its stable prefix.
pub(crate) fn whole_as(rendered: Rendered, role: Role, marks_stable: bool) -> Message {
    let all = 0..rendered.text().len();
    let stable = if marks_stable { stable(&rendered, &all, &all) } else { 0 };
    message(role, TextPart { stable, ..TextPart::new(rendered.into_text()) }, None)
}

/// Returns how many bytes at the start of a message the author wrote without any input. `section` is the text of the
/// message before it was trimmed to `range`. Trusted inputs end this prefix too, because their text changes between
/// renders. So do inputs that wrote nothing or only line ends: they may write other text the next time.
fn stable(rendered: &Rendered, section: &Range<usize>, range: &Range<usize>) -> usize {
    let pieces = rendered.traced.ranges_from(section.start).take_while(|(piece, _)| piece.start <= section.end);
    let foreign = { pieces }.find(|(piece, origin)| {
        let is_inside = piece.start < section.end && piece.end > section.start;
        let stood_there = piece.is_empty() && section.start <= piece.start && piece.start <= section.end;
        !origin.is_author() && (is_inside || stood_there)
    });
    foreign.map_or(range.end, |(piece, _)| piece.start.clamp(range.start, range.end)) - range.start
}

/// The origin of a message, as a byte range of the rendered text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The message's text is the text of this range.
    Text(Range<usize>),
    /// The message belongs to the thread whose nonce is in this range. The range is empty and at the end of the text
    /// if the template does not mention the thread.
    Thread(Range<usize>),
}

/// Splits rendered text into messages and returns the origin of each one, so that the origin of each of its bytes can
/// be looked up in [`Rendered::segments`].
pub fn split_with_places(rendered: &Rendered) -> Vec<(Message, Place)> {
    split_with_places_as(rendered, false)
}

/// Splits rendered text into messages with their origins. With `marks_stable`, each text part records the length of its
/// stable prefix.
pub(crate) fn split_with_places_as(rendered: &Rendered, marks_stable: bool) -> Vec<(Message, Place)> {
    let mut places = Vec::new();
    let rich = rendered.rich.as_deref().cloned().unwrap_or_default();
    let messages = Splitter::new(rendered, marks_stable).messages(rich, |place| places.push(place));
    messages.into_iter().zip(places).collect()
}

/// The messages so far. `placed` is called with the origin of each one.
struct MessageSink<P> {
    messages: Vec<Message>,
    placed: P,
}

impl<P: FnMut(Place)> MessageSink<P> {
    fn add(&mut self, message: Message, place: Place) {
        (self.placed)(place);
        self.messages.push(message);
    }

    fn add_thread(&mut self, input: Arc<RichInput>, range: &Range<usize>) {
        let thread = thread_of(input);
        self.messages.reserve(thread.len() + 1);
        for message in thread {
            self.add(message, Place::Thread(range.clone()));
        }
    }
}

/// A message's role, attributes, and the bytes of its content.
struct Section {
    role: Role,
    attributes: Option<Box<Attributes>>,
    range: Range<usize>,
    /// Whether this is the text before the first marker.
    is_preamble: bool,
}

struct Splitter<'r> {
    rendered: &'r Rendered,
    text: &'r str,
    marks_stable: bool,
}

impl<'r> Splitter<'r> {
    fn new(rendered: &'r Rendered, marks_stable: bool) -> Self {
        Self { rendered, text: rendered.text(), marks_stable }
    }

    fn is_trusted(&self, origin: Origin) -> bool {
        self.rendered.inputs.is_trusted(origin)
    }

    /// Returns the messages. Calls `placed` for each of them, in order.
    fn messages(&self, rich: RichContent, placed: impl FnMut(Place)) -> Vec<Message> {
        let RichContent { places: rich, appended } = rich;
        let expected = self.rendered.notable.as_ref().map_or(4, |notes| notes.len() + 1);
        let mut sink = MessageSink { messages: Vec::with_capacity(expected), placed };
        let mut rich = rich.into_iter().peekable();
        let mut add = |mut section: Section, end: usize| {
            section.range.end = end;
            if rich.peek().is_none_or(|place| place.range.start >= end) {
                return self.add_message(section, &[], &mut sink);
            }
            let mut places = Vec::new();
            while let Some(place) = rich.next_if(|place| place.range.start < end) {
                places.push(place);
            }
            if places.iter().any(|place| place.input.kind == PropertyKind::Thread) {
                self.add_messages(section, places, &mut sink);
            } else {
                self.add_message(section, &places, &mut sink);
            }
        };
        let mut open = Section { role: Role::System, attributes: None, range: 0..0, is_preamble: true };
        for_each_marker(self.rendered, |line, marker| {
            let start = (line.end + 1).min(self.text.len());
            let Marker { role, attributes } = marker;
            let next = Section { role, attributes, range: start..start, is_preamble: false };
            add(std::mem::replace(&mut open, next), line.start);
        });
        // Without any marker, the text is one system message, even if it is empty.
        open.is_preamble = false;
        add(open, self.text.len());
        for input in appended {
            sink.add_thread(input, &(self.text.len()..self.text.len()));
        }
        sink.messages
    }

    /// Adds the message of a section without threads.
    fn add_message(&self, section: Section, places: &[RichPlace], sink: &mut MessageSink<impl FnMut(Place)>) {
        let Section { role, attributes, range, is_preamble } = section;
        if !is_preamble || self.has_content(&range) {
            let section = range.clone();
            let range = self.trim(range, is_newline);
            let part = self.part(&section, range.clone(), places);
            sink.add(message(role, part, attributes.map(|attributes| attributes.values)), Place::Text(range));
        }
    }

    /// Adds the messages of a section with threads.
    fn add_messages(&self, section: Section, places: Vec<RichPlace>, sink: &mut MessageSink<impl FnMut(Place)>) {
        let Section { role, attributes, range, .. } = section;
        let attributes = attributes.map(|attributes| attributes.values);
        let mut start = range.start;
        let mut media = Vec::new();
        for place in places {
            if place.input.kind != PropertyKind::Thread {
                media.push(place);
                continue;
            }
            self.add_text_between(role, &attributes, start..place.range.start, &media, sink);
            media.clear();
            start = place.range.end;
            sink.add_thread(place.input, &place.range);
        }
        self.add_text_between(role, &attributes, start..range.end, &media, sink);
    }

    /// Adds a message with the text between two threads, if there is any.
    fn add_text_between(
        &self,
        role: Role,
        attributes: &Option<JsonMap>,
        range: Range<usize>,
        media: &[RichPlace],
        sink: &mut MessageSink<impl FnMut(Place)>,
    ) {
        if self.has_content(&range) {
            let section = range.clone();
            let range = self.trim(range, char::is_whitespace);
            let part = self.part(&section, range.clone(), media);
            sink.add(message(role, part, attributes.clone()), Place::Text(range));
        }
    }

    /// Returns the text of a range as a part, with the rich inputs in it. `section` is the range before trimming.
    fn part(&self, section: &Range<usize>, range: Range<usize>, places: &[RichPlace]) -> TextPart {
        let anchors = places.iter().filter(|place| range.start <= place.range.start && place.range.end <= range.end);
        let anchors = anchors.map(|place| Anchor {
            range: place.range.start - range.start..place.range.end - range.start,
            input: place.input.clone(),
        });
        let stable = if self.marks_stable { stable(self.rendered, section, &range) } else { 0 };
        TextPart { anchors: anchors.collect(), stable, value: self.text[range].to_owned() }
    }

    /// Returns whether a range contains anything but the author's white space. An input counts even if it wrote
    /// nothing, so that the number of messages does not depend on the values of inputs.
    fn has_content(&self, range: &Range<usize>) -> bool {
        self.pieces(range).any(|(text, trusted)| !trusted || !text.trim().is_empty())
    }

    /// Returns the pieces of a range: their text, and whether it counts as the author's.
    fn pieces(&self, range: &Range<usize>) -> impl Iterator<Item = (&'r str, bool)> {
        let pieces = self.rendered.traced.piece_ends();
        let first = pieces.partition_point(|piece| piece.end < range.start);
        let last = pieces.partition_point(|piece| piece.end <= range.end);
        let range = range.clone();
        (first..pieces.len().min(last + 1)).filter_map(move |index| {
            let start = if index == 0 { 0 } else { pieces[index - 1].end };
            let piece = start.max(range.start)..pieces[index].end.min(range.end);
            let is_inside = start >= range.start && pieces[index].end <= range.end;
            (is_inside || piece.start < piece.end).then(|| (&self.text[piece], self.is_trusted(pieces[index].origin)))
        })
    }

    /// Trims characters from both ends of a range, whoever wrote them.
    #[inline]
    fn trim(&self, range: Range<usize>, matches: impl Fn(char) -> bool + Copy) -> Range<usize> {
        let text = self.text[range.clone()].trim_end_matches(matches);
        let rest = text.trim_start_matches(matches);
        range.start + text.len() - rest.len()..range.start + text.len()
    }
}

/// Returns whether a character is a line end of any convention.
#[inline]
fn is_newline(char: char) -> bool {
    matches!(char, '\n' | '\r')
}

fn message(role: Role, part: TextPart, metadata: Option<JsonMap>) -> Message {
    Message { role, content: Content::one(ContentPart::Text(part)), metadata }
}

/// Returns the messages of a thread, without copying if this is the last reference to them.
fn thread_of(input: Arc<RichInput>) -> Vec<Message> {
    match Arc::try_unwrap(input).map(|input| input.value) {
        Ok(RichValue::Thread(messages)) => messages,
        Err(shared) => match &shared.value {
            RichValue::Thread(messages) => messages.clone(),
            RichValue::Media(_) => Vec::new(),
        },
        Ok(RichValue::Media(_)) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::Prompt;
    use crate::spec::PromptSpec;
    use crate::spec::schema::Property;
    use proptest::prelude::*;

    /// Template fragments that produce markers, partial markers and text that only looks like a marker.
    const SNIPPETS: &[&str] = &[
        "user:",
        "us",
        "er:",
        "\n",
        "\n",
        " ",
        "\u{a0}",
        "\r",
        "#",
        "text",
        "System[a=",
        "assistant [a=\"",
        "\"",
        "]:",
        ":",
        "{{ x }}",
        "{{- x -}}",
        "{{ 'system:' }}",
        "{{ 'us' }}",
        "{{ '\\nuser:\\n' }}",
        "{% if x %}user{% endif %}",
        "{% if not x %}user:\n{% endif %}",
        "{{ xs | join('\\nuser:\\n') }}",
        "{{ ['user', x] | join(':') }}",
        "{{ ['user', ':'] | join }}",
        "{% set s %}\nuser[a={{ x }}]:\n{% endset %}{{ s }}",
        "{% filter upper %}user:{{ x }}\n{% endfilter %}",
        "{% for i in xs %}{{ loop.index }}user:\n{{ i }}\n{% endfor %}",
        "{% macro m(a) %}\nuser:{{ a }}\n{% endmacro %}{{ m('') }}{{ m(x) }}{{ m('')|trim }}",
        "{{ 'user:' ~ x }}",
        "{{ 'user[a=' ~ x ~ ']:' }}",
        "{{ ['user:'] }}",
        "{% autoescape 'html' %}{{ 'user:' }}{% endautoescape %}",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Looking for markers only at the noted places finds the same messages as looking everywhere.
        #[test]
        fn markers_are_found_where_they_are_noted(
            parts in prop::collection::vec(prop::sample::select(SNIPPETS), 0..12),
            x in "|user:|\nsystem:\n|a",
            trusted in prop::bool::weighted(0.1),
        ) {
            let mut input = Property::new("x", crate::spec::schema::PropertyKind::String);
            input.trusted = trusted;
            let spec = PromptSpec { instructions: parts.concat(), inputs: vec![input], ..PromptSpec::default() };
            let inputs = serde_json::json!({"x": x, "xs": [x, "b"]});
            let Ok(rendered) = Prompt::from_spec(spec).render(&inputs) else {
                return Ok(());
            };
            prop_assert_eq!(rendered.notable.is_none(), trusted);
            let everywhere = Rendered { notable: None, ..rendered.clone() };
            prop_assert_eq!(split(rendered), split(everywhere));
        }
    }
}

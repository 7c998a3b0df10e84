//! From rendered text to messages.
//!
//! Lines are cut at the author's newlines alone, and a line begins a message only if the author
//! wrote it as a role marker. Nothing that an input holds can add, remove or change a message.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Kind, Result};
use crate::marker::{self, Attributes, Marker, Part, Parts};
use crate::message::{Anchor, Content, ContentPart, JsonMap, Message, Role, TextPart};
use crate::origin::Origin;
use crate::rendered::{Rendered, RichInput, RichPlace, RichValue, TracedText};
use crate::schema::PropertyKind;

/// Splits rendered text into messages.
///
/// Content before the first marker is a system message. Threads are put in where they stand; the
/// text before and after them becomes messages of its own.
pub fn split(rendered: Rendered) -> Vec<Message> {
    split_as(rendered, false)
}

/// As [`split`]; if it `marks_stable` text, parts know how much of their beginning no input had a part in.
pub(crate) fn split_as(mut rendered: Rendered, marks_stable: bool) -> Vec<Message> {
    let rich = std::mem::take(&mut rendered.rich);
    Splitter::new(&rendered, marks_stable).messages(rich.into_vec(), |_| {})
}

/// The whole of a rendered text as one message, byte for byte.
pub fn whole(rendered: Rendered, role: Role) -> Message {
    whole_as(rendered, role, false)
}

/// As [`whole`] and [`split_as`] together.
pub(crate) fn whole_as(rendered: Rendered, role: Role, marks_stable: bool) -> Message {
    let stable = if marks_stable { stable(&rendered, &(0..rendered.text().len())) } else { 0 };
    message(role, TextPart { stable, ..TextPart::new(rendered.into_text()) }, None)
}

/// How many bytes at the beginning of a range the author wrote and no input had a part in. A trusted input has one, too:
/// what it says changes. So does an input that wrote nothing: the next one may.
fn stable(rendered: &Rendered, range: &Range<usize>) -> usize {
    let pieces = rendered.traced.ranges_from(range.start).take_while(|(piece, _)| piece.start <= range.end);
    let foreign = { pieces }.find(|(piece, origin)| {
        let is_inside = piece.start < range.end && piece.end > range.start;
        let stood_there = piece.is_empty() && range.start <= piece.start && piece.start <= range.end;
        !origin.is_author() && (is_inside || stood_there)
    });
    foreign.map_or(range.end, |(piece, _)| piece.start.max(range.start)) - range.start
}

/// Where a message came from: bytes of the rendered text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The message's text is the text of these bytes.
    Text(Range<usize>),
    /// The message belongs to the thread whose nonce stands here.
    Thread(Range<usize>),
}

/// As [`split`], and says of each message where it came from, so that the origin of each of its
/// bytes can be looked up in [`Rendered::segments`].
pub fn split_with_places(rendered: &Rendered) -> Vec<(Message, Place)> {
    split_with_places_as(rendered, false)
}

/// As [`split_with_places`] and [`split_as`] together.
pub(crate) fn split_with_places_as(rendered: &Rendered, marks_stable: bool) -> Vec<(Message, Place)> {
    let mut places = Vec::new();
    let messages = Splitter::new(rendered, marks_stable).messages(rendered.rich.to_vec(), |place| places.push(place));
    messages.into_iter().zip(places).collect()
}

/// The messages so far; whoever wants to know is told where each came from.
struct Said<P> {
    messages: Vec<Message>,
    placed: P,
}

impl<P: FnMut(Place)> Said<P> {
    fn add(&mut self, message: Message, place: Place) {
        (self.placed)(place);
        self.messages.push(message);
    }
}

/// A message's role, attributes, and the bytes of its content.
struct Section {
    role: Role,
    attributes: Option<Box<Attributes>>,
    range: Range<usize>,
    /// Whether it is what stands before the first marker.
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

    /// The messages; `placed` is called for each of them, in order.
    fn messages(&self, rich: Vec<RichPlace>, placed: impl FnMut(Place)) -> Vec<Message> {
        let expected = self.rendered.notable.as_ref().map_or(4, |notes| notes.len() + 1);
        let mut said = Said { messages: Vec::with_capacity(expected), placed };
        let mut rich = rich.into_iter().peekable();
        let mut add = |mut section: Section, end: usize| {
            section.range.end = end;
            if rich.peek().is_none_or(|place| place.range.start >= end) {
                return self.add_message(section, &[], &mut said);
            }
            let mut places = Vec::new();
            while let Some(place) = rich.next_if(|place| place.range.start < end) {
                places.push(place);
            }
            if places.iter().any(|place| place.input.kind == PropertyKind::Thread) {
                self.add_messages(section, places, &mut said);
            } else {
                self.add_message(section, &places, &mut said);
            }
        };
        let mut open = Section { role: Role::System, attributes: None, range: 0..0, is_preamble: true };
        for_each_marker(self.rendered, |line, marker| {
            let start = (line.end + 1).min(self.text.len());
            let Marker { role, attributes } = marker;
            let next = Section { role, attributes, range: start..start, is_preamble: false };
            add(std::mem::replace(&mut open, next), line.start);
        });
        add(open, self.text.len());
        said.messages
    }

    /// Adds the message that a section without threads is.
    fn add_message(&self, section: Section, places: &[RichPlace], said: &mut Said<impl FnMut(Place)>) {
        let Section { role, attributes, range, is_preamble } = section;
        if !is_preamble || self.has_content(&range) {
            let range = self.trim_newlines(range);
            let part = self.part(range.clone(), places);
            said.add(message(role, part, attributes.map(|attributes| attributes.values)), Place::Text(range));
        }
    }

    /// Adds the messages that a section with threads consists of.
    fn add_messages(&self, section: Section, places: Vec<RichPlace>, said: &mut Said<impl FnMut(Place)>) {
        let Section { role, attributes, range, .. } = section;
        let attributes = attributes.map(|attributes| attributes.values);
        let mut start = range.start;
        let mut media = Vec::new();
        for place in places {
            if place.input.kind != PropertyKind::Thread {
                media.push(place);
                continue;
            }
            self.add_text_between(role, &attributes, start..place.range.start, &media, said);
            media.clear();
            start = place.range.end;
            let thread = thread_of(place.input);
            said.messages.reserve(thread.len() + 1);
            for message in thread {
                said.add(message, Place::Thread(place.range.clone()));
            }
        }
        self.add_text_between(role, &attributes, start..range.end, &media, said);
    }

    /// Adds the message that the text between two threads is, if there is any.
    fn add_text_between(
        &self,
        role: Role,
        attributes: &Option<JsonMap>,
        range: Range<usize>,
        media: &[RichPlace],
        said: &mut Said<impl FnMut(Place)>,
    ) {
        if self.has_content(&range) {
            let range = self.trim(range, char::is_whitespace);
            let part = self.part(range.clone(), media);
            said.add(message(role, part, attributes.clone()), Place::Text(range));
        }
    }

    /// The text of a range as a part, with the rich inputs in it.
    fn part(&self, range: Range<usize>, places: &[RichPlace]) -> TextPart {
        let anchors = places.iter().filter(|place| range.start <= place.range.start && place.range.end <= range.end);
        let anchors = anchors.map(|place| Anchor {
            range: place.range.start - range.start..place.range.end - range.start,
            input: place.input.clone(),
        });
        let stable = if self.marks_stable { stable(self.rendered, &range) } else { 0 };
        TextPart { anchors: anchors.collect(), stable, value: self.text[range].to_owned() }
    }

    /// Whether there is anything in a range but the author's white space. That an input stood
    /// there counts, even if it wrote nothing: how many messages there are does not depend on
    /// what inputs hold.
    fn has_content(&self, range: &Range<usize>) -> bool {
        self.pieces(range).any(|(text, trusted)| !trusted || !text.trim().is_empty())
    }

    /// The pieces of a range: their text, and whether it counts as the author's.
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

    /// Takes line ends of the author's off both ends of a range.
    fn trim_newlines(&self, range: Range<usize>) -> Range<usize> {
        let bytes = self.text.as_bytes();
        let pieces = self.rendered.traced.piece_ends();
        let Range { start, mut end } = range;
        let mut last = pieces.partition_point(|piece| piece.end < end);
        while start < end {
            let floor = if last == 0 { start } else { pieces[last - 1].end.max(start) };
            if floor < end && !self.is_trusted(pieces[last].origin) {
                break;
            }
            while floor < end && matches!(bytes[end - 1], b'\n' | b'\r') {
                end -= 1;
            }
            if floor < end || last == 0 {
                break;
            }
            last -= 1;
        }
        // A section begins behind a line end, so that it seldom begins with one.
        match bytes[start..end].first() {
            Some(b'\n' | b'\r') => self.trim(start..end, is_newline),
            _ => start..end,
        }
    }

    /// Takes characters of the author's off both ends of a range; text of inputs stays as it is.
    #[inline(never)]
    fn trim(&self, range: Range<usize>, matches: impl Fn(char) -> bool + Copy) -> Range<usize> {
        let Range { mut start, mut end } = range;
        let pieces = self.rendered.traced.piece_ends();
        let mut index = pieces.partition_point(|piece| piece.end <= start);
        while start < end {
            let text = &self.text[start..pieces[index].end.min(end)];
            let rest = if self.is_trusted(pieces[index].origin) { text.trim_start_matches(matches) } else { text };
            start += text.len() - rest.len();
            if !rest.is_empty() {
                break;
            }
            index += 1;
        }
        let mut index = pieces.partition_point(|piece| piece.end < end);
        while start < end {
            let piece_start = if index == 0 { 0 } else { pieces[index - 1].end };
            let text = &self.text[piece_start.max(start)..end];
            let rest = if self.is_trusted(pieces[index].origin) { text.trim_end_matches(matches) } else { text };
            end -= text.len() - rest.len();
            if !rest.is_empty() {
                break;
            }
            index = index.saturating_sub(1);
        }
        start..end
    }
}

/// Line ends, of whatever convention.
#[inline]
fn is_newline(char: char) -> bool {
    matches!(char, '\n' | '\r')
}

fn message(role: Role, part: TextPart, metadata: Option<JsonMap>) -> Message {
    Message { role, content: Content::one(ContentPart::Text(part)), metadata }
}

/// The messages of a thread, without a copy where nobody else needs them any more.
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

/// Calls `found` for each role marker, with the bytes of its line.
pub(crate) fn for_each_marker(rendered: &Rendered, mut found: impl FnMut(Range<usize>, Marker)) {
    if let Some(markers) = rendered.guarded.as_ref().and_then(|guarded| guarded.markers.as_ref()) {
        return markers.iter().for_each(|(line, marker)| found(line.clone(), marker.clone()));
    }
    let mut scanner = Scanner { rendered, text: rendered.text(), line: OpenLine::default(), index: 0, at: 0 };
    match &rendered.notable {
        Some(notes) => {
            for note in notes {
                let range = note.range.clone();
                if note.is_line
                    && let Some(marker) = marker::match_line(&scanner.text[range.clone()])
                {
                    found(range, marker);
                } else {
                    scanner.scan(range, &mut found);
                }
            }
        }
        None => scanner.scan(0..scanner.text.len(), &mut found),
    }
}

/// Goes through rendered text in order, and looks at no more of it than it must.
struct Scanner<'r> {
    rendered: &'r Rendered,
    text: &'r str,
    /// The line that it is in.
    line: OpenLine<'r>,
    /// The piece that it is in, and where.
    index: usize,
    at: usize,
}

impl<'r> Scanner<'r> {
    /// Looks at every line that begins in a place, or goes on in it after nothing but the author's
    /// white space.
    fn scan(&mut self, place: Range<usize>, found: &mut impl FnMut(Range<usize>, Marker)) {
        if self.at < place.start {
            self.skip_to(place.start);
        }
        let pieces = self.rendered.traced.piece_ends();
        while self.at < place.end || self.line.is_open() {
            let Some(piece) = pieces.get(self.index) else {
                if let Some(marker) = self.line.close("") {
                    found(self.line.start..self.text.len(), marker);
                }
                return;
            };
            if !self.rendered.inputs.is_trusted(piece.origin) {
                self.line.add_atom(&self.text[self.at..piece.end]);
            } else if !self.scan_lines(piece.end, place.end, found) {
                return;
            }
            self.at = piece.end;
            self.index += 1;
        }
    }

    /// Looks at the lines of a piece that ends at `end`. Returns whether it got there: lines that
    /// begin behind `enough` are left alone.
    fn scan_lines(&mut self, end: usize, enough: usize, found: &mut impl FnMut(Range<usize>, Marker)) -> bool {
        let base = self.at;
        for newline in memchr::memchr_iter(b'\n', &self.text.as_bytes()[base..end]) {
            let newline = base + newline;
            if let Some(marker) = self.line.close(&self.text[self.at..newline]) {
                found(self.line.start..newline, marker);
            }
            self.at = newline + 1;
            self.line.start = self.at;
            if self.at >= enough {
                return false;
            }
        }
        if self.at < end {
            self.line.add_author(&self.text[self.at..end]);
        }
        true
    }

    /// Goes on to a place, and finds out how the line has begun that it is in.
    fn skip_to(&mut self, start: usize) {
        let pieces = self.rendered.traced.piece_ends();
        self.at = start;
        self.index = pieces.partition_point(|piece| piece.end <= start);
        self.line = OpenLine { start: 0, ..OpenLine::default() };
        let (mut index, mut end) = (self.index, start);
        loop {
            let piece_start = if index == 0 { 0 } else { pieces[index - 1].end };
            let has_part = index < self.index || piece_start < end;
            let is_atom = has_part && !self.rendered.inputs.is_trusted(pieces[index].origin);
            let before = &self.text[piece_start..end];
            let before = before.trim_end_matches(|char: char| char != '\n' && char.is_whitespace());
            if is_atom || !(before.is_empty() || before.ends_with('\n')) {
                self.line.is_text = true;
                return;
            }
            if !before.is_empty() || index == 0 {
                self.line.start = piece_start + before.len();
                return;
            }
            (index, end) = (index - 1, piece_start);
        }
    }
}

/// A line that goes on in the next piece.
#[derive(Default)]
struct OpenLine<'t> {
    start: usize,
    parts: Parts<'t>,
    /// Whether it has begun in a way that no marker does.
    is_text: bool,
}

impl<'t> OpenLine<'t> {
    /// Whether it has begun as a marker may begin, and not ended.
    fn is_open(&self) -> bool {
        !self.is_text && !self.parts.is_empty()
    }

    /// Adds text of an input. A marker never begins with one.
    fn add_atom(&mut self, text: &'t str) {
        self.is_text |= self.parts.is_empty();
        if !self.is_text {
            self.parts.push(Part::Atom(text));
        }
    }

    fn add_author(&mut self, text: &'t str) {
        self.is_text |= self.parts.is_empty() && !marker::may_be_begun_by(text);
        if !self.is_text {
            self.parts.push(Part::Author(text));
        }
    }

    /// Ends the line with this text of the author's, and tells whether it is a marker.
    fn close(&mut self, rest: &'t str) -> Option<Marker> {
        if std::mem::take(&mut self.is_text) {
            self.parts.clear();
            return None;
        }
        if self.parts.is_empty() {
            return marker::match_line(rest);
        }
        self.parts.push(Part::Author(rest));
        let marker = marker::match_parts(&self.parts);
        self.parts.clear();
        marker
    }
}

/// How to parse text whose origins are not known.
#[derive(Clone, Debug, Default)]
pub struct ParseTextOptions {
    /// The nonce that [`pre_render`](crate::marker::pre_render) wrote into the author's markers.
    /// Every marker must then have it.
    pub nonce: Option<String>,
    /// Threads by their placeholder, `__PROMPTY_THREAD_<16 hexadecimal digits>_<name>__`, or by the name of their input. A
    /// thread given by name replaces a placeholder only if its digits are [`nonce`](Self::nonce), if there is one.
    /// Otherwise whoever wrote a part of the text could insert the thread there.
    pub threads: Vec<(String, Vec<Message>)>,
}

/// Splits a bare string into messages. All of it counts as the author's text, so this is only
/// safe with a nonce, or with text that no input had a part in.
///
/// # Errors
/// A role marker lacks the expected nonce.
pub fn parse_text(text: &str, options: &ParseTextOptions) -> Result<Vec<Message>> {
    let mut rendered = Rendered::new(TracedText::whole(text, Origin::AUTHOR), Arc::default());
    rendered.rich = find_threads(text, options).into();
    let mut mismatch = None;
    if let Some(expected) = &options.nonce {
        for_each_marker(&rendered, |line, marker| {
            let is_right = marker
                .attributes
                .and_then(|attributes| attributes.nonce)
                .is_some_and(|nonce| same_bytes(nonce.as_bytes(), expected.as_bytes()));
            if !is_right && mismatch.is_none() {
                mismatch = Some(line);
            }
        });
    }
    if let Some(line) = mismatch {
        let source = crate::source::SourceFile::new("<text>", text);
        return Err(Error::new(Kind::NonceMismatch, "").at(line.into()).in_source(&source, 0));
    }
    let mut messages = split(rendered);
    if options.nonce.is_some() {
        messages.iter_mut().for_each(remove_nonce);
    }
    Ok(messages)
}

/// Compares without telling by the time it takes where a difference is.
fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

fn remove_nonce(message: &mut Message) {
    if let Some(metadata) = &mut message.metadata {
        metadata.shift_remove("nonce");
        if metadata.is_empty() {
            message.metadata = None;
        }
    }
}

/// Where the nonces of threads stand in a text.
fn find_threads(text: &str, options: &ParseTextOptions) -> Vec<RichPlace> {
    const PREFIX: &str = "__PROMPTY_THREAD_";
    const DIGITS: usize = 16;
    let mut places = Vec::new();
    for (start, _) in text.match_indices(PREFIX) {
        let after = &text[start + PREFIX.len()..];
        let named = after.split_at_checked(DIGITS).and_then(|(digits, rest)| {
            let is_expected = match &options.nonce {
                Some(nonce) => same_bytes(digits.as_bytes(), nonce.as_bytes()),
                None => true,
            };
            let is_nonce = is_expected && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            rest.strip_prefix('_').filter(|_| is_nonce)
        });
        let found = options.threads.iter().find_map(|(key, messages)| {
            if text[start..].starts_with(key.as_str()) && key.starts_with(PREFIX) {
                return Some((key.len(), key, messages));
            }
            named?.strip_prefix(key.as_str())?.strip_prefix("__")?;
            Some((PREFIX.len() + DIGITS + 1 + key.len() + 2, key, messages))
        });
        if let Some((len, name, messages)) = found {
            let input = RichInput {
                name: name.clone(),
                kind: PropertyKind::Thread,
                nonce: text[start..start + len].to_owned(),
                value: RichValue::Thread(messages.clone()),
            };
            places.push(RichPlace { range: start..start + len, input: Arc::new(input) });
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::Prompt;
    use crate::schema::Property;
    use crate::spec::PromptSpec;
    use proptest::prelude::*;

    /// Parts of templates that make markers, halves of markers and what only looks like them.
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

        /// What the template knows beforehand of its markers only saves work.
        #[test]
        fn markers_are_found_where_they_are_noted(
            parts in prop::collection::vec(prop::sample::select(SNIPPETS), 0..12),
            x in "|user:|\nsystem:\n|a",
            trusted in prop::bool::weighted(0.1),
        ) {
            let mut input = Property::new("x", crate::schema::PropertyKind::String);
            input.trusted = trusted;
            let spec = PromptSpec { instructions: parts.concat(), inputs: vec![input], ..PromptSpec::default() };
            let inputs = serde_json::json!({"x": x, "xs": [x, "b"]});
            let Ok(rendered) = Prompt::from_spec(spec).render(inputs.as_object().expect("a map")) else {
                return Ok(());
            };
            prop_assert_eq!(rendered.notable.is_none(), trusted);
            let everywhere = Rendered { notable: None, ..rendered.clone() };
            prop_assert_eq!(split(rendered), split(everywhere));
        }
    }
}

//! From rendered text to messages.
//!
//! Lines are cut at the author's newlines alone, and a line begins a message only if the author
//! wrote it as a role marker. Nothing that an input holds can add, remove or change a message.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Kind, Result};
use crate::marker::{self, Marker, Part, Parts};
use crate::message::{Anchor, Content, ContentPart, JsonMap, Message, Role, TextPart};
use crate::origin::Origin;
use crate::rendered::{Rendered, RichInput, RichPlace, RichValue, TracedText};
use crate::schema::PropertyKind;

/// Splits rendered text into messages.
///
/// Content before the first marker is a system message. Threads are put in where they stand; the
/// text before and after them becomes messages of its own.
pub fn split(mut rendered: Rendered) -> Vec<Message> {
    let rich = std::mem::take(&mut rendered.rich);
    Splitter::new(&rendered).messages(rich)
}

/// A message's role, attributes, and the bytes of its content.
struct Section {
    role: Role,
    attributes: Option<JsonMap>,
    range: Range<usize>,
    /// Whether it is what stands before the first marker.
    is_preamble: bool,
}

struct Splitter<'r> {
    rendered: &'r Rendered,
    text: &'r str,
}

impl<'r> Splitter<'r> {
    fn new(rendered: &'r Rendered) -> Self {
        Self { rendered, text: rendered.text() }
    }

    fn is_trusted(&self, origin: Origin) -> bool {
        self.rendered.inputs.is_trusted(origin)
    }

    fn messages(&self, rich: Vec<RichPlace>) -> Vec<Message> {
        let sections = self.sections();
        let mut messages = Vec::with_capacity(sections.len());
        let mut rich = rich.into_iter().peekable();
        for section in sections {
            let mut places = Vec::new();
            while let Some(place) = rich.next_if(|place| place.range.start < section.range.end) {
                places.push(place);
            }
            self.add_messages(section, places, &mut messages);
        }
        messages
    }

    fn sections(&self) -> Vec<Section> {
        let mut sections = vec![Section { role: Role::System, attributes: None, range: 0..0, is_preamble: true }];
        for_each_marker(self.rendered, |line, marker| {
            if let Some(last) = sections.last_mut() {
                last.range.end = line.start;
            }
            let start = (line.end + 1).min(self.text.len());
            let Marker { role, attributes, .. } = marker;
            sections.push(Section { role, attributes, range: start..start, is_preamble: false });
        });
        if let Some(last) = sections.last_mut() {
            last.range.end = self.text.len();
        }
        sections
    }

    /// Adds the messages that a section consists of: one, unless there are threads in it.
    fn add_messages(&self, section: Section, places: Vec<RichPlace>, messages: &mut Vec<Message>) {
        let Section { role, attributes, range, is_preamble } = section;
        let has_thread = places.iter().any(|place| place.input.kind == PropertyKind::Thread);
        if !has_thread {
            if !is_preamble || self.has_content(&range) {
                let range = self.trim_newlines(range);
                messages.push(message(role, self.part(range, &places), attributes));
            }
            return;
        }
        let mut start = range.start;
        let mut media = Vec::new();
        let flush = |range: Range<usize>, media: &mut Vec<RichPlace>, messages: &mut Vec<Message>| {
            let places = std::mem::take(media);
            if self.has_content(&range) {
                let range = self.trim(range, char::is_whitespace);
                messages.push(message(role, self.part(range, &places), attributes.clone()));
            }
        };
        for place in places {
            if place.input.kind != PropertyKind::Thread {
                media.push(place);
                continue;
            }
            flush(start..place.range.start, &mut media, messages);
            start = place.range.end;
            messages.extend(thread_of(place.input));
        }
        flush(start..range.end, &mut media, messages);
    }

    /// The text of a range as a part, with the rich inputs in it.
    fn part(&self, range: Range<usize>, places: &[RichPlace]) -> TextPart {
        let anchors = places.iter().filter(|place| range.start <= place.range.start && place.range.end <= range.end);
        let anchors = anchors.map(|place| Anchor {
            range: place.range.start - range.start..place.range.end - range.start,
            input: place.input.clone(),
        });
        TextPart { anchors: anchors.collect(), value: self.text[range].to_owned() }
    }

    /// Whether there is anything in a range but the author's white space. That an input stood
    /// there counts, even if it wrote nothing: how many messages there are does not depend on
    /// what inputs hold.
    fn has_content(&self, range: &Range<usize>) -> bool {
        self.pieces(range).any(|(text, trusted)| !trusted || !text.trim().is_empty())
    }

    /// The pieces of a range: their text, and whether it counts as the author's.
    fn pieces(&self, range: &Range<usize>) -> impl DoubleEndedIterator<Item = (&'r str, bool)> {
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
        let bytes = &self.text.as_bytes()[range.clone()];
        let is_ragged = |byte: Option<&u8>| matches!(byte, Some(b'\n' | b'\r'));
        if is_ragged(bytes.first()) || is_ragged(bytes.last()) { self.trim(range, is_newline) } else { range }
    }

    /// Takes characters of the author's off both ends of a range; text of inputs stays as it is.
    fn trim(&self, range: Range<usize>, matches: fn(char) -> bool) -> Range<usize> {
        let Range { mut start, mut end } = range;
        for (text, trusted) in self.pieces(&(start..end)) {
            let rest = if trusted { text.trim_start_matches(matches) } else { text };
            start += text.len() - rest.len();
            if !rest.is_empty() {
                break;
            }
        }
        for (text, trusted) in self.pieces(&(start..end)).rev() {
            let rest = if trusted { text.trim_end_matches(matches) } else { text };
            end -= text.len() - rest.len();
            if !rest.is_empty() {
                break;
            }
        }
        start..end.max(start)
    }
}

/// Line ends, of whatever convention.
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
    let text = rendered.text();
    let mut line = OpenLine::default();
    let mut start = 0;
    for piece in rendered.traced.piece_ends() {
        let (piece_start, end) = (start, piece.end);
        start = end;
        if !rendered.inputs.is_trusted(piece.origin) {
            line.add_atom(&text[piece_start..end]);
            continue;
        }
        let mut at = piece_start;
        for newline in memchr::memchr_iter(b'\n', &text.as_bytes()[piece_start..end]) {
            let newline = piece_start + newline;
            if let Some(marker) = line.close(&text[at..newline]) {
                found(line.start..newline, marker);
            }
            at = newline + 1;
            line.start = at;
        }
        if at < end {
            line.add_author(&text[at..end]);
        }
    }
    if let Some(marker) = line.close("") {
        found(line.start..text.len(), marker);
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
    /// Threads by the nonce that stands for them in the text, or by the name of their input.
    pub threads: Vec<(String, Vec<Message>)>,
}

/// Splits a bare string into messages. All of it counts as the author's text, so this is only
/// safe with a nonce, or with text that no input had a part in.
///
/// # Errors
/// A role marker lacks the expected nonce.
pub fn parse_text(text: &str, options: &ParseTextOptions) -> Result<Vec<Message>> {
    let mut rendered = Rendered::new(TracedText::whole(text, Origin::AUTHOR), Arc::default());
    rendered.rich = find_threads(text, &options.threads);
    let mut mismatch = None;
    if let Some(expected) = &options.nonce {
        for_each_marker(&rendered, |line, marker| {
            let is_right = marker.nonce.as_ref().is_some_and(|nonce| same_bytes(nonce.as_bytes(), expected.as_bytes()));
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
fn find_threads(text: &str, threads: &[(String, Vec<Message>)]) -> Vec<RichPlace> {
    const PREFIX: &str = "__PROMPTY_THREAD_";
    let mut places = Vec::new();
    for (start, _) in text.match_indices(PREFIX) {
        let after = &text[start + PREFIX.len()..];
        let hex = after.bytes().take_while(u8::is_ascii_hexdigit).count();
        let found = threads.iter().find_map(|(key, messages)| {
            if text[start..].starts_with(key.as_str()) && key.starts_with(PREFIX) {
                return Some((key.len(), key, messages));
            }
            let name = after[hex..].strip_prefix('_')?.strip_prefix(key.as_str())?.strip_prefix("__");
            (hex >= 8 && name.is_some()).then(|| (PREFIX.len() + hex + 1 + key.len() + 2, key, messages))
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

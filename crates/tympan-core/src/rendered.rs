//! Rendered text that remembers who wrote which part of it.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::guard::Guarded;
use crate::message::{ContentPart, JsonMap, Message};
use crate::origin::Origin;
use crate::schema::PropertyKind;

/// What the engine knows about an input of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputInfo {
    /// Its name.
    pub name: String,
    /// Whether its text counts as the author's own.
    pub trusted: bool,
    /// Whether text in it that looks like a role marker is an error.
    pub strict: bool,
}

/// Which template of which prompt a text was rendered from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArmInfo {
    /// The prompt's name.
    pub prompt: Option<String>,
    /// The name of the variant: `default` if nobody named another.
    pub variant: String,
    /// The SHA-256 of the template's source, in hexadecimal digits.
    pub template_hash: String,
}

/// The inputs of a template, in the order of their indexes in an [`Origin`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputTable {
    inputs: Vec<InputInfo>,
    /// The bits that belong to trusted inputs alone. Every other bit is untrusted, also one that no input has.
    trusted: Origin,
    strict: Origin,
    has_untrusted: bool,
    /// Shared by all renders of a template, as the inputs are.
    arm: ArmInfo,
}

impl InputTable {
    /// A table of these inputs.
    pub fn new(inputs: Vec<InputInfo>) -> Self {
        let mut table = Self { inputs, ..Self::default() };
        let mut untrusted = Origin::AUTHOR;
        for (index, input) in table.inputs.iter().enumerate() {
            let bit = Origin::input(index);
            if input.trusted {
                table.trusted |= bit;
            } else {
                untrusted |= bit;
            }
            if input.strict {
                table.strict |= bit;
            }
        }
        table.has_untrusted = !untrusted.is_author();
        table.trusted = table.trusted.without(untrusted);
        table
    }

    /// The same table for a template that is known.
    #[must_use]
    pub fn with_arm(self, arm: ArmInfo) -> Self {
        Self { arm, ..self }
    }

    /// The inputs, in order.
    pub fn inputs(&self) -> &[InputInfo] {
        &self.inputs
    }

    /// Returns whether text of this origin counts as the author's own. Inputs that share a bit are only
    /// trusted if all of them are, and a bit without an input is never trusted.
    pub fn is_trusted(&self, origin: Origin) -> bool {
        origin.without(self.trusted).is_author()
    }

    /// Whether an untrusted input whose declaration says `strict` had a part in it.
    pub fn is_strict(&self, origin: Origin) -> bool {
        origin.intersects(self.strict) && !self.is_trusted(origin)
    }

    /// Whether any input's declaration says `strict`.
    pub fn has_strict(&self) -> bool {
        !self.strict.is_author()
    }

    /// Whether there is an input whose text does not count as the author's own.
    pub fn has_untrusted(&self) -> bool {
        self.has_untrusted
    }

    /// Whether any input's text counts as the author's own.
    pub fn has_trusted(&self) -> bool {
        !self.trusted.is_author()
    }

    /// Returns the names of the inputs that had a part in text of this origin.
    pub fn names(&self, origin: Origin) -> impl Iterator<Item = &str> {
        let (own, shared) = self.inputs.split_at(self.inputs.len().min(Origin::BITS - 1));
        let shared = if origin.contains(Origin::BITS - 1) { shared } else { &[] };
        let own = own.iter().enumerate().filter(move |(index, _)| origin.contains(*index)).map(|(_, input)| input);
        own.chain(shared).map(|input| input.name.as_str())
    }
}

/// Text in pieces that each know their origin. The pieces follow each other without gaps.
///
/// Neighbouring text of the author is one piece. Every interpolation of an input is a piece of
/// its own, also when it is empty: that an input stood there matters even if it wrote nothing.
#[derive(Clone, Debug, Default)]
pub struct TracedText {
    text: String,
    pieces: Vec<Piece>,
    /// All origins together.
    origin: Origin,
    /// How many pieces there were when the last mark was left: if there are as many, the last piece is that mark.
    marked: usize,
}

impl PartialEq for TracedText {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.pieces == other.pieces
    }
}

/// A piece: it begins where the one before it ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Piece {
    pub(crate) end: usize,
    pub(crate) origin: Origin,
}

impl TracedText {
    /// Empty text with room for this many bytes and pieces.
    pub fn with_capacity(bytes: usize, pieces: usize) -> Self {
        Self { text: String::with_capacity(bytes), pieces: Vec::with_capacity(pieces), ..Self::default() }
    }

    /// Text that all comes from one origin.
    pub fn whole(text: impl Into<String>, origin: Origin) -> Self {
        let text = text.into();
        let piece = Piece { end: text.len(), origin };
        Self { text, pieces: vec![piece], origin, marked: 0 }
    }

    /// Adds text at the end.
    #[inline]
    pub fn push(&mut self, text: &str, origin: Origin) {
        self.text.push_str(text);
        self.close_piece(origin);
    }

    /// Adds text at the end, as `write` writes it.
    pub(crate) fn push_with(&mut self, origin: Origin, write: impl FnOnce(&mut String)) {
        write(&mut self.text);
        self.close_piece(origin);
    }

    /// Gives the text behind the last piece its origin.
    #[inline]
    fn close_piece(&mut self, origin: Origin) {
        let end = self.text.len();
        if origin.is_author() {
            match self.pieces.last_mut() {
                Some(last) if last.origin.is_author() => last.end = end,
                Some(last) if last.end == end => {}
                None if end == 0 => {}
                _ => self.pieces.push(Piece { end, origin }),
            }
        } else {
            self.origin |= origin;
            self.pieces.push(Piece { end, origin });
        }
    }

    /// Adds text at the end. A mark of the same inputs just before it is superfluous then.
    pub(crate) fn push_behind_mark(&mut self, text: &str, origin: Origin) {
        let is_mark = self.marked == self.pieces.len();
        if is_mark && self.pieces.last().is_some_and(|mark| !origin.is_author() && mark.origin.is_within(origin)) {
            self.pieces.pop();
        }
        self.push(text, origin);
    }

    /// Makes one piece of everything behind these bytes, which were in this many pieces, if an input had a part in it.
    pub(crate) fn unite(&mut self, bytes: usize, pieces: usize) {
        let origin = self.pieces[pieces..].iter().map(|piece| piece.origin).collect::<Origin>();
        if origin.is_author() {
            return;
        }
        self.pieces.truncate(pieces);
        if let Some(last) = self.pieces.last_mut() {
            last.end = last.end.min(bytes);
        }
        // None of the marks that were left in the meantime is there any more.
        self.marked = 0;
        self.close_piece(origin);
    }

    /// Leaves a mark: inputs were here, and wrote nothing. There is none where a piece of theirs is just before it or
    /// comes just behind it.
    pub(crate) fn mark(&mut self, origin: Origin) {
        let last = self.pieces.last().map(|piece| piece.origin).unwrap_or_default();
        if !origin.is_within(last) {
            self.push("", origin);
            self.marked = self.pieces.len();
        }
    }

    /// Adds traced text at the end, each of its pieces with its own origin and `also`.
    pub fn push_traced(&mut self, other: &Self, also: Origin) {
        if other.is_untouched() {
            self.push("", also);
        }
        for (text, origin) in other.pieces() {
            if text.is_empty() {
                self.mark(origin | also);
            } else {
                self.push_behind_mark(text, origin | also);
            }
        }
    }

    /// Adds traced text at the end as it is.
    pub(crate) fn append(&mut self, other: &Self) {
        self.push_traced(other, Origin::AUTHOR);
    }

    /// The ends of the pieces, with their origins.
    pub(crate) fn piece_ends(&self) -> &[Piece] {
        &self.pieces
    }

    /// Whether nothing has been written, not even by an input that had nothing to write.
    pub(crate) fn is_untouched(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The text without its origins.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The pieces, in order.
    pub fn pieces(&self) -> impl Iterator<Item = (&str, Origin)> {
        self.ranges().map(|(range, origin)| (&self.text[range], origin))
    }

    /// The byte ranges of the pieces, in order.
    pub fn ranges(&self) -> impl Iterator<Item = (Range<usize>, Origin)> {
        let mut start = 0;
        self.pieces.iter().map(move |piece| {
            let range = start..piece.end;
            start = piece.end;
            (range, piece.origin)
        })
    }

    /// As [`TracedText::ranges`], from the first piece on that does not end before an offset.
    pub(crate) fn ranges_from(&self, offset: usize) -> impl Iterator<Item = (Range<usize>, Origin)> {
        let first = self.pieces.partition_point(|piece| piece.end < offset);
        let mut start = first.checked_sub(1).map_or(0, |before| self.pieces[before].end);
        self.pieces[first..].iter().map(move |piece| {
            let range = start..piece.end;
            start = piece.end;
            (range, piece.origin)
        })
    }

    /// All origins together.
    pub fn origin(&self) -> Origin {
        self.origin
    }
}

/// A thread, image, file or audio input, and the nonce that stands for it in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct RichInput {
    /// The input's name.
    pub name: String,
    /// Its kind.
    pub kind: PropertyKind,
    /// `__PROMPTY_THREAD_<16 hex digits>_<name>__`, new for every render.
    pub nonce: String,
    /// Its value.
    pub value: RichValue,
}

impl RichInput {
    /// About how many bytes one more copy of it takes up in messages: pictures, sound and documents are shared.
    pub(crate) fn copy_bytes(&self) -> usize {
        let RichValue::Thread(messages) = &self.value else { return 0 };
        let part = |part: &ContentPart| match part {
            ContentPart::Text(text) => text.value.len(),
            ContentPart::Image(media) | ContentPart::Audio(media) | ContentPart::File(media) => media.value.len(),
        };
        let message = |message: &Message| {
            let metadata = message.metadata.iter().flatten().map(|(key, value)| key.len() + json_bytes(value));
            let parts = message.content.iter().map(|content| size_of::<ContentPart>() + part(content));
            size_of::<Message>() + parts.sum::<usize>() + metadata.sum::<usize>()
        };
        messages.iter().map(message).sum()
    }
}

/// About how many bytes a JSON value takes up.
fn json_bytes(value: &serde_json::Value) -> usize {
    let inner = match value {
        serde_json::Value::String(text) => text.len(),
        serde_json::Value::Array(items) => items.iter().map(json_bytes).sum(),
        serde_json::Value::Object(map) => map.iter().map(|(key, value)| 64 + key.len() + json_bytes(value)).sum(),
        _ => 0,
    };
    inner + size_of::<serde_json::Value>()
}

/// The value of a rich input.
#[derive(Clone, Debug, PartialEq)]
pub enum RichValue {
    /// The messages of a thread.
    Thread(Vec<Message>),
    /// A picture, sound or document, as the caller gave it.
    Media(serde_json::Value),
}

/// A place in rendered text where a rich input stands.
#[derive(Clone, Debug, PartialEq)]
pub struct RichPlace {
    /// The bytes that its nonce takes up.
    pub range: Range<usize>,
    /// The input.
    pub input: Arc<RichInput>,
}

/// A rendered prompt: the text, who wrote which part of it, and the rich inputs in it.
#[derive(Clone, PartialEq)]
pub struct Rendered {
    pub(crate) traced: TracedText,
    pub(crate) inputs: Arc<InputTable>,
    pub(crate) rich: Box<[RichPlace]>,
    pub(crate) strict: bool,
    /// The only places where role markers can be, in order; `None` if they can be anywhere.
    pub(crate) notable: Option<Vec<Note>>,
    /// What the guard left beside the text, if it was on.
    pub(crate) guarded: Option<Box<Guarded>>,
}

/// A place in rendered text where something notable of the author's is, or may be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Note {
    pub(crate) range: Range<usize>,
    /// Whether it is a whole line, and notable for certain.
    pub(crate) is_line: bool,
}

/// A part of a rendered text that one interpolation, or the author, wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment<'a> {
    /// The bytes of the text.
    pub range: Range<usize>,
    /// The text.
    pub text: &'a str,
    /// Which inputs wrote it.
    pub origin: Origin,
}

impl Rendered {
    /// Text that a renderer outside the engine made, with what it knows of its origins.
    pub fn new(traced: TracedText, inputs: Arc<InputTable>) -> Self {
        Self { traced, inputs, rich: Box::default(), strict: false, notable: None, guarded: None }
    }

    /// The text; a rich input stands in it as its nonce.
    pub fn text(&self) -> &str {
        self.traced.as_str()
    }

    /// The name of the prompt that it was rendered from.
    pub fn name(&self) -> Option<&str> {
        self.inputs.arm.prompt.as_deref()
    }

    /// The variant of the prompt that it was rendered from: `default` if nobody named another.
    pub fn variant(&self) -> &str {
        match self.inputs.arm.variant.as_str() {
            "" => crate::spec::DEFAULT_VARIANT,
            name => name,
        }
    }

    /// The SHA-256 of the template's source, in hexadecimal digits; it was computed when the template was compiled.
    /// Empty for text whose template is not known.
    pub fn template_hash(&self) -> &str {
        &self.inputs.arm.template_hash
    }

    /// The SHA-256 of the text, in hexadecimal digits. It is computed at each call, and only then.
    pub fn render_hash(&self) -> String {
        crate::hash::sha256_hex(self.text())
    }

    /// The text, without a copy.
    pub fn into_text(self) -> String {
        self.traced.text
    }

    /// The text in segments that each know their origin, in order and without gaps.
    pub fn segments(&self) -> impl Iterator<Item = Segment<'_>> {
        let text = self.text();
        self.traced.ranges().map(move |(range, origin)| Segment { text: &text[range.clone()], range, origin })
    }

    /// The inputs that origins refer to.
    pub fn inputs(&self) -> &InputTable {
        &self.inputs
    }

    /// Where rich inputs stand, in order.
    pub fn rich_places(&self) -> &[RichPlace] {
        &self.rich
    }

    /// The rich inputs that stand in the text, by nonce.
    pub fn nonces(&self) -> impl Iterator<Item = (&str, &RichInput)> {
        self.rich.iter().map(|place| (place.input.nonce.as_str(), &*place.input))
    }

    /// Whether a segment counts as the author's own text.
    pub fn is_trusted(&self, segment: &Segment<'_>) -> bool {
        self.inputs.is_trusted(segment.origin)
    }
}

impl fmt::Display for Rendered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Debug for Rendered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rendered")
            .field("bytes", &self.text().len())
            .field("segments", &self.traced.pieces.len())
            .field("rich", &self.rich.len())
            .finish_non_exhaustive()
    }
}

/// The inputs of a render: names and JSON values.
pub type Inputs = JsonMap;

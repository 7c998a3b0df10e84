//! Rendered text that remembers who wrote which part of it.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::marker::Marker;
use super::message::RichInput;
use crate::json::JsonMap;
use crate::text::origin::Origin;
use crate::text::traced::{Note, TracedText};

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

/// What a guarded render has beside its text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Guarded {
    pub(crate) advisory: Arc<str>,
    /// The role markers, found before the guard wrote between their parts. `None` if it wrote
    /// nothing, or nobody was expected to look for any.
    pub(crate) markers: Option<Vec<(Range<usize>, Marker)>>,
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
        crate::text::hash::sha256_hex(self.text())
    }

    /// The text, without a copy.
    pub fn into_text(self) -> String {
        self.traced.into_string()
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
            .field("segments", &self.traced.piece_ends().len())
            .field("rich", &self.rich.len())
            .finish_non_exhaustive()
    }
}

/// The inputs of a render: names and JSON values.
pub type Inputs = JsonMap;

//! Rendered text that records the origin of each of its parts.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::marker::Marker;
use super::message::RichInput;
use crate::json::JsonMap;
use crate::spec::role::Role;
use crate::text::origin::Origin;
use crate::text::traced::{Note, TracedText};

/// The properties of a template's input that decide how its text is treated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputInfo {
    /// The input's name.
    pub name: String,
    /// Whether text from the input counts as the author's own.
    pub trusted: bool,
    /// Whether text in the input that looks like a role marker is an error.
    pub strict: bool,
}

/// The prompt and the template that a text was rendered from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArmInfo {
    /// The prompt's name.
    pub prompt: Option<String>,
    /// The name of the variant, `default` if no other was selected.
    pub variant: String,
    /// The SHA-256 of the template's source, in hexadecimal digits.
    pub template_hash: String,
}

/// The inputs of a template, in the order of their indexes in an [`Origin`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputTable {
    inputs: Vec<InputInfo>,
    /// The bits that belong only to trusted inputs. All other bits are untrusted, including bits without an input.
    trusted: Origin,
    strict: Origin,
    has_untrusted: bool,
    /// Shared by all renders of a template, like the inputs.
    arm: ArmInfo,
}

impl InputTable {
    /// Creates a table of inputs.
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

    /// Sets the template that the inputs belong to.
    #[must_use]
    pub fn with_arm(self, arm: ArmInfo) -> Self {
        Self { arm, ..self }
    }

    /// Returns the inputs, in order.
    pub fn inputs(&self) -> &[InputInfo] {
        &self.inputs
    }

    /// Returns whether text of this origin counts as the author's own. Inputs that share a bit are only trusted if all
    /// of them are, and a bit without an input is never trusted.
    pub fn is_trusted(&self, origin: Origin) -> bool {
        origin.without(self.trusted).is_author()
    }

    /// Returns whether an untrusted input that is declared `strict` contributed to text of this origin.
    pub fn is_strict(&self, origin: Origin) -> bool {
        origin.intersects(self.strict) && !self.is_trusted(origin)
    }

    /// Returns whether any input is declared `strict`.
    pub fn has_strict(&self) -> bool {
        !self.strict.is_author()
    }

    /// Returns whether there is an untrusted input.
    pub fn has_untrusted(&self) -> bool {
        self.has_untrusted
    }

    /// Returns whether there is a trusted input.
    pub fn has_trusted(&self) -> bool {
        !self.trusted.is_author()
    }

    /// Returns the names of the inputs that contributed to text of this origin.
    pub fn names(&self, origin: Origin) -> impl Iterator<Item = &str> {
        let (own, shared) = self.inputs.split_at(self.inputs.len().min(Origin::BITS - 1));
        let shared = if origin.contains(Origin::BITS - 1) { shared } else { &[] };
        let own = own.iter().enumerate().filter(move |(index, _)| origin.contains(*index)).map(|(_, input)| input);
        own.chain(shared).map(|input| input.name.as_str())
    }
}

/// The position of a rich input in rendered text.
#[derive(Clone, Debug, PartialEq)]
pub struct RichPlace {
    /// The byte range of the nonce.
    pub range: Range<usize>,
    /// The input.
    pub input: Arc<RichInput>,
}

/// A rendered prompt: the text, the origin of each part of it, and the rich inputs in it.
#[derive(Clone, PartialEq)]
pub struct Rendered {
    pub(crate) traced: TracedText,
    pub(crate) inputs: Arc<InputTable>,
    /// The rich inputs. Most prompts have none, and a larger struct is slower to move.
    pub(crate) rich: Option<Box<RichContent>>,
    pub(crate) strict: bool,
    /// The only places where role markers can be, in order. `None` if they can be anywhere.
    pub(crate) notable: Option<Vec<Note>>,
    /// The guard's information, if the guard was on.
    pub(crate) guarded: Option<Box<Guarded>>,
}

/// The rich inputs of rendered text.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct RichContent {
    /// Those in the text, in order.
    pub(crate) places: Vec<RichPlace>,
    /// The threads that the template does not mention. Their messages follow the last one.
    pub(crate) appended: Vec<Arc<RichInput>>,
}

impl RichContent {
    /// Boxes the rich inputs. Returns `None` if both lists are empty.
    pub(crate) fn new(places: Vec<RichPlace>, appended: Vec<Arc<RichInput>>) -> Option<Box<Self>> {
        (!places.is_empty() || !appended.is_empty()).then(|| Box::new(Self { places, appended }))
    }
}

/// The information that the guard returns next to the text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Guarded {
    pub(crate) advisory: Arc<str>,
    /// The role of the message that carries the advisory, if it is sent.
    pub(crate) role: Option<Role>,
    /// The role markers, located before the guard inserted text between their parts. `None` if the guard inserted
    /// nothing, or if the text is not split at role markers.
    pub(crate) markers: Option<Vec<(Range<usize>, Marker)>>,
}

/// A part of rendered text that was written by one interpolation or by the author.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment<'a> {
    /// The byte range in the text.
    pub range: Range<usize>,
    /// The text.
    pub text: &'a str,
    /// The inputs that contributed to it.
    pub origin: Origin,
}

impl Rendered {
    /// Creates rendered text from the output of a custom renderer, with the origins that it knows.
    pub fn new(traced: TracedText, inputs: Arc<InputTable>) -> Self {
        Self { traced, inputs, rich: None, strict: false, notable: None, guarded: None }
    }

    /// Returns the text. Rich inputs are represented by their nonces.
    pub fn text(&self) -> &str {
        self.traced.as_str()
    }

    /// Returns the name of the prompt that the text was rendered from.
    pub fn name(&self) -> Option<&str> {
        self.inputs.arm.prompt.as_deref()
    }

    /// Returns whether the text was rendered from the prompt's default variant.
    pub fn is_default(&self) -> bool {
        self.variant() == crate::spec::DEFAULT_VARIANT
    }

    /// Returns the variant of the prompt that the text was rendered from, `default` if no other was selected.
    pub fn variant(&self) -> &str {
        match self.inputs.arm.variant.as_str() {
            "" => crate::spec::DEFAULT_VARIANT,
            name => name,
        }
    }

    /// Returns the SHA-256 of the template's source, in hexadecimal digits. It was computed when the template was
    /// compiled. It is empty if the template is not known.
    pub fn template_hash(&self) -> &str {
        &self.inputs.arm.template_hash
    }

    /// Returns the SHA-256 of the text, in hexadecimal digits. It is computed on every call.
    pub fn render_hash(&self) -> String {
        crate::text::hash::sha256_hex(self.text())
    }

    /// Converts the value to its text, without copying.
    pub fn into_text(self) -> String {
        self.traced.into_string()
    }

    /// Returns the text in segments with their origins, in order and without gaps.
    pub fn segments(&self) -> impl Iterator<Item = Segment<'_>> {
        let text = self.text();
        self.traced.ranges().map(move |(range, origin)| Segment { text: &text[range.clone()], range, origin })
    }

    /// Returns the inputs that origins refer to.
    pub fn inputs(&self) -> &InputTable {
        &self.inputs
    }

    /// Returns the positions of rich inputs, in order.
    pub fn rich_places(&self) -> &[RichPlace] {
        self.rich.as_ref().map_or(&[], |rich| &rich.places)
    }

    /// Returns the rich inputs in the text and their nonces.
    pub fn nonces(&self) -> impl Iterator<Item = (&str, &RichInput)> {
        self.rich_places().iter().map(|place| (place.input.nonce.as_str(), &*place.input))
    }

    /// Returns whether a segment counts as the author's own text.
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
            .field("rich", &self.rich_places().len())
            .finish_non_exhaustive()
    }
}

/// The inputs of a render: names and JSON values.
pub type Inputs = JsonMap;

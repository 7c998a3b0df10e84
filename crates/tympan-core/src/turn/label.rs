//! Labels: where the parts of a conversation came from, and what follows for the policy.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::chat::message::{ContentPart, Message, Role};
use crate::chat::rendered::{InputTable, Rendered};
use crate::chat::text_segment::{SegmentedMessage, TextSegment};
use crate::error::Result;
use crate::prompt::Prompt;
use crate::spec::schema::{Property, PropertyKind};
use crate::text::origin::Origin;

/// Where a part of a conversation came from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Source {
    /// The author of the prompt, or the application.
    Author,
    /// The user: a question in a chat, or a steering message.
    User,
    /// An input of the prompt.
    Input {
        /// The input's name.
        name: String,
    },
    /// The result of a tool.
    Tool {
        /// The tool's name.
        name: String,
        /// The server that provides the tool, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        server: Option<String>,
        /// The ID of the call. `None` in labels that combine several parts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<String>,
    },
    /// Messages whose origin the host did not state.
    Unknown,
}

impl Source {
    /// Returns the source without the ID of the call.
    fn without_call(&self) -> Self {
        match self {
            Self::Tool { name, server, .. } => Self::Tool { name: name.clone(), server: server.clone(), call: None },
            other => other.clone(),
        }
    }

    /// Compares sources, apart from the IDs of calls.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tool { name, server, .. }, Self::Tool { name: other, server: other_server, .. }) => {
                name == other && server == other_server
            }
            _ => self == other,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Author => f.write_str("the prompt"),
            Self::User => f.write_str("the user"),
            Self::Input { name } => write!(f, "input `{name}`"),
            Self::Tool { name, .. } => write!(f, "tool `{name}`"),
            Self::Unknown => f.write_str("messages of unknown origin"),
        }
    }
}

/// The label of a part of a conversation, of a tool call, or of everything that a model has read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// Whether all of it comes from sources that the policy trusts.
    pub trusted: bool,
    /// Whether any of it is confidential.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confidential: bool,
    /// Whether it contains values that were extracted from untrusted content. There are only a few bits of them, so
    /// they do not make a conversation untrusted, but they never count as values from a trusted origin.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub extracted: bool,
    /// The sources, without duplicates.
    pub sources: Sources,
    /// The sources that are not trusted.
    #[serde(default, skip_serializing_if = "Sources::is_none")]
    pub untrusted_sources: Sources,
}

/// A list of sources. Copies share it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources(Arc<[Source]>);

impl Sources {
    fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds sources that are not in the list yet. Calls are left out, so a union is never longer than the number of
    /// inputs and tools.
    fn add(&mut self, other: &Self) {
        if Arc::ptr_eq(&self.0, &other.0) || other.is_none() {
            return;
        }
        let is_new = |source: &&Source| !self.iter().any(|own| own.is_same(source));
        let new: Vec<_> = other.iter().filter(is_new).map(Source::without_call).collect();
        if !new.is_empty() {
            self.0 = self.iter().map(Source::without_call).chain(new).collect();
        }
    }
}

impl Deref for Sources {
    type Target = [Source];

    fn deref(&self) -> &[Source] {
        &self.0
    }
}

impl From<Source> for Sources {
    fn from(source: Source) -> Self {
        Self(Arc::from([source]))
    }
}

impl Serialize for Sources {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Sources {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(|sources| Self(sources.into()))
    }
}

impl Default for Label {
    /// Returns the label of nothing: trusted and public.
    fn default() -> Self {
        let none = Sources::default();
        Self { trusted: true, confidential: false, extracted: false, sources: none.clone(), untrusted_sources: none }
    }
}

impl Label {
    /// Creates the label of text from one source.
    pub fn new(source: Source, trusted: bool, confidential: bool) -> Self {
        let sources = Sources::from(source);
        let untrusted_sources = if trusted { Sources::default() } else { sources.clone() };
        Self { trusted, confidential, extracted: false, sources, untrusted_sources }
    }

    /// Creates the label of text from the author or the application.
    pub fn author() -> Self {
        Self::new(Source::Author, true, false)
    }

    /// Creates the label of text from the user.
    pub fn user() -> Self {
        Self::new(Source::User, true, false)
    }

    /// Creates the label of text whose origin is not known: it is not trusted.
    pub fn unknown() -> Self {
        Self::new(Source::Unknown, false, false)
    }

    /// Adds another label: the result is trusted if both are, and confidential if one is.
    pub fn add(&mut self, other: &Self) {
        self.trusted &= other.trusted;
        self.confidential |= other.confidential;
        self.extracted |= other.extracted;
        self.sources.add(&other.sources);
        self.untrusted_sources.add(&other.untrusted_sources);
    }

    /// Returns the union with another label.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.add(other);
        self
    }

    /// Returns whether the policy has nothing to check: everything is trusted, and nothing is confidential.
    pub fn is_plain(&self) -> bool {
        self.trusted && !self.confidential && !self.extracted
    }
}

/// A range of a text, with its label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabeledRange {
    /// The byte range.
    pub range: Range<usize>,
    /// Its label.
    pub label: Label,
}

/// The label of a part of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartLabel {
    /// The label of the whole part.
    #[serde(flatten)]
    pub label: Label,
    /// Whether a model or the turn itself wrote the part: an answer, an error, a handle or a summary. What it contains
    /// never counts as a value from a trusted origin.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub generated: bool,
    /// The labels of its ranges, if they differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<LabeledRange>,
}

impl From<Label> for PartLabel {
    fn from(label: Label) -> Self {
        Self { label, generated: false, ranges: Vec::new() }
    }
}

/// The labels of a message: one for each part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageLabel {
    /// The labels of the parts.
    pub parts: Vec<PartLabel>,
}

impl MessageLabel {
    /// Creates the labels of a message whose parts all have the same one.
    pub fn whole(message: &Message, label: &Label) -> Self {
        Self { parts: message.content.iter().map(|_| label.clone().into()).collect() }
    }

    /// Creates the labels of a message that a model or the turn itself wrote.
    pub fn generated(message: &Message, label: &Label) -> Self {
        let part = PartLabel { generated: true, ..label.clone().into() };
        Self { parts: message.content.iter().map(|_| part.clone()).collect() }
    }

    /// Creates the labels of a message whose origin the host did not state. Instructions count as the application's;
    /// everything else is not trusted.
    pub fn unstated(message: &Message) -> Self {
        let is_instruction = matches!(message.role, Role::System | Role::Developer);
        Self::whole(message, &if is_instruction { Label::author() } else { Label::unknown() })
    }

    /// Returns the union of the labels.
    pub fn union(&self) -> Label {
        self.parts.iter().fold(Label::default(), |label, part| label.and(&part.label))
    }
}

/// Returns the labels of the messages that a prompt was rendered to, in the order of [`Prompt::messages`].
///
/// # Errors
/// Returns an error if the text cannot be split into messages.
pub fn message_labels(prompt: &Prompt, rendered: &Rendered) -> Result<Vec<MessageLabel>> {
    let labels = PromptLabels { declared: &prompt.spec().inputs, table: rendered.inputs() };
    let messages = prompt.messages_with_segments(rendered)?;
    Ok(messages.iter().map(|message| labels.message(message)).collect())
}

/// The labels of the messages of a prompt.
struct PromptLabels<'a> {
    declared: &'a [Property],
    table: &'a InputTable,
}

impl PromptLabels<'_> {
    /// Returns the labels of a message.
    fn message(&self, message: &SegmentedMessage) -> MessageLabel {
        let (role, parts) = (message.message.role, message.message.content.iter().zip(&message.segments));
        MessageLabel { parts: parts.map(|(part, segments)| self.part(role, part, segments)).collect() }
    }

    fn part(&self, role: Role, part: &ContentPart, segments: &[TextSegment]) -> PartLabel {
        let ContentPart::Text(text) = part else { return Label::unknown().into() };
        let mut ranges: Vec<LabeledRange> = Vec::new();
        for segment in segments {
            let label = self.origin(role, segment.origin);
            match ranges.last_mut() {
                Some(last) if last.range.end == segment.range.start && last.label == label => {
                    last.range.end = segment.range.end;
                }
                _ => ranges.push(LabeledRange { range: segment.range.clone(), label }),
            }
        }
        let rich = text.anchors.iter().map(|anchor| self.input(role, &anchor.input.name));
        let label = ranges.iter().fold(Label::default(), |label, range| label.and(&range.label));
        let label = rich.fold(label, |label, other| label.and(&other));
        PartLabel { label, generated: false, ranges: if ranges.len() > 1 { ranges } else { Vec::new() } }
    }

    /// Returns the label of text with this origin.
    fn origin(&self, role: Role, origin: Origin) -> Label {
        if origin.is_author() {
            return Label::author();
        }
        let names: Vec<_> = self.table.names(origin).collect();
        match &names[..] {
            // A bit without an input.
            [] => Label::unknown(),
            [name] => self.input(role, name),
            names => names.iter().fold(Label::default(), |label, name| label.and(&self.input(role, name))),
        }
    }

    /// Returns the label of an input in a message. The user speaks only in the user's messages of a thread: the others
    /// are what a model wrote and tools returned.
    fn input(&self, role: Role, name: &str) -> Label {
        let is_thread = |input: &&Property| input.name == name && input.kind == PropertyKind::Thread && !input.trusted;
        let label = input_label(self.declared, name);
        match self.declared.iter().find(is_thread) {
            Some(input) if role != Role::User => {
                Label::new(Source::Input { name: name.to_owned() }, false, input.confidential)
            }
            _ => label,
        }
    }
}

/// Returns the label of an input. An input that is not declared is not trusted.
pub(crate) fn input_label(declared: &[Property], name: &str) -> Label {
    let input = declared.iter().find(|input| input.name == name);
    let trusted = input.is_some_and(|input| input.trusted || input.speaker.is_some());
    let confidential = input.is_some_and(|input| input.confidential);
    Label::new(Source::Input { name: name.to_owned() }, trusted, confidential)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_union_is_as_bad_as_its_worst_part() {
        let tool = |call: &str| Source::Tool { name: "fetch".into(), server: None, call: Some(call.into()) };
        let mut label = Label::author();
        label.add(&Label::user());
        assert!(label.is_plain());
        label.add(&Label::new(tool("1"), false, false));
        label.add(&Label::new(tool("2"), true, true));
        assert!(!label.trusted && label.confidential);
        assert_eq!(label.sources.len(), 3, "calls of the same tool count once: {label:?}");
        assert_eq!(label.untrusted_sources.len(), 1);
    }
}

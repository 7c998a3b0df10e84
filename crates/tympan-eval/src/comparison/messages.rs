//! Differences between the messages of two versions.

use std::borrow::Cow;

use tympan_core::chat::message::{ContentPart, TextPart};
use tympan_core::chat::rendered::InputTable;
use tympan_core::chat::text_segment::{SegmentedMessage, TextSegment};
use tympan_core::json::JsonMap;
use tympan_core::spec::role::Role;
use tympan_core::text::origin::Origin;
use tympan_core::{Message, Prompt, Rendered, Result};

use super::words::{Change, Piece, Words, compared, ids, pieces};
use crate::token_count::TokenCount;

/// A message of one version or of both.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MessageComparison {
    /// The message before the change, or `None` if it was added.
    pub before: Option<MessageVersion>,
    /// The message after the change, or `None` if it was removed.
    pub after: Option<MessageVersion>,
    /// The text of both versions.
    pub pieces: Vec<Piece>,
}

/// What is known about a message besides its text.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MessageVersion {
    /// The position of the message, from 0.
    pub index: usize,
    /// The role.
    pub role: Role,
    /// The attributes of the role marker, or the additional fields of a thread's message.
    pub metadata: Option<JsonMap>,
    /// The number of tokens.
    pub tokens: usize,
}

impl MessageComparison {
    /// Returns whether both versions of the message are the same.
    pub fn is_equal(&self) -> bool {
        let is_same = |before: &MessageVersion, after: &MessageVersion| {
            before.role == after.role && before.metadata == after.metadata
        };
        self.before.as_ref().zip(self.after.as_ref()).is_some_and(|(before, after)| is_same(before, after))
            && self.pieces.iter().all(|piece| piece.change == Change::Equal)
    }
}

/// The messages of a version, prepared for a comparison.
pub(super) struct Messages<'r> {
    messages: Vec<SegmentedMessage>,
    rendered: &'r Rendered,
    pub(super) count: TokenCount,
}

impl<'r> Messages<'r> {
    pub(super) fn new(prompt: &Prompt, rendered: &'r Rendered, model: &str) -> Result<Self> {
        let count = TokenCount::of(prompt, rendered, model)?;
        Ok(Self { messages: prompt.messages_with_segments(rendered)?, rendered, count })
    }

    fn version(&self, index: usize) -> MessageVersion {
        let Message { role, metadata, .. } = &self.messages[index].message;
        let tokens = self.count.messages.get(index).map_or(0, |message| message.total());
        MessageVersion { index, role: *role, metadata: metadata.clone(), tokens }
    }

    fn words(&self) -> Vec<Words<'_>> {
        self.messages.iter().map(|message| self.words_of(message)).collect()
    }

    fn words_of<'m>(&'m self, message: &'m SegmentedMessage) -> Words<'m> {
        let mut words = Words::new(self.rendered.inputs());
        for (part, segments) in message.message.content.iter().zip(&message.segments) {
            match part {
                ContentPart::Text(text) => self.add_text(text, segments, &mut words),
                media => words.push(format!("[{}]", media.kind()).into(), self.media_origin(segments, 0)),
            }
        }
        words
    }

    fn add_text<'m>(&self, text: &'m TextPart, segments: &[TextSegment], words: &mut Words<'m>) {
        // The nonces of images differ from render to render.
        let mut anchors = text.anchors.iter().peekable();
        let mut start = 0;
        for segment in segments {
            start = start.max(segment.range.start);
            while let Some(anchor) = anchors.next_if(|anchor| anchor.range.start < segment.range.end) {
                words.push_text(text.value.get(start..anchor.range.start).unwrap_or_default(), segment.origin);
                let name = format!("[{} {}]", anchor.input.kind.as_str(), anchor.input.name);
                words.push(Cow::Owned(name), segment.origin);
                start = anchor.range.end;
            }
            words.push_text(text.value.get(start..segment.range.end).unwrap_or_default(), segment.origin);
            start = start.max(segment.range.end);
        }
    }

    /// Returns the origin of an image. If none is recorded, it comes from all inputs, so that it is not the author's.
    fn media_origin(&self, segments: &[TextSegment], offset: usize) -> Origin {
        let found = segments.iter().find(|segment| segment.range.contains(&offset));
        let all = || (0..self.rendered.inputs().inputs().len()).map(Origin::input).collect();
        found.map_or_else(all, |segment| segment.origin)
    }
}

/// Compares the messages of two versions.
pub(super) fn compare(before: &Messages<'_>, after: &Messages<'_>) -> Vec<MessageComparison> {
    let (old, new) = (before.words(), after.words());
    let nobody = InputTable::default();
    let none = Words::new(&nobody);
    let pair = |old_index: Option<usize>, new_index: Option<usize>| MessageComparison {
        before: old_index.map(|index| before.version(index)),
        after: new_index.map(|index| after.version(index)),
        pieces: pieces(old_index.map_or(&none, |index| &old[index]), new_index.map_or(&none, |index| &new[index])),
    };
    let is_same = |a: usize, b: usize| {
        let roles = (before.messages[a].message.role, after.messages[b].message.role);
        roles.0 == roles.1 && old[a].words == new[b].words
    };
    pairs(before, after, is_same).into_iter().map(|(old, new)| pair(old, new)).collect()
}

/// Returns which messages belong together: equal ones at both ends, and those of the same role in between.
fn pairs(
    before: &Messages<'_>,
    after: &Messages<'_>,
    is_same: impl Fn(usize, usize) -> bool,
) -> Vec<(Option<usize>, Option<usize>)> {
    let (old, new) = (before.messages.len(), after.messages.len());
    let shorter = old.min(new);
    let start = (0..shorter).take_while(|index| is_same(*index, *index)).count();
    let end = (0..shorter - start).take_while(|index| is_same(old - 1 - index, new - 1 - index)).count();
    let both = |(old, new): (usize, usize)| (Some(old), Some(new));
    let mut pairs: Vec<_> = (0..start).map(|index| both((index, index))).collect();
    let (old_end, new_end) = (old - end, new - end);
    let role = |message: &SegmentedMessage| message.message.role;
    let (old_ids, new_ids) =
        ids(before.messages[start..old_end].iter().map(role), after.messages[start..new_end].iter().map(role));
    match compared(&old_ids, &new_ids) {
        Some(ops) => {
            for (tag, from, to) in ops {
                let (from, to) = (from.map(|index| start + index), to.map(|index| start + index));
                if tag == similar::DiffTag::Equal {
                    pairs.extend(from.zip(to).map(both));
                } else {
                    pairs.extend(from.map(|index| (Some(index), None)));
                    pairs.extend(to.map(|index| (None, Some(index))));
                }
            }
        }
        // Too many to compare their order.
        None => {
            pairs.extend((start..old_end).map(|index| (Some(index), None)));
            pairs.extend((start..new_end).map(|index| (None, Some(index))));
        }
    }
    pairs.extend((0..end).map(|index| both((old_end + index, new_end + index))));
    pairs
}

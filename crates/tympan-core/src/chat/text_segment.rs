//! The origin of the text in messages.

use std::ops::Range;

use serde_json::{Value as Json, json};

use super::Place;
use super::message::{ContentPart, Message};
use super::rendered::{InputTable, Rendered};
use crate::text::origin::Origin;

/// A part of a message's text that was written by one interpolation or by the author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextSegment {
    /// The byte range in the text.
    pub range: Range<usize>,
    /// The inputs that contributed to it.
    pub origin: Origin,
}

impl TextSegment {
    /// Converts the segment to JSON: `start` and `end` as offsets in UTF-8, the `origins`, and whether they are
    /// `trusted`. The `origins` are the names of inputs. They are empty if the author wrote the text.
    pub fn to_json(&self, inputs: &InputTable) -> Json {
        json!({
            "start": self.range.start,
            "end": self.range.end,
            "origins": inputs.names(self.origin).collect::<Vec<_>>(),
            "trusted": inputs.is_trusted(self.origin),
        })
    }
}

/// A message, and the segments of each of its parts. A part that is not text has no segments.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SegmentedMessage {
    /// The message.
    pub message: Message,
    /// A list for each part of the content.
    pub segments: Vec<Vec<TextSegment>>,
    /// The inputs that contributed to the message: to its text, its images, audio and documents.
    pub origin: Origin,
}

impl SegmentedMessage {
    pub(crate) fn new(message: Message, place: &Place, rendered: &Rendered) -> Self {
        let (segments, origin) = match place {
            Place::Text(range) => {
                let segments = rendered.segments_of(range);
                let origin = segments.iter().map(|segment| segment.origin).collect::<Origin>();
                (vec![segments], origin | rendered.media_origin(&message))
            }
            Place::Thread(range) => {
                let origin = rendered.thread_origin(range);
                (message.content.iter().map(|part| whole(part, origin)).collect(), origin)
            }
        };
        Self { message, segments, origin }
    }

    /// Converts the message to JSON, with the `segments` of each text part.
    pub fn to_json(&self, inputs: &InputTable) -> Json {
        let mut json = json!(self.message);
        for (index, segments) in self.segments.iter().enumerate() {
            if json["content"][index]["kind"] == "text" {
                json["content"][index]["segments"] = segments.iter().map(|segment| segment.to_json(inputs)).collect();
            }
        }
        json
    }
}

fn whole(part: &ContentPart, origin: Origin) -> Vec<TextSegment> {
    let text = part.as_text().filter(|text| !text.is_empty());
    text.map(|text| TextSegment { range: 0..text.len(), origin }).into_iter().collect()
}

impl Rendered {
    /// Returns the segments of a range of the text, relative to its start and without empty ones.
    fn segments_of(&self, range: &Range<usize>) -> Vec<TextSegment> {
        let pieces = self.traced.ranges_from(range.start).take_while(|(piece, _)| piece.start < range.end);
        let segments = pieces.map(|(piece, origin)| {
            let (start, end) = (piece.start.max(range.start), piece.end.min(range.end).max(range.start));
            TextSegment { range: start - range.start..end - range.start, origin }
        });
        segments.filter(|segment| !segment.range.is_empty()).collect()
    }

    /// Returns the origin of a thread whose nonce is in this range. Threads that the template does not mention have no
    /// nonce; if there are several of them, they all count.
    fn thread_origin(&self, range: &Range<usize>) -> Origin {
        let Some(content) = self.rich.as_deref() else { return Origin::AUTHOR };
        let mentioned = content.places.iter().filter(|place| place.range == *range).map(|place| &place.input.name);
        let appended = content.appended.iter().filter(|_| range.is_empty()).map(|input| &input.name);
        mentioned.chain(appended).filter_map(|name| self.input_origin(name)).collect()
    }

    /// Returns the origin of the images, audio and documents in a message.
    fn media_origin(&self, message: &Message) -> Origin {
        let texts = message.content.iter().filter_map(|part| match part {
            ContentPart::Text(text) => Some(text),
            _ => None,
        });
        texts.flat_map(|text| &text.anchors).filter_map(|anchor| self.input_origin(&anchor.input.name)).collect()
    }

    fn input_origin(&self, name: &str) -> Option<Origin> {
        self.inputs.inputs().iter().position(|input| input.name == *name).map(Origin::input)
    }
}

//! Assertions about who wrote what.

use tympan_core::chat::text_segment::{SegmentedMessage, TextSegment};
use tympan_core::spec::test_suite::{InputPlace, OnlyFrom, Share};
use tympan_core::text::origin::Origin;

use super::Subject;
use crate::matching::Mismatch;

/// What the guard writes before and after the text of untrusted inputs.
const GUARD: (&str, &str) = ("<untrusted>", "</untrusted>");

impl Subject<'_> {
    pub(super) fn no_origin(&self, place: &InputPlace) -> Result<(), Mismatch> {
        let origin = self.origin(place.input())?;
        let found = self.select(place.place())?.into_iter().find(|message| message.origin.intersects(origin));
        found.map_or(Ok(()), |message| {
            let role = message.message.role.as_str();
            let excerpt = pieces(message).find(|(_, segment)| segment.origin.intersects(origin));
            let excerpt = excerpt.map_or_else(String::new, |(text, _)| format!(": {:?}", shortened(text)));
            Err(Mismatch::new(format!("input `{}` is in the {role} message{excerpt}", place.input())))
        })
    }

    pub(super) fn only_from(&self, only: &OnlyFrom) -> Result<(), Mismatch> {
        let allowed = only.inputs.iter().map(|name| self.origin(name)).collect::<Result<Origin, _>>()?;
        for message in self.select(only.place)? {
            let others = message.origin.without(allowed);
            if !others.is_author() {
                let names: Vec<_> =
                    self.rendering.rendered.inputs().names(others).map(|name| format!("`{name}`")).collect();
                let role = message.message.role.as_str();
                let allowed = match only.inputs.as_slice() {
                    [] => "only text of the author".to_owned(),
                    inputs => format!("text of the author and of {}", quoted(inputs)),
                };
                let message = format!("expected {allowed} in the {role} message; found text of {}", names.join(", "));
                return Err(Mismatch::new(message));
            }
        }
        Ok(())
    }

    pub(super) fn guarded(&self, place: &InputPlace) -> Result<(), Mismatch> {
        let (name, origin) = (place.input(), self.origin(place.input())?);
        let mut found = false;
        for message in self.select(place.place())? {
            for (part, segments) in message.message.content.iter().zip(&message.segments) {
                let text = part.as_text().unwrap_or_default();
                for segment in segments.iter().filter(|segment| segment.origin.intersects(origin)) {
                    found = true;
                    if !is_guarded(text, segments, segment) {
                        let role = message.message.role.as_str();
                        let excerpt = shortened(&text[segment.range.clone()]);
                        let hint = if self.case.settings.guard.unwrap_or_default() {
                            ""
                        } else {
                            "; the case does not set `guard: true`"
                        };
                        let message =
                            format!("text of input `{name}` in the {role} message is not guarded: {excerpt:?}{hint}");
                        return Err(Mismatch::new(message));
                    }
                }
            }
        }
        if found { Ok(()) } else { Err(Mismatch::new(format!("input `{name}` is in none of the messages"))) }
    }

    pub(super) fn verbatim(&self, place: &InputPlace) -> Result<(), Mismatch> {
        let (name, origin) = (place.input(), self.origin(place.input())?);
        let declared = self.case.prompt().spec().inputs.iter().find(|input| input.name == name);
        let default = || declared.and_then(|input| input.default.as_ref());
        let value = self.case.settings.inputs.get(name).or_else(default);
        let Some(value) = value.and_then(|value| value.as_str()) else {
            return Err(Mismatch::invalid(format!("input `{name}` is not a text in this case")));
        };
        let messages = self.select(place.place())?;
        let mut parts = messages.iter().flat_map(|message| message.message.content.iter().zip(&message.segments));
        let is_there = parts
            .any(|(part, segments)| contains_verbatim(part.as_text().unwrap_or_default(), segments, value, origin));
        if is_there {
            return Ok(());
        }
        let actual = messages.first().map(|message| message.message.to_text()).unwrap_or_default();
        Err(Mismatch::new(format!("the text of input `{name}` is not in the messages unchanged"))
            .with_difference(value, actual))
    }

    pub(super) fn share(&self, share: &Share) -> Result<(), Mismatch> {
        let origin = self.origin(&share.input)?;
        let (mut own, mut all) = (0, 0);
        for message in self.select(share.place)? {
            for (text, segment) in pieces(message) {
                all += text.len();
                own += if segment.origin.intersects(origin) { text.len() } else { 0 };
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "the texts are shorter than that")]
        let found = if all == 0 { 0.0 } else { own as f64 / all as f64 };
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let bound = match (share.min, share.max) {
            (Some(min), _) if found < min.0 => Some(format!("at least {}", percent(min.0))),
            (_, Some(max)) if found > max.0 => Some(format!("at most {}", percent(max.0))),
            _ => None,
        };
        bound.map_or(Ok(()), |bound| {
            let message =
                format!("expected {bound} of the text from input `{}`, found {}", share.input, percent(found));
            Err(Mismatch::new(message))
        })
    }

    /// Returns the origin of an input.
    fn origin(&self, name: &str) -> Result<Origin, Mismatch> {
        let inputs = self.rendering.rendered.inputs().inputs();
        let found = inputs.iter().position(|input| input.name == name).map(Origin::input);
        found.ok_or_else(|| {
            let names: Vec<_> = inputs.iter().map(|input| input.name.clone()).collect();
            Mismatch::invalid(format!("the prompt has no input `{name}`; it has {}", quoted(&names)))
        })
    }
}

/// Returns the pieces of text of a message with their origins.
fn pieces(message: &SegmentedMessage) -> impl Iterator<Item = (&str, &TextSegment)> {
    message.message.content.iter().zip(&message.segments).flat_map(|(part, segments)| {
        let text = part.as_text().unwrap_or_default();
        segments.iter().map(move |segment| (&text[segment.range.clone()], segment))
    })
}

/// Returns whether the guard's markers surround the run of text of inputs that a segment belongs to.
fn is_guarded(text: &str, segments: &[TextSegment], segment: &TextSegment) -> bool {
    let is_input = |other: &&TextSegment| !other.origin.is_author();
    let before = segments.iter().rev().skip_while(|other| other.range.start > segment.range.start);
    let start = before.take_while(is_input).last().map_or(segment.range.start, |first| first.range.start);
    let after = segments.iter().skip_while(|other| other.range.start < segment.range.start);
    let end = after.take_while(is_input).last().map_or(segment.range.end, |last| last.range.end);
    text[..start].ends_with(GUARD.0) && text[end..].starts_with(GUARD.1)
}

/// Returns whether a text contains a value of which the input wrote every byte.
fn contains_verbatim(text: &str, segments: &[TextSegment], value: &str, origin: Origin) -> bool {
    // An empty value is everywhere.
    value.is_empty()
        || text.match_indices(value).any(|(start, _)| {
            let end = start + value.len();
            let mut inside = segments.iter().filter(|segment| segment.range.start < end && segment.range.end > start);
            inside.all(|segment| segment.origin.intersects(origin))
        })
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// The greatest length of an excerpt, in characters.
const MAX_EXCERPT: usize = 60;

fn shortened(text: &str) -> String {
    let short: String = text.chars().take(MAX_EXCERPT).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}

//! The positions of the guard's markers in the text of a message.

use std::ops::Range;

use super::{CLOSE, OPEN};
use crate::chat::rendered::InputTable;
use crate::chat::text_segment::TextSegment;

/// Returns the positions of the markers that the guard inserted into a text, in order. `segments` are those of the text.
///
/// The positions follow from the origins: the author's text between two others ends with an opening marker if untrusted
/// text follows, and starts with a closing one if untrusted text precedes. Inputs and authors may write the same
/// characters elsewhere, and these are only text.
///
/// ```
/// use tympan::chat::guard::marks;
/// use tympan::{Guard, Prompt, RenderOptions, inputs};
///
/// let prompt = Prompt::from_prompty("user:\n<untrusted> {{ text }}")?;
/// let guard = Guard::default();
/// let options = RenderOptions { guard: Some(&guard), ..Default::default() };
/// let rendered = prompt.render_with(inputs! { text: "Hi" }, &options)?;
/// let message = &prompt.messages_with_segments(&rendered)?[0];
/// let text = message.message.to_text();
/// assert_eq!(text, "<untrusted> <untrusted>Hi</untrusted>");
/// assert_eq!(marks(&text, &message.segments[0], rendered.inputs()), [12..23, 25..37]);
/// # Ok::<(), tympan::Error>(())
/// ```
pub fn marks(text: &str, segments: &[TextSegment], inputs: &InputTable) -> Vec<Range<usize>> {
    let is_untrusted = |segment: Option<&TextSegment>| segment.is_some_and(|it| !inputs.is_trusted(it.origin));
    let mut found = Vec::new();
    for (index, segment) in segments.iter().enumerate().filter(|(_, segment)| segment.origin.is_author()) {
        let Some(written) = text.get(segment.range.clone()) else { continue };
        let Range { start, end } = segment.range;
        if index > 0 && is_untrusted(segments.get(index - 1)) && written.starts_with(CLOSE) {
            found.push(start..start + CLOSE.len());
        }
        if is_untrusted(segments.get(index + 1)) && written.ends_with(OPEN) {
            found.push(end - OPEN.len()..end);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::guard::Guard;
    use crate::prompt::{Prompt, RenderOptions};

    /// Returns the texts of all markers, and the text without them.
    fn marked(template: &str, inputs: serde_json::Value) -> (Vec<String>, String) {
        let prompt = Prompt::from_prompty(template).expect("it loads");
        let guard = Guard::default();
        let options = RenderOptions { guard: Some(&guard), ..RenderOptions::default() };
        let rendered = prompt.render_with(&inputs, &options).expect("it renders");
        let (mut found, mut rest) = (Vec::new(), String::new());
        for message in prompt.messages_with_segments(&rendered).expect("it has messages") {
            let text = message.message.to_text();
            let mut at = 0;
            for range in marks(&text, &message.segments[0], rendered.inputs()) {
                rest.push_str(&text[at..range.start]);
                found.push(text[range.clone()].to_owned());
                at = range.end;
            }
            rest.push_str(&text[at..]);
        }
        (found, rest)
    }

    #[test]
    fn every_marker_is_found_and_nothing_else() {
        let cases = [
            ("user:\n{{ a }}{{ b }}", vec![OPEN, CLOSE, OPEN, CLOSE], "1&lt;2"),
            ("user:\n{{ a }} {{ b }}.", vec![OPEN, CLOSE, OPEN, CLOSE], "1 &lt;2."),
            ("user:\n<untrusted>{{ a }}</untrusted>", vec![OPEN, CLOSE], "<untrusted>1</untrusted>"),
            ("user:\n</untrusted><untrusted>", vec![], "</untrusted><untrusted>"),
            ("user:\n{{ a }}\n\nassistant:\n{{ b }}", vec![OPEN, CLOSE, OPEN, CLOSE], "1&lt;2"),
        ];
        for (template, expected, rest) in cases {
            let (found, text) = marked(template, serde_json::json!({"a": "1", "b": "<2"}));
            assert_eq!((found, text.as_str()), (expected.into_iter().map(str::to_owned).collect(), rest), "{template}");
        }
    }
}

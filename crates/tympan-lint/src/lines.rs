//! The lines of a template, and the fixed text in it.

use tympan_core::text::source::Span;

/// A line of a template.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'t> {
    /// The offset of the line.
    pub(crate) start: usize,
    /// The text, without the line end.
    pub(crate) text: &'t str,
    /// Whether the line is inside a fenced block of code.
    pub(crate) in_fence: bool,
    /// Whether the line is the first one, or follows a blank one. Lines with nothing but a comment do not count.
    pub(crate) begins_paragraph: bool,
}

/// The beginning of a line that looks like a role marker: a word, perhaps attributes, and a colon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label<'t> {
    pub(crate) word: &'t str,
    /// The position of the word in the template.
    pub(crate) span: Span,
    /// The text after the colon, without white space around it.
    pub(crate) rest: &'t str,
}

/// Returns the lines of a template.
pub(crate) fn lines(source: &str) -> Vec<Line<'_>> {
    let (mut start, mut fence, mut begins_paragraph) = (0, None, true);
    let mut lines = Vec::new();
    for text in source.split('\n') {
        let mark = ["```", "~~~"].into_iter().find(|mark| text.trim_start().starts_with(mark));
        let in_fence = fence.is_some() || mark.is_some();
        fence = match (fence, mark) {
            (None, mark) => mark,
            (Some(open), Some(mark)) if open == mark => None,
            (open, _) => open,
        };
        lines.push(Line { start, text: text.trim_end_matches('\r'), in_fence, begins_paragraph });
        begins_paragraph = text.trim().is_empty() || (begins_paragraph && is_comment(text.trim()));
        start += text.len() + 1;
    }
    lines
}

/// Returns whether a text is a comment in Jinja or Mustache, and nothing else.
fn is_comment(text: &str) -> bool {
    [("{#", "#}"), ("{{!", "}}")].into_iter().any(|(open, close)| {
        text.strip_prefix(open).and_then(|text| text.strip_suffix(close)).is_some_and(|inner| !inner.contains(close))
    })
}

impl<'t> Line<'t> {
    /// Returns the word before a colon at the beginning of the line, such as `system` in `system: Be brief`.
    pub(crate) fn label(self) -> Option<Label<'t>> {
        let text = self.text.trim_start();
        let text = text.strip_prefix('#').map_or(text, str::trim_start);
        let at = self.start + (self.text.len() - text.len());
        let (word, behind) = text.split_at(text.bytes().take_while(u8::is_ascii_alphabetic).count());
        let behind = match behind.strip_prefix('[') {
            Some(attributes) => attributes.split_once(']')?.1,
            None => behind,
        };
        let rest = behind.trim_start().strip_prefix(':')?.trim();
        (!word.is_empty()).then_some(Label { word, span: Span::new(at, at + word.len()), rest })
    }
}

/// Returns the text of a template outside of its tags.
pub(crate) fn fixed_text(source: &str) -> impl Iterator<Item = &str> {
    let mut rest = source;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (text, tag) = rest.split_at(next_tag(rest));
        let close = match tag.as_bytes().get(1) {
            Some(b'%') => "%}",
            Some(b'#') => "#}",
            _ => "}}",
        };
        rest = tag.find(close).map_or("", |end| &tag[end + close.len()..]);
        Some(text)
    })
}

/// Returns the offset of the next tag, or the length of the text.
fn next_tag(text: &str) -> usize {
    let is_tag = |at: &usize| matches!(text.as_bytes().get(at + 1), Some(b'{' | b'%' | b'#'));
    text.match_indices('{').map(|(at, _)| at).find(is_tag).unwrap_or(text.len())
}

//! Finds the parts of a directive's Markdown.

use crate::text::source::Span;

/// The starts of comments that contain signatures: Rye's, those of later Rye versions, and ours.
const SIGNATURES: [&str; 3] = ["<!-- rye:signed:", "<!-- ryeos:signed:", "<!-- tympan:signed:"];

/// The parts of a directive file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    /// The text before the metadata, without signatures.
    pub(super) preamble: Span,
    /// The text after the metadata: the steps.
    pub(super) body: Span,
    /// The metadata.
    pub(super) metadata: Option<Metadata>,
    /// The opening lines of additional fences that look like metadata.
    pub(super) others: Vec<Span>,
}

/// The metadata and its delimiters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Metadata {
    pub(super) syntax: Syntax,
    /// The opening line or delimiter.
    pub(super) opening: Span,
    pub(super) content: Span,
    pub(super) is_closed: bool,
}

/// The syntax of the metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    Xml,
    Yaml,
}

/// A fenced code block that is not inside another one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fence {
    syntax: Option<Syntax>,
    /// The whole block, including its last line ending.
    block: Span,
    opening: Span,
    content: Span,
    is_closed: bool,
}

/// Finds the parts of a directive.
pub(super) fn layout(text: &str) -> Layout {
    let start = after_signatures(text);
    if let Some(found) = front_matter(text, start) {
        return found;
    }
    let fences = fences(text, start);
    let holds_directive = |fence: &&Fence| is_directive_fence(text, fence);
    let of = |syntax| move |fence: &&Fence| fence.syntax == Some(syntax);
    let chosen = fences
        .iter()
        .find(holds_directive)
        .or_else(|| fences.iter().find(of(Syntax::Xml)))
        .or_else(|| fences.iter().find(of(Syntax::Yaml)));
    let Some(fence) = chosen else {
        return Layout { preamble: Span::new(start, text.len()), ..Layout::default() };
    };
    let others = fences.iter().filter(holds_directive).filter(|other| *other != fence).map(|other| other.opening);
    let others = others.collect();
    Layout {
        preamble: Span::new(start, fence.block.start),
        body: Span::new(fence.block.end, text.len()),
        metadata: Some(Metadata {
            syntax: fence.syntax.unwrap_or(Syntax::Xml),
            opening: fence.opening,
            content: fence.content,
            is_closed: fence.is_closed,
        }),
        others,
    }
}

/// Returns whether a text without a file name is a directive: it is signed, or it has a fence that contains a
/// `<directive>`.
pub(super) fn looks_like_directive(text: &str) -> bool {
    let start = after_signatures(text);
    let is_signed = !text[..start].trim_start_matches('\u{feff}').trim().is_empty();
    is_signed || fences(text, start).iter().any(|fence| is_directive_fence(text, fence))
}

/// Returns the offset after the comments with signatures, of which there may be several.
pub(crate) fn after_signatures(text: &str) -> usize {
    let mut start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    for line in text[start..].split_inclusive('\n') {
        if !SIGNATURES.iter().any(|begin| line.trim_start().starts_with(begin)) {
            break;
        }
        start += line.len();
    }
    start
}

/// Finds the front matter that later Rye versions use. Such files have no preamble.
fn front_matter(text: &str, start: usize) -> Option<Layout> {
    let opening = text.len() - text[start..].trim_start().len();
    let mut lines = text[opening..].split_inclusive('\n');
    let first = lines.next().filter(|line| line.trim_end() == "---")?;
    let content = opening + first.len();
    let metadata = |end, is_closed| {
        let (syntax, opening) = (Syntax::Yaml, Span::new(opening, opening + 3));
        Some(Metadata { syntax, opening, content: Span::new(content, end), is_closed })
    };
    let mut at = content;
    for line in lines {
        if line.trim_end() == "---" {
            let body = Span::new(at + line.len(), text.len());
            let others = fences(text, body.start).into_iter().filter(|fence| is_directive_fence(text, fence));
            let others = others.map(|fence| fence.opening).collect();
            return Some(Layout { preamble: Span::new(start, start), body, metadata: metadata(at, true), others });
        }
        at += line.len();
    }
    let end = Span::new(text.len(), text.len());
    Some(Layout {
        preamble: Span::new(start, start),
        body: end,
        metadata: metadata(text.len(), false),
        others: Vec::new(),
    })
}

fn is_directive_fence(text: &str, fence: &Fence) -> bool {
    let is_end = |char: char| char.is_whitespace() || char == '>' || char == '/';
    fence.syntax == Some(Syntax::Xml)
        && text[fence.content.range()]
            .match_indices("<directive")
            .any(|(at, found)| text[fence.content.start + at + found.len()..].starts_with(is_end))
}

/// Returns the fenced code blocks of a Markdown text that are not inside another one. As in CommonMark, a block ends at
/// a fence of the same character that is at least as long as the one that opened it.
fn fences(text: &str, start: usize) -> Vec<Fence> {
    let mut found: Vec<Fence> = Vec::new();
    let mut open: Option<(u8, usize)> = None;
    let mut at = start;
    for line in text[start..].split_inclusive('\n') {
        let next = at + line.len();
        match (open, fence_of(line)) {
            (None, Some((mark, length, info))) if mark == b'~' || !info.contains('`') => {
                open = Some((mark, length));
                found.push(Fence {
                    syntax: syntax_of(info),
                    block: Span::new(at, text.len()),
                    opening: Span::new(at, at + line.trim_end().len()),
                    content: Span::new(next, text.len()),
                    is_closed: false,
                });
            }
            (Some((mark, length)), Some((other, other_length, info)))
                if mark == other && other_length >= length && info.is_empty() =>
            {
                open = None;
                if let Some(fence) = found.last_mut() {
                    fence.content.end = at;
                    fence.block.end = next;
                    fence.is_closed = true;
                }
            }
            _ => {}
        }
        at = next;
    }
    found
}

/// Returns the character of a fence, its length, and the text after it.
fn fence_of(line: &str) -> Option<(u8, usize, &str)> {
    let rest = line.trim_start_matches(' ');
    let mark = *rest.as_bytes().first().filter(|mark| matches!(mark, b'`' | b'~'))?;
    let length = rest.bytes().take_while(|byte| *byte == mark).count();
    let is_fence = length >= 3 && line.len() - rest.len() <= 3;
    is_fence.then(|| (mark, length, rest[length..].trim()))
}

fn syntax_of(info: &str) -> Option<Syntax> {
    match info.split_whitespace().next()?.to_ascii_lowercase().as_str() {
        "xml" => Some(Syntax::Xml),
        "yaml" | "yml" => Some(Syntax::Yaml),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (&str, Option<&str>, &str) {
        let found = layout(text);
        let metadata = found.metadata.map(|metadata| &text[metadata.content.range()]);
        (&text[found.preamble.range()], metadata, &text[found.body.range()])
    }

    #[test]
    fn parts_are_found() {
        let cases = [
            ("# T\n```xml\n<directive/>\n```\nsteps", ("# T\n", Some("<directive/>\n"), "steps")),
            ("```yaml\nname: a\n```\nsteps", ("", Some("name: a\n"), "steps")),
            ("---\nname: a\n---\nsteps", ("", Some("name: a\n"), "steps")),
            ("<!-- rye:signed:x -->\n---\nname: a\n---\nsteps", ("", Some("name: a\n"), "steps")),
            // A fence without a directive is only used if there is no other.
            ("```xml\n<a/>\n```\n```xml\n<directive/>\n```\n", ("```xml\n<a/>\n```\n", Some("<directive/>\n"), "")),
            ("```xml\n<a/>\n```\nb", ("", Some("<a/>\n"), "b")),
            ("~~~ XML\n<directive/>\n~~~~\nb", ("", Some("<directive/>\n"), "b")),
            // A longer fence may contain shorter ones.
            (
                "````md\n```xml\n<directive/>\n```\n````\n```xml\n<directive></directive>\n```\nb",
                ("````md\n```xml\n<directive/>\n```\n````\n", Some("<directive></directive>\n"), "b"),
            ),
            ("no metadata", ("no metadata", None, "")),
            ("    ```xml\nx\n", ("    ```xml\nx\n", None, "")),
        ];
        for (text, expected) in cases {
            assert_eq!(parts(text), expected, "{text:?}");
        }
    }

    #[test]
    fn texts_without_a_name_are_recognised() {
        for text in ["<!-- rye:signed:x -->\n", "a\n```xml\n<directive name=\"a\">\n```\n", "```xml\n<directive>\n"] {
            assert!(looks_like_directive(text), "{text:?}");
        }
        for text in ["", "---\nname: x\n---\nsystem:\n", "```xml\n<directives>\n```\n", "````\n```xml\n<directive>\n"] {
            assert!(!looks_like_directive(text), "{text:?}");
        }
    }
}

//! White space inside the tags of Mustache templates.
//!
//! Variables have a space on both sides, as in `{{ name }}`, and sections have none, as in `{{#items}}`. Tags that set
//! delimiters, and those with a third brace, stay as they are.

use tympan_core::template::syntax::mustache::ast::{Node, NodeKind};
use tympan_core::template::syntax::parse_mustache;
use tympan_core::text::source::Span;

use super::Edit;

/// Returns the tags of a template that change, and their new text.
pub(super) fn edits(source: &str) -> Vec<Edit> {
    let mut edits = Vec::new();
    let mut waiting: Vec<&[Node]> = Vec::new();
    let parsed = parse_mustache(source);
    waiting.push(&parsed.body);
    while let Some(nodes) = waiting.pop() {
        for node in nodes {
            match &node.kind {
                NodeKind::Comment => edits.extend(comment(source, node.span)),
                NodeKind::Variable(name) => edits.extend(variable(source, node.span, *name)),
                NodeKind::Section(section) => {
                    edits.extend(section_tag(source, section.tag, &source[section.name.range()]));
                    edits.extend(section.end.and_then(|end| section_tag(source, end, &source[section.name.range()])));
                    waiting.push(&section.body);
                }
                _ => {}
            }
        }
    }
    edits.retain(|(span, text)| source[span.range()] != **text);
    edits.sort_by_key(|(span, _)| span.start);
    edits
}

/// Formats a comment on a single line. Those that start with a dash may be meant for another engine.
fn comment(source: &str, span: Span) -> Option<Edit> {
    let inner = source[span.range()].strip_prefix("{{!")?.strip_suffix("}}")?;
    let text = inner.trim_matches([' ', '\t']);
    let is_simple = !text.is_empty() && !text.starts_with('-') && !text.contains(['\n', '\r']);
    is_simple.then(|| (span, format!("{{{{! {text} }}}}")))
}

fn variable(source: &str, tag: Span, name: Span) -> Option<Edit> {
    let (open, close) = around(source, tag, name)?;
    // A mark or a third brace. Custom delimiters that look like one are not worth the risk.
    if open.ends_with(['&', '{']) && open != "{{" {
        return None;
    }
    Some((tag, format!("{open} {} {close}", &source[name.range()])))
}

/// Formats the opening or the closing tag of a section.
fn section_tag(source: &str, tag: Span, name: &str) -> Option<Edit> {
    let at = tag.start + source[tag.range()].find(name)?;
    let (open, close) = around(source, tag, Span::new(at, at + name.len()))?;
    let open: String = open.split_whitespace().collect();
    Some((tag, format!("{open}{name}{close}")))
}

/// Returns the delimiters around a name, unless the tag has several lines.
fn around(source: &str, tag: Span, name: Span) -> Option<(&str, &str)> {
    let (open, close) = (&source[tag.start..name.start], &source[name.end..tag.end]);
    let is_one_line = !source[tag.range()].contains(['\n', '\r']);
    is_one_line.then(|| (open.trim_end(), close.trim_start()))
}

//! Parses the XML of a directive's metadata.
//!
//! roxmltree parses it with document types disabled, so that there are no entities to expand and no files to fetch. A
//! scan before that rejects input that would take roxmltree too long, and blanks out the content of elements that
//! contain arbitrary text.

use std::ops::Range;

use roxmltree::{Document, Node, ParsingOptions};

use super::element::{Attribute, Element};
use crate::diagnostic::Diagnostic;
use crate::error::Kind;
use crate::format::report::error;
use crate::text::source::Span;

/// The elements whose content is text, whatever it looks like.
pub(super) const OPAQUE: [&str; 3] = ["template", "example", "raw"];

/// The maximum nesting depth: more than any directive needs, and low enough for recursion on a small stack.
const MAX_DEPTH: usize = 64;
/// The maximum number of nodes: more than any directive needs.
const MAX_NODES: u32 = 20_000;
/// The maximum number of attributes of an element. The search for duplicates is quadratic.
const MAX_ATTRIBUTES: usize = 64;
/// The maximum size of an attribute: more than any attribute needs.
const MAX_ATTRIBUTE_BYTES: usize = 16 << 10;

/// Parses the XML in a fence whose content starts `offset` bytes into its file.
///
/// # Errors
/// Returns a diagnostic if the text is not XML that Tympan accepts.
pub(super) fn parse(text: &str, offset: usize) -> Result<Element, Diagnostic> {
    let Scanned { masked, opaque } = Scan { text, at: 0, opaque: Vec::new(), masked: text.as_bytes().to_vec() }
        .run()
        .map_err(|problem| problem.at(offset))?;
    let options = ParsingOptions { allow_dtd: false, nodes_limit: MAX_NODES, ..ParsingOptions::default() };
    let document =
        Document::parse_with_options(&masked, options).map_err(|failure| refuse(&failure, &masked, offset))?;
    Builder { text, opaque: &opaque, offset }.element(document.root_element(), 0)
}

/// The reason why XML is rejected, and its position in the fence.
struct Problem {
    range: Range<usize>,
    message: String,
    help: &'static str,
}

impl Problem {
    fn at(self, offset: usize) -> Diagnostic {
        error(Kind::InvalidXml, Span::from(self.range).shifted(offset), self.message).with_help(self.help)
    }
}

fn refuse(failure: &roxmltree::Error, text: &str, offset: usize) -> Diagnostic {
    let position = failure.pos();
    let row = usize::try_from(position.row).unwrap_or(1).saturating_sub(1);
    let line_start: usize = text.split_inclusive('\n').take(row).map(str::len).sum();
    let line = text[line_start..].lines().next().unwrap_or_default();
    let column = usize::try_from(position.col).unwrap_or(1).saturating_sub(1);
    let in_line = line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
    let at = offset + line_start + in_line;
    // The messages of roxmltree end with a position, which is relative to the fence. Remove it.
    let message = failure.to_string();
    let reason = match failure {
        roxmltree::Error::DuplicatedAttribute(name, _) => format!("duplicate attribute `{name}`"),
        roxmltree::Error::UnknownToken(_) => "unexpected content after the root element".to_owned(),
        _ => {
            let cut = message.rsplit_once(" at ").filter(|(_, place)| place.contains(':'));
            cut.map_or(&*message, |(reason, _)| reason).to_owned()
        }
    };
    let help = match failure {
        roxmltree::Error::DtdDetected => "remove the document type declaration: custom entities are not supported",
        roxmltree::Error::UnknownEntityReference(..) => "write `&amp;` for a literal `&`",
        roxmltree::Error::UnclosedRootNode | roxmltree::Error::UnexpectedCloseTag(..) => {
            "close each element with a matching end tag, or write it as `<name />`"
        }
        roxmltree::Error::DuplicatedAttribute(..) => "remove one of the two",
        roxmltree::Error::UnknownToken(_) => "write the metadata as a single `<directive>` element",
        _ => "in text, write `&lt;` for `<` and `&amp;` for `&`, or wrap the text in `<![CDATA[` and `]]>`",
    };
    error(Kind::InvalidXml, Span::new(at, at), reason).with_help(help)
}

/// The result of a scan: the text with opaque content blanked out, and the ranges of that content.
struct Scanned {
    masked: String,
    opaque: Vec<Range<usize>>,
}

struct Scan<'t> {
    text: &'t str,
    at: usize,
    opaque: Vec<Range<usize>>,
    masked: Vec<u8>,
}

impl Scan<'_> {
    fn run(mut self) -> Result<Scanned, Problem> {
        while let Some(found) = memchr::memchr(b'<', &self.text.as_bytes()[self.at..]) {
            self.at += found;
            let rest = &self.text[self.at..];
            if let Some(end) = skipped(rest) {
                self.at += end;
            } else if rest[1..].starts_with(|char: char| char.is_alphabetic() || char == '_') {
                self.tag()?;
            } else {
                self.at += 1;
            }
        }
        for range in &self.opaque {
            // Preserve line breaks, so that later positions remain correct.
            self.masked[range.clone()].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        }
        let masked = String::from_utf8(self.masked).unwrap_or_default();
        Ok(Scanned { masked, opaque: self.opaque })
    }

    /// Skips a start tag, and its content if that is opaque.
    fn tag(&mut self) -> Result<(), Problem> {
        let start = self.at;
        let rest = &self.text[start + 1..];
        let name = &rest[..rest.find(|c: char| c.is_whitespace() || matches!(c, '>' | '/')).unwrap_or(rest.len())];
        let (end, is_empty) = self.tag_end(start, name)?;
        self.at = end;
        if is_empty || !OPAQUE.contains(&name) {
            return Ok(());
        }
        let closing = format!("</{name}>");
        let Some(length) = self.text[end..].find(&closing) else {
            let message = format!("`<{name}>` is not closed");
            let help = "add the end tag: everything up to it is text";
            return Err(Problem { range: start..end, message, help });
        };
        self.opaque.push(end..end + length);
        self.at = end + length + closing.len();
        Ok(())
    }

    /// Returns the end of a start tag, and whether its element is empty.
    fn tag_end(&self, start: usize, name: &str) -> Result<(usize, bool), Problem> {
        let bytes = self.text.as_bytes();
        let (mut at, mut attributes) = (start + 1, 0);
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'>' => return Ok((at + 1, bytes[at - 1] == b'/')),
                b'"' | b'\'' => {
                    attributes += 1;
                    let length = memchr::memchr(byte, &bytes[at + 1..]).unwrap_or(bytes.len() - at - 1);
                    if length > MAX_ATTRIBUTE_BYTES || attributes > MAX_ATTRIBUTES {
                        let message = match attributes > MAX_ATTRIBUTES {
                            true => format!("`<{name}>` has more than {MAX_ATTRIBUTES} attributes"),
                            false => format!("an attribute of `<{name}>` is longer than {MAX_ATTRIBUTE_BYTES} bytes"),
                        };
                        let range = start..start + 1 + name.len();
                        return Err(Problem { range, message, help: "move the text into an element" });
                    }
                    at += length + 1;
                }
                _ => {}
            }
            at += 1;
        }
        Ok((bytes.len(), true))
    }
}

/// Returns the length of the comment, CDATA section or processing instruction at the start of a text.
fn skipped(text: &str) -> Option<usize> {
    [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")].into_iter().find_map(|(open, close)| {
        let inside = text.strip_prefix(open)?;
        Some(inside.find(close).map_or(text.len(), |at| open.len() + at + close.len()))
    })
}

struct Builder<'t> {
    text: &'t str,
    opaque: &'t [Range<usize>],
    offset: usize,
}

impl Builder<'_> {
    fn element(&self, node: Node<'_, '_>, depth: usize) -> Result<Element, Diagnostic> {
        let name = node.tag_name().name().to_owned();
        let start = node.range().start;
        let span = self.span(start..start + 1 + name.len());
        if depth == MAX_DEPTH {
            let message = format!("elements are nested more than {MAX_DEPTH} levels deep");
            return Err(error(Kind::InvalidXml, span, message).with_help("use a flatter structure"));
        }
        if node.tag_name().namespace().is_some() {
            // Other readers would interpret the element differently.
            let message = format!("`<{name}>` is in a namespace");
            return Err(
                error(Kind::InvalidXml, span, message).with_help("remove `xmlns`: namespaces are not supported")
            );
        }
        let attribute = |attribute: roxmltree::Attribute<'_, '_>| Attribute {
            name: attribute.name().to_owned(),
            value: attribute.value().to_owned(),
            span: self.span(attribute.range_value()),
        };
        let (text, text_span) = self.text(node, span);
        let children = node.children().filter(Node::is_element).map(|child| self.element(child, depth + 1));
        Ok(Element {
            attributes: node.attributes().map(attribute).collect(),
            children: children.collect::<Result<_, _>>()?,
            name,
            span,
            text,
            text_span,
            yaml: None,
        })
    }

    /// Returns the text of an element and its position.
    fn text(&self, node: Node<'_, '_>, span: Span) -> (String, Span) {
        let range = node.range();
        let first = self.opaque.partition_point(|opaque| opaque.start < range.start);
        let verbatim = self.opaque.get(first).filter(|opaque| opaque.end < range.end);
        let texts = || node.children().filter(Node::is_text);
        let (text, place) = match verbatim.filter(|_| OPAQUE.contains(&node.tag_name().name())) {
            Some(opaque) => (self.text[opaque.clone()].to_owned(), Some(opaque.clone())),
            None => {
                let place = texts().map(|text| text.range()).find(|range| !self.text[range.clone()].trim().is_empty());
                (texts().filter_map(|text| text.text()).collect::<String>(), place)
            }
        };
        let place = place.map_or(span, |range| {
            let inside = &self.text[range.clone()];
            let start = range.start + inside.len() - inside.trim_start().len();
            self.span(start..start + inside.trim().len())
        });
        (text.trim().to_owned(), place)
    }

    fn span(&self, range: Range<usize>) -> Span {
        Span::from(range).shifted(self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        parse(text, 0).expect_err("it is refused").message
    }

    #[test]
    fn opaque_elements_are_text() {
        let text = "<directive><template>a < b & <unclosed> é\n</template><raw/><x>1 &lt; 2</x></directive>";
        let root = parse(text, 100).expect("it is XML");
        assert_eq!(root.children[0].text, "a < b & <unclosed> é");
        assert_eq!(root.children[0].text_span.start, 100 + text.find("a <").expect("it is there"));
        assert_eq!(root.children[2].text, "1 < 2");
        assert_eq!(&text[root.children[2].text_span.range().start - 100..][..8], "1 &lt; 2");
    }

    #[test]
    fn attacks_are_refused_in_no_time() {
        let bomb = "<!DOCTYPE d [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><directive>&b;</directive>";
        assert!(message(bomb).contains("DTD"), "{}", message(bomb));
        let external = "<!DOCTYPE d [<!ENTITY a SYSTEM \"file:///etc/passwd\">]><directive>&a;</directive>";
        assert!(message(external).contains("DTD"));
        assert!(message("<directive>&a;</directive>").contains("entity"));
        let many: String = (0..400_000).map(|number| format!(" a{number}=''")).collect();
        assert!(message(&format!("<directive{many}/>")).contains("more than 64 attributes"));
        let huge = "x".repeat(4 << 20);
        assert!(message(&format!("<directive a='{huge}'/>")).contains("bytes"));
        let many = "<a/>".repeat(200_000);
        assert!(message(&format!("<directive>{many}</directive>")).contains("node"));
        let deep = format!("<directive>{}{}</directive>", "<a>".repeat(5_000), "</a>".repeat(5_000));
        assert!(message(&deep).contains("levels deep"));
        for unclosed in
            ["<directive>", "<directive", "<directive><a></directive>", "<directive a=\"", "<template>", "<"]
        {
            message(unclosed);
        }
    }
}

//! What the names in a Mustache template mean.
//!
//! A name is looked up in the sections around it, innermost first, and then among the inputs. So it is unknown only if
//! the declarations of all these sections are known, and none has it.

use tympan_core::spec::schema::PropertyKind;
use tympan_core::template::syntax::mustache::ast::{Node, NodeKind, Section};
use tympan_core::text::source::Span;

use super::known::{Known, is_closed, is_single, is_text, item_of, known_property};
use super::{Declarations, Names, UnknownAttribute};

/// Finds the attributes in a template that a declaration does not have.
pub(crate) fn scan_mustache<'p>(nodes: &[Node], source: &'p str, declarations: &Declarations<'_, 'p>) -> Names<'p> {
    let mut scan = Scan { source, declarations, sections: Vec::new(), names: Names::default() };
    scan.nodes(nodes);
    scan.names
}

struct Scan<'c, 'p> {
    source: &'p str,
    declarations: &'c Declarations<'c, 'p>,
    /// The sections around the current place that have a context, outermost first.
    sections: Vec<Context<'p>>,
    names: Names<'p>,
}

/// A value that names are looked up in.
#[derive(Clone, Copy)]
struct Context<'p> {
    known: Known<'p>,
    /// The expression of the value.
    text: &'p str,
    /// Whether it is an item of that value.
    is_item: bool,
}

impl<'p> Scan<'_, 'p> {
    fn nodes(&mut self, nodes: &[Node]) {
        for node in nodes {
            match &node.kind {
                NodeKind::Variable(name) => {
                    self.lookup(*name);
                }
                NodeKind::Section(section) => self.section(section),
                _ => {}
            }
        }
    }

    fn section(&mut self, section: &Section) {
        let value = self.lookup(section.name);
        if section.inverted {
            return self.nodes(&section.body);
        }
        let is_item = matches!(value, Known::Declared(list) if list.kind == PropertyKind::Array);
        let known = match value {
            Known::Declared(list) if is_item && is_single(list) => item_of(list),
            Known::Declared(_) if !is_item => value,
            _ => Known::Nothing,
        };
        self.sections.push(Context { known, text: &self.source[section.name.range()], is_item });
        self.nodes(&section.body);
        self.sections.pop();
    }

    /// Looks up the name of a tag, part by part, and returns what is known about its value.
    fn lookup(&mut self, name: Span) -> Known<'p> {
        let text = &self.source[name.range()];
        let mut end = 0;
        let mut owner = None;
        for part in text.split_inclusive('.') {
            let start = end;
            end += part.len();
            let part = part.strip_suffix('.').unwrap_or(part);
            let span = Span::new(name.start + start, name.start + start + part.len());
            let known = match (owner, part) {
                // A dot at the start is the innermost section or, outside of sections, all inputs.
                (None, "") => match self.sections.last() {
                    Some(section) => {
                        owner = Some(*section);
                        continue;
                    }
                    None => continue,
                },
                (Some(_), "") => continue,
                (None, first) => self.first(first, span),
                (Some(owner), part) => self.attribute(owner, part, span),
            };
            let text = &text[..start + part.len()];
            owner = Some(Context { known, text, is_item: false });
        }
        owner.map_or(Known::Nothing, |owner| owner.known)
    }

    /// Looks up the first part of a name.
    fn first(&mut self, name: &'p str, span: Span) -> Known<'p> {
        for section in self.sections.iter().rev() {
            let Known::Declared(declaration) = section.known else { return Known::Nothing };
            if let Some(found) = known_property(declaration, name) {
                return found;
            }
            if !is_closed(declaration) {
                return Known::Nothing;
            }
        }
        if let Some(input) = self.declarations.inputs.get(name) {
            let is_sure = !is_text(input) || self.declarations.strings.contains(name);
            return if is_sure { Known::Declared(input) } else { Known::Nothing };
        }
        // A section of a scalar has no attributes that could be meant.
        let is_object = |section: &&Context<'p>| matches!(section.known, Known::Declared(declaration) if declaration.kind == PropertyKind::Object);
        if let Some(section) = self.sections.iter().rev().find(is_object).copied() {
            self.report(section, name, span);
        }
        Known::Nothing
    }

    fn attribute(&mut self, owner: Context<'p>, name: &'p str, span: Span) -> Known<'p> {
        let Known::Declared(declaration) = owner.known else { return Known::Nothing };
        if let Some(found) = known_property(declaration, name) {
            return found;
        }
        if is_closed(declaration) {
            self.report(owner, name, span);
        }
        Known::Nothing
    }

    fn report(&mut self, owner: Context<'p>, name: &'p str, span: Span) {
        let Known::Declared(declaration) = owner.known else { return };
        let (text, of_item) = (&self.source[span.range()], owner.is_item);
        let owner = owner.text;
        self.names.unknown_attributes.push(UnknownAttribute { span, name, owner, of_item, text, declaration });
    }
}

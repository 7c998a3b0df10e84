//! The names of a Mustache template.

use tympan_core::spec::schema::{Property, PropertyKind};
use tympan_core::template::syntax::mustache::ast::{Node, NodeKind};
use tympan_core::text::source::Span;

/// A name that a template reads, without the members after its first dot.
#[derive(Clone, Debug)]
pub(crate) struct Read<'t> {
    pub(crate) name: &'t str,
    pub(crate) span: Span,
    /// The names of the enclosing sections, the outermost first.
    sections: Vec<&'t str>,
}

/// What a name inside sections refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    Input,
    /// A member of a section's value.
    Member,
    /// An input or a member, depending on the values.
    Either,
}

/// Returns the names that nodes read, including those in the end tags of sections.
pub(crate) fn reads<'t>(source: &'t str, nodes: &[Node]) -> Vec<Read<'t>> {
    let mut found = Vec::new();
    collect(source, nodes, &mut Vec::new(), &mut found);
    found
}

fn collect<'t>(source: &'t str, nodes: &[Node], sections: &mut Vec<&'t str>, found: &mut Vec<Read<'t>>) {
    let text = |span: Span| source.get(span.range()).unwrap_or_default();
    for node in nodes {
        match &node.kind {
            NodeKind::Variable(name) => found.extend(first(text(*name), name.start, sections)),
            NodeKind::Section(section) => {
                found.extend(first(text(section.name), section.name.start, sections));
                let end = section.end.and_then(|end| {
                    let at = text(end).find(text(section.name))?;
                    first(text(section.name), end.start + at, sections)
                });
                sections.push(text(section.name));
                collect(source, &section.body, sections, found);
                sections.pop();
                found.extend(end);
            }
            _ => {}
        }
    }
}

/// Returns the first part of a dotted name. Names that start with a dot are members of the enclosing section.
fn first<'t>(dotted: &'t str, start: usize, sections: &[&'t str]) -> Option<Read<'t>> {
    let name = dotted.split('.').next().filter(|name| !name.is_empty())?;
    Some(Read { name, span: Span::new(start, start + name.len()), sections: sections.to_vec() })
}

impl Read<'_> {
    /// Decides what the name refers to, by the declarations of the inputs.
    pub(crate) fn meaning(&self, inputs: &[Property]) -> Meaning {
        let mut meaning = Meaning::Input;
        for section in self.sections.iter().rev() {
            match value(section, inputs).map(item) {
                // The value is not declared, or its members are not.
                None => meaning = Meaning::Either,
                Some(item) if item.properties.iter().any(|member| member.name == self.name) => return Meaning::Member,
                Some(item) if may_have_members(item) => meaning = Meaning::Either,
                Some(_) => {}
            }
        }
        meaning
    }

    /// Returns the members of the enclosing sections' values.
    pub(crate) fn members<'p>(sections: &[&str], inputs: &'p [Property]) -> Vec<&'p Property> {
        sections.iter().filter_map(|section| value(section, inputs)).flat_map(|value| &item(value).properties).collect()
    }
}

/// Returns the declaration of a dotted name.
pub(crate) fn value<'p>(dotted: &str, inputs: &'p [Property]) -> Option<&'p Property> {
    let mut names = dotted.split('.');
    let first = names.next()?;
    let start = inputs.iter().find(|input| input.name == first)?;
    names.try_fold(start, |property, name| property.properties.iter().find(|member| member.name == name))
}

/// Returns the declaration of what a section renders: each item of a list, or the value.
fn item(property: &Property) -> &Property {
    property.items.as_deref().unwrap_or(property)
}

fn may_have_members(item: &Property) -> bool {
    matches!(item.kind, PropertyKind::Array | PropertyKind::Object) && item.properties.is_empty()
}

/// Returns the names of the sections that contain an offset, the outermost first.
pub(crate) fn sections_at<'t>(source: &'t str, nodes: &[Node], offset: usize) -> Vec<&'t str> {
    let (mut nodes, mut sections) = (nodes, Vec::new());
    while let Some(section) = nodes.iter().find_map(|node| match &node.kind {
        NodeKind::Section(section) if node.span.range().contains(&offset) && offset >= section.tag.end => Some(section),
        _ => None,
    }) {
        sections.push(source.get(section.name.range()).unwrap_or_default());
        nodes = &section.body;
    }
    sections
}

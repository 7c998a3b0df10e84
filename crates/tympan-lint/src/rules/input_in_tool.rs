//! Inputs in the descriptions of tools.

use tympan_core::diagnostic::Severity;
use tympan_core::format::outline::Field;

use crate::context::Context;
use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY307",
    name: "input_in_tool",
    group: Group::Trust,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports `{{ name }}` in the description of a tool or of its parameters, if it names an input.",
    why: "Descriptions are never rendered, so the model sees the braces. A program that renders them would let the \
        input write instructions.",
    example: "inputs: [{name: shop, kind: string}]\ntools:\n  - name: find_order\n    kind: function\n    \
        description: Finds an order of {{ shop }}",
    how_to_fix: "Write fixed text into the description, and pass the input in a message or bind it to a parameter.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    for tool in context.written_tools() {
        descriptions(tool, context, findings);
    }
}

fn descriptions(field: Field<'_>, context: &Context<'_>, findings: &mut Findings) {
    if let Some(text) = field.text().filter(|_| field.key == Some("description")) {
        let names = names_in_tags(text).filter(|name| context.is_input(name));
        findings.extend(names.map(|name| {
            let message = format!("the description of a tool refers to the input `{name}`, but is never rendered");
            Finding::new(&RULE, field.span, message).with_help("write fixed text, and pass the input in a message")
        }));
    }
    field.entries().chain(field.items()).for_each(|inner| descriptions(inner, context, findings));
}

/// Returns the names that the tags in a text begin with.
fn names_in_tags(text: &str) -> impl Iterator<Item = &str> {
    text.split("{{").skip(1).map(|tag| {
        let tag = tag.trim_start_matches(['-', '{', '&', '#', '^', ' ']);
        let end = tag.find(|char: char| !char.is_alphanumeric() && char != '_').unwrap_or(tag.len());
        &tag[..end]
    })
}

//! Parses how a prompt's template is rendered and split into messages.

use super::fields::{self, Fields, text, wrong};
use super::property::warn_misspelt;
use super::report::{Report, invalid};
use super::yaml::{Node, Value};
use crate::spec::TemplateSpec;

/// Reads `template`: the name of a format, or a map with the format and the parser.
pub(super) fn read_template(node: Node<'_>, report: &mut Report) -> TemplateSpec {
    let mut template = TemplateSpec::default();
    if text(&node).is_some() {
        template.format = fields::string(node, "template", report).unwrap_or(template.format);
        return template;
    }
    let Some(mut fields) = Fields::of(node, "template", report) else { return template };
    if let Some(entry) = fields.take_renamed("format", &["type"], "template.", report) {
        read_format(entry.value, &mut template, report);
    }
    if let Some(node) = fields.value("parser") {
        read_parser(node, &mut template, report);
    }
    template.strict |= fields.boolean("strict", report).unwrap_or_default();
    read_undefined(&mut fields, &mut template, report);
    warn_misspelt(&fields, &["format", "parser", "strict", "undefined"], report);
    template.extra = fields.rest();
    template
}

fn read_format(node: Node<'_>, template: &mut TemplateSpec, report: &mut Report) {
    let Some((kind, mut fields)) = kind_and_fields(node, "template.format", report) else { return };
    template.format = kind.unwrap_or_else(|| template.format.clone());
    template.strict |= fields.boolean("strict", report).unwrap_or_default();
    read_undefined(&mut fields, template, report);
    template.format_options = fields.rest();
    let nested = template.format_options.get("options").and_then(|options| options.get("undefined"));
    template.lenient |= nested.is_some_and(|value| value == "lenient");
}

fn read_parser(node: Node<'_>, template: &mut TemplateSpec, report: &mut Report) {
    let Some((kind, fields)) = kind_and_fields(node, "template.parser", report) else { return };
    template.parser = kind.unwrap_or_else(|| template.parser.clone());
    template.parser_options = fields.rest();
    if let Some(strict) = template.parser_options.get("strict") {
        template.strict |= strict == true;
    }
}

/// Reads a kind with options, which may also be written as the kind alone.
fn kind_and_fields<'s>(node: Node<'s>, what: &str, report: &mut Report) -> Option<(Option<String>, Fields<'s>)> {
    let span = node.span;
    match node.value {
        Value::Null => None,
        Value::String(kind) => Some((Some(kind.into_owned()), Fields::new(Vec::new(), span))),
        Value::Map(entries) => {
            let mut fields = Fields::new(entries, span);
            let entry = fields.take_renamed("kind", &["type"], &format!("{what}."), report);
            let kind = entry.and_then(|entry| fields::string(entry.value, "kind", report));
            Some((kind, fields))
        }
        _ => {
            report.push(wrong(&node, what, "a string or a map"));
            None
        }
    }
}

fn read_undefined(fields: &mut Fields<'_>, template: &mut TemplateSpec, report: &mut Report) {
    let Some(node) = fields.value("undefined") else { return };
    match text(&node) {
        Some("lenient") => template.lenient = true,
        Some("strict") => {}
        _ => report.push(invalid(node.span, "`undefined`: expected `strict` or `lenient`").with_help(
            "with `lenient`, undefined variables render as an empty string; with `strict`, the \
                    default, they are an error",
        )),
    }
}

//! Parses the tools that the model may call.

use std::borrow::Cow;
use std::collections::HashSet;

use super::fields::{self, Fields, text, text_node, wrong};
use super::model::read_connection;
use super::property::{read_properties, warn_misspelt};
use super::report::{Report, invalid};
use super::yaml::{Entry, Node, Value};
use crate::diagnostic::{Diagnostic, guess, guess_name, short};
use crate::spec::flow::{Effect, Hide, ToolFlow};
use crate::spec::schema::Property;
use crate::spec::{Binding, BindingValue, Tool, ToolKind};
use crate::text::source::Span;

/// Reads `tools`: a list, or a map from names to tools. Their bindings may refer to the inputs.
pub(super) fn read_tools(node: Node<'_>, inputs: &[Property], report: &mut Report) -> Vec<Tool> {
    let tools: Vec<Tool> = match node.value {
        Value::Null => Vec::new(),
        Value::List(items) => items.into_iter().filter_map(|item| read_tool(None, item, inputs, report)).collect(),
        Value::Map(entries) => entries
            .into_iter()
            .filter_map(|entry| read_tool(Some((entry.key.into_owned(), entry.key_span)), entry.value, inputs, report))
            .collect(),
        _ => {
            report.push_about_text(wrong(&node, "tools", "a list or a map"));
            Vec::new()
        }
    };
    let mut seen = HashSet::new();
    for tool in &tools {
        if !seen.insert(tool.name.as_str()) {
            report.push(
                invalid(tool.span.unwrap_or_default(), format_args!("tool `{}` is declared twice", tool.name))
                    .with_help("rename or remove one of the two"),
            );
        }
    }
    tools
}

fn read_tool(name: Option<(String, Span)>, node: Node<'_>, inputs: &[Property], report: &mut Report) -> Option<Tool> {
    let span = node.span;
    let mut fields = unwrap_function(Fields::of(node, "tool", report)?, report);
    let (name, place) = match name {
        Some(name) => name,
        None => read_name(&mut fields, span, report)?,
    };
    let kind = read_kind_name(&mut fields, &name, place, report)?;
    let description = fields.string("description", report);
    let bindings = fields.value("bindings").map_or_else(Vec::new, |node| read_bindings(node, inputs, report));
    let flow = read_flow(&mut fields, report);
    let kind = read_kind(&kind, &mut fields, report);
    if let Some(own) = keys(&kind) {
        warn_misspelt(&fields, &[&KEYS, own].concat(), report);
    }
    Some(Tool { name, description, kind, bindings, flow, extra: fields.rest().into(), span: Some(place) })
}

/// The keys of all tools.
const KEYS: [&str; 8] = ["name", "kind", "description", "bindings", "effect", "confidential", "hide", "idempotent"];

/// Returns the further keys of a kind of tool. Those of custom kinds are not known.
fn keys(kind: &ToolKind) -> Option<&'static [&'static str]> {
    match kind {
        ToolKind::Function { .. } => Some(&["parameters", "strict"]),
        ToolKind::Mcp { .. } => {
            Some(&["connection", "serverName", "approvalMode", "allowedTools", "prefix", "toolsHash"])
        }
        ToolKind::OpenApi { .. } => Some(&["connection", "specification", "operations", "prefix"]),
        ToolKind::Prompty { .. } => Some(&["path", "mode"]),
        ToolKind::Custom { .. } => None,
    }
}

/// Reads what a tool declares for the policy. Only a host can declare that results are trusted.
fn read_flow(fields: &mut Fields<'_>, report: &mut Report) -> ToolFlow {
    if let Some(entry) = fields.take("trusted") {
        report.push(
            Diagnostic::warning("trusted_result", entry.key_span, "a prompt cannot declare results as trusted")
                .with_help("remove `trusted`; the application or its tools file declares it"),
        );
    }
    ToolFlow {
        effect: read_word(fields, "effect", Effect::from_name, &Effect::ALL.map(Effect::as_str), report),
        confidential: fields.boolean("confidential", report),
        hide: read_word(fields, "hide", Hide::from_name, &Hide::ALL.map(Hide::as_str), report),
        ..ToolFlow::default()
    }
}

/// Reads a field whose value is one of a few words.
fn read_word<T>(
    fields: &mut Fields<'_>,
    key: &str,
    from_name: impl Fn(&str) -> Option<T>,
    known: &[&str],
    report: &mut Report,
) -> Option<T> {
    let node = fields.value(key)?;
    let word = text(&node).and_then(from_name);
    if word.is_none() {
        let meant = text(&node).and_then(|word| guess(word, known.iter().copied()));
        let meant = meant.map_or_else(String::new, |meant| format!("did you mean `{meant}`? "));
        let help = format!("{meant}write one of: {}", known.join(", "));
        report.push(invalid(node.span, format_args!("unknown {key} `{}`", node.quote())).with_help(help));
    }
    word
}

fn read_name(fields: &mut Fields<'_>, span: Span, report: &mut Report) -> Option<(String, Span)> {
    let Some(entry) = fields.take_renamed("name", &["id"], "tool.", report) else {
        report.push(invalid(span, "this tool has no name").with_help("add a `name`"));
        return None;
    };
    let place = entry.value.span;
    Some((fields::string(entry.value, "name", report)?, place))
}

/// Flattens a tool in OpenAI's wire format, which nests the fields of a function one level deeper.
fn unwrap_function<'s>(mut fields: Fields<'s>, report: &mut Report) -> Fields<'s> {
    if !matches!(fields.get("function"), Some(Entry { value: Node { value: Value::Map(_), .. }, .. })) {
        return fields;
    }
    let span = fields.span;
    let Some(entry) = fields.take("function") else { return fields };
    let kind = fields.take("type").or_else(|| fields.take("kind"));
    report.moved(
        kind.map_or(entry.key_span, |kind| kind.key_span),
        "`{type: function, function: {…}}`",
        "write `kind: function` next to the fields of the function: `{name: …, kind: function, parameters: […]}`",
    );
    let mut entries = vec![Entry { key: "kind".into(), key_span: span, value: text_node("function", span) }];
    if let Value::Map(inner) = entry.value.value {
        entries.extend(inner);
    }
    entries.extend(fields.into_entries());
    Fields::new(entries, span)
}

fn read_kind_name(fields: &mut Fields<'_>, name: &str, span: Span, report: &mut Report) -> Option<String> {
    if let Some(entry) = fields.take_renamed("kind", &["type"], "tool.", report) {
        return fields::string(entry.value, "kind", report);
    }
    let telling =
        [("parameters", "function"), ("specification", "openapi"), ("serverName", "mcp"), ("path", "prompty")];
    let Some((key, kind)) = telling.into_iter().find(|(key, _)| fields.has(key)) else {
        report.push(
            invalid(span, format_args!("tool `{name}` has no kind"))
                .with_help("add a `kind`: function, mcp, openapi, prompty or a custom kind"),
        );
        return None;
    };
    report.push(
        Diagnostic::warning("missing_kind", span, format!("tool `{name}` has no kind; `{key}` implies {kind}"))
            .with_help(format!("add `kind: {kind}`")),
    );
    Some(kind.to_owned())
}

fn read_kind(kind: &str, fields: &mut Fields<'_>, report: &mut Report) -> ToolKind {
    let mut connection =
        |fields: &mut Fields<'_>| fields.take("connection").and_then(|entry| read_connection(entry, report));
    match kind {
        "function" => ToolKind::Function {
            parameters: fields
                .value("parameters")
                .map_or_else(Vec::new, |node| read_properties(node, "parameter", report)),
            strict: fields.boolean("strict", report),
        },
        "mcp" => ToolKind::Mcp {
            connection: connection(fields),
            server_name: fields.string("serverName", report),
            approval_mode: fields.value("approvalMode").map(Node::into_json),
            allowed_tools: fields.value("allowedTools").and_then(|node| fields::strings(node, "allowedTools", report)),
        },
        "openapi" => ToolKind::OpenApi {
            connection: connection(fields),
            specification: fields.value("specification").map(Node::into_json),
        },
        "prompty" => ToolKind::Prompty { path: fields.string("path", report), mode: read_mode(fields, report) },
        _ => ToolKind::Custom {
            kind: kind.to_owned(),
            connection: connection(fields),
            options: fields
                .value("options")
                .and_then(|node| Fields::of(node, "options", report))
                .map(Fields::rest)
                .unwrap_or_default()
                .into(),
        },
    }
}

fn read_mode(fields: &mut Fields<'_>, report: &mut Report) -> Option<String> {
    let node = fields.value("mode")?;
    if !matches!(text(&node), Some("single" | "agentic")) {
        report.push(invalid(node.span, format_args!("unknown mode `{}` of a prompty tool", node.quote())).with_help(
            "write `single` for one model call, or `agentic` for a loop with the tools of the other \
                    prompt",
        ));
        return None;
    }
    fields::string(node, "mode", report)
}

/// Reads bindings: a map from parameters to values, or a list of `{name, input}`.
fn read_bindings(node: Node<'_>, inputs: &[Property], report: &mut Report) -> Vec<Binding> {
    match node.value {
        Value::Map(entries) => entries
            .into_iter()
            .map(|entry| {
                let value = read_binding(entry.value, inputs, report);
                Binding { parameter: entry.key.into_owned(), value }
            })
            .collect(),
        Value::List(items) => items.into_iter().filter_map(|item| read_listed_binding(item, report)).collect(),
        _ => {
            report.push_about_text(wrong(&node, "bindings", "a map"));
            Vec::new()
        }
    }
}

/// Reads the value of a binding: `{input: name}`, or only the name of an input, refers to the input. Anything else is
/// the value itself.
fn read_binding(node: Node<'_>, inputs: &[Property], report: &mut Report) -> BindingValue {
    if let Value::Map(entries) = &node.value
        && let [Entry { key, value, .. }] = entries.as_slice()
        && key == "input"
        && let Some(name) = text(value)
    {
        return BindingValue::Input(name.to_owned());
    }
    // Text that is not borrowed may come from the environment or from a file. Such a value is never a name.
    if let Value::String(Cow::Borrowed(word)) = node.value {
        if inputs.iter().any(|input| input.name == word) {
            return BindingValue::Input(word.to_owned());
        }
        if let Some(near) = guess_name(word, inputs.iter().map(|input| input.name.as_str())) {
            let message = format!("input `{}` is not declared, so the tool receives this text", short(word));
            let finding = Diagnostic::warning("unknown_input", node.span, message);
            report.push(finding.with_help(format!("did you mean the input `{near}`?")));
        }
    }
    BindingValue::Static(node.into_json())
}

fn read_listed_binding(node: Node<'_>, report: &mut Report) -> Option<Binding> {
    let span = node.span;
    let mut fields = Fields::of(node, "binding", report)?;
    let Some(parameter) = fields.string("name", report) else {
        report.push(invalid(span, "this binding has no name").with_help("add the name of the parameter as `name`"));
        return None;
    };
    let value = match (fields.string("input", report), fields.value("value")) {
        (Some(input), _) => BindingValue::Input(input),
        (None, Some(value)) => BindingValue::Static(value.into_json()),
        (None, None) => {
            report.push(
                invalid(span, format_args!("binding of `{parameter}` has neither `input` nor `value`"))
                    .with_help("add the name of an input as `input`, or a fixed value as `value`"),
            );
            return None;
        }
    };
    Some(Binding { parameter, value })
}

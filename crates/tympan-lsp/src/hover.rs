//! What editors show about the name under the cursor.

use std::fmt::Write;

use gen_lsp_types::{Hover, MarkupContent, MarkupKind};
use tympan_core::format::outline::Field;
use tympan_core::spec::role::Role;
use tympan_core::spec::schema::Property;
use tympan_core::spec::{DEFAULT_VARIANT, PromptKind};
use tympan_core::template::flow::How;
use tympan_core::template::name_use::NameKind;
use tympan_core::template::syntax::SyntaxTree;
use tympan_core::text::source::Span;
use tympan_lint::{InputReach, Target, reach_as_far_as_possible};

use crate::catalog;
use crate::estimate::tokens;
use crate::keys::{self, ITEM};
use crate::names::Names;
use crate::suite;
use crate::symbol::Symbol;
use crate::template::touches;
use crate::view::View;

/// Returns the description of what is at an offset.
pub(crate) fn hover(view: &View<'_>, offset: usize) -> Option<Hover> {
    let (text, span) = symbol(view, offset).or_else(|| role_marker(view, offset)).or_else(|| key(view, offset))?;
    let contents = MarkupContent { kind: MarkupKind::Markdown, value: text };
    Some(Hover { contents: contents.into(), range: Some(view.document.range(span)) })
}

fn symbol(view: &View<'_>, offset: usize) -> Option<(String, Span)> {
    let (symbol, span) = view.symbol_at(offset)?;
    let text = match symbol {
        Symbol::Input(name) => input(view, &name),
        Symbol::Local { template, definition } => local(view, template, definition)?,
        Symbol::Builtin(kind, name) => builtin(kind, &name)?,
        Symbol::Member(property) => declaration("member", property, true),
    };
    Some((text, span))
}

/// Describes an input: its declaration, and where it goes.
pub(crate) fn input(view: &View<'_>, name: &str) -> String {
    let noun = view.noun();
    let mut text = match view.input(name) {
        Some(property) => declaration(noun, property, false),
        None => format!("**{noun}** `{name}`, which is not declared\n\nUntrusted"),
    };
    let destinations = destinations(view, name);
    if !destinations.is_empty() {
        text.push_str("\n\nGoes to:");
        destinations.iter().for_each(|destination| text.push_str(&format!("\n- {destination}")));
    } else if view.input(name).is_some() && is_known(view) {
        text.push_str("\n\nNot used by any message");
    }
    text
}

/// Returns whether all messages of a prompt are known.
fn is_known(view: &View<'_>) -> bool {
    view.prompt.only_role().is_ok() && view.templates.iter().all(|template| template.analysis.template().is_ok())
}

/// Describes a declared value.
fn declaration(noun: &str, property: &Property, is_member: bool) -> String {
    let kinds = if property.kinds.is_empty() { vec![property.kind] } else { property.kinds.clone() };
    let mut kind = kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(" or ");
    if let Some(items) = &property.items {
        let _ = write!(kind, " of {}", items.kind.as_str());
    }
    let mut text = format!("**{noun}** `{}`: {kind}", property.name);
    if property.nullable {
        text.push_str(" or null");
    }
    if let Some(description) = &property.description {
        let _ = write!(text, "\n\n{description}");
    }
    match &property.default {
        Some(default) => {
            let _ = write!(text, "\n\nDefault: `{}`", short(&default.to_string()));
        }
        None if property.required == Some(true) => text.push_str("\n\nRequired"),
        None => text.push_str("\n\nOptional"),
    }
    if let Some(values) = &property.enum_values {
        let values: Vec<_> = values.iter().map(|value| format!("`{}`", short(&value.to_string()))).collect();
        let _ = write!(text, "\n\nAllowed: {}", values.join(", "));
    }
    if !is_member {
        text.push_str(if property.trusted { "\n\nTrusted: its text counts as the author's" } else { "\n\nUntrusted" });
    }
    text
}

/// Returns a text of bounded length, without line breaks and back quotes.
fn short(text: &str) -> String {
    let one_line: String = text.chars().map(|char| if char == '`' || char.is_control() { ' ' } else { char }).collect();
    match one_line.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &one_line[..end]),
        None => one_line,
    }
}

/// Returns where an input goes: the messages that it reaches and how, and the parameters of tools that it is bound to.
fn destinations(view: &View<'_>, name: &str) -> Vec<String> {
    let map = reach_as_far_as_possible(view.prompt);
    let line = |span: Span| view.document.position(span.start).line + 1;
    let messages = map.messages.iter().flat_map(|message| {
        let reached = message.inputs.iter().filter(|input| input.input == name);
        reached.map(move |input| (message, input))
    });
    let messages = messages.map(|(message, input)| {
        let mut text = match &message.target {
            Target::Role(role) => format!("{} message", role.as_str()),
            Target::Thread(_) => "messages of the thread".to_owned(),
            _ => "messages of any role, as the template assembles role markers".to_owned(),
        };
        if message.template != DEFAULT_VARIANT {
            let _ = write!(text, " of variant `{}`", message.template);
        }
        match (message.span, &message.target) {
            (Some(span), _) => {
                let _ = write!(text, " (line {})", line(span));
            }
            (None, Target::Thread(_)) => text.push_str(", after all others"),
            (None, _) => {}
        }
        if !matches!(message.target, Target::Thread(_)) {
            let _ = write!(text, ": {}", ways(input).join(", "));
        }
        text
    });
    let bound = map.bindings.iter().filter(|binding| binding.input == name);
    let bound = bound.map(|binding| {
        let at = binding.span.map(|span| format!(" (line {})", line(span))).unwrap_or_default();
        format!("parameter `{}` of tool `{}`{at}", binding.parameter, binding.tool)
    });
    messages.chain(bound).collect()
}

/// Returns all ways in which an input reaches a message, the strongest first.
fn ways(input: &InputReach) -> Vec<&'static str> {
    let mut ways: Vec<_> = input.places.iter().map(|place| way(place.how)).collect();
    ways.dedup();
    if input.in_marker {
        ways.push("in the role marker");
    }
    ways
}

fn way(how: How) -> &'static str {
    match how {
        How::Text => "as text",
        How::Filtered => "through a filter",
        How::Decides => "decides what is written",
    }
}

fn local(view: &View<'_>, template: usize, definition: usize) -> Option<String> {
    let template = &view.templates[template];
    let Some(SyntaxTree::Jinja(parsed)) = &template.tree else { return None };
    let names = Names::new(template.source(), &parsed.body);
    let definition = names.definitions.get(definition)?;
    let mut text = format!("**{}** `{}`", definition.kind.as_str(), definition.name);
    let declared = names.declaration(&[definition.name], definition.span.end, view.inputs());
    if let Some(property) = declared.or_else(|| {
        let (_, reads) = names.of_variable(definition);
        names.declaration(&[definition.name], reads.first()?.start, view.inputs())
    }) {
        let _ = write!(text, ": {}", property.kind.as_str());
        if let Some(description) = &property.description {
            let _ = write!(text, "\n\n{description}");
        }
    }
    let sources = names.sources(definition);
    let sources: Vec<_> = sources.into_iter().filter(|name| view.input(name).is_some()).collect();
    if !sources.is_empty() {
        let trust =
            |name: &str| if view.input(name).is_some_and(|input| input.trusted) { "trusted" } else { "untrusted" };
        let listed: Vec<_> = sources.iter().map(|name| format!("`{name}` ({})", trust(name))).collect();
        let _ = write!(text, "\n\nFrom {} {}", view.noun(), listed.join(", "));
    }
    Some(text)
}

/// Describes a name of the template language.
fn builtin(kind: NameKind, name: &str) -> Option<String> {
    let entry = catalog::find(kind, name)?;
    let noun = match kind {
        NameKind::Filter => "filter",
        NameKind::Test => "test",
        NameKind::Function => "function",
    };
    Some(format!("**{noun}** `{}`\n\n{}", entry.usage, entry.about))
}

fn role_marker(view: &View<'_>, offset: usize) -> Option<(String, Span)> {
    let (template, offset) = view.template_at(offset)?;
    let messages = template.analysis.messages();
    let message = messages.iter().find(|message| message.marker.is_some_and(|marker| touches(marker, offset)))?;
    let span = template.file_span(message.marker?)?;
    let count = tokens(template.text(message.content));
    let about = about_role(message.role);
    Some((format!("**{} message**\n\n{about}\n\n≈ {count} tokens, without inputs", message.role.as_str()), span))
}

/// Describes a role.
pub(crate) fn about_role(role: Role) -> &'static str {
    match role {
        Role::System => "Instructions from the application.",
        Role::Developer => "Instructions from the developer: the newer name for `system` at some providers.",
        Role::User => "What the user says.",
        Role::Assistant => "What the model says.",
        Role::Tool => "The result of a tool call.",
    }
}

fn key(view: &View<'_>, offset: usize) -> Option<(String, Span)> {
    let mut path = Vec::new();
    let span = key_path(view.outline.get(&[])?, offset, &mut path)?;
    match keys::find(&path, view.prompt.kind() == PromptKind::Definition) {
        Some(key) => Some((format!("**{}**\n\n{}", key.name, key.about), span)),
        None => Some((suite::features::about_path(&path)?, span)),
    }
}

/// Finds the key at an offset, and the path to it.
fn key_path<'o>(field: Field<'o>, offset: usize, path: &mut Vec<&'o str>) -> Option<Span> {
    for part in field.entries().chain(field.items()) {
        path.push(part.key.unwrap_or(ITEM));
        if part.key.is_some() && touches(part.key_span, offset) {
            return Some(part.key_span);
        }
        if touches(part.span, offset)
            && let Some(span) = key_path(part, offset, path)
        {
            return Some(span);
        }
        path.pop();
    }
    None
}

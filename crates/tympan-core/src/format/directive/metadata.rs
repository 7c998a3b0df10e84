//! Converts metadata elements to the declarations of a directive.

use serde_json::Number;

use super::capability::{Capability, ITEM_TYPES};
use super::document::{Context, Cost, Directive, DirectiveModel, Hook};
use super::element::{Element, Text, Yaml};
use super::property::{read_inputs, read_outputs};
use super::xml::OPAQUE;
use crate::diagnostic::{Diagnostic, guess};
use crate::error::Kind;
use crate::format::report::{Report, error};
use crate::format::yaml::scalar;
use crate::json::JsonMap;
use crate::text::source::Span;

/// The elements that `metadata` may contain.
const METADATA: [&str; 9] =
    ["description", "category", "author", "model", "limits", "permissions", "cost", "context", "hooks"];
/// The elements that a directive may contain.
const SECTIONS: [&str; 3] = ["metadata", "inputs", "outputs"];
/// The elements of later Rye versions that are stored. Most of them are for the program that runs the directive.
const LATER: [&str; 3] = ["extends", "continuation", "requires"];
/// The elements of `context` that name knowledge for the prompt.
const KNOWLEDGE: [&str; 3] = ["system", "before", "after"];

/// Reads the declarations of a directive. In YAML, all of them are at the top level, or some are under `metadata`.
pub(super) fn read(root: &Element, report: &mut Report) -> Directive {
    let metadata = root.child("metadata");
    let find = |name: &str| metadata.and_then(|metadata| metadata.child(name)).or_else(|| root.child(name));
    let text = |name: &str| {
        let inside = metadata.and_then(|metadata| metadata.text_of(name));
        inside.or_else(|| root.text_of(name))
    };
    // In XML, these two are attributes of the root, which take precedence over elements with the same name.
    let own = |name: &str| root.text_of(name).or_else(|| text(name));
    report_twins(root, metadata, report);
    let mut directive = Directive {
        name: own("name"),
        version: own("version"),
        description: text("description"),
        category: text("category"),
        author: text("author"),
        model: find("model").map(read_model),
        limits: find("limits").map(|element| read_limits(element, report)).unwrap_or_default(),
        permissions: read_permissions(find("permissions"), find("requires"), report),
        cost: find("cost").map(|element| read_cost(element, report)),
        context: find("context").map(read_context),
        hooks: find("hooks").map(|element| read_hooks(element, report)).unwrap_or_default(),
        inputs: root.child("inputs").map(|element| read_inputs(element, report)).unwrap_or_default(),
        outputs: root.child("outputs").map(|element| read_outputs(element, report)).unwrap_or_default(),
        ..Directive::default()
    };
    report_not_applied(root, find("continuation"), find("context"), find("extends"), report);
    directive.extra = unknown(root, metadata, report);
    directive
}

/// Reports metadata that changes the prompt in Rye and that Tympan only stores.
fn report_not_applied(
    root: &Element,
    continuation: Option<&Element>,
    context: Option<&Element>,
    extends: Option<&Element>,
    report: &mut Report,
) {
    let mut push = |span, name: &str, what: &str, help: &str| {
        let message = format!("`{name}` is stored but not applied: {what}");
        report.push(Diagnostic::warning("not_applied", span, message).with_help(help));
    };
    let parent = root.attributes.iter().find(|attribute| attribute.name == "extends");
    let parent = parent.map(|parent| (parent.span, !parent.value.trim().is_empty()));
    let parent = parent.or(extends.map(|extends| (extends.span, has_content(extends))));
    if let Some((span, true)) = parent {
        let help = "copy what the directive needs from the other one into this file";
        push(span, "extends", "nothing is inherited from another directive", help);
    }
    for element in context.into_iter().flat_map(|context| &context.children) {
        if KNOWLEDGE.contains(&element.name.as_str()) && has_content(element) {
            let help = "write the text in the steps, or pass it as an input";
            let what = "no knowledge is added to the prompt";
            push(element.span, &format!("context.{}", element.name), what, help);
        }
    }
    if let Some(element) = continuation.filter(|element| has_content(element)) {
        let help = "the program that runs the directive has to continue it";
        push(element.span, "continuation", "a turn ends when its context is full", help);
    }
}

/// Returns whether an element says anything: `false`, `null` and blank text do not.
fn has_content(element: &Element) -> bool {
    !element.attributes.is_empty() || !element.children.is_empty() || !matches!(element.text.trim(), "" | "false")
}

/// Reports sections that occur twice, because it is unclear which one counts.
fn report_twins(root: &Element, metadata: Option<&Element>, report: &mut Report) {
    let inside = metadata.into_iter().flat_map(|metadata| &metadata.children);
    let mut seen: Vec<&str> = Vec::new();
    for element in inside.chain(&root.children) {
        let name = element.name.as_str();
        if !METADATA.contains(&name) && !SECTIONS.contains(&name) {
            continue;
        }
        if seen.contains(&name) {
            let finding = error(Kind::InvalidDirective, element.span, format_args!("duplicate element `{name}`"));
            report.push(finding.with_help("merge the two"));
        }
        seen.push(name);
    }
}

/// Collects unknown elements and attributes, and reports elements that are unknown or misplaced.
fn unknown(root: &Element, metadata: Option<&Element>, report: &mut Report) -> JsonMap {
    let mut extra = JsonMap::new();
    let is_known = |name: &str| METADATA.contains(&name) || name == "name" || name == "version";
    let is_stored = |name: &str| OPAQUE.contains(&name) || LATER.contains(&name);
    for element in metadata.into_iter().flat_map(|metadata| &metadata.children).filter(|child| !is_known(&child.name)) {
        if !is_stored(&element.name) {
            report.push(unknown_element(element, METADATA));
        }
        extra.insert(element.name.clone(), element.to_json());
    }
    for element in &root.children {
        let is_misplaced = !root.is_yaml() && METADATA.contains(&element.name.as_str());
        if SECTIONS.contains(&element.name.as_str()) || (root.is_yaml() && is_known(&element.name)) {
            continue;
        }
        if is_misplaced {
            let message = format!("`<{}>` belongs in `<metadata>`", element.name);
            let warning = Diagnostic::warning("misplaced_element", element.span, message);
            report.push(warning.with_help("move it there; it takes effect in either place"));
            continue;
        }
        if !is_stored(&element.name) {
            report.push(unknown_element(element, SECTIONS));
        }
        extra.insert(element.name.clone(), element.to_json());
    }
    let known = ["name", "version"];
    for attribute in root.attributes.iter().filter(|attribute| !known.contains(&attribute.name.as_str())) {
        extra.insert(attribute.name.clone(), attribute.value.clone().into());
    }
    extra
}

fn unknown_element<const N: usize>(element: &Element, known: [&str; N]) -> Diagnostic {
    let name = &element.name;
    let help = match guess(name, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known elements: {}", known.join(", ")),
    };
    Diagnostic::warning("unknown_element", element.span, format!("unknown element `{name}`, stored but not used"))
        .with_help(help)
}

fn read_model(element: &Element) -> DirectiveModel {
    // In YAML, `model: fast` sets the tier.
    let tier = element.text_of("tier").or_else(|| {
        let is_plain = element.is_yaml() && element.children.is_empty() && !element.text.is_empty();
        is_plain.then(|| element.text.clone())
    });
    let description = Some(element.text.clone()).filter(|text| !text.is_empty() && tier.as_ref() != Some(text));
    DirectiveModel {
        description,
        tier,
        id: element.text_of("id"),
        fallback: element.text_of("fallback"),
        fallback_id: element.text_of("fallback_id"),
    }
}

/// Reads limits by their short names: `max_turns` is the same as `turns`.
fn read_limits(element: &Element, report: &mut Report) -> Vec<(String, Number)> {
    let attributes = element
        .attributes
        .iter()
        .map(|attribute| (attribute.name.as_str(), Text { text: &attribute.value, span: attribute.span }));
    let children = element.children.iter().map(|child| (child.name.as_str(), child.as_text()));
    let limits = attributes.chain(children).filter(|(name, _)| !name.is_empty());
    let short = |name: &str| name.strip_prefix("max_").unwrap_or(name).to_owned();
    limits.filter_map(|(name, text)| Some((short(name), read_limit(name, text, report)?))).collect()
}

/// Reads a limit. An invalid number is an error, because the directive would otherwise run without that limit.
fn read_limit(name: &str, text: Text<'_>, report: &mut Report) -> Option<Number> {
    let number = scalar::number(text.text.trim());
    if number.is_none() {
        let finding = error(Kind::InvalidDirective, text.span, format_args!("limit `{name}`: expected a number"));
        report.push(finding.with_help("write a number such as `6` or `0.5`"));
    }
    number
}

/// Reads a number. Anything else is reported and ignored.
fn read_number(name: &str, text: Text<'_>, report: &mut Report) -> Option<Number> {
    let number = scalar::number(text.text.trim());
    if number.is_none() {
        let message = format!("`{name}`: expected a number, so the value is ignored");
        let finding = Diagnostic::warning("not_a_number", text.span, message);
        report.push(finding.with_help("write a number such as `6` or `0.5`"));
    }
    number
}

fn read_cost(element: &Element, report: &mut Report) -> Cost {
    let context = element.child("context");
    let mut number = |parent: Option<&Element>, name: &str| {
        let text = parent?.field(name).filter(|text| !text.text.trim().is_empty())?;
        read_number(name, text, report)
    };
    let (turns, spawn_threshold) = (number(context, "turns"), number(context, "spawn_threshold"));
    let duration = number(Some(element), "duration");
    let spend = number(Some(element), "spend");
    // In XML, the text of `context` is the number of tokens.
    let tokens = context.map(|context| context.field("tokens").unwrap_or(context.as_text()));
    let tokens = tokens.filter(|tokens| !tokens.text.is_empty()).and_then(|text| read_number("context", text, report));
    Cost {
        tokens,
        turns,
        spawn_threshold,
        duration,
        spend,
        estimated_usage: context.and_then(|context| context.text_of("estimated_usage")),
        currency: element.child("spend").and_then(|spend| spend.text_of("currency")),
    }
}

/// Reads the context. Lists are written in XML as lines that start with a dash. Elements other than the known lists are
/// relations.
fn read_context(element: &Element) -> Context {
    let list = |child: &Element| -> Vec<String> {
        let items = child.children.iter().map(|item| item.text.clone());
        let lines = child.text.lines().map(|line| line.trim().trim_start_matches("- ").trim().to_owned());
        items.chain(lines).filter(|item| !item.is_empty()).collect()
    };
    let mut context = Context::default();
    for child in &element.children {
        match child.name.as_str() {
            "related_files" => context.related_files.extend(list(child)),
            "dependencies" => context.dependencies.extend(list(child)),
            // Older directives group the relations in a separate element.
            "relationships" => {
                let relations = child.children.iter().map(|relation| (relation.name.clone(), relation.text.clone()));
                context.relations.extend(relations);
            }
            name => context.relations.extend(list(child).into_iter().map(|target| (name.to_owned(), target))),
        }
    }
    context
}

/// Reads permissions: nested elements, a list of capability strings, or `*` for everything. Later Rye versions list them
/// as required capabilities.
fn read_permissions(permissions: Option<&Element>, requires: Option<&Element>, report: &mut Report) -> Vec<Capability> {
    let mut found = Vec::new();
    if let Some(element) = permissions {
        if !element.text.is_empty() {
            add(&mut found, element.as_text(), any_or_parsed(&element.text), &element.text, report);
        }
        for action in &element.children {
            let is_capability = action.name.is_empty() || action.name == "cap" || action.name == "capability";
            match is_capability {
                true => add(&mut found, action.as_text(), any_or_parsed(&action.text), &action.text, report),
                false => read_action(action, &mut found, report),
            }
        }
    }
    let declared = requires.and_then(|requires| requires.child("capabilities")?.child("declared"));
    for item in declared.into_iter().flat_map(|declared| &declared.children) {
        add(&mut found, item.as_text(), any_or_parsed(&item.text), &item.text, report);
    }
    found
}

fn any_or_parsed(text: &str) -> Result<Capability, String> {
    if text == "*" { Ok(Capability::everything()) } else { text.parse() }
}

fn read_action(action: &Element, found: &mut Vec<Capability>, report: &mut Report) {
    if !action.text.is_empty() {
        add_item(action, "", action.as_text(), found, report);
    } else if action.children.is_empty() {
        read_empty_action(action, found, report);
    }
    for item in &action.children {
        // In YAML, a type may have a list of items.
        let is_list = item.children.iter().all(|child| child.name.is_empty()) && !item.children.is_empty();
        let items = if is_list { item.children.iter().collect() } else { vec![item] };
        for each in items {
            add_item(action, &item.name, each.as_text(), found, report);
        }
    }
}

fn read_empty_action(action: &Element, found: &mut Vec<Capability>, report: &mut Report) {
    let name = &action.name;
    let mut finding = match action.attributes.is_empty() {
        // The attributes are all that such a permission says.
        false => {
            found.push(Capability::unknown(start_tag(action)));
            unknown_permission(action.span, &format!("`{name}` does not name any items"))
        }
        // An empty list says that nothing is granted.
        true if action.yaml == Some(Yaml::List) => return,
        true => {
            let message = format!("`{name}` does not name any items, so it grants nothing");
            Diagnostic::warning("unknown_permission", action.span, message)
        }
    };
    let types = ITEM_TYPES.join(", ");
    finding.help =
        Some(format!("name items, as in `<tool>rye/bash/*</tool>`, or write `*`; the item types are {types}"));
    report.push(finding);
}

/// Adds an item of an action: `*`, a name if the type is known, a type and a name as in `tool:rye/bash`, or a full
/// capability.
fn add_item(action: &Element, item_type: &str, item: Text<'_>, found: &mut Vec<Capability>, report: &mut Report) {
    let action = action.name.as_str();
    let (item_type, name) = match item.text.split_once(':') {
        Some((item_type, name)) if ITEM_TYPES.contains(&item_type.trim()) => (item_type.trim(), name.trim()),
        _ => (item_type, item.text),
    };
    let is_full = ["rye", "ryeos"].into_iter().any(|product| name.starts_with(&format!("{product}.{action}.")));
    let (capability, written) = match item_type {
        _ if is_full => (name.parse(), name.to_owned()),
        "" if name == "*" => (Capability::any_of(action), format!("rye.{action}.*")),
        "" => (Err(format!("`{name}` does not name a type and an item")), format!("rye.{action}.{name}")),
        _ => (Capability::new(action, item_type, name), format!("rye.{action}.{item_type}.{name}")),
    };
    add(found, item, capability, &written, report);
}

/// Adds a capability. One that is not understood is kept as it is written, because other programs may understand it.
fn add(
    found: &mut Vec<Capability>,
    place: Text<'_>,
    capability: Result<Capability, String>,
    written: &str,
    report: &mut Report,
) {
    let capability = capability.unwrap_or_else(|reason| {
        report.push(unknown_permission(place.span, &reason));
        Capability::unknown(written)
    });
    if !found.contains(&capability) {
        found.push(capability);
    }
}

fn unknown_permission(span: Span, reason: &str) -> Diagnostic {
    Diagnostic::warning("unknown_permission", span, format!("permission is stored but never granted: {reason}"))
        .with_help("write `rye.<action>.<type>.<item>`, as in `rye.execute.tool.rye.file-system.*`")
}

fn start_tag(element: &Element) -> String {
    let attributes = element.attributes.iter().map(|attribute| format!(" {}=\"{}\"", attribute.name, attribute.value));
    format!("<{}{}>", element.name, attributes.collect::<String>())
}

fn read_hooks(element: &Element, report: &mut Report) -> Vec<Hook> {
    element.children.iter().map(|hook| read_hook(hook, report)).collect()
}

fn read_hook(element: &Element, report: &mut Report) -> Hook {
    // Later versions use `action` for the item to run.
    let run = ["execute", "directive", "action"].into_iter().find_map(|name| element.child(name));
    let execute = run.map(|run| {
        let default = if run.name == "directive" { "directive" } else { "tool" };
        let item_type = run.text_of("item_type").unwrap_or_else(|| default.to_owned());
        (item_type, run.text_of("item_id").unwrap_or_else(|| run.text.clone()))
    });
    let when = element.text_of("when").or_else(|| element.text_of("condition")).or_else(|| element.text_of("event"));
    if when.is_none() {
        let finding = Diagnostic::warning("hook_without_when", element.span, "hook without `when` never runs");
        report.push(finding.with_help("add a condition, as in `<when>cost.current > cost.limit * 0.9</when>`"));
    }
    if execute.as_ref().is_none_or(|(_, item)| item.is_empty()) {
        let finding = Diagnostic::warning("hook_without_execute", element.span, "hook without `execute` does nothing");
        report.push(finding.with_help("add an action, as in `<execute item_type=\"directive\">warn</execute>`"));
    }
    let inputs = element.child("inputs").map(|inputs| &inputs.children).into_iter().flatten();
    let inputs = inputs.map(|input| (input.name.clone(), input.to_json())).collect();
    Hook { when, execute, inputs }
}

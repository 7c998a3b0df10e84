//! Converts metadata elements to the declarations of a directive.

use serde_json::Number;

use super::capability::{ACTIONS, Capability, ITEM_TYPES};
use super::document::{Context, Cost, Directive, DirectiveModel, Hook};
use super::element::{Element, Text};
use super::property::{read_inputs, read_outputs};
use super::xml::OPAQUE;
use crate::diagnostic::{Diagnostic, guess};
use crate::error::Kind;
use crate::format::report::{Report, error};
use crate::format::yaml::scalar;
use crate::json::JsonMap;

/// The elements that `metadata` may contain.
const METADATA: [&str; 9] =
    ["description", "category", "author", "model", "limits", "permissions", "cost", "context", "hooks"];
/// The elements that a directive may contain.
const SECTIONS: [&str; 3] = ["metadata", "inputs", "outputs"];

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
        permissions: find("permissions").map(|element| read_permissions(element, report)).unwrap_or_default(),
        cost: find("cost").map(|element| read_cost(element, report)),
        context: find("context").map(read_context),
        hooks: find("hooks").map(|element| read_hooks(element, report)).unwrap_or_default(),
        inputs: root.child("inputs").map(|element| read_inputs(element, report)).unwrap_or_default(),
        outputs: root.child("outputs").map(|element| read_outputs(element, report)).unwrap_or_default(),
        ..Directive::default()
    };
    directive.extra = unknown(root, metadata, report);
    directive
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
    for element in metadata.into_iter().flat_map(|metadata| &metadata.children).filter(|child| !is_known(&child.name)) {
        if !OPAQUE.contains(&element.name.as_str()) {
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
        if !OPAQUE.contains(&element.name.as_str()) {
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

/// Reads permissions: nested elements, a list of capability strings, or `*` for everything.
fn read_permissions(element: &Element, report: &mut Report) -> Vec<Capability> {
    let mut found = Vec::new();
    if element.text == "*" {
        found.push(Capability::everything());
    } else if !element.text.is_empty() {
        report.push(not_a_capability(element.as_text(), format!("expected elements or `*`, found `{}`", element.text)));
    }
    for action in &element.children {
        if action.name.is_empty() || action.name == "cap" || action.name == "capability" {
            add(&mut found, action.as_text(), action.text.parse(), report);
        } else if !ACTIONS.contains(&action.name.as_str()) {
            let message = format!("unknown action `{}`: expected one of {}", action.name, ACTIONS.join(", "));
            report.push(not_a_capability(Text { text: &action.name, span: action.span }, message));
        } else {
            read_action(action, &mut found, report);
        }
    }
    found
}

fn read_action(action: &Element, found: &mut Vec<Capability>, report: &mut Report) {
    if action.text == "*" {
        add(found, action.as_text(), Capability::any_of(&action.name), report);
    } else if action.children.is_empty() {
        let message = format!("`{}` does not name any items", action.name);
        let mut finding = not_a_capability(Text { text: "", span: action.span }, message);
        finding.help = Some(format!(
            "name items, as in `<tool>rye/bash/*</tool>`, or write `*`; the item types are {}",
            ITEM_TYPES.join(", ")
        ));
        report.push(finding);
    }
    for item in &action.children {
        // In YAML, a type may have a list of items.
        let is_list = item.children.iter().all(|child| child.name.is_empty()) && !item.children.is_empty();
        let items = if is_list { item.children.iter().collect() } else { vec![item] };
        for each in items {
            // An item may also be written as the full capability string.
            let prefix = format!("rye.{}.{}.", action.name, item.name);
            let capability = match each.text.strip_prefix(&prefix) {
                Some(_) => each.text.parse(),
                None => Capability::new(&action.name, &item.name, &each.text),
            };
            add(found, each.as_text(), capability, report);
        }
    }
}

fn add(found: &mut Vec<Capability>, place: Text<'_>, capability: Result<Capability, String>, report: &mut Report) {
    match capability {
        Ok(capability) if !found.contains(&capability) => found.push(capability),
        Ok(_) => {}
        Err(reason) => report.push(not_a_capability(place, reason)),
    }
}

fn not_a_capability(place: Text<'_>, reason: String) -> Diagnostic {
    error(Kind::InvalidCapability, place.span, reason)
        .with_help("write `rye.<action>.<type>.<item>`, as in `rye.execute.tool.rye.file-system.*`")
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

//! Declared inputs that nothing uses.

use std::collections::HashSet;

use tympan_core::diagnostic::Severity;
use tympan_core::spec::PromptKind;
use tympan_core::spec::schema::PropertyKind;

use super::binding::bindings;
use crate::context::Context;
use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY201",
    name: "unused_variable",
    group: Group::Suspicious,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports a declared input that no template and no tool uses.",
    why: "Callers pass a value that has no effect, or the template uses a different name for it.",
    example: "inputs:\n  - {name: unused, kind: string}\n---\nuser:\nHello!",
    how_to_fix: "Use the input in a template, or remove it.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    // A directive passes all of its inputs on, and a template that does not compile may use any of them.
    let is_unclear = context.prompt.kind() == PromptKind::Directive;
    if is_unclear || context.compiled().count() < context.templates.len() {
        return;
    }
    let written = context.sections().first().map(|section| context.written(*section)).unwrap_or_default();
    let bound: HashSet<_> = bindings(context).filter_map(|(_, binding)| binding.value.input()).collect();
    for (index, input) in context.prompt.variables().iter().enumerate() {
        let is_used = context.compiled().any(|(_, compiled)| compiled.flow.uses.contains_key(&index));
        // A thread that the template does not mention is appended to the messages.
        let is_appended = input.kind == PropertyKind::Thread;
        if is_used || is_appended || bound.contains(input.name.as_str()) || input.name.is_empty() {
            continue;
        }
        // Older files have inputs that only a sample declares.
        let sample = context.outline.get(&["sample", &input.name]).filter(|_| !written.contains_key(&*input.name));
        let span = sample.map(|sample| sample.key_span).or(input.span);
        let finding = Finding::new(&RULE, span, format!("unused {} `{}`", context.noun(), input.name));
        findings.push(finding.with_help("use it in a template, or remove it"));
    }
}

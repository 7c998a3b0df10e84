//! Bindings to a text that is the name of an input.

use serde_json::Value as Json;
use tympan_core::diagnostic::Severity;
use tympan_core::spec::BindingValue;

use super::binding::{bindings, written};
use crate::context::Context;
use crate::finding::{Finding, Findings, Fix};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY117",
    name: "bound_word",
    group: Group::Correctness,
    severity: Severity::Warning,
    fix: FixAvailability::Always,
    summary: "Reports a tool parameter that is bound to a fixed text, if that text is the name of an input.",
    why: "The tool receives the name of the input instead of its value.",
    example: "inputs: [{name: user_id, kind: string}]\ntools:\n  - name: find_orders\n    kind: function\n    \
        bindings: [{name: user, value: user_id}]",
    how_to_fix: "Write `input` instead of `value`.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    for (tool, binding) in bindings(context) {
        let BindingValue::Static(Json::String(word)) = &binding.value else { continue };
        let field = written(context, tool, binding, "value");
        let is_written = field.and_then(|field| field.text()) == Some(word);
        if !is_written || !context.is_input(word) {
            continue;
        }
        let message = format!(
            "parameter `{}` of tool `{}` receives the text `{word}`, which is the name of an input",
            binding.parameter, tool.name
        );
        let finding = Finding::new(&RULE, field.map(|field| field.span).or(tool.span), message);
        let fix = field.map(|field| Fix::needs_review(field.key_span, "input"));
        findings.push(Finding { fix, ..finding.with_help(format!("write `input: {word}` to pass its value")) });
    }
}

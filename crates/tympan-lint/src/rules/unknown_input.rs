//! Bindings to inputs that the prompt does not declare.

use tympan_core::diagnostic::{Severity, guess_name};
use tympan_core::spec::BindingValue;

use super::binding::{bindings, written};
use crate::context::Context;
use crate::finding::{Finding, Findings, Fix};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY112",
    name: "unknown_input",
    group: Group::Correctness,
    severity: Severity::Warning,
    fix: FixAvailability::Sometimes,
    summary: "Reports a binding of a tool to an input that the prompt does not declare.",
    why: "The tool receives the text of the name, or nothing at all.",
    example: "inputs: [{name: user_id, kind: string}]\ntools:\n  - name: find_orders\n    kind: function\n    \
        bindings: {user: {input: user_di}}",
    how_to_fix: "Correct the name, or declare the input.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    // Without any declaration, every name is an input.
    if !context.has_inputs() {
        return;
    }
    for (tool, binding) in bindings(context) {
        let BindingValue::Input(name) = &binding.value else { continue };
        if context.is_input(name) {
            continue;
        }
        let field = written(context, tool, binding, "input");
        let span = field.map(|field| field.span).or(tool.span);
        let message = format!(
            "parameter `{}` of tool `{}` is bound to the undeclared input `{name}`",
            binding.parameter, tool.name
        );
        let finding = Finding::new(&RULE, span, message);
        findings.push(match guess_name(name, context.input_names()) {
            Some(near) => {
                let fix = field.map(|field| Fix::needs_review(field.span, near));
                Finding { fix, ..finding.with_help(format!("did you mean `{near}`?")) }
            }
            None => finding.with_help("declare the input, or bind the parameter to another one"),
        });
    }
}

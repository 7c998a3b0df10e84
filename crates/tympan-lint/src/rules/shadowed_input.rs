//! Names of inputs that a template gives to other values.

use tympan_core::diagnostic::Severity;

use crate::context::Context;
use crate::finding::{Finding, Findings};
use crate::names::BindingKind;
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY211",
    name: "shadowed_input",
    group: Group::Suspicious,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports a `set`, `for`, `with` or macro parameter with the name of an input, unless its value is \
        computed from the input or is a fallback for it.",
    why: "From there on, the name refers to another value, but readers expect the input.",
    example: "inputs: [{name: question, kind: string}]\n---\nuser:\n{% for question in examples %}- {{ question }}\n\
        {% endfor %}{{ question }}",
    how_to_fix: "Choose another name.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    for (template, names) in context.names() {
        for (span, name, kind) in &names.shadowed_inputs {
            let noun = context.noun();
            let message = match kind {
                BindingKind::Param => format!("parameter `{name}` of a macro hides the {noun} `{name}`"),
                _ => format!("`{} {name}` hides the {noun} `{name}`", kind.keyword()),
            };
            findings.push(Finding::new(&RULE, template.locate(*span), message).with_help("choose another name"));
        }
    }
}

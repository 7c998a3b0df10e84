//! Inputs that shadow names of the template language.

use tympan_core::diagnostic::Severity;
use tympan_core::spec::PromptKind;
use tympan_core::template::name_use::NameKind;

use crate::context::Context;
use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY207",
    name: "shadowed_builtin",
    group: Group::Suspicious,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports an input with the name of a built-in function, of `loop`, or of a constant.",
    why: "In the template, the name does not mean what a reader expects, or the input cannot be read at all.",
    example: "inputs:\n  - {name: range, kind: string}",
    how_to_fix: "Rename the input.",
    check: Some(check),
};

/// Names that have a meaning of their own in templates, besides the built-in functions.
const RESERVED: [&str; 8] = ["loop", "caller", "true", "false", "none", "True", "False", "None"];

fn check(context: &Context<'_>, findings: &mut Findings) {
    let spec = context.prompt.spec();
    if spec.kind() == PromptKind::Directive || spec.template.format == "mustache" {
        return;
    }
    for input in context.prompt.variables() {
        let name = input.name.as_str();
        let what = match name {
            _ if NameKind::Function.builtin().contains(&name) => "the built-in function",
            "loop" | "caller" => "the special variable",
            _ if RESERVED.contains(&name) => "the constant",
            _ => continue,
        };
        let message = format!("{} `{name}` has the name of {what} `{name}`", context.noun());
        findings.push(Finding::new(&RULE, input.span, message).with_help("rename it"));
    }
}

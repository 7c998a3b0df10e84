//! Names that a template sets and never reads.

use tympan_core::diagnostic::Severity;

use crate::context::Context;
use crate::finding::{Finding, Findings};
use crate::names::{Binding, BindingKind};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY208",
    name: "unused_local",
    group: Group::Suspicious,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports a name that the template sets with `set`, `with` or `macro` and never reads. Names that start \
        with an underscore are not reported.",
    why: "The statement has no effect. The name may be misspelled elsewhere. If it is set in a loop and read after the \
        loop, it still has its old value there.",
    example: "{% set count = 0 %}\n{% for d in docs %}{% set count = count + 1 %}{% endfor %}\n{{ count }} documents",
    how_to_fix: "Remove the statement, or read the name. To change a value inside a loop, use `namespace`.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    for (template, names) in context.compiled_names() {
        for binding in names.bindings.iter().filter(|binding| is_unused(binding)) {
            let name = binding.name;
            let (what, help) = match binding.kind {
                BindingKind::Macro => ("macro", "remove it, or call it"),
                BindingKind::Set if binding.in_loop => (
                    "variable",
                    "the value is lost after each round of the loop: to read it later, use an attribute of a \
                     `namespace`",
                ),
                _ => ("variable", "remove it, or read it"),
            };
            let finding = Finding::new(&RULE, template.locate(binding.span), format!("unused {what} `{name}`"));
            findings.push(finding.with_help(help));
        }
    }
}

fn is_unused(binding: &Binding<'_>) -> bool {
    let is_statement = matches!(binding.kind, BindingKind::Set | BindingKind::With | BindingKind::Macro);
    is_statement && !binding.is_read && !binding.name.starts_with('_')
}

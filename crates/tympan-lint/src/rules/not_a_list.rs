//! Loops over inputs that are not lists.

use tympan_core::diagnostic::Severity;
use tympan_core::spec::schema::PropertyKind;

use crate::context::Context;
use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY212",
    name: "not_a_list",
    group: Group::Suspicious,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports a loop over an input that is declared as a string, a number or a boolean.",
    why: "A loop over a string yields single characters. A loop over a number fails.",
    example: "inputs: [{name: tags, kind: string}]\n---\nuser:\n{% for tag in tags %}- {{ tag }}\n{% endfor %}",
    how_to_fix: "Declare the input as an `array`, or split the string: `{% for tag in tags.split(\",\") %}`.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    for (template, names) in context.names() {
        for (span, kind) in &names.scalar_loops {
            let text = &template.analysis.source()[span.range()];
            let kind_name = kind.as_str();
            let article = if kind_name.starts_with('i') { "an" } else { "a" };
            let (message, help) = match kind {
                PropertyKind::String => (
                    format!("loop over the characters of `{text}`, which is declared as a string"),
                    format!("declare it as an array, or split it: `{text}.split(\",\")`"),
                ),
                _ => (
                    format!("loop over `{text}`: expected a list, found {article} {kind_name}"),
                    "declare it as an array".to_owned(),
                ),
            };
            findings.push(Finding::new(&RULE, template.locate(*span), message).with_help(help));
        }
    }
}

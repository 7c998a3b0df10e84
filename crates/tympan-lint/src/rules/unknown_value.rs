//! Comparisons with texts that an input cannot have.

use tympan_core::diagnostic::{Severity, guess, listed};
use tympan_core::text::source::Span;

use crate::context::Context;
use crate::finding::{Finding, Findings, Fix};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY123",
    name: "unknown_value",
    group: Group::Correctness,
    severity: Severity::Warning,
    fix: FixAvailability::Sometimes,
    summary: "Reports a comparison of an input with a text that is not one of the input's `enumValues`.",
    why: "The comparison is always false, so a branch is never taken.",
    example: "inputs: [{name: tier, kind: string, enumValues: [free, gold]}]\n---\nuser:\n{% if tier == \"glod\" %}\
        Thank you for your support.{% endif %}",
    how_to_fix: "Correct the text, or add it to `enumValues`.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    for (template, names) in context.names() {
        for (span, text, declaration) in &names.unknown_values {
            let values = declaration.enum_values.iter().flatten().filter_map(|value| value.as_str());
            let message = format!("`{}` is never `{text}`", declaration.name);
            let finding = Finding::new(&RULE, template.locate(*span), message);
            let inside = template.locate(Span::new(span.start + 1, span.end - 1));
            findings.push(match guess(text, values.clone()) {
                Some(near) => {
                    finding.with_help(format!("did you mean `{near}`?")).with_fix(Fix::needs_review(inside, near))
                }
                None => {
                    let values: Vec<_> = values.collect();
                    finding.with_help(format!("its values: {}", listed(values.into_iter())))
                }
            });
        }
    }
}

//! Variants that the prompt does not have.

use tympan_core::diagnostic::{Severity, listed};
use tympan_core::format::outline::Field;

use super::{texts, with_suggestion};
use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};
use crate::suite::SuiteContext;

pub(crate) static RULE: Rule = Rule {
    code: "TY507",
    name: "unknown_test_variant",
    group: Group::Tests,
    severity: Severity::Error,
    fix: FixAvailability::Sometimes,
    summary: "Reports the name of a variant that the prompt does not have.",
    why: "The case cannot be rendered.",
    example: "# The prompt has the variants `default` and `short`.\ncases:\n  - variant: shrot\n    \
        expect: [{messages: 1}]",
    how_to_fix: "Correct the name. `default` is the variant without a name.",
    check: None,
};

pub(super) fn check(context: &SuiteContext<'_>, findings: &mut Findings) {
    let Some(prompt) = &context.prompt else { return };
    let known: Vec<_> = prompt.prompt.arms().collect();
    for written in context.settings() {
        let matrix = written.field.get("matrix").and_then(|matrix| matrix.get("variants"));
        let named = written.field.get("variant").into_iter().chain(matrix).flat_map(|field: Field<'_>| texts(field));
        for (name, span) in named.filter(|(name, _)| !known.contains(name)) {
            let finding = Finding::new(&RULE, span, format!("the prompt has no variant `{name}`"));
            findings.push(with_suggestion(context, finding, (name, span), known.iter().copied(), || {
                format!("its variants: {}", listed(known.iter().copied()))
            }));
        }
    }
}

//! Tests that Tympan does not have.

use tympan_core::diagnostic::Severity;
use tympan_core::template::name_use::NameKind;

use super::names::unknown_names;
use crate::context::Context;
use crate::finding::Findings;
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY103",
    name: "unknown_test",
    group: Group::Correctness,
    severity: Severity::Error,
    fix: FixAvailability::Sometimes,
    summary: "Reports an unknown test: as an error if the name is one edit away from a known one, and as a warning \
        otherwise.",
    why: "Unless the application registers the test, the prompt fails when it is rendered.",
    example: "{% if n is evne %}even{% endif %}",
    how_to_fix: "Correct the name, or register the test in the application.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    unknown_names(context, &RULE, NameKind::Test, findings);
}

//! Cases with the same name.

use std::collections::HashMap;

use tympan_core::diagnostic::Severity;

use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};
use crate::suite::SuiteContext;

pub(crate) static RULE: Rule = Rule {
    code: "TY512",
    name: "duplicate_case",
    group: Group::Tests,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports a case with the name of another case.",
    why: "Reports and comparisons with earlier runs find cases by their names.",
    example: "cases:\n  - name: greeting\n    inputs: {name: Ada}\n    expect: [{messages: 1}]\n  - name: greeting\n    \
        inputs: {name: Grace}\n    expect: [{messages: 1}]",
    how_to_fix: "Rename one of them.",
    check: None,
};

pub(super) fn check(context: &SuiteContext<'_>, findings: &mut Findings) {
    let mut first = HashMap::new();
    let names = context.cases.iter().filter_map(|case| case.field.get("name"));
    for (name, span) in names.filter_map(|name| Some((name.text()?, name.span))) {
        match first.get(name) {
            None => drop(first.insert(name, span)),
            Some(other) => {
                let finding = Finding::new(&RULE, span, format!("another case is called `{name}` as well"));
                let related = vec![(*other, "the first one".to_owned())];
                findings.push(finding.with_help("rename one of them").with_related(related));
            }
        }
    }
}

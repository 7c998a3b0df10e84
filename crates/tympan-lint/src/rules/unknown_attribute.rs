//! Attributes that a declaration does not have.

use tympan_core::diagnostic::{Severity, guess_name, listed};
use tympan_core::spec::schema::PropertyKind;

use crate::context::{Context, TemplateContext};
use crate::finding::{Finding, Findings, Fix};
use crate::names::UnknownAttribute;
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY122",
    name: "unknown_attribute",
    group: Group::Correctness,
    severity: Severity::Warning,
    fix: FixAvailability::Sometimes,
    summary: "Reports an attribute that a declared object, or the declared item of a list, does not have. Attributes \
        of strings, numbers and booleans are reported as well.",
    why: "The attribute is often misspelled, and then the prompt fails when it is rendered.",
    example: "inputs:\n  - name: user\n    kind: object\n    properties: {name: {kind: string}}\n---\nuser:\n\
        {{ user.nmae }}",
    how_to_fix: "Correct the name, or declare the attribute under `properties`.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    for (template, names) in context.names() {
        for found in &names.unknown_attributes {
            findings.extend(finding(template, found, names.optional.contains(found.text)));
        }
    }
}

fn finding(template: &TemplateContext<'_>, found: &UnknownAttribute<'_>, is_optional: bool) -> Option<Finding> {
    let UnknownAttribute { span, name, declaration, .. } = found;
    let owner = if found.of_item { format!("an item of `{}`", found.owner) } else { format!("`{}`", found.owner) };
    let span = template.locate(*span);
    if declaration.kind != PropertyKind::Object {
        let kind = declaration.kind.as_str();
        let article = if kind.starts_with('i') { "an" } else { "a" };
        let message = format!("{owner} is {article} {kind} and has no attribute `{name}`");
        let finding = Finding::new(&RULE, span, message).with_help("declare it as an object with this property");
        return Some(finding).filter(|_| !is_optional);
    }
    let finding = Finding::new(&RULE, span, format!("{owner} has no attribute `{name}`"));
    let known = || declaration.properties.iter().map(|property| property.name.as_str());
    match guess_name(name, known()) {
        Some(near) => {
            Some(finding.with_help(format!("did you mean `{near}`?")).with_fix(Fix::needs_review(span, near)))
        }
        // The template says that it may be missing.
        None if is_optional => None,
        None => {
            let known: Vec<_> = known().collect();
            Some(finding.with_help(format!("declared: {}", listed(known.into_iter()))))
        }
    }
}

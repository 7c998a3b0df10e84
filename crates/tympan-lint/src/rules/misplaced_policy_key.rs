//! Keys for the policy for tools in places where they have no effect.

use tympan_core::diagnostic::Severity;
use tympan_core::spec::schema::Property;

use crate::context::Context;
use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY311",
    name: "misplaced_policy_key",
    group: Group::Trust,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports `trusted_only` and `destination` anywhere but at a parameter of a function, and `confidential` and \
        `speaker` anywhere but at an input. Properties of an object and items of a list are not parameters or inputs.",
    why: "The policy for tools does not read them there, so the prompt is less protected than it looks.",
    example: "tools:\n  - name: send_email\n    kind: function\n    effect: external\n    parameters:\n      - name: \
        message\n        kind: object\n        properties: [{name: to, kind: string, destination: true}]",
    how_to_fix: "Move the key to the parameter or the input. A `destination` or `trusted_only` parameter that is a list \
        or an object is checked with everything in it.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    for section in context.sections() {
        let is_parameter = section.noun == "parameter";
        let is_input = !is_parameter && section.noun != "output";
        for property in section.properties {
            report(property, is_input, is_parameter, section.noun, findings);
            nested(property, findings);
        }
    }
}

fn nested(property: &Property, findings: &mut Findings) {
    for inner in property.properties.iter().chain(property.items.as_deref()) {
        report(inner, false, false, "nested property", findings);
        nested(inner, findings);
    }
}

fn report(property: &Property, is_input: bool, is_parameter: bool, noun: &str, findings: &mut Findings) {
    let keys = [
        ("trusted_only", property.flow.trusted_only.is_some(), is_parameter, "a parameter of a function"),
        ("destination", property.flow.destination.is_some(), is_parameter, "a parameter of a function"),
        ("confidential", property.confidential, is_input, "an input"),
        ("speaker", property.speaker.is_some(), is_input, "an input"),
    ];
    for (key, _, _, place) in keys.into_iter().filter(|(_, is_set, is_right, _)| *is_set && !is_right) {
        let what = if property.name.is_empty() { noun.to_owned() } else { format!("{noun} `{}`", property.name) };
        let message = format!("`{key}` has no effect on {what}");
        findings.push(Finding::new(&RULE, property.span, message).with_help(format!("it belongs to {place}")));
    }
}

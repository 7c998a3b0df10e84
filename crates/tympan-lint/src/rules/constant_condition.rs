//! Conditions that are always true or always false.

use tympan_core::diagnostic::Severity;
use tympan_core::template::syntax::jinja::ast::{Expression, ExpressionKind, StatementKind};
use tympan_core::template::syntax::jinja::visit::{NodeRef, walk};

use crate::conditions::constant;
use crate::context::Context;
use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY209",
    name: "constant_condition",
    group: Group::Suspicious,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports a condition that is always true or always false, whatever the inputs are.",
    why: "It is left over from a test, or it compares less than it seems to: `tone == \"calm\" or \"kind\"` is always \
        true.",
    example: "{% if tone == \"calm\" or \"kind\" %}Take your time.{% endif %}",
    how_to_fix: "Write the comparison for each value, such as `tone in [\"calm\", \"kind\"]`, or remove the condition.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    for template in &context.templates {
        let source = template.analysis.source();
        let mut report = |condition: &Expression| {
            if let Some(truth) = constant(condition, source) {
                let message = format!("the condition is always {truth}");
                findings.push(Finding::new(&RULE, template.locate(condition.span), message).with_help(help(condition)));
            }
        };
        walk(template.statements(), &mut |node| {
            match node {
                NodeRef::Statement(statement) => match &statement.kind {
                    StatementKind::If(node) => node.branches.iter().for_each(|branch| report(&branch.condition)),
                    StatementKind::For(node) => node.filter.iter().for_each(&mut report),
                    _ => {}
                },
                NodeRef::Expression(Expression { kind: ExpressionKind::Ternary(node), .. }) => report(&node.condition),
                _ => {}
            }
            true
        });
    }
}

fn help(condition: &Expression) -> &'static str {
    match &condition.unparenthesized().kind {
        ExpressionKind::Binary(_) => "write a comparison for each value: `name in [\"a\", \"b\"]`",
        _ => "remove the condition, or refer to an input",
    }
}

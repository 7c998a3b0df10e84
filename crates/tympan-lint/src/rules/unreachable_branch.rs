//! Branches that are never taken.

use tympan_core::diagnostic::Severity;
use tympan_core::template::syntax::jinja::ast::{If, Statement, StatementKind};
use tympan_core::template::syntax::jinja::visit::{NodeRef, walk};
use tympan_core::text::source::Span;

use crate::conditions::{constant, same};
use crate::context::{Context, TemplateContext};
use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY210",
    name: "unreachable_branch",
    group: Group::Suspicious,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports an `elif` with the condition of an earlier branch, a branch after one that is always taken, and \
        text after `break` or `continue`.",
    why: "The text in it is never part of the prompt.",
    example: "{% if tier == \"gold\" %}Hello!{% elif tier == \"gold\" %}Welcome back!{% endif %}",
    how_to_fix: "Correct the condition, or remove the branch.",
    check: Some(check),
};

/// The maximum number of earlier branches that a condition is compared with.
const MAX_BRANCHES: usize = 50;

fn check(context: &Context<'_>, findings: &mut Findings) {
    for template in &context.templates {
        walk(template.statements(), &mut |node| {
            if let NodeRef::Statement(Statement { kind, .. }) = node {
                match kind {
                    StatementKind::If(node) => {
                        branches(template, node, findings);
                        node.branches.iter().for_each(|branch| after_jump(template, &branch.statements, findings));
                        node.otherwise.iter().for_each(|branch| after_jump(template, &branch.statements, findings));
                    }
                    StatementKind::For(node) => after_jump(template, &node.body.statements, findings),
                    _ => {}
                }
            }
            true
        });
    }
}

fn branches(template: &TemplateContext<'_>, node: &If, findings: &mut Findings) {
    let source = template.analysis.source();
    let mut report = |span: Span, message: &str, because: Span, note: &str| {
        let finding =
            Finding::new(&RULE, template.locate(span), message).with_help("remove it, or correct a condition");
        findings.push(finding.with_related(vec![(template.locate(because), note.to_owned())]));
    };
    for (index, branch) in node.branches.iter().enumerate() {
        if constant(&branch.condition, source) == Some(true) {
            let next = node.branches.get(index + 1).map(|next| next.tag.span);
            if let Some(span) = next.or(node.otherwise.as_ref().map(|branch| branch.tag.span)) {
                report(span, "the branch is never taken", branch.condition.span, "is always true");
            }
            return;
        }
        let earlier = &node.branches[index.saturating_sub(MAX_BRANCHES)..index];
        if let Some(earlier) = earlier.iter().find(|earlier| same(&earlier.condition, &branch.condition, source)) {
            let span = branch.condition.span;
            report(span, "the branch is never taken", earlier.condition.span, "has the same condition");
        }
    }
}

/// Reports text and statements after a `break` or `continue`.
fn after_jump(template: &TemplateContext<'_>, statements: &[Statement], findings: &mut Findings) {
    let source = template.analysis.source();
    let jump =
        statements.iter().position(|node| matches!(node.kind, StatementKind::Break(_) | StatementKind::Continue(_)));
    let Some(jump) = jump else { return };
    let is_content = |node: &&Statement| match &node.kind {
        StatementKind::Text(kept) => !source[kept.range()].trim().is_empty(),
        StatementKind::Comment => false,
        _ => true,
    };
    if let Some(rest) = statements[jump + 1..].iter().find(is_content) {
        let keyword = if matches!(statements[jump].kind, StatementKind::Break(_)) { "break" } else { "continue" };
        let finding =
            Finding::new(&RULE, template.locate(rest.span), format!("this is never rendered after `{keyword}`"));
        let finding = finding.with_help(format!("move it before `{{% {keyword} %}}`, or remove it"));
        findings
            .push(finding.with_related(vec![(template.locate(statements[jump].span), "ends the round".to_owned())]));
    }
}

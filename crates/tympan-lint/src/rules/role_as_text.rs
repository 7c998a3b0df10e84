//! Loops that write the roles of messages as text.

use tympan_core::diagnostic::Severity;
use tympan_core::spec::schema::PropertyKind;
use tympan_core::template::syntax::SyntaxTree;
use tympan_core::template::syntax::jinja::ast::{Expression, ExpressionKind, Statement, StatementKind, TargetKind};
use tympan_core::template::syntax::jinja::visit::{NodeRef, walk};
use tympan_core::template::syntax::mustache::ast::{Node, NodeKind};
use tympan_core::text::source::Span;

use crate::context::{Context, TemplateContext};
use crate::finding::{Finding, Findings};
use crate::names::text_literal;
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY213",
    name: "role_as_text",
    group: Group::Suspicious,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports a loop that writes the role of a message, a colon, and its content.",
    why: "An input cannot start a message, so the whole conversation becomes the text of one message. Whoever writes \
        the content can pretend to be another role.",
    example: "{% for m in history %}\n{{ m.role }}:\n{{ m.content }}\n{% endfor %}",
    how_to_fix: "Declare the conversation with `kind: thread`, and write `{{ history }}` where its messages belong.",
    check: Some(check),
};

/// The names of the text of a message.
const CONTENT: [&str; 4] = ["content", "text", "message", "value"];

fn check(context: &Context<'_>, findings: &mut Findings) {
    // A definition has one message, and no threads.
    if !context.prompt.spec().template.is_split() {
        return;
    }
    for template in &context.templates {
        match &template.tree {
            Some(SyntaxTree::Jinja(parsed)) => jinja(context, template, &parsed.body, findings),
            Some(SyntaxTree::Mustache(parsed)) => mustache(context, template, &parsed.body, findings),
            _ => {}
        }
    }
}

fn report(context: &Context<'_>, template: &TemplateContext<'_>, span: Span, list: &str, findings: &mut Findings) {
    let finding = Finding::new(&RULE, template.locate(span), "the role of a message is written as text");
    let is_thread =
        context.prompt.variables().iter().any(|input| input.name == list && input.kind == PropertyKind::Thread);
    findings.push(finding.with_help(match is_thread {
        true => format!("write `{{{{ {list} }}}}` instead of the loop: a thread becomes messages"),
        false => "declare the conversation with `kind: thread`, and write its name instead of the loop".to_owned(),
    }));
}

fn jinja(context: &Context<'_>, template: &TemplateContext<'_>, statements: &[Statement], findings: &mut Findings) {
    let source = template.analysis.source();
    walk(statements, &mut |node| {
        let NodeRef::Statement(Statement { kind: StatementKind::For(node), .. }) = node else { return true };
        if node.target.kind != TargetKind::Name {
            return true;
        }
        let item = &source[node.target.span.range()];
        let role = role_before_colon(&node.body.statements, item, source);
        if let Some(span) = role.filter(|_| reads_content(&node.body.statements, item, source)) {
            report(context, template, span, &source[node.iter.span.range()], findings);
        }
        true
    });
}

/// Returns the place where the role of an item is written before a colon.
fn role_before_colon(statements: &[Statement], item: &str, source: &str) -> Option<Span> {
    let mut pairs = statements.windows(2);
    let found = pairs.find_map(|pair| match (&pair[0].kind, &pair[1].kind) {
        (StatementKind::Output(output), StatementKind::Text(kept)) => {
            let after = source[kept.range()].trim_start_matches(['*', '_', ']', '>', ' ']);
            let is_role = attribute_of(output, item, source) == Some("role");
            (is_role && after.starts_with(':')).then_some(output.span)
        }
        _ => None,
    });
    // The line may be inside of a condition.
    found.or_else(|| {
        statements.iter().find_map(|statement| match &statement.kind {
            StatementKind::If(node) => {
                let branches = node.branches.iter().map(|branch| &branch.statements);
                let otherwise = node.otherwise.iter().map(|branch| &branch.statements);
                branches.chain(otherwise).find_map(|branch| role_before_colon(branch, item, source))
            }
            _ => None,
        })
    })
}

/// Returns whether a loop writes the text of its item.
fn reads_content(statements: &[Statement], item: &str, source: &str) -> bool {
    let mut found = false;
    walk(statements, &mut |node| {
        if let NodeRef::Expression(expression) = node {
            found |= attribute_of(expression, item, source).is_some_and(|name| CONTENT.contains(&name));
        }
        !found
    });
    found
}

/// Returns the name of the attribute of an item that an expression is, perhaps after filters.
fn attribute_of<'s>(expression: &Expression, item: &str, source: &'s str) -> Option<&'s str> {
    let is_item = |value: &Expression| value.kind == ExpressionKind::Name && &source[value.span.range()] == item;
    match &expression.unparenthesized().kind {
        ExpressionKind::Attribute(node) => is_item(&node.value).then(|| &source[node.name.range()]),
        ExpressionKind::Item(node) => text_literal(&node.index, source).filter(|_| is_item(&node.value)),
        ExpressionKind::Filter(node) => attribute_of(node.value.as_ref()?, item, source),
        ExpressionKind::Call(node) => match &node.callee.kind {
            ExpressionKind::Attribute(method) => attribute_of(&method.value, item, source),
            _ => None,
        },
        _ => None,
    }
}

fn mustache(context: &Context<'_>, template: &TemplateContext<'_>, nodes: &[Node], findings: &mut Findings) {
    let source = template.analysis.source();
    for node in nodes {
        let NodeKind::Section(section) = &node.kind else { continue };
        let name = |node: &Node| match &node.kind {
            NodeKind::Variable(name) => Some(&source[name.range()]),
            _ => None,
        };
        let is_colon =
            |node: &Node| node.kind == NodeKind::Text && source[node.span.range()].trim_start().starts_with(':');
        let mut pairs = section.body.windows(2);
        let role = pairs.find(|pair| name(&pair[0]) == Some("role") && is_colon(&pair[1])).map(|pair| pair[0].span);
        let has_content = || section.body.iter().filter_map(name).any(|name| CONTENT.contains(&name));
        if let Some(span) = role.filter(|_| !section.inverted && has_content()) {
            report(context, template, span, &source[section.name.range()], findings);
        }
        mustache(context, template, &section.body, findings);
    }
}

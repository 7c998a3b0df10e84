//! Role markers that decide about the role of text after their block.

use tympan_core::diagnostic::Severity;
use tympan_core::spec::role::Role;
use tympan_core::template::syntax::SyntaxTree;
use tympan_core::template::syntax::jinja::ast::{Else, Statement, StatementKind};
use tympan_core::template::syntax::mustache::ast::{Node, NodeKind};
use tympan_core::text::source::Span;

use crate::context::{Context, TemplateContext};
use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY119",
    name: "conditional_marker",
    group: Group::Correctness,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports a role marker inside a condition or a loop if the text after the block belongs to different \
        roles, depending on whether the marker is rendered.",
    why: "If the condition is false, the text becomes part of the message before it, which may be the system message.",
    example: "system:\nBe brief.\n{% if examples %}\nuser:\n{{ examples }}\n{% endif %}\n{{ question }}",
    how_to_fix: "Write a role marker after the block.",
    check: Some(check),
};

/// A part of a template that matters for the roles of its messages.
enum Part {
    /// Text or an interpolation.
    Content(Span),
    /// Several blocks of which one is rendered, or none unless the list is exhaustive.
    Branches(Vec<Vec<Part>>, bool),
}

/// A role that the current message may have, and its marker.
type Candidate = (Role, Option<Span>);

fn check(context: &Context<'_>, findings: &mut Findings) {
    if !context.prompt.spec().template.is_split() {
        return;
    }
    for template in context.templates.iter().filter(|template| template.compiled.is_some()) {
        // Without a marker in a block, there is nothing to follow.
        let parts = match &template.tree {
            Some(SyntaxTree::Jinja(parsed)) => jinja(&parsed.body),
            Some(SyntaxTree::Mustache(parsed)) => mustache(&parsed.body),
            _ => continue,
        };
        let mut walk = Walk { template, findings: &mut *findings };
        walk.parts(&parts, vec![(Role::System, None)]);
    }
}

fn jinja(statements: &[Statement]) -> Vec<Part> {
    let mut parts = Vec::with_capacity(statements.len());
    let otherwise = |branch: &Option<Else>| branch.as_ref().map(|branch| jinja(&branch.statements));
    for statement in statements {
        match &statement.kind {
            StatementKind::Text(kept) | StatementKind::Raw(kept) => parts.push(Part::Content(*kept)),
            StatementKind::Output(_) | StatementKind::Call(_) => parts.push(Part::Content(statement.span)),
            StatementKind::If(node) => {
                let mut branches: Vec<_> = node.branches.iter().map(|branch| jinja(&branch.statements)).collect();
                branches.extend(otherwise(&node.otherwise));
                parts.push(Part::Branches(branches, node.otherwise.is_some()));
            }
            StatementKind::For(node) => {
                let body = jinja(&node.body.statements);
                let branches = [Some(body), otherwise(&node.otherwise)].into_iter().flatten().collect();
                parts.push(Part::Branches(branches, false));
            }
            StatementKind::With(node) => parts.extend(jinja(&node.body.statements)),
            StatementKind::Filter(node) => parts.extend(jinja(&node.body.statements)),
            StatementKind::AutoEscape(node) => parts.extend(jinja(&node.body.statements)),
            _ => {}
        }
    }
    parts
}

fn mustache(nodes: &[Node]) -> Vec<Part> {
    let mut parts = Vec::with_capacity(nodes.len());
    for node in nodes {
        match &node.kind {
            NodeKind::Text | NodeKind::Variable(_) => parts.push(Part::Content(node.span)),
            NodeKind::Section(section) => parts.push(Part::Branches(vec![mustache(&section.body)], false)),
            _ => {}
        }
    }
    parts
}

struct Walk<'c, 'p> {
    template: &'c TemplateContext<'p>,
    findings: &'c mut Findings,
}

impl Walk<'_, '_> {
    /// Follows the roles through some parts, and returns the roles that text after them may have.
    fn parts(&mut self, parts: &[Part], mut roles: Vec<Candidate>) -> Vec<Candidate> {
        for part in parts {
            match part {
                Part::Content(span) => self.content(*span, &mut roles),
                Part::Branches(branches, is_exhaustive) => {
                    let mut after = if *is_exhaustive { Vec::new() } else { roles.clone() };
                    for branch in branches {
                        for candidate in self.parts(branch, roles.clone()) {
                            if !after.iter().any(|(role, _)| *role == candidate.0) {
                                after.push(candidate);
                            }
                        }
                    }
                    roles = after;
                }
            }
        }
        roles
    }

    fn content(&mut self, span: Span, roles: &mut Vec<Candidate>) {
        let messages = &self.template.messages;
        // The message that the content starts in, or rather the first one whose marker may be in it.
        let first = messages.partition_point(|message| message.marker.is_none_or(|marker| marker.end < span.start));
        let mut start = span.start;
        for message in &messages[first..] {
            let Some(marker) = message.marker.filter(|marker| marker.start < span.end) else { break };
            self.text(Span::new(start.min(marker.start), marker.start), roles);
            *roles = vec![(message.role, Some(marker))];
            start = marker.end;
        }
        self.text(Span::new(start.min(span.end), span.end), roles);
    }

    fn text(&mut self, span: Span, roles: &mut Vec<Candidate>) {
        let text = self.template.analysis.source().get(span.range()).unwrap_or_default();
        if roles.len() < 2 || text.trim().is_empty() {
            return;
        }
        let at = span.start + (text.len() - text.trim_start().len());
        let names: Vec<_> = roles.iter().map(|(role, _)| role.as_str()).collect();
        let message =
            format!("the text after this block is in a {} message, depending on a condition", names.join(" or "));
        let marker = roles.iter().rev().find_map(|(_, marker)| *marker);
        let finding = Finding::new(&RULE, marker.map(|marker| self.template.locate(marker)), message);
        let end = at + text.trim_start().lines().next().map_or(0, |line| line.trim_end().len());
        let related = (self.template.locate(Span::new(at, end)), "is this text".to_owned());
        self.findings.push(finding.with_help("write a role marker after the block").with_related(vec![related]));
        // One finding for each block is enough.
        roles.truncate(1);
    }
}

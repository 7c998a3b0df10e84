//! Code actions: fixes of findings, all safe fixes at once, and comments that suppress a finding.

use gen_lsp_types::{CodeAction, CodeActionKind, CodeActionParams, TextEdit};
use tympan_core::text::source::Span;
use tympan_lint::{Finding, Fix};

use crate::analysis::Analysis;
use crate::diagnostics::{diagnostic, shown_span};
use crate::document::Document;
use crate::edit::{text_edits, workspace_edit};
use crate::suppression;

/// The kind of the action that applies all safe fixes.
pub(crate) const FIX_ALL: &str = "source.fixAll.tympan";

/// Returns the actions for a range.
pub(crate) fn code_actions(document: &Document, analysis: &Analysis, params: &CodeActionParams) -> Vec<CodeAction> {
    let wanted = |kind: &str| match &params.context.only {
        None => true,
        Some(only) => only.iter().any(|only| is_part_of(kind, &only.to_string())),
    };
    let mut actions = Vec::new();
    if wanted("quickfix") {
        let selected = document.span(params.range);
        let findings = analysis.findings.iter().filter(|finding| touches(shown_span(document, finding), selected));
        let findings: Vec<_> = findings.collect();
        actions.extend(findings.iter().filter_map(|finding| quick_fix(document, finding)));
        actions.extend(findings.iter().filter_map(|finding| ignore(document, analysis, finding)));
    }
    // Without a filter, clients ask for what they show at a position. They ask for this one by its kind.
    let asked = params.context.only.is_some() && wanted(FIX_ALL);
    actions.extend(asked.then(|| fix_all(document, analysis)).flatten());
    actions
}

/// Returns whether a kind of actions belongs to another one: `source.fixAll.tympan` is part of `source.fixAll`.
fn is_part_of(kind: &str, whole: &str) -> bool {
    kind.strip_prefix(whole).is_some_and(|rest| whole.is_empty() || rest.is_empty() || rest.starts_with('.'))
}

fn touches(span: Span, selected: Span) -> bool {
    span.start <= selected.end && selected.start <= span.end
}

fn quick_fix(document: &Document, finding: &Finding) -> Option<CodeAction> {
    let fix = finding.fix.as_ref()?;
    let title = title(document, fix);
    Some(CodeAction {
        title: if fix.safe { title } else { format!("{title} (needs a review)") },
        kind: Some(CodeActionKind::QuickFix),
        diagnostics: Some(vec![diagnostic(document, finding)]),
        is_preferred: Some(fix.safe),
        edit: Some(workspace_edit(document, edits(document, fix))),
        ..CodeAction::default()
    })
}

/// Describes a fix by what it writes.
fn title(document: &Document, fix: &Fix) -> String {
    let short = |text: &str| text.lines().count() <= 1 && text.chars().count() <= 40;
    match fix.edits.as_slice() {
        [(span, new)] => {
            let old = document.source().slice(*span);
            match (old.is_empty(), new.is_empty()) {
                (false, true) if short(old) => format!("Remove `{}`", old.trim()),
                (true, false) if short(new) => format!("Insert `{}`", new.trim()),
                (false, false) if short(old) && short(new) => format!("Replace `{}` with `{}`", old.trim(), new.trim()),
                _ => "Apply the fix".to_owned(),
            }
        }
        _ => "Apply the fix".to_owned(),
    }
}

fn edits(document: &Document, fix: &Fix) -> Vec<TextEdit> {
    text_edits(document, fix.edits.iter().map(|(span, text)| (*span, text.as_str())))
}

/// Returns the action that applies all safe fixes that do not overlap.
fn fix_all(document: &Document, analysis: &Analysis) -> Option<CodeAction> {
    let mut all: Vec<&(Span, String)> = Vec::new();
    for fix in analysis.findings.iter().filter_map(|finding| finding.fix.as_ref()).filter(|fix| fix.safe) {
        let is_free = |(span, _): &(Span, String)| all.iter().all(|(other, _)| !overlap(*span, *other));
        if fix.edits.iter().all(is_free) {
            all.extend(&fix.edits);
        }
    }
    if all.is_empty() {
        return None;
    }
    let edits = text_edits(document, all.into_iter().map(|(span, text)| (*span, text.as_str())));
    Some(CodeAction {
        title: "Fix all problems that Tympan can fix".to_owned(),
        kind: Some(CodeActionKind::Custom(FIX_ALL.into())),
        edit: Some(workspace_edit(document, edits)),
        ..CodeAction::default()
    })
}

/// Returns whether two edits cannot both be applied. Two insertions at the same place would have no order.
fn overlap(a: Span, b: Span) -> bool {
    a.start < b.end && b.start < a.end || a.start == b.start
}

fn ignore(document: &Document, analysis: &Analysis, finding: &Finding) -> Option<CodeAction> {
    let (at, comment) = suppression::comment(document, analysis, finding)?;
    let edits = text_edits(document, [(Span::new(at, at), comment.as_str())]);
    Some(CodeAction {
        title: format!("Ignore {} ({}) on this line", finding.rule.code, finding.rule.name),
        kind: Some(CodeActionKind::QuickFix),
        diagnostics: Some(vec![diagnostic(document, finding)]),
        is_preferred: Some(false),
        edit: Some(workspace_edit(document, edits)),
        ..CodeAction::default()
    })
}

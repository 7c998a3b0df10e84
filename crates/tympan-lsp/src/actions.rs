//! Code actions: fixes of findings, the fixes of `tympan check --fix`, and comments that suppress a finding.

use gen_lsp_types::{CodeAction, CodeActionKind, CodeActionParams, TextEdit};
use tympan_core::text::source::Span;
use tympan_lint::{Finding, Fix, FixMode, fix_file};

use crate::analysis::Analysis;
use crate::diagnostics::{diagnostic, shown_span};
use crate::document::Document;
use crate::edit::{text_edits, workspace_edit};
use crate::suppression;
use crate::workspace::WorkspaceFiles;

/// The kind of the action that applies all safe fixes.
pub(crate) const FIX_ALL: &str = "source.fixAll.tympan";

/// The maximum number of findings for which comments are offered. Each comment is checked.
const MAX_IGNORED: usize = 20;

/// Returns the actions for a range.
pub(crate) fn code_actions(
    document: &Document,
    analysis: &Analysis,
    files: &mut WorkspaceFiles<'_>,
    params: &CodeActionParams,
) -> Vec<CodeAction> {
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
        let ignored = findings.into_iter().take(MAX_IGNORED);
        actions.extend(ignored.filter_map(|finding| ignore(document, analysis, files, finding)));
    }
    // Without a filter, clients ask for what they show at a position. They ask for this one by its kind.
    let asked = params.context.only.is_some() && wanted(FIX_ALL);
    actions.extend(asked.then(|| fix_all(document, analysis, files)).flatten());
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

/// Returns the action that applies the fixes of `tympan check --fix`.
fn fix_all(document: &Document, analysis: &Analysis, files: &mut WorkspaceFiles<'_>) -> Option<CodeAction> {
    let has_fix = |finding: &Finding| finding.fix.as_ref().is_some_and(|fix| FixMode::Safe.allows(fix));
    if !analysis.findings.iter().any(has_fix) {
        return None;
    }
    let fixed = fix_file(document.source(), files, &analysis.options, FixMode::Safe);
    let edits = fixed.edits(document.text());
    if edits.is_empty() {
        return None;
    }
    let edits = text_edits(document, edits.iter().map(|(span, text)| (*span, text.as_str())));
    Some(CodeAction {
        title: "Fix all problems that Tympan can fix".to_owned(),
        kind: Some(CodeActionKind::Custom(FIX_ALL.into())),
        edit: Some(workspace_edit(document, edits)),
        ..CodeAction::default()
    })
}

fn ignore(
    document: &Document,
    analysis: &Analysis,
    files: &mut WorkspaceFiles<'_>,
    finding: &Finding,
) -> Option<CodeAction> {
    let (at, comment) = suppression::comment(document, analysis, files, finding)?;
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

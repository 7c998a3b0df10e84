//! Fixes: changes to files that remove findings, as long as they do no harm.

use std::collections::{HashMap, HashSet};

use tympan_core::diagnostic::Severity;
use tympan_core::format::Resolve;
use tympan_core::text::source::{SourceFile, Span};

use crate::difference::{self, Edit};
use crate::file::{Checked, check_file};
use crate::finding::{Finding, Fix};
use crate::{Group, Options, Rule};

/// The maximum number of rounds. Each one checks the file again, because a fix can move or reveal other findings.
const MAX_ROUNDS: usize = 100;

/// The maximum number of fixes that are tried one by one.
const MAX_TRIED: usize = 1000;

/// Which fixes are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FixMode {
    /// Fixes after which the prompt still means what its author wrote.
    Safe,
    /// Also fixes that need a review.
    Unsafe,
}

impl FixMode {
    /// Returns whether a fix is applied.
    pub fn allows(self, fix: &Fix) -> bool {
        fix.safe || self == Self::Unsafe
    }
}

/// The result of fixing a file.
#[derive(Debug)]
#[non_exhaustive]
pub struct Fixed {
    /// The new text of the file.
    pub source: SourceFile,
    /// The result of checking the new text.
    pub checked: Checked,
    /// The rules of the findings that were fixed.
    pub fixed: Vec<&'static Rule>,
}

impl Fixed {
    /// Returns the edits that turn the text before into the fixed one. Each replaces whole lines.
    pub fn edits(&self, before: &str) -> Vec<Edit> {
        difference::edits(before, self.source.text())
    }
}

/// Fixes the findings of a file, and checks it again until nothing is left to fix.
///
/// Fixes that overlap are applied one after the other. A fix is left out if the file would not load any more, or would
/// have a new error.
///
/// ```
/// use tympan_core::format::NoReferences;
/// use tympan_core::text::source::SourceFile;
/// use tympan_lint::{FixMode, Options, fix_file};
///
/// let source = SourceFile::new("old.prompty", "---\nmodel:\n  api: chat\n---\nuser:\nHi!\n");
/// let fixed = fix_file(&source, &mut NoReferences, &Options::default(), FixMode::Safe);
/// assert_eq!(fixed.source.text(), "---\nmodel:\n  apiType: chat\n---\nuser:\nHi!\n");
/// ```
pub fn fix_file(source: &SourceFile, files: &mut dyn Resolve, options: &Options, mode: FixMode) -> Fixed {
    let checked = check_file(source, files, options);
    let mut current = Fixed { source: source.clone(), checked, fixed: Vec::new() };
    let mut fixer = Fixer { files, options, mode, refused: HashSet::new() };
    let mut seen = HashSet::from([source.text().to_owned()]);
    for _ in 0..MAX_ROUNDS {
        let next = fixer.round(&current);
        // Fixes that undo each other would go on forever.
        match next.filter(|next| seen.insert(next.source.text().to_owned())) {
            Some(next) => current = next,
            None => break,
        }
    }
    current
}

struct Fixer<'a> {
    files: &'a mut dyn Resolve,
    options: &'a Options,
    mode: FixMode,
    /// The fixes that did harm, each with its rule and position in the text.
    refused: HashSet<String>,
}

impl Fixer<'_> {
    /// Applies as many fixes as possible. Returns `None` if no finding has a fix.
    fn round(&mut self, current: &Fixed) -> Option<Fixed> {
        let candidates = self.candidates(current);
        let mut together = Vec::new();
        let mut end = None;
        for finding in &candidates {
            let Some(fix) = &finding.fix else { continue };
            let (first, last) = extent(fix);
            if end.is_none_or(|end| first > end) {
                together.push(*finding);
                end = Some(last);
            }
        }
        if together.is_empty() {
            return None;
        }
        if let Some(fixed) = self.try_fixes(current, &together) {
            return Some(fixed);
        }
        for finding in candidates.into_iter().take(MAX_TRIED) {
            if let Some(fixed) = self.try_fixes(current, &[finding]) {
                return Some(fixed);
            }
            self.refused.insert(key(&current.source, finding));
        }
        None
    }

    /// Returns the findings with fixes that can be applied, sorted by position.
    fn candidates<'f>(&self, current: &'f Fixed) -> Vec<&'f Finding> {
        let is_allowed = |finding: &&Finding| {
            let fix = finding.fix.as_ref().filter(|fix| self.mode.allows(fix) && is_valid(fix, &current.source));
            fix.is_some() && !self.refused.contains(&key(&current.source, finding))
        };
        let mut candidates: Vec<_> = current.checked.findings.iter().filter(is_allowed).collect();
        candidates.sort_by_key(|finding| finding.fix.as_ref().map_or((0, 0), extent));
        candidates
    }

    /// Applies fixes and checks the result. Returns `None` if it is worse than before.
    fn try_fixes(&mut self, current: &Fixed, findings: &[&Finding]) -> Option<Fixed> {
        let edits = findings.iter().filter_map(|finding| finding.fix.as_ref()).flat_map(|fix| &fix.edits);
        let text = edited(current.source.text(), edits);
        if text == current.source.text() {
            return None;
        }
        let source = SourceFile::new(current.source.name(), text);
        let checked = check_file(&source, self.files, self.options);
        let is_worse = match (loads(&current.checked), loads(&checked)) {
            (true, false) => true,
            // What is wrong with a file that does not load hides other errors.
            (false, true) => false,
            _ => has_new_error(&current.checked, &checked),
        };
        if is_worse {
            return None;
        }
        // Several findings may have the same fix, such as all keys of version 1.
        let is_fixed = |finding: &&Finding| finding.fix.is_some() && findings.iter().any(|own| own.fix == finding.fix);
        let rules = current.checked.findings.iter().filter(is_fixed).map(|finding| finding.rule);
        let fixed = current.fixed.iter().copied().chain(rules).collect();
        Some(Fixed { source, checked, fixed })
    }
}

/// Returns what a fix that did harm is recognized by. Its line may move, but not change.
fn key(source: &SourceFile, finding: &Finding) -> String {
    let edits = finding.fix.iter().flat_map(|fix| &fix.edits);
    let edits: Vec<_> = edits.map(|(span, text)| (source.slice(*span), text)).collect();
    format!("{} {} {:?} {edits:?}", finding.rule.code, finding.message, finding.line(source))
}

/// Returns the first and the last offset that a fix changes.
fn extent(fix: &Fix) -> (usize, usize) {
    let start = fix.edits.iter().map(|(span, _)| span.start).min().unwrap_or_default();
    (start, fix.edits.iter().map(|(span, _)| span.end).max().unwrap_or_default())
}

/// Returns whether the edits are inside of the text, sorted, and do not overlap.
fn is_valid(fix: &Fix, source: &SourceFile) -> bool {
    let text = source.text();
    let is_inside = |span: &Span| text.get(span.range()).is_some();
    let mut edits: Vec<_> = fix.edits.iter().map(|(span, _)| *span).collect();
    edits.sort_by_key(|span| (span.start, span.end));
    !edits.is_empty() && edits.iter().all(is_inside) && edits.windows(2).all(|pair| pair[0].end <= pair[1].start)
}

/// Applies edits that do not overlap. New lines end as the lines of the text do.
fn edited<'e>(text: &str, edits: impl Iterator<Item = &'e (Span, String)>) -> String {
    let mut edits: Vec<_> = edits.collect();
    edits.sort_by_key(|(span, _)| (span.start, span.end));
    let has_crlf = text.find('\n').is_some_and(|newline| text[..newline].ends_with('\r'));
    let mut out = String::with_capacity(text.len() + 64);
    let mut at = 0;
    for (span, replacement) in edits {
        out.push_str(&text[at..span.start]);
        if has_crlf {
            out.push_str(&replacement.replace("\r\n", "\n").replace('\n', "\r\n"));
        } else {
            out.push_str(replacement);
        }
        at = span.end;
    }
    out.push_str(&text[at..]);
    out
}

fn loads(checked: &Checked) -> bool {
    checked.prompt.is_some() || checked.suite.is_some()
}

/// Returns whether there is an error that was not there before, wherever it was. An error that keeps tests from being
/// checked hides others, so these do not count once it is gone.
fn has_new_error(before: &Checked, after: &Checked) -> bool {
    let mut known: HashMap<_, usize> = HashMap::new();
    let hiding = |checked: &Checked| checked.findings.iter().filter(|finding| hides_others(finding)).count();
    let are_revealed = hiding(after) < hiding(before);
    let errors = |checked: &'_ Checked| -> Vec<(&'static str, String)> {
        let errors = checked.findings.iter().filter(|finding| finding.severity == Severity::Error);
        let errors =
            errors.filter(|finding| !are_revealed || finding.rule.group != Group::Tests || hides_others(finding));
        errors.map(|finding| (finding.rule.code, finding.message.clone())).collect()
    };
    errors(before).into_iter().for_each(|error| *known.entry(error).or_default() += 1);
    errors(after).into_iter().any(|error| match known.get_mut(&error) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    })
}

fn hides_others(finding: &Finding) -> bool {
    finding.is_fatal && finding.rule.group == Group::Tests
}

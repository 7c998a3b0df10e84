//! Differences between the findings of two versions.

use std::collections::HashMap;

use tympan_lint::Finding;

use super::PromptVersion;

/// What a finding is recognized by: its rule, and a text.
type Key<'v> = (&'static str, &'v str);

/// Returns the findings that are new, and those that are fixed.
///
/// A finding is the same if its rule and the text of its line are, wherever the line is now. On a line that changed, it is
/// the same if its rule and its message are.
pub(super) fn compare(before: &PromptVersion, after: &PromptVersion) -> (Vec<Finding>, Vec<Finding>) {
    let by_line = |version: &PromptVersion, finding: &Finding| match finding.span {
        Some(_) => finding.line(version.written.source()).trim().to_owned(),
        None => finding.message.clone(),
    };
    let lines =
        |version: &PromptVersion| version.findings.iter().map(|finding| by_line(version, finding)).collect::<Vec<_>>();
    let (old_lines, new_lines) = (lines(before), lines(after));
    let old: Vec<_> = before.findings.iter().zip(old_lines.iter().map(String::as_str)).collect();
    let new: Vec<_> = after.findings.iter().zip(new_lines.iter().map(String::as_str)).collect();
    let (old, new) = unpaired(old, new);
    let message = |(finding, _)| -> (&Finding, &str) { (finding, &finding.message) };
    let (old, new) = unpaired(old.into_iter().map(message).collect(), new.into_iter().map(message).collect());
    let owned = |findings: Vec<(&Finding, &str)>| findings.into_iter().map(|(finding, _)| finding.clone()).collect();
    (owned(new), owned(old))
}

/// Findings, and the text that each is recognized by.
type Keyed<'v> = Vec<(&'v Finding, &'v str)>;

/// Removes the findings that both lists have, one for one.
fn unpaired<'v>(old: Keyed<'v>, new: Keyed<'v>) -> (Keyed<'v>, Keyed<'v>) {
    (without(&old, &new), without(&new, &old))
}

/// Returns the findings that the other list does not have as often.
fn without<'v>(findings: &Keyed<'v>, others: &Keyed<'v>) -> Keyed<'v> {
    let mut known: HashMap<Key<'v>, usize> = HashMap::new();
    for (finding, text) in others {
        *known.entry((finding.rule.code, text)).or_default() += 1;
    }
    let mut left = Vec::new();
    for (finding, text) in findings {
        match known.get_mut(&(finding.rule.code, *text)) {
            Some(count) if *count > 0 => *count -= 1,
            _ => left.push((*finding, *text)),
        }
    }
    left
}

//! Suppressions: comments such as `# tympan: ignore[TY101]` that hide findings.
//!
//! A comment at the end of a line is about that line, and one alone on a line is about the next. `ignore-file` is about
//! the whole file. Errors that keep a file from loading, or a template from compiling, cannot be suppressed.

mod comments;

use tympan_core::Prompt;
use tympan_core::diagnostic::{Severity, guess};
use tympan_core::text::source::{SourceFile, Span};

use self::comments::{Comment, Language, comments};
use crate::file::Checked;
use crate::finding::{Finding, Fix};
use crate::rule::{FixAvailability, Group, Rule};
use crate::rules::RULES;
use crate::selection::{Selection, Selector};

pub(crate) static INVALID: Rule = Rule {
    code: "TY190",
    name: "invalid_suppression",
    group: Group::Correctness,
    severity: Severity::Warning,
    fix: FixAvailability::Sometimes,
    summary: "Reports a `tympan: ignore` comment that names an unknown rule, or no rule.",
    why: "The comment has no effect, so the finding that it should hide is still reported.",
    example: "inputs:\n  - {name: draft, kind: string}  # tympan: ignore[unused_varible]",
    how_to_fix: "Write the code or the name of a rule in square brackets, as in `# tympan: ignore[TY201]`.",
    check: None,
};

pub(crate) static UNUSED: Rule = Rule {
    code: "TY290",
    name: "unused_suppression",
    group: Group::Suspicious,
    severity: Severity::Warning,
    fix: FixAvailability::Always,
    summary: "Reports a `tympan: ignore` comment that hides no finding.",
    why: "It would hide the next mistake of this kind, and nobody would notice.",
    example: "user:\nHello!  {# tympan: ignore[TY301] #}",
    how_to_fix: "Remove the rule from the comment, or the comment. `tympan check --fix` does this.",
    check: None,
};

/// A comment that hides findings.
struct Suppression {
    comment: Comment,
    /// Whether it is about the whole file.
    is_file: bool,
    /// The position of the list, with its brackets.
    list: Span,
    entries: Vec<Entry>,
}

/// A rule or group in a suppression.
struct Entry {
    text: String,
    selector: Selector,
    is_used: bool,
}

/// Removes the findings that comments hide, and adds those about the comments.
pub(crate) fn apply(source: &SourceFile, selection: &Selection, checked: &mut Checked) {
    let loads = checked.prompt.is_some() || checked.suite.is_some();
    let prompt = checked.prompt.as_ref().or(checked.partial.as_ref());
    if !loads && prompt.is_none() {
        return;
    }
    let mut invalid = Vec::new();
    let mut suppressions = Suppressions::new(suppressions(source, prompt, &mut invalid));
    checked.findings.retain(|finding| finding.is_fatal || !suppressions.hide(finding));
    // Of a file that does not load, not all comments are known.
    if !loads {
        return;
    }
    // If a template does not compile, most rules have not seen it.
    if !checked.findings.iter().any(|finding| finding.is_fatal) {
        invalid.extend(suppressions.all().filter_map(|suppression| suppression.unused(source, selection)));
    }
    if !invalid.is_empty() {
        checked.findings.extend(invalid);
        checked.findings.sort_by_key(|finding| finding.span.map_or(0, |span| span.start));
    }
}

/// The suppressions of a file, prepared for a search by position.
struct Suppressions {
    of_file: Vec<Suppression>,
    /// The other ones, sorted by the start of their target, each with the largest end of a target so far.
    of_lines: Vec<(Suppression, usize)>,
}

impl Suppressions {
    fn new(suppressions: Vec<Suppression>) -> Self {
        let (of_file, mut of_lines): (Vec<_>, Vec<_>) =
            suppressions.into_iter().partition(|suppression| suppression.is_file);
        of_lines.sort_by_key(|suppression| suppression.comment.target.start);
        let mut last = 0;
        let with_end = |suppression: Suppression| {
            last = suppression.comment.target.end.max(last);
            (suppression, last)
        };
        Self { of_file, of_lines: of_lines.into_iter().map(with_end).collect() }
    }

    /// Returns whether a suppression hides a finding, and marks all that do as used.
    fn hide(&mut self, finding: &Finding) -> bool {
        let mut is_hidden = false;
        for suppression in &mut self.of_file {
            is_hidden |= suppression.hide(finding);
        }
        let Some(at) = finding.span.map(|span| span.start) else { return is_hidden };
        let after = self.of_lines.partition_point(|(suppression, _)| suppression.comment.target.start <= at);
        for (suppression, last) in self.of_lines[..after].iter_mut().rev() {
            let target = suppression.comment.target;
            if at < target.end || at == target.start {
                is_hidden |= suppression.hide(finding);
            } else if *last <= at {
                break;
            }
        }
        is_hidden
    }

    /// Returns all suppressions.
    fn all(&self) -> impl Iterator<Item = &Suppression> {
        self.of_file.iter().chain(self.of_lines.iter().map(|(suppression, _)| suppression))
    }
}

/// Parses the comments of a file. A test file has no prompt.
fn suppressions(source: &SourceFile, prompt: Option<&Prompt>, invalid: &mut Vec<Finding>) -> Vec<Suppression> {
    comments(source, prompt).into_iter().filter_map(|comment| parse(source, comment, invalid)).collect()
}

fn parse(source: &SourceFile, comment: Comment, invalid: &mut Vec<Finding>) -> Option<Suppression> {
    let text = source.slice(comment.text);
    let word_end = text.find(|char: char| !char.is_ascii_alphanumeric() && char != '-').unwrap_or(text.len());
    let (word, rest) = text.split_at(word_end);
    let mut report = |span: Span, message: String| invalid.push(Finding::new(&INVALID, span, message).with_help(HELP));
    if !matches!(word, "ignore" | "ignore-file") {
        let word_span = Span::new(comment.text.start, comment.text.start + word_end);
        if let Some(near) = guess(word, ["ignore", "ignore-file"]) {
            let finding = Finding::new(&INVALID, word_span, format!("unknown instruction `{word}` in a comment"));
            let fix = Fix::needs_review(word_span, near);
            invalid.push(finding.with_help(format!("did you mean `{near}`?")).with_fix(fix));
        }
        return None;
    }
    let Some((list, _)) = rest.trim_start().strip_prefix('[').and_then(|list| list.split_once(']')) else {
        report(comment.span, format!("`{word}` without a list of rules has no effect"));
        return None;
    };
    if list.trim().is_empty() {
        report(comment.span, format!("`{word}[]` names no rule"));
        return None;
    }
    let list_start = comment.text.start + text.find('[')? + 1;
    let list_span = Span::new(list_start - 1, list_start + list.len() + 1);
    let mut entries = Vec::new();
    let mut at = list_start;
    for part in list.split(',') {
        let wanted = part.trim();
        let start = at + part.find(wanted).unwrap_or_default();
        at += part.len() + 1;
        match wanted.parse::<Selector>() {
            Ok(selector) => entries.push(Entry { text: wanted.to_owned(), selector, is_used: false }),
            Err(unknown) => invalid.push(unknown_rule(Span::new(start, start + wanted.len()), &unknown)),
        }
    }
    Some(Suppression { is_file: word == "ignore-file", comment, list: list_span, entries })
}

/// Advice on the form of a suppression.
const HELP: &str = "name the rules to ignore, as in `tympan: ignore[TY101]`";

fn unknown_rule(span: Span, unknown: &crate::UnknownSelector) -> Finding {
    let finding = Finding::new(&INVALID, span, format!("unknown rule `{}` in a comment", unknown.wanted));
    match unknown.suggestion {
        Some(near) => finding.with_help(format!("did you mean `{near}`?")).with_fix(Fix::needs_review(span, near)),
        None => finding.with_help("`tympan rule` lists all rules"),
    }
}

impl Suppression {
    /// Returns whether an entry contains the rule of a finding, and marks all that do as used.
    fn hide(&mut self, finding: &Finding) -> bool {
        let mut is_hidden = false;
        for entry in self.entries.iter_mut().filter(|entry| entry.selector.contains(finding.rule)) {
            (entry.is_used, is_hidden) = (true, true);
        }
        is_hidden
    }

    /// Returns the finding about entries that hide nothing, although their rules are reported.
    fn unused(&self, source: &SourceFile, selection: &Selection) -> Option<Finding> {
        let is_reported =
            |selector: Selector| RULES.iter().any(|rule| selector.contains(rule) && selection.is_selected(rule));
        let (unused, used): (Vec<_>, Vec<_>) =
            self.entries.iter().partition(|entry| !entry.is_used && is_reported(entry.selector));
        if unused.is_empty() {
            return None;
        }
        let names: Vec<_> = unused.iter().map(|entry| format!("`{}`", entry.text)).collect();
        let message = format!("unused suppression of {}", names.join(", "));
        let mut finding = Finding::new(&UNUSED, self.comment.span, message).with_help("remove it");
        if used.is_empty() {
            finding.fix = self.removal(source);
        } else {
            let left: Vec<_> = used.iter().map(|entry| entry.text.as_str()).collect();
            finding.fix = Some(Fix::safe(self.list, format!("[{}]", left.join(", "))));
        }
        Some(finding)
    }

    /// Returns the fix that removes the whole comment, without changing what the template renders.
    fn removal(&self, source: &SourceFile) -> Option<Fix> {
        let Comment { span, line, language, .. } = self.comment;
        let text = source.text();
        if span.start >= span.end {
            return None;
        }
        Some(match language {
            Language::Data => {
                let line_start = text[..span.start].trim_end_matches([' ', '\t']).len();
                Fix::safe(line.unwrap_or(Span::new(line_start, span.end)), "")
            }
            // A comment that is alone on a line disappears together with the line.
            Language::Mustache => Fix::safe(line.unwrap_or(span), ""),
            Language::Jinja => {
                let comment = source.slice(span);
                let trims = comment.starts_with("{#-") || comment.ends_with("-#}") || comment.ends_with("+#}");
                // What is before and behind the comment could become a tag or a role marker.
                let (before, after) = (&text[..span.start], &text[span.end..]);
                let joins = before.ends_with('{') && after.starts_with(['{', '%', '#']);
                let is_marker = before.trim_end_matches([' ', '\t']).ends_with(':');
                Fix { edits: vec![(span, String::new())], safe: !(trims || joins || is_marker) }
            }
            // The text of a directive is sent as it is written, and may be signed.
            Language::Markup => Fix::needs_review(line.unwrap_or(span), ""),
        })
    }
}

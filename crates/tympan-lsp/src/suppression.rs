//! Comments that suppress a finding on a line.
//!
//! Whether a comment works depends on what is around it: a line may end inside a tag or a string. So each possible
//! place is tried, and the result is checked like any other version of the document.

use std::collections::HashMap;

use tympan_core::format::{Format, definition, frontmatter};
use tympan_core::prompt::analysis::marker_role;
use tympan_core::template::syntax::SyntaxTree;
use tympan_core::text::source::{SourceFile, Span};
use tympan_lint::{Finding, check_file};

use crate::analysis::Analysis;
use crate::document::Document;
use crate::workspace::WorkspaceFiles;

/// A text to insert, and its offset.
type Insertion = (usize, String);

/// Returns the comment that suppresses a finding, and where to insert it. Returns `None` if there is no place for a
/// comment, or if the finding keeps the file from loading.
pub(crate) fn comment(
    document: &Document,
    analysis: &Analysis,
    files: &mut WorkspaceFiles<'_>,
    finding: &Finding,
) -> Option<Insertion> {
    let span = finding.span?;
    if finding.is_fatal {
        return None;
    }
    let line = document.line_at(span.start);
    let code = finding.rule.code;
    let mut candidates: Vec<_> = longer_list(document, line, code).into_iter().collect();
    match document.format() {
        Format::Prompty => {
            if span.start < frontmatter::split(document.text()).ok()?.body.start {
                candidates.extend(in_data(document, line, code));
            } else {
                candidates.extend(in_template(document, analysis, line, code));
            }
        }
        // A comment in JSON is a mistake, and one in a string is text.
        Format::Definition(definition::Syntax::Json) | Format::Tests(definition::Syntax::Json) => return None,
        Format::Tests(_) => candidates.extend(in_data(document, line, code)),
        Format::Definition(_) => {
            candidates.extend(in_data(document, line, code));
            candidates.extend(in_template(document, analysis, line, code));
        }
        Format::Directive => candidates.extend(in_markup(document, line, code)),
        _ => return None,
    }
    candidates.into_iter().find(|insertion| is_effective(document, analysis, files, finding, insertion))
}

/// Adds a rule to the comment that the line has already.
fn longer_list(document: &Document, line: Span, code: &str) -> Option<Insertion> {
    const START: &str = "tympan: ignore[";
    let text = document.source().slice(line);
    let start = text.rfind(START)? + START.len();
    let list = &text[start..start + text[start..].find(']')?];
    (!list.trim().is_empty()).then(|| (line.start + start + list.trim_end().len(), format!(", {code}")))
}

/// Returns comments of YAML or TOML: at the end of a line or, if the line ends inside a value, before it.
fn in_data(document: &Document, line: Span, code: &str) -> [Insertion; 2] {
    let indent = indent(document.source().slice(line));
    let line_end = line_end(document);
    [
        (line.end, format!("  # tympan: ignore[{code}]")),
        (line.start, format!("{indent}# tympan: ignore[{code}]{line_end}")),
    ]
}

/// Returns comments of Markdown and XML: at the end of a line, or before it.
fn in_markup(document: &Document, line: Span, code: &str) -> [Insertion; 2] {
    let comment = format!("<!-- tympan: ignore[{code}] -->");
    let indent = indent(document.source().slice(line));
    let own_line = format!("{indent}{comment}{}", line_end(document));
    [(line.end, format!(" {comment}")), (line.start, own_line)]
}

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

fn line_end(document: &Document) -> &'static str {
    if document.text().contains("\r\n") { "\r\n" } else { "\n" }
}

/// Returns comments in the syntax of the template, the best place first. They leave the rendered text as it is, apart
/// from an empty line.
fn in_template(document: &Document, analysis: &Analysis, line: Span, code: &str) -> Vec<Insertion> {
    let tree = analysis.prompt.as_ref().and_then(|prompt| prompt.templates().next()?.syntax_tree());
    let text = document.source().slice(line);
    let (line_end, indent) = (line_end(document), indent(text));
    let on_own_line = |comment: &str| (line.start, format!("{indent}{comment}{line_end}"));
    match tree {
        Some(SyntaxTree::Jinja(_)) => {
            let comment = format!("{{# tympan: ignore[{code}] #}}");
            let own_line = on_own_line(&comment);
            // A role marker is alone on its line.
            if marker_role(text).is_some() {
                return vec![own_line];
            }
            // A tag that removes the white space behind it would not see it any more.
            let trims = ["-}}", "-%}", "-#}"].iter().any(|end| text.ends_with(end));
            let at_end = if trims { format!("{{# tympan: ignore[{code}] -#}}") } else { comment };
            vec![(line.end, at_end), own_line]
        }
        Some(SyntaxTree::Mustache(_)) => {
            let comment = format!("{{{{! tympan: ignore[{code}] }}}}");
            // Other tags are standalone only if they are alone on their lines.
            vec![on_own_line(&comment), (line.end, comment)]
        }
        _ => Vec::new(),
    }
}

/// Returns whether a comment hides the finding, and nothing else is reported because of it.
fn is_effective(
    document: &Document,
    analysis: &Analysis,
    files: &mut WorkspaceFiles<'_>,
    finding: &Finding,
    (at, comment): &Insertion,
) -> bool {
    let mut text = document.text().to_owned();
    text.insert_str(*at, comment);
    let checked = check_file(&SourceFile::new(document.source().name(), text), files, &analysis.options);
    let start = finding.span.unwrap_or_default().start;
    let is_finding = |other: &Finding| {
        let other_start = other.span.unwrap_or_default().start;
        other.rule.code == finding.rule.code && [start, start + comment.len()].contains(&other_start)
    };
    (checked.prompt.is_some() || checked.suite.is_some() || !analysis.loads)
        && !checked.findings.iter().any(is_finding)
        && !has_new_finding(&analysis.findings, &checked.findings)
}

/// Returns whether a rule has more findings than before.
fn has_new_finding(before: &[Finding], after: &[Finding]) -> bool {
    let mut left: HashMap<_, usize> = HashMap::new();
    before.iter().for_each(|finding| *left.entry(finding.rule.code).or_default() += 1);
    after.iter().any(|finding| match left.get_mut(finding.rule.code) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    })
}

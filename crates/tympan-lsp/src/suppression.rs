//! Comments that suppress a finding on a line.

use tympan_core::diagnostic::Severity;
use tympan_core::format::outline::{Field, Outline};
use tympan_core::format::{Format, definition, frontmatter};
use tympan_core::prompt::analysis::marker_role;
use tympan_core::text::source::Span;
use tympan_lint::{Finding, Group};

use crate::analysis::Analysis;
use crate::document::Document;

/// Returns the comment that suppresses a finding, and where to insert it. Returns `None` if there is no place for a
/// comment, or if the finding keeps the file from loading.
pub(crate) fn comment(document: &Document, analysis: &Analysis, finding: &Finding) -> Option<(usize, String)> {
    let span = finding.span?;
    if finding.rule.group == Group::Format && finding.severity == Severity::Error {
        return None;
    }
    let line = document.line_at(span.start);
    let directive = format!("tympan: ignore[{}]", finding.rule.code);
    let body = match document.format() {
        Format::Prompty => frontmatter::split(document.text()).ok()?.body,
        // A comment in JSON is a mistake, and one in a string is text.
        Format::Definition(definition::Syntax::Json) => return None,
        Format::Definition(_) => Span::new(document.text().len() + 1, document.text().len() + 1),
        _ => return None,
    };
    if span.start >= body.start {
        return in_template(document, analysis, line, &directive);
    }
    let outline = Outline::new(document.source(), document.format());
    let is_in_text = outline.get(&[]).is_some_and(|root| is_in_text(root, line.end));
    (!is_in_text).then(|| (line.end, format!("  # {directive}")))
}

/// Returns a comment in the syntax of the template. It leaves the rendered text as it is, apart from an empty line.
fn in_template(document: &Document, analysis: &Analysis, line: Span, directive: &str) -> Option<(usize, String)> {
    let format = analysis.prompt.as_ref().map_or("jinja2", |prompt| prompt.spec().template.format.as_str());
    let comment = match format {
        "jinja2" => format!("{{# {directive} #}}"),
        "mustache" => format!("{{{{! {directive} }}}}"),
        _ => return None,
    };
    let text = document.source().slice(line);
    // A role marker has its line for itself, and a standalone tag of Mustache too.
    let has_own_line = marker_role(text).is_some() || format == "mustache";
    if has_own_line {
        let end = if document.text().contains("\r\n") { "\r\n" } else { "\n" };
        return Some((line.start, format!("{comment}{end}")));
    }
    Some((line.end, comment))
}

/// Returns whether an offset is inside a text of more than one line.
fn is_in_text(field: Field<'_>, offset: usize) -> bool {
    if field.text().is_some() {
        return field.span.start < offset && offset < field.span.end;
    }
    field.entries().chain(field.items()).any(|part| is_in_text(part, offset))
}

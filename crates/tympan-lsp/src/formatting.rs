//! Formatting of whole documents.

use gen_lsp_types::TextEdit;
use tympan_lint::format::{FormatOptions, format_file};

use crate::document::Document;
use crate::edit::text_edits;
use crate::workspace::WorkspaceFiles;

/// Returns the edits that format a document. A document that does not load is left as it is: its mistakes are shown
/// already.
pub(crate) fn edits(document: &Document, files: &mut WorkspaceFiles<'_>) -> Option<Vec<TextEdit>> {
    if !document.is_prompt() {
        return None;
    }
    let formatted = format_file(document.source(), files, &FormatOptions::default()).ok()?;
    let edits = formatted.edits(document.text());
    Some(text_edits(document, edits.iter().map(|(span, text)| (*span, text.as_str()))))
}

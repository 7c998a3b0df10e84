//! Edits of a document.

use std::collections::HashMap;

use gen_lsp_types::{TextEdit, WorkspaceEdit};
use tympan_core::text::source::Span;

use crate::document::Document;

/// Converts replacements of spans.
pub(crate) fn text_edits<'e>(document: &Document, edits: impl IntoIterator<Item = (Span, &'e str)>) -> Vec<TextEdit> {
    let edits = edits.into_iter();
    edits.map(|(span, text)| TextEdit::new(document.range(span), text.to_owned())).collect()
}

/// Returns the change of a document that applies these edits.
pub(crate) fn workspace_edit(document: &Document, edits: Vec<TextEdit>) -> WorkspaceEdit {
    let changes = HashMap::from([(document.uri.clone(), edits)]);
    WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() }
}

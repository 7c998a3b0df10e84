//! The answers to requests about test files.

use gen_lsp_types::{DocumentHighlight, Hover, Location, MarkupContent, MarkupKind, Position, Range};
use serde_json::{Value as Json, json};
use tympan_core::format::Resolve;
use tympan_core::format::outline::Outline;
use tympan_core::text::source::Span;

use crate::document::Document;
use crate::failure::{Answer, Failure};
use crate::features::to_json;
use crate::navigation;
use crate::outline::flattened;
use crate::server::Server;
use crate::suite::completion::path_in_tests;
use crate::suite::{Suite, outline, schema, tested_prompt};
use crate::symbol::Symbol;
use crate::view::View;

/// A request about a position.
pub(crate) enum PositionRequest<'r> {
    Hover,
    Definition,
    References { with_declarations: bool },
    Highlight,
    PrepareRename,
    Rename { new_name: &'r str },
}

/// Answers a request about a position of a test file.
pub(crate) fn at_position(
    server: &Server<'_>,
    document: &Document,
    position: Position,
    request: &PositionRequest<'_>,
) -> Answer<Json> {
    let offset = document.offset(position);
    let source = Outline::new(document.source(), document.format());
    let prompt = tested_prompt(server, document);
    let prompt = prompt.as_deref();
    let view = prompt.and_then(|prompt| View::new(prompt, server.analysis(prompt)));
    let Some(suite) = Suite::new(document, &source) else {
        return match request {
            PositionRequest::PrepareRename | PositionRequest::Rename { .. } => {
                Err(Failure::refused("the test file has mistakes"))
            }
            _ => Ok(Json::Null),
        };
    };
    let input = suite.input_at(offset);
    match (request, input, &view) {
        (PositionRequest::Hover, ..) => to_json(hover(suite, view.as_ref(), offset)),
        (PositionRequest::Definition, Some((name, _)), Some(view)) => to_json(navigation::declarations(view, name)),
        (PositionRequest::Definition, ..) => to_json(file(server, suite, offset)),
        (PositionRequest::Highlight, Some((name, _)), _) => {
            let same = suite.input_names().into_iter().filter(|(other, _)| *other == name);
            let highlight = |(_, span)| DocumentHighlight { range: document.range(span), kind: None };
            to_json(same.map(highlight).collect::<Vec<_>>())
        }
        (PositionRequest::References { with_declarations }, Some((name, _)), Some(view)) => {
            to_json(navigation::references_of(server, view, &Symbol::Input(name.to_owned()), *with_declarations))
        }
        (PositionRequest::PrepareRename, Some((name, span)), Some(view)) => {
            navigation::renamable(server, view, &Symbol::Input(name.to_owned()))?;
            to_json(json!({"range": document.range(span), "placeholder": name}))
        }
        (PositionRequest::Rename { new_name }, Some((name, _)), Some(view)) => {
            to_json(navigation::rename_symbol(server, view, &Symbol::Input(name.to_owned()), new_name)?)
        }
        (PositionRequest::PrepareRename | PositionRequest::Rename { .. }, Some(_), None) => {
            Err(Failure::refused("the prompt of these tests does not exist"))
        }
        (PositionRequest::PrepareRename | PositionRequest::Rename { .. }, None, _) => {
            Err(Failure::refused("there is no name to rename here"))
        }
        _ => Ok(Json::Null),
    }
}

fn hover(suite: Suite<'_>, view: Option<&View<'_>>, offset: usize) -> Option<Hover> {
    let (text, span) = match (suite.input_at(offset), view) {
        (Some((name, span)), Some(view)) => (crate::hover::input(view, name), span),
        _ => about_key(suite, offset)?,
    };
    let contents = MarkupContent { kind: MarkupKind::Markdown, value: text };
    Some(Hover { contents: contents.into(), range: Some(suite.document.range(span)) })
}

/// Returns the description of the key at an offset.
pub(crate) fn about_key(suite: Suite<'_>, offset: usize) -> Option<(String, Span)> {
    let (path, span) = suite.key_at(offset)?;
    let about = schema::about(&path)?;
    Some((format!("**{}**\n\n{about}", path.last()?), span))
}

/// Returns the description of the key at a path in a prompt file.
pub(crate) fn about_path(path: &[&str]) -> Option<String> {
    let about = schema::about(&path_in_tests(path)?)?;
    Some(format!("**{}**\n\n{about}", path.last()?))
}

/// Returns the start of the file whose path is at an offset.
pub(crate) fn file(server: &Server<'_>, suite: Suite<'_>, offset: usize) -> Option<Vec<Location>> {
    let path = suite.file_at(offset)?;
    let mut files = server.files(suite.document);
    files.file(path).ok()?;
    let uri = gen_lsp_types::Uri::from_file_path(files.path(path)?).ok()?;
    let start = Position::new(0, 0);
    Some(vec![Location::new(uri, Range::new(start, start))])
}

/// Returns the cases of a test file as symbols.
pub(crate) fn symbols(document: &Document, as_tree: bool) -> Answer<Json> {
    let source = Outline::new(document.source(), document.format());
    let symbols = Suite::new(document, &source).map(outline::symbols).unwrap_or_default();
    if as_tree { to_json(symbols) } else { to_json(flattened(document, symbols)) }
}

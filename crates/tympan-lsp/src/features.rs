//! The requests of the protocol that this server answers.

use gen_lsp_types::{
    CodeActionParams, CodeLensParams, CompletionList, CompletionParams, DocumentFormattingParams, DocumentHighlight,
    DocumentHighlightParams, DocumentSymbolParams, ExecuteCommandParams, HoverParams, InlayHintParams,
    PrepareRenameParams, ReferenceParams, RenameParams, SemanticTokensParams, SemanticTokensRangeParams,
    TextDocumentPositionParams, Uri,
};
use lsp_server::ErrorCode;
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::document::Document;
use crate::failure::{Answer, Failure};
use crate::server::{Server, parse};
use crate::suite::Suite;
use crate::suite::features::PositionRequest;
use crate::view::View;
use crate::{
    actions, completion, formatting, hover, key_completion, lenses, navigation, outline, semantic_tokens, suite,
};

/// Answers a request.
pub(crate) fn answer(server: &Server<'_>, method: &str, params: Json) -> Answer<Json> {
    match method {
        "textDocument/codeAction" => {
            let params: CodeActionParams = parse(params)?;
            let document = server.document(&params.text_document.uri)?;
            let analysis = server.analysis(document);
            to_json(actions::code_actions(document, analysis, &mut server.files(document), &params))
        }
        "textDocument/hover" => {
            let params: HoverParams = parse(params)?;
            at_position(server, &params.text_document_position_params, &PositionRequest::Hover, |view, offset| {
                to_json(hover::hover(view, offset))
            })
        }
        "textDocument/completion" => {
            let params: CompletionParams = parse(params)?;
            complete(server, &params.text_document_position_params)
        }
        "textDocument/definition" => {
            let params: gen_lsp_types::DefinitionParams = parse(params)?;
            at_position(server, &params.text_document_position_params, &PositionRequest::Definition, |view, offset| {
                let found = navigation::definition(view, offset);
                let suite = Suite::new(view.document, &view.outline).filter(|_| found.is_empty());
                let file = suite.and_then(|suite| suite::features::file(server, suite, offset));
                to_json(file.unwrap_or(found))
            })
        }
        "textDocument/references" => {
            let params: ReferenceParams = parse(params)?;
            let with_declarations = params.context.include_declaration;
            let request = PositionRequest::References { with_declarations };
            at_position(server, &params.text_document_position_params, &request, |view, offset| {
                to_json(navigation::references(server, view, offset, with_declarations))
            })
        }
        "textDocument/documentHighlight" => {
            let params: DocumentHighlightParams = parse(params)?;
            at_position(server, &params.text_document_position_params, &PositionRequest::Highlight, |view, offset| {
                let spans = navigation::occurrences(view, offset).into_iter();
                let highlight = |span| DocumentHighlight { range: view.document.range(span), kind: None };
                to_json(spans.map(highlight).collect::<Vec<_>>())
            })
        }
        "textDocument/prepareRename" => {
            let params: PrepareRenameParams = parse(params)?;
            at_position(
                server,
                &params.text_document_position_params,
                &PositionRequest::PrepareRename,
                |view, offset| {
                    let span = navigation::prepare_rename(server, view, offset)?;
                    to_json(
                        json!({"range": view.document.range(span), "placeholder": view.document.source().slice(span)}),
                    )
                },
            )
        }
        "textDocument/rename" => {
            let params: RenameParams = parse(params)?;
            let request = PositionRequest::Rename { new_name: &params.new_name };
            at_position(server, &params.text_document_position_params, &request, |view, offset| {
                to_json(navigation::rename(server, view, offset, &params.new_name)?)
            })
        }
        _ => about_document(server, method, params),
    }
}

/// Answers a request about a whole document, or a command.
fn about_document(server: &Server<'_>, method: &str, params: Json) -> Answer<Json> {
    match method {
        "textDocument/documentSymbol" => {
            let params: DocumentSymbolParams = parse(params)?;
            let as_tree = server.client.shows_symbol_tree;
            let document = server.document(&params.text_document.uri)?;
            if document.is_test_file() {
                return suite::features::symbols(document, as_tree);
            }
            with_view(server, &params.text_document.uri, json!([]), |view| outline::symbols(view, as_tree))
        }
        "textDocument/semanticTokens/full" => {
            let params: SemanticTokensParams = parse(params)?;
            with_view(server, &params.text_document.uri, json!({"data": []}), |view| {
                to_json(semantic_tokens::tokens(view, None))
            })
        }
        "textDocument/semanticTokens/range" => {
            let params: SemanticTokensRangeParams = parse(params)?;
            with_view(server, &params.text_document.uri, json!({"data": []}), |view| {
                to_json(semantic_tokens::tokens(view, Some(view.document.span(params.range))))
            })
        }
        "textDocument/inlayHint" => {
            let params: InlayHintParams = parse(params)?;
            with_view(server, &params.text_document.uri, json!([]), |view| to_json(lenses::hints(view, params.range)))
        }
        "textDocument/codeLens" => {
            let params: CodeLensParams = parse(params)?;
            let document = server.document(&params.text_document.uri)?;
            to_json(lenses::lenses(document, server.analysis(document), &server.client))
        }
        "textDocument/formatting" => {
            let params: DocumentFormattingParams = parse(params)?;
            let document = server.document(&params.text_document.uri)?;
            to_json(formatting::edits(document, &mut server.files(document)))
        }
        "workspace/executeCommand" => {
            let params: ExecuteCommandParams = parse(params)?;
            let uri = lenses::command_uri(&params.command, params.arguments.as_deref())?;
            let document = server.document(&uri)?;
            lenses::render(server.analysis(document))
        }
        _ => Err(Failure::new(ErrorCode::MethodNotFound, format_args!("unknown method `{method}`"))),
    }
}

/// Converts an answer.
pub(crate) fn to_json(answer: impl Serialize) -> Answer<Json> {
    serde_json::to_value(answer).map_err(|error| Failure::new(ErrorCode::InternalError, error))
}

/// Answers about a document. `empty` is the answer if nothing of the document can be parsed.
fn with_view(
    server: &Server<'_>,
    uri: &Uri,
    empty: Json,
    answer: impl FnOnce(&View<'_>) -> Answer<Json>,
) -> Answer<Json> {
    let document = server.document(uri)?;
    View::new(document, server.analysis(document)).map_or(Ok(empty), |view| answer(&view))
}

/// Answers about a position of a document: with `answer` for a prompt, and for a test file as the request says.
fn at_position(
    server: &Server<'_>,
    params: &TextDocumentPositionParams,
    request: &PositionRequest<'_>,
    answer: impl FnOnce(&View<'_>, usize) -> Answer<Json>,
) -> Answer<Json> {
    let document = server.document(&params.text_document.uri)?;
    if document.is_test_file() {
        return suite::features::at_position(server, document, params.position, request);
    }
    with_view(server, &params.text_document.uri, Json::Null, |view| answer(view, view.document.offset(params.position)))
}

/// Answers `textDocument/completion`. Front matter is completed even if nothing can be parsed.
fn complete(server: &Server<'_>, params: &TextDocumentPositionParams) -> Answer<Json> {
    let document: &Document = server.document(&params.text_document.uri)?;
    let offset = document.offset(params.position);
    let view = View::new(document, server.analysis(document));
    let in_template = view.as_ref().and_then(|view| completion::in_template(view, offset));
    let found = in_template.or_else(|| key_completion::suggestions(server, document, view.as_ref(), offset));
    let (suggestions, span) = found.unwrap_or_default();
    let items = suggestions.into_iter().enumerate().map(|(rank, item)| item.into_item(document, span, rank));
    to_json(CompletionList { is_incomplete: false, items: items.collect(), ..CompletionList::default() })
}

//! The requests of the protocol that this server answers.

use gen_lsp_types::CodeActionParams;
use lsp_server::ErrorCode;
use serde::Serialize;
use serde_json::Value as Json;

use crate::actions;
use crate::failure::{Answer, Failure};
use crate::server::{Server, parse};

/// Answers a request.
pub(crate) fn answer(server: &Server<'_>, method: &str, params: Json) -> Answer<Json> {
    match method {
        "textDocument/codeAction" => code_action(server, parse(params)?),
        _ => Err(Failure::new(ErrorCode::MethodNotFound, format_args!("unknown method `{method}`"))),
    }
}

fn json(answer: impl Serialize) -> Answer<Json> {
    serde_json::to_value(answer).map_err(|error| Failure::new(ErrorCode::InternalError, error))
}

fn code_action(server: &Server<'_>, params: CodeActionParams) -> Answer<Json> {
    let document = server.document(&params.text_document.uri)?;
    json(actions::code_actions(document, server.analysis(document), &params))
}

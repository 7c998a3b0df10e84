//! What this server can do, as it says to clients.

use gen_lsp_types::{
    ChangeNotifications, CodeActionKind, CodeActionOptions, CodeLensOptions, CompletionOptions, ExecuteCommandOptions,
    RenameOptions, SaveOptions, SemanticTokensOptions, ServerCapabilities, TextDocumentSyncKind,
    TextDocumentSyncOptions, WorkspaceFoldersServerCapabilities, WorkspaceOptions,
};

use crate::actions::FIX_ALL;
use crate::client::Client;
use crate::completion::TRIGGERS;
use crate::lenses::RENDER;
use crate::semantic_tokens::legend;

pub(crate) fn capabilities(client: &Client) -> ServerCapabilities {
    let sync = TextDocumentSyncOptions {
        open_close: Some(true),
        change: Some(TextDocumentSyncKind::Incremental),
        save: Some(SaveOptions { include_text: Some(false) }.into()),
        ..TextDocumentSyncOptions::default()
    };
    let actions = CodeActionOptions {
        code_action_kinds: Some(vec![CodeActionKind::QuickFix, CodeActionKind::Custom(FIX_ALL.into())]),
        ..CodeActionOptions::default()
    };
    let completion = CompletionOptions {
        trigger_characters: Some(TRIGGERS.iter().map(|trigger| (*trigger).to_owned()).collect()),
        ..CompletionOptions::default()
    };
    let rename = RenameOptions { prepare_provider: Some(true), ..RenameOptions::default() };
    let tokens = SemanticTokensOptions {
        legend: legend(),
        range: Some(true.into()),
        full: Some(true.into()),
        ..SemanticTokensOptions::default()
    };
    let folders = WorkspaceFoldersServerCapabilities {
        supported: Some(true),
        change_notifications: Some(ChangeNotifications::Bool(true)),
    };
    ServerCapabilities {
        position_encoding: Some(client.encoding.kind()),
        text_document_sync: Some(sync.into()),
        code_action_provider: Some(actions.into()),
        hover_provider: Some(true.into()),
        completion_provider: Some(completion),
        definition_provider: Some(true.into()),
        references_provider: Some(true.into()),
        document_highlight_provider: Some(true.into()),
        document_formatting_provider: Some(true.into()),
        rename_provider: Some(rename.into()),
        document_symbol_provider: Some(true.into()),
        semantic_tokens_provider: Some(tokens.into()),
        inlay_hint_provider: Some(true.into()),
        code_lens_provider: Some(CodeLensOptions { resolve_provider: Some(false), ..CodeLensOptions::default() }),
        execute_command_provider: Some(ExecuteCommandOptions {
            commands: vec![RENDER.to_owned()],
            ..ExecuteCommandOptions::default()
        }),
        workspace: Some(WorkspaceOptions { workspace_folders: Some(folders), ..WorkspaceOptions::default() }),
        ..ServerCapabilities::default()
    }
}

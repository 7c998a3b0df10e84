//! What this server can do, as it says to clients.

use gen_lsp_types::{
    ChangeNotifications, CodeActionKind, CodeActionOptions, SaveOptions, ServerCapabilities, TextDocumentSyncKind,
    TextDocumentSyncOptions, WorkspaceFoldersServerCapabilities, WorkspaceOptions,
};

use crate::actions::FIX_ALL;
use crate::client::Client;

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
    let folders = WorkspaceFoldersServerCapabilities {
        supported: Some(true),
        change_notifications: Some(ChangeNotifications::Bool(true)),
    };
    ServerCapabilities {
        position_encoding: Some(client.encoding.kind()),
        text_document_sync: Some(sync.into()),
        code_action_provider: Some(actions.into()),
        workspace: Some(WorkspaceOptions { workspace_folders: Some(folders), ..WorkspaceOptions::default() }),
        ..ServerCapabilities::default()
    }
}

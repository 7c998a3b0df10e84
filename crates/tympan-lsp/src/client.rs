//! What the client said about itself when it connected.

use std::path::PathBuf;

use gen_lsp_types::Uri;
use serde_json::Value as Json;

use crate::position::Encoding;

/// The settings and capabilities of a client. Missing or malformed ones have their defaults.
#[derive(Clone, Debug, Default)]
pub(crate) struct Client {
    pub(crate) encoding: Encoding,
    /// The folders of the workspace.
    pub(crate) folders: Vec<PathBuf>,
    /// Whether the user trusts the workspace, so that prompts may be run from the editor.
    pub(crate) trusted: bool,
    /// Whether it reports changes of files if it is asked to.
    pub(crate) watches_files: bool,
    /// Whether it shows symbols as a tree.
    pub(crate) shows_symbol_tree: bool,
}

impl Client {
    /// Reads the parameters of `initialize`.
    pub(crate) fn new(params: &Json) -> Self {
        let flag = |path: &str| params.pointer(path).and_then(Json::as_bool).unwrap_or_default();
        Self {
            encoding: encoding(params),
            folders: folders(params),
            trusted: flag("/initializationOptions/trusted"),
            watches_files: flag("/capabilities/workspace/didChangeWatchedFiles/dynamicRegistration"),
            shows_symbol_tree: flag("/capabilities/textDocument/documentSymbol/hierarchicalDocumentSymbolSupport"),
        }
    }

    /// Applies a change of the workspace's folders.
    pub(crate) fn change_folders(&mut self, params: &Json) {
        let listed = |path: &str| paths(params.pointer(path));
        let removed = listed("/event/removed");
        self.folders.retain(|folder| !removed.contains(folder));
        self.folders.extend(listed("/event/added"));
    }
}

/// Chooses the encoding. UTF-8 needs no conversion, and UTF-16 is what clients support that list nothing.
fn encoding(params: &Json) -> Encoding {
    let listed = params.pointer("/capabilities/general/positionEncodings").and_then(Json::as_array);
    let listed: Vec<_> = listed.into_iter().flatten().filter_map(|name| Encoding::from_name(name.as_str()?)).collect();
    let preferred = [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32];
    preferred.into_iter().find(|encoding| listed.contains(encoding)).unwrap_or_default()
}

/// Returns the folders of the workspace. Older clients have only one.
fn folders(params: &Json) -> Vec<PathBuf> {
    let folders = paths(params.get("workspaceFolders"));
    if !folders.is_empty() {
        return folders;
    }
    let root = params.get("rootUri").and_then(Json::as_str).and_then(file_path);
    let root = root.or_else(|| params.get("rootPath").and_then(Json::as_str).map(PathBuf::from));
    root.into_iter().collect()
}

fn paths(folders: Option<&Json>) -> Vec<PathBuf> {
    let folders = folders.and_then(Json::as_array).into_iter().flatten();
    folders.filter_map(|folder| file_path(folder.get("uri")?.as_str()?)).collect()
}

fn file_path(uri: &str) -> Option<PathBuf> {
    uri.parse::<Uri>().ok()?.to_file_path().ok()
}

//! Collects the credentials in a prompt.

use serde_json::Value as Json;

use super::{Connection, PromptSpec, ToolKind};
use crate::json::JsonMap;
use crate::secret::Secret;
use crate::secret::credential::is_credential;
use crate::secret::url::secrets_of_url;

impl PromptSpec {
    /// Returns the credentials in the prompt's connections.
    pub(crate) fn credentials(&self) -> Vec<Secret> {
        let mut found = Vec::new();
        let tools = self.tools.iter().filter_map(|tool| match &tool.kind {
            ToolKind::Mcp { connection, .. }
            | ToolKind::OpenApi { connection, .. }
            | ToolKind::Custom { connection, .. } => connection.as_ref(),
            ToolKind::Function { .. } | ToolKind::Prompty { .. } => None,
        });
        let model = self.model.as_ref().and_then(|model| model.connection.as_ref());
        for Connection { endpoint, api_key, extra, .. } in model.into_iter().chain(tools) {
            found.extend(api_key.clone());
            found.extend(secrets_of_url(endpoint.as_deref().unwrap_or_default()));
            collect(extra, false, &mut found);
        }
        found
    }
}

/// Collects the strings whose key names a credential, including those in nested lists and maps.
fn collect(map: &JsonMap, is_hidden: bool, found: &mut Vec<Secret>) {
    for (key, value) in map {
        collect_value(value, is_hidden || is_credential(key), found);
    }
}

fn collect_value(value: &Json, is_hidden: bool, found: &mut Vec<Secret>) {
    match value {
        Json::String(text) if is_hidden => found.push(Secret::new(text)),
        Json::Array(items) => items.iter().for_each(|item| collect_value(item, is_hidden, found)),
        Json::Object(map) => collect(map, is_hidden, found),
        _ => {}
    }
}

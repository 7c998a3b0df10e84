//! The tools of a server, and whether they still match those that were approved.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value as Json, json};
use tympan_core::json::canonical_json;
use tympan_core::text::hash::sha256_hex;
use tympan_core::{Error, JsonMap, Kind, Result};

use crate::net::client::shown;

/// The maximum number of tools of a server.
pub(super) const MAX_TOOLS: usize = 1000;

/// The maximum total size of all names, descriptions and schemas, in bytes.
const MAX_BYTES: usize = 4 << 20;

/// The maximum number of names to list in an error.
const MAX_NAMES: usize = 20;

/// The tools of a server, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ToolList(BTreeMap<String, ListedTool>);

/// A tool, as its server describes it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ListedTool {
    pub(super) description: Option<String>,
    /// The JSON Schema of the arguments.
    pub(super) schema: JsonMap,
    /// Whether the server declares that the tool can safely be called again.
    pub(super) is_idempotent: bool,
    /// The canonical form of what a model is shown, for hashing.
    canonical: String,
}

impl ToolList {
    /// Collects the tools that a server has listed.
    ///
    /// # Errors
    /// Returns an error if two tools have the same name, or if the descriptions are too large.
    pub(super) fn new(tools: Vec<rmcp::model::Tool>) -> Result<Self> {
        let mut list = BTreeMap::new();
        let mut bytes = 0;
        for tool in tools {
            let hints = tool.annotations.unwrap_or_default();
            let listed = ListedTool {
                canonical: canonical(&tool.name, tool.description.as_deref(), &tool.input_schema),
                description: tool.description.map(Into::into),
                schema: std::sync::Arc::unwrap_or_clone(tool.input_schema),
                is_idempotent: hints.idempotent_hint == Some(true) || hints.read_only_hint == Some(true),
            };
            bytes += listed.canonical.len();
            let name = tool.name.into_owned();
            if list.contains_key(&name) {
                return Err(unavailable(format_args!("the MCP server lists `{}` twice", shown(&name))));
            }
            list.insert(name, listed);
        }
        if bytes > MAX_BYTES {
            return Err(unavailable(format_args!(
                "the MCP server's tool descriptions are larger than {MAX_BYTES} bytes"
            )));
        }
        Ok(Self(list))
    }

    /// Returns the allowed tools.
    ///
    /// # Errors
    /// Returns an error if an allowed tool does not exist.
    pub(super) fn only(&self, allowed: Option<&[String]>) -> Result<Self> {
        let Some(allowed) = allowed else { return Ok(self.clone()) };
        let chosen = allowed.iter().map(|name| match self.0.get(name) {
            Some(listed) => Ok((name.clone(), listed.clone())),
            None => Err(unavailable(format_args!("the MCP server has no tool `{}`", shown(name)))
                .with_help(format!("available tools: {}; set `allowedTools` to some of these", names(self.0.keys())))),
        });
        chosen.collect::<Result<_>>().map(Self)
    }

    /// Returns the allowed tools that exist.
    pub(super) fn restricted(&self, allowed: Option<&[String]>) -> Self {
        let is_allowed = |name: &String| allowed.is_none_or(|allowed| allowed.contains(name));
        Self(
            self.0
                .iter()
                .filter(|(name, _)| is_allowed(name))
                .map(|(name, tool)| (name.clone(), tool.clone()))
                .collect(),
        )
    }

    /// Returns all tools, in the order of their names.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&String, &ListedTool)> {
        self.0.iter()
    }

    /// Returns the tool with this name.
    pub(super) fn get(&self, name: &str) -> Option<&ListedTool> {
        self.0.get(name)
    }

    /// Returns the hash of everything that a model is shown.
    pub(super) fn hash(&self) -> String {
        let tools: Vec<_> = self.0.values().map(|tool| tool.canonical.as_str()).collect();
        format!("sha256:{}", sha256_hex(format!("[{}]", tools.join(","))))
    }

    /// Describes how another list differs from this one, or returns `None` if it does not.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        let missing = |of: &Self, from: &Self| names(of.0.keys().filter(|name| !from.0.contains_key(*name)));
        let is_changed = |name: &&String| other.get(name).is_some_and(|tool| tool.shows_other_than(&self.0[*name]));
        let found = [
            ("added", missing(other, self)),
            ("removed", missing(self, other)),
            ("changed", names(self.0.keys().filter(is_changed))),
        ];
        let found: Vec<_> = found.into_iter().filter(|(_, names)| !names.is_empty()).collect();
        let words: Vec<_> = found.iter().map(|(what, names)| format!("{what}: {names}")).collect();
        (!words.is_empty()).then(|| words.join("; "))
    }
}

impl ListedTool {
    /// Returns whether a model would be shown something different.
    pub(super) fn shows_other_than(&self, other: &Self) -> bool {
        self.canonical != other.canonical
    }
}

/// Returns the canonical form of what a model is shown of a tool, for hashing.
fn canonical(name: &str, description: Option<&str>, schema: &JsonMap) -> String {
    let mut tool = json!({ "name": name, "inputSchema": schema });
    if let Some(description) = description {
        tool["description"] = Json::from(description);
    }
    canonical_json(tool)
}

/// Formats names for an error message. They come from the server, so they are shortened and cleaned.
fn names<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let mut names: Vec<_> = names.take(MAX_NAMES + 1).map(|name| format!("`{}`", shown(name))).collect();
    if names.len() > MAX_NAMES {
        names[MAX_NAMES] = "…".to_owned();
    }
    names.join(", ")
}

/// Returns an error for an unavailable server.
pub(super) fn unavailable(details: impl fmt::Display) -> Error {
    Error::new(Kind::ToolUnavailable, details)
}

/// Returns the details of such an error, for use in another one.
pub(super) fn details(error: &Error) -> &str {
    let message = error.message();
    message.strip_prefix(Kind::ToolUnavailable.pattern().trim_end_matches("{}")).unwrap_or(message)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn list(tools: &[(&str, &str)]) -> ToolList {
        let tool = |(name, description): &(&str, &str)| {
            let schema = json!({ "type": "object", "properties": {} }).as_object().cloned().unwrap_or_default();
            rmcp::model::Tool::new((*name).to_owned(), (*description).to_owned(), Arc::new(schema))
        };
        ToolList::new(tools.iter().map(tool).collect()).expect("it is a list")
    }

    /// The guide documents how the hash is computed, so that other tools can compute it.
    #[test]
    fn the_hash_is_of_canonical_json() {
        let written = concat!(
            r#"[{"description":"A","inputSchema":{"properties":{},"type":"object"},"name":"a"},"#,
            r#"{"description":"B","inputSchema":{"properties":{},"type":"object"},"name":"b"}]"#,
        );
        assert_eq!(list(&[("b", "B"), ("a", "A")]).hash(), format!("sha256:{}", sha256_hex(written)));
    }

    #[test]
    fn differences_are_named() {
        let (old, new) = (list(&[("a", "A"), ("b", "B"), ("c", "C")]), list(&[("b", "EVIL"), ("c", "C"), ("d", "D")]));
        assert_eq!(old.difference(&new).as_deref(), Some("added: `d`; removed: `a`; changed: `b`"));
        assert_eq!(old.difference(&old), None);
    }

    #[test]
    fn names_of_others_are_bounded() {
        let many: Vec<_> = (0..100).map(|number| format!("{number:02}\n{}", "x".repeat(1000))).collect();
        let named: Vec<_> = many.iter().map(|name| (name.as_str(), "")).collect();
        let said = list(&[]).difference(&list(&named)).expect("there are differences");
        assert!(said.len() < 6000 && !said.contains('\n') && said.ends_with("`, …"), "{said}");
    }
}

//! The tools of a server, and whether they still match those that were approved.

use std::collections::BTreeMap;
use std::fmt;

use rmcp::model::ToolAnnotations;
use serde_json::{Value as Json, json};
use tympan_core::json::canonical_json;
use tympan_core::spec::flow::{Effect, ToolFlow};
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
    /// The effect that the server's annotations state.
    pub(super) flow: ToolFlow,
    /// The canonical form of what a model is shown, and of the annotations, for hashing.
    canonical: String,
    /// The same without the annotations, which older hashes do not cover.
    shown: String,
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
                flow: flow(&hints),
                canonical: canonical(&tool.name, tool.description.as_deref(), &tool.input_schema, &hints),
                shown: canonical(
                    &tool.name,
                    tool.description.as_deref(),
                    &tool.input_schema,
                    &ToolAnnotations::default(),
                ),
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

    /// Checks that the server has the tools and parameters about which the host declares something. A misspelt name
    /// would otherwise leave a tool unprotected.
    ///
    /// # Errors
    /// Returns an error that names the first one that is missing.
    pub(super) fn check_flows<'f>(&self, flows: impl Iterator<Item = (&'f String, &'f ToolFlow)>) -> Result<()> {
        for (name, flow) in flows {
            let Some(listed) = self.0.get(name) else {
                let details =
                    format_args!("the host declares the tool `{}`, which the MCP server does not have", shown(name));
                return Err(unavailable(details).with_help(format!("available tools: {}", names(self.0.keys()))));
            };
            let properties = listed.schema.get("properties").and_then(Json::as_object);
            let has = |parameter: &str| properties.is_some_and(|properties| properties.contains_key(parameter));
            if let Some(parameter) = flow.parameters.keys().find(|parameter| !has(parameter)) {
                let known = properties.map(|properties| names(properties.keys())).unwrap_or_default();
                let details = format_args!(
                    "the host declares the parameter `{parameter}` of `{name}`, which the tool does not have"
                );
                return Err(unavailable(details).with_help(format!("parameters of the tool: {known}")));
            }
        }
        Ok(())
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

    /// Returns the hash of everything that a model is shown, and of the annotations about effects.
    pub(super) fn hash(&self) -> String {
        Self::hash_of(self.0.values().map(|tool| tool.canonical.as_str()))
    }

    /// Returns whether the tools have this hash, or had it before annotations were part of it.
    pub(super) fn has_hash(&self, hash: &str) -> bool {
        hash == self.hash() || hash == Self::hash_of(self.0.values().map(|tool| tool.shown.as_str()))
    }

    fn hash_of<'a>(tools: impl Iterator<Item = &'a str>) -> String {
        format!("sha256:{}", sha256_hex(format!("[{}]", tools.collect::<Vec<_>>().join(","))))
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

/// Returns the effect that annotations state. An annotation that is missing states nothing, whatever its default is.
fn flow(hints: &ToolAnnotations) -> ToolFlow {
    let effect = match (hints.open_world_hint, hints.destructive_hint) {
        (Some(true), _) => Some(Effect::External),
        (_, Some(true)) => Some(Effect::Write),
        _ => None,
    };
    ToolFlow { effect, ..ToolFlow::default() }
}

/// Returns the canonical form of what a model is shown of a tool and of its annotations, for hashing.
fn canonical(name: &str, description: Option<&str>, schema: &JsonMap, hints: &ToolAnnotations) -> String {
    let mut tool = json!({ "name": name, "inputSchema": schema });
    for (key, hint) in [("openWorldHint", hints.open_world_hint), ("destructiveHint", hints.destructive_hint)] {
        if let Some(hint) = hint {
            tool["annotations"][key] = Json::Bool(hint);
        }
    }
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
    fn declarations_about_tools_must_match() {
        let schema = json!({ "type": "object", "properties": { "to": {} } }).as_object().cloned().unwrap_or_default();
        let tool = rmcp::model::Tool::new("send", "Sends", Arc::new(schema));
        let list = ToolList::new(vec![tool]).expect("it is a list");
        let check = |name: &str, flow: ToolFlow| list.check_flows([(&name.to_owned(), &flow)].into_iter());
        assert!(check("send", ToolFlow::new(Effect::External).destination("to")).is_ok());
        let error = check("sned", ToolFlow::new(Effect::External)).expect_err("there is no such tool");
        assert!(error.message().contains("`sned`") && error.help().is_some_and(|help| help.contains("`send`")));
        let error = check("send", ToolFlow::default().destination("too")).expect_err("there is no such parameter");
        assert!(error.message().contains("`too` of `send`"), "{}", error.message());
    }

    #[test]
    fn names_of_others_are_bounded() {
        let many: Vec<_> = (0..100).map(|number| format!("{number:02}\n{}", "x".repeat(1000))).collect();
        let named: Vec<_> = many.iter().map(|name| (name.as_str(), "")).collect();
        let said = list(&[]).difference(&list(&named)).expect("there are differences");
        assert!(said.len() < 6000 && !said.contains('\n') && said.ends_with("`, …"), "{said}");
    }
}

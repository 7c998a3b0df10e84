//! References to the environment that were left unresolved when the prompt was loaded, and the errors for those that are
//! needed.

use serde_json::Value as Json;

use super::Prompt;
use crate::error::{Error, Kind, Result};
use crate::secret::env_value::{EnvPlace, UnresolvedEnv};
use crate::template::input::InputMap;

impl Prompt {
    /// Sets the references to the environment that were left unresolved while the prompt was loaded.
    #[must_use]
    pub fn with_unresolved_env(mut self, unresolved_env: Vec<UnresolvedEnv>) -> Self {
        self.unresolved_env = unresolved_env;
        self
    }

    /// Returns the references to the environment that were left unresolved while the prompt was loaded. In the spec,
    /// their values are the references themselves, as in `${env:NAME}`.
    pub fn unresolved_env(&self) -> &[UnresolvedEnv] {
        &self.unresolved_env
    }

    /// Checks that a model request does not need an unresolved reference. `has_connection` is whether the request uses
    /// the prompt's own connection.
    ///
    /// # Errors
    /// Returns an error with the position of the first unresolved reference that the request needs.
    pub fn check_request_env(&self, has_connection: bool) -> Result<()> {
        self.require_env(|found| match found.place {
            EnvPlace::ModelConnection => has_connection,
            EnvPlace::Model | EnvPlace::Tool(_) => true,
            EnvPlace::ToolConnection(_) | EnvPlace::Specification(_) => false,
            EnvPlace::Elsewhere => found.section == "outputs",
        })
    }

    /// Checks that the tool with this index does not have an unresolved reference.
    ///
    /// # Errors
    /// Returns an error with the position of the first unresolved reference in the tool.
    pub fn check_tool_env(&self, index: usize) -> Result<()> {
        self.require_env(|found| found.place.is_of_tool(index))
    }

    /// Checks that a render does not need an unresolved reference, in the template's settings or in the default of an
    /// input without a value.
    pub(super) fn check_render_env(&self, inputs: InputMap<'_>) -> Result<()> {
        let defaults = self.spec.inputs.iter().filter(|input| inputs.get(&input.name).is_none());
        let defaults: Vec<&Json> = defaults.filter_map(|input| input.default.as_ref()).collect();
        self.require_env(|found| match found.section.as_str() {
            "template" => true,
            "inputs" => {
                let reference = format!("${{env:{}}}", found.variable);
                defaults.iter().any(|default| mentions(default, &reference))
            }
            _ => false,
        })
    }

    fn require_env(&self, is_needed: impl Fn(&UnresolvedEnv) -> bool) -> Result<()> {
        let Some(found) = self.unresolved_env.iter().find(|found| is_needed(found)) else { return Ok(()) };
        let name = &found.variable;
        Err(Error::new(Kind::EnvNotSet, name)
            .with_help(format!("set it and load the prompt again, or add a default: `${{env:{name}:some value}}`"))
            .at(found.span)
            .in_source(&self.source, 0))
    }
}

/// Returns whether a value contains this text as a string.
fn mentions(value: &Json, text: &str) -> bool {
    match value {
        Json::String(string) => string == text,
        Json::Array(items) => items.iter().any(|item| mentions(item, text)),
        Json::Object(map) => map.values().any(|value| mentions(value, text)),
        _ => false,
    }
}

//! What prompts and hosts declare about the flow of information through tools.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// What a tool does besides returning a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Nothing: it only reads.
    Read,
    /// It changes data, but sends none of it to others.
    Write,
    /// It acts on the world outside, or sends data there: messages, payments, requests to other services.
    External,
}

impl Effect {
    /// Every effect, from the weakest to the strongest.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::External];

    /// Returns the name that prompt files use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::External => "external",
        }
    }

    /// Returns the effect with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effect| effect.as_str() == name)
    }
}

/// Whether the model sees a handle instead of an untrusted result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hide {
    /// As long as the conversation contains nothing untrusted.
    Auto,
    /// Always.
    Always,
    /// Never: the model sees the result.
    #[default]
    Never,
}

impl Hide {
    /// Every setting.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Always, Self::Never];

    /// Returns the name that prompt files use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Always => "always",
            Self::Never => "never",
        }
    }

    /// Returns the setting with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|hide| hide.as_str() == name)
    }
}

/// Who speaks through an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Speaker {
    /// The user of the application. The policy for tools trusts the input; role markers and the guard do not.
    User,
}

impl Speaker {
    /// Returns the name that prompt files use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
        }
    }
}

/// What is declared about a parameter of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ParameterFlow {
    /// Whether the value must come from a trusted origin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trusted_only: Option<bool>,
    /// Whether the value is an address that data goes to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<bool>,
}

impl ParameterFlow {
    /// Returns whether nothing is declared.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What is declared about a tool.
///
/// ```
/// use tympan::spec::flow::{Effect, ToolFlow};
///
/// let flow = ToolFlow::new(Effect::External).destination("to").trusted_only("to");
/// assert_eq!(flow.parameters["to"].destination, Some(true));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolFlow {
    /// What the tool does besides returning a result. `None` if nobody said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// Whether results are trusted. Only the declarations of hosts count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trusted: Option<bool>,
    /// Whether results are confidential.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidential: Option<bool>,
    /// Whether the model sees handles instead of untrusted results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hide: Option<Hide>,
    /// The parameters about which something is declared, by name.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub parameters: IndexMap<String, ParameterFlow>,
}

impl ToolFlow {
    /// Creates the declaration of a tool with this effect.
    pub fn new(effect: Effect) -> Self {
        Self { effect: Some(effect), ..Self::default() }
    }

    /// Declares that results are trusted. Do not use this if they contain other people's text.
    #[must_use]
    pub fn trusted(mut self) -> Self {
        self.trusted = Some(true);
        self
    }

    /// Declares that results are confidential.
    #[must_use]
    pub fn confidential(mut self) -> Self {
        self.confidential = Some(true);
        self
    }

    /// Sets whether the model sees handles instead of untrusted results.
    #[must_use]
    pub fn hide(mut self, hide: Hide) -> Self {
        self.hide = Some(hide);
        self
    }

    /// Declares that the value of a parameter must come from a trusted origin.
    #[must_use]
    pub fn trusted_only(mut self, parameter: &str) -> Self {
        self.parameters.entry(parameter.to_owned()).or_default().trusted_only = Some(true);
        self
    }

    /// Declares that the value of a parameter is an address that data goes to.
    #[must_use]
    pub fn destination(mut self, parameter: &str) -> Self {
        self.parameters.entry(parameter.to_owned()).or_default().destination = Some(true);
        self
    }

    /// Returns whether nothing is declared.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns this declaration of a prompt or a server, tightened by another one. It never says that results are
    /// trusted.
    #[must_use]
    pub fn tightened(&self, other: &Self) -> Self {
        let mut flow = Self {
            effect: self.effect.max(other.effect),
            trusted: None,
            confidential: self.confidential.max(other.confidential),
            hide: self.hide.or(other.hide),
            parameters: self.parameters.clone(),
        };
        for (name, parameter) in &other.parameters {
            let own = flow.parameters.entry(name.clone()).or_default();
            own.trusted_only = own.trusted_only.max(parameter.trusted_only);
            own.destination = own.destination.max(parameter.destination);
        }
        flow
    }

    /// Returns this declaration of a host. What it does not say comes from the prompt or the server.
    #[must_use]
    pub fn over(&self, declared: &Self) -> Self {
        let mut flow = Self {
            effect: self.effect.or(declared.effect),
            trusted: self.trusted,
            confidential: self.confidential.or(declared.confidential),
            hide: self.hide.or(declared.hide),
            parameters: declared.parameters.clone(),
        };
        for (name, parameter) in &self.parameters {
            let own = flow.parameters.entry(name.clone()).or_default();
            own.trusted_only = parameter.trusted_only.or(own.trusted_only);
            own.destination = parameter.destination.or(own.destination);
        }
        flow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_only_tighten_and_hosts_decide() {
        let prompt = ToolFlow::new(Effect::Write).trusted().confidential();
        let server = ToolFlow::new(Effect::Read).destination("to");
        let declared = prompt.tightened(&server);
        assert_eq!((declared.effect, declared.trusted, declared.confidential), (Some(Effect::Write), None, Some(true)));
        assert_eq!(declared.parameters["to"].destination, Some(true));
        let host = ToolFlow { trusted: Some(true), confidential: Some(false), ..ToolFlow::new(Effect::Read) };
        let all = host.over(&declared);
        assert_eq!((all.effect, all.trusted, all.confidential), (Some(Effect::Read), Some(true), Some(false)));
        assert_eq!(all.parameters["to"].destination, Some(true));
        // A host that says nothing about results does not trust them, whatever the prompt says.
        assert_eq!(ToolFlow::new(Effect::Read).over(&prompt).trusted, None);
    }
}

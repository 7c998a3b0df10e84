//! The policy for tools: which calls run, which need approval, and which are denied.
//!
//! The default policy is this table. What applies is the strictest of the cells that a call falls under:
//!
//! | effect of the tool | only trusted, public content | untrusted content was read | confidential content was read |
//! |---|---|---|---|
//! | `read` | allow | allow | allow |
//! | `write` | allow | ask | allow |
//! | `external` | allow | ask | ask, unless all destinations are on the host's list |
//! | not declared | allow | allow (`strict`: as `external`) | allow (`strict`: as `external`) |
//!
//! In addition, the policy asks if a parameter is `trusted_only` or a `destination`, the conversation is not only trusted
//! text, and the value does not come from a trusted origin. A call with untrusted content in its context is allowed
//! without asking if all parameters of the tool are `trusted_only` and their values come from a trusted origin. If an
//! exception names the tool, its decision applies whatever the values and destinations are.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use crate::spec::flow::Effect;
use crate::turn::label::{Label, Source};

/// The maximum number of sources to name in a reason.
const MAX_SOURCES: usize = 5;

/// What happens to a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// It runs.
    #[default]
    Allow,
    /// It runs if the approver allows it.
    Ask,
    /// It does not run.
    Deny,
}

/// How tools without a declared effect are treated, and whether the policy applies at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyMode {
    /// The policy does not apply.
    Off,
    /// Tools without a declared effect run as if there was no policy.
    #[default]
    Default,
    /// Tools without an effect that the host declared count as external.
    Strict,
}

/// What happens to calls, by the effect of the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct EffectDecisions {
    /// For tools that only read.
    pub read: Decision,
    /// For tools that change data.
    pub write: Decision,
    /// For tools that act on the world outside.
    pub external: Decision,
}

/// Decisions as they are written. What is left out has its default.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenDecisions {
    read: Option<Decision>,
    write: Option<Decision>,
    external: Option<Decision>,
}

fn over_untrusted<'de, D: Deserializer<'de>>(deserializer: D) -> Result<EffectDecisions, D::Error> {
    WrittenDecisions::deserialize(deserializer).map(|written| written.over(EffectDecisions::UNTRUSTED))
}

fn over_confidential<'de, D: Deserializer<'de>>(deserializer: D) -> Result<EffectDecisions, D::Error> {
    WrittenDecisions::deserialize(deserializer).map(|written| written.over(EffectDecisions::CONFIDENTIAL))
}

impl WrittenDecisions {
    fn over(self, default: EffectDecisions) -> EffectDecisions {
        EffectDecisions {
            read: self.read.unwrap_or(default.read),
            write: self.write.unwrap_or(default.write),
            external: self.external.unwrap_or(default.external),
        }
    }
}

impl EffectDecisions {
    /// The default after untrusted content was read.
    pub const UNTRUSTED: Self = Self { read: Decision::Allow, write: Decision::Ask, external: Decision::Ask };

    /// The default after confidential content was read.
    pub const CONFIDENTIAL: Self = Self { read: Decision::Allow, write: Decision::Allow, external: Decision::Ask };

    /// Returns the decision for an effect. A stronger effect is never treated less strictly than a weaker one.
    pub fn of(&self, effect: Effect) -> Decision {
        match effect {
            Effect::Read => self.read,
            Effect::Write => self.read.max(self.write),
            Effect::External => self.read.max(self.write).max(self.external),
        }
    }

    fn tightened(self, other: Self) -> Self {
        Self {
            read: self.read.max(other.read),
            write: self.write.max(other.write),
            external: self.external.max(other.external),
        }
    }
}

/// The decision for one tool, or for one of its parameters, which replaces that of the policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exception {
    /// The tool's name.
    pub tool: String,
    /// The parameter whose value is judged. Without it, the exception is about what the model has read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    /// What happens to the call.
    pub decision: Decision,
}

/// A policy for tool calls. The [module documentation](self) has the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolPolicy {
    /// How tools without a declared effect are treated, and whether the policy applies at all.
    pub mode: PolicyMode,
    /// The decisions after untrusted content was read.
    #[serde(deserialize_with = "over_untrusted")]
    pub untrusted: EffectDecisions,
    /// The decisions after confidential content was read.
    #[serde(deserialize_with = "over_confidential")]
    pub confidential: EffectDecisions,
    /// The decision if a value that must come from a trusted origin does not.
    pub values: Decision,
    /// The addresses that confidential data may go to. They also count as values from a trusted origin. An entry is a
    /// whole value, `*@example.com` for all addresses of a domain, or ends with `/*` for everything below a URL.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub destinations: Vec<String>,
    /// Values that count as coming from a trusted origin, for any parameter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trusted_values: Vec<String>,
    /// Exceptions for single tools and parameters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exceptions: Vec<Exception>,
    /// Decisions for single tools and parameters that a project or a prompt adds. They can only make the others
    /// stricter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub restrictions: Vec<Exception>,
    /// The number of bits that a turn may extract from untrusted content.
    pub extraction_bits: u32,
}

impl Default for ToolPolicy {
    fn default() -> Self {
        Self {
            mode: PolicyMode::Default,
            untrusted: EffectDecisions::UNTRUSTED,
            confidential: EffectDecisions::CONFIDENTIAL,
            values: Decision::Ask,
            destinations: Vec::new(),
            trusted_values: Vec::new(),
            exceptions: Vec::new(),
            restrictions: Vec::new(),
            extraction_bits: 16,
        }
    }
}

impl ToolPolicy {
    /// Creates a policy that allows everything.
    pub fn off() -> Self {
        Self { mode: PolicyMode::Off, ..Self::default() }
    }

    /// Creates the default policy, in which tools without a declared effect count as external.
    pub fn strict() -> Self {
        Self { mode: PolicyMode::Strict, ..Self::default() }
    }

    /// Returns this policy, tightened by one that a project or a prompt states. The other policy can make decisions
    /// stricter, but it cannot allow anything: its lists of values are ignored, and its exceptions only restrict.
    #[must_use]
    pub fn tightened(&self, other: &Self) -> Self {
        let mut policy = self.clone();
        // A host that turns the policy off means it.
        if self.mode != PolicyMode::Off {
            policy.mode = self.mode.max(other.mode);
        }
        policy.untrusted = self.untrusted.tightened(other.untrusted);
        policy.confidential = self.confidential.tightened(other.confidential);
        policy.values = self.values.max(other.values);
        policy.extraction_bits = self.extraction_bits.min(other.extraction_bits);
        policy.restrictions.extend(other.exceptions.iter().chain(&other.restrictions).cloned());
        policy
    }

    /// Returns the decision about a tool or one of its parameters: that of an exception, or the general one, but nothing
    /// less strict than what a restriction says.
    fn decision(&self, tool: &str, parameter: Option<&str>, general: Decision) -> Decision {
        let is_about = |entry: &&Exception| entry.tool == tool && entry.parameter.as_deref() == parameter;
        let decision = self.exceptions.iter().find(is_about).map_or(general, |exception| exception.decision);
        self.restrictions.iter().filter(is_about).fold(decision, |decision, entry| decision.max(entry.decision))
    }

    /// Returns whether there is an exception or a restriction for a tool.
    fn names(&self, tool: &str) -> bool {
        let is_about = |entry: &Exception| entry.tool == tool && entry.parameter.is_none();
        self.exceptions.iter().chain(&self.restrictions).any(is_about)
    }

    /// Decides about a call.
    pub fn decide(&self, call: &CallFacts<'_>) -> Ruling {
        let mut ruling = Ruling::default();
        if self.mode == PolicyMode::Off {
            return ruling;
        }
        let assumed = call.effect.is_none();
        // Without a declared effect, only the values of parameters are checked, unless an exception names the tool.
        let is_assumed = self.mode == PolicyMode::Strict || self.names(call.tool);
        let effect = call.effect.or(is_assumed.then_some(Effect::External));
        if let Some(effect) = effect {
            // Whoever names a tool wants a decision about it, whatever its values are.
            let is_named = self.names(call.tool);
            let is_exempt = call.is_made_of_trusted_values && !is_named;
            let is_listed = call.goes_to_listed_destinations && !is_named;
            if !call.context.trusted && !is_exempt {
                let decision = self.decision(call.tool, None, self.untrusted.of(effect));
                let sources = || call.context.untrusted_sources.to_vec();
                ruling.add(decision, || Reason::Untrusted { effect, assumed, sources: sources() });
            }
            if (call.context.confidential || call.arguments.confidential) && !is_listed {
                let decision = self.decision(call.tool, None, self.confidential.of(effect));
                ruling.add(decision, || Reason::Confidential { effect, assumed });
            }
        }
        for parameter in call.untrusted_values {
            let decision = self.decision(call.tool, Some(parameter), self.values);
            ruling.add(decision, || Reason::Value { parameter: (*parameter).to_owned() });
        }
        ruling
    }
}

/// What a policy needs to know about a call.
#[derive(Clone, Copy, Debug)]
pub struct CallFacts<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The tool's effect, if it is declared.
    pub effect: Option<Effect>,
    /// The label of everything that the model had read.
    pub context: &'a Label,
    /// The label of the arguments that the model did not write: the contents of handles, and bound inputs.
    pub arguments: &'a Label,
    /// The parameters that must have a value from a trusted origin, and have another one.
    pub untrusted_values: &'a [&'a str],
    /// Whether all parameters of the tool are `trusted_only`, and at least one has a value, and all values come from a
    /// trusted origin.
    pub is_made_of_trusted_values: bool,
    /// Whether the call has destinations, and all of them are on the host's list.
    pub goes_to_listed_destinations: bool,
}

/// What a policy decided about a call, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ruling {
    /// The decision.
    pub decision: Decision,
    /// Everything that speaks against the call. It is empty if the call is allowed.
    pub reasons: Vec<Reason>,
}

impl Ruling {
    fn add(&mut self, decision: Decision, reason: impl FnOnce() -> Reason) {
        if decision != Decision::Allow {
            self.decision = self.decision.max(decision);
            self.reasons.push(reason());
        }
    }
}

/// What speaks against a call. Reasons contain the names of tools, inputs and parameters, and no other text, so models
/// may read them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Reason {
    /// The model had read untrusted content.
    Untrusted {
        /// The effect of the tool.
        effect: Effect,
        /// Whether nobody declared the effect.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        assumed: bool,
        /// Where the content came from.
        sources: Vec<Source>,
    },
    /// The model had read confidential content, or an argument is confidential.
    Confidential {
        /// The effect of the tool.
        effect: Effect,
        /// Whether nobody declared the effect.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        assumed: bool,
    },
    /// The value of a parameter does not come from a trusted origin.
    Value {
        /// The parameter.
        parameter: String,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let declared = |assumed: bool| if assumed { "no declared effect" } else { "the effect" };
        match self {
            Self::Untrusted { effect, assumed, sources } => {
                let mut names: Vec<_> = sources.iter().take(MAX_SOURCES).map(ToString::to_string).collect();
                if sources.len() > MAX_SOURCES {
                    names.push(format!("{} more", sources.len() - MAX_SOURCES));
                }
                let names = names.join(", ");
                write!(
                    f,
                    "the conversation contains untrusted content from {names}, and the tool has {}",
                    declared(*assumed)
                )?;
                if *assumed { Ok(()) } else { write!(f, " `{}`", effect.as_str()) }
            }
            Self::Confidential { effect, assumed } => {
                write!(f, "the call may disclose confidential content, and the tool has {}", declared(*assumed))?;
                if *assumed { Ok(()) } else { write!(f, " `{}`", effect.as_str()) }
            }
            Self::Value { parameter } => {
                write!(f, "the value of `{parameter}` does not come from the user or another trusted source")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_left_out_keeps_its_default() {
        let policy: ToolPolicy =
            serde_json::from_value(json!({"untrusted": {"external": "deny"}})).expect("it is a policy");
        let expected = EffectDecisions { external: Decision::Deny, ..EffectDecisions::UNTRUSTED };
        assert_eq!((policy.untrusted, policy.confidential), (expected, EffectDecisions::CONFIDENTIAL));
        assert_eq!((policy.mode, policy.extraction_bits), (PolicyMode::Default, 16));
        let again: ToolPolicy = serde_json::from_value(json!(policy)).expect("it is a policy");
        assert_eq!(again, policy);
        assert!(serde_json::from_value::<ToolPolicy>(json!({"untrusted": {"wirte": "ask"}})).is_err());
    }
}

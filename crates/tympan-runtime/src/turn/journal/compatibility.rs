//! Checks whether a journal matches a turn.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use tympan_core::chat::message::RichValue;
use tympan_core::json::canonical_json;
use tympan_core::text::hash::sha256_hex;
use tympan_core::turn::TurnOptions;
use tympan_core::{ContentPart, Error, Kind, Message, Prompt, Result};

/// The values that must be the same when a turn is resumed, because they determine how the turn handles its events.
///
/// Limits on rounds, tokens, cost and time are not included, so they can be raised for the rest of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fingerprint {
    /// The hash of the prompt's definition.
    prompt: String,
    /// The hash of the initial messages.
    messages: String,
    /// The hash of the functions built from tools.
    tools: String,
    /// The turn's options.
    options: Json,
    /// The hash of the policy for tools and of what it knows. Journals of version 0.1.0 do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
}

impl Fingerprint {
    pub(crate) fn new(prompt: &Prompt, messages: &[Message], options: &TurnOptions) -> Self {
        let tools = options.tools.iter().map(|tool| json!([tool.function.name, tool.function.parameters]));
        let guardrails = options.guardrails;
        Self {
            prompt: prompt.definition_hash().to_owned(),
            messages: hash(messages.iter().map(plain).collect()),
            tools: hash(tools.collect()),
            options: json!({
                "max_tool_calls": options.max_tool_calls,
                "max_result_bytes": options.max_result_bytes,
                "parallel_tool_calls": options.parallel_tool_calls,
                "context_budget": options.context_budget.as_ref().map(|budget| format!("{budget:?}")),
                "compaction": options.compaction,
                "judge_input": guardrails.input,
                "judge_output": guardrails.output,
                "judge_tool": guardrails.tool,
                "guard": options.guard.is_some(),
            }),
            policy: Some(policy_hash(options)),
        }
    }

    /// Returns whether the journal is from before there was a policy for tools.
    pub(crate) fn is_legacy(&self) -> bool {
        self.policy.is_none()
    }

    /// Removes the guard's advisory if the turn began without it. Journals of version 0.1.0 did.
    pub(crate) fn restore_messages(&self, messages: &mut Vec<Message>, advisory: &str) {
        let is_same = |messages: &[Message]| self.messages == hash(messages.iter().map(plain).collect());
        let at = messages.iter().position(|message| message.to_text() == advisory);
        if let Some(at) = at.filter(|_| !is_same(messages)) {
            let removed = messages.remove(at);
            if !is_same(messages) {
                messages.insert(at, removed);
            }
        }
    }

    /// Compares the journal's values with the current ones.
    pub(crate) fn check(&self, now: &Self) -> Result<()> {
        let options = || {
            let (then, now) = (self.options.as_object()?, now.options.as_object()?);
            let differs = now.iter().find(|(name, value)| then.get(*name) != Some(value));
            differs.map(|(name, _)| format!("option `{name}` has changed since the turn started"))
        };
        let difference = if self.prompt != now.prompt {
            Some("the prompt has changed since the turn started".to_owned())
        } else if self.messages != now.messages {
            Some("the messages have changed since the turn started".to_owned())
        } else if self.tools != now.tools {
            Some("the tools have changed since the turn started".to_owned())
        } else if self.policy.is_some() && self.policy != now.policy {
            Some("the policy for tools has changed since the turn started".to_owned())
        } else {
            options()
        };
        difference.map_or(Ok(()), |difference| Err(mismatch(difference)))
    }
}

/// Returns the hash of everything that the policy depends on, apart from the prompt.
fn policy_hash(options: &TurnOptions) -> String {
    let flow = &options.flow;
    let declared: BTreeMap<_, _> = options.tools.iter().map(|tool| (&tool.function.name, &tool.flow)).collect();
    let host: BTreeMap<_, _> = flow.tools.iter().collect();
    hash(json!([flow.policy, declared, host, flow.labels, flow.context]))
}

/// Returns an error for a journal that does not match.
pub(crate) fn mismatch(details: impl std::fmt::Display) -> Error {
    Error::new(Kind::JournalMismatch, details)
        .with_help("resume with the prompt, tools and settings of the original run, or start a new turn")
}

fn hash(value: Json) -> String {
    sha256_hex(canonical_json(value))
}

/// Serializes a message without its random parts, which are the nonces of rich inputs.
fn plain(message: &Message) -> Json {
    let parts = message.content.iter().map(|part| match part {
        ContentPart::Text(text) if !text.anchors.is_empty() => {
            let (mut pieces, mut at) = (Vec::new(), 0);
            for anchor in &text.anchors {
                pieces.push(json!(text.value[at..anchor.range.start]));
                pieces.push(json!({ "name": anchor.input.name, "value": rich(&anchor.input.value) }));
                at = anchor.range.end;
            }
            pieces.push(json!(text.value[at..]));
            Json::Array(pieces)
        }
        part => json!(part),
    });
    json!([message.role, parts.collect::<Vec<_>>(), message.metadata])
}

fn rich(value: &RichValue) -> Json {
    match value {
        RichValue::Thread(messages) => messages.iter().map(plain).collect(),
        RichValue::Media(value) => value.clone(),
    }
}

//! The part of a request that a provider can cache for the next one: the author's text before the first input.

use serde::Serialize;

use super::parts::{MessageParts, Parts};
use crate::chat::message::{ContentPart, Role};

/// The minimum size, in bytes, of a message's stable beginning to make it a separate block. Smaller ones are not worth
/// it.
const WORTH_A_BLOCK: usize = 256;

/// Anthropic's cache marker.
#[derive(Clone, Copy, Serialize)]
pub(super) struct CacheControl {
    r#type: &'static str,
}

impl CacheControl {
    pub(super) const EPHEMERAL: Self = Self { r#type: "ephemeral" };
}

/// The end of the stable prefix: a message, and a number of bytes in its first text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Breakpoint {
    pub(super) message: usize,
    pub(super) bytes: usize,
}

impl Breakpoint {
    /// Finds the end of the author's text, in the order in which the provider reads it: system and developer messages
    /// first.
    ///
    /// The author's text is known only for messages that were split from a prompt. All other messages count as
    /// unstable.
    pub(super) fn find(messages: &[MessageParts<'_>]) -> Option<Self> {
        let is_system = |index: &usize| matches!(messages[*index].message.role, Role::System | Role::Developer);
        let (system, others): (Vec<_>, Vec<_>) = (0..messages.len()).partition(is_system);
        let mut found = None;
        for index in system.into_iter().chain(others) {
            let [ContentPart::Text(part)] = &*messages[index].message.content else { break };
            let is_whole = part.stable == part.value.len() && matches!(messages[index].parts, Parts::Text(_));
            let is_worth_it = part.stable > 0 && (is_whole || part.stable >= WORTH_A_BLOCK);
            if is_worth_it {
                found = Some(Self { message: index, bytes: part.stable });
            }
            if !is_whole {
                break;
            }
        }
        found
    }
}

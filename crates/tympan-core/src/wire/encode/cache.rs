//! Which part of a request a provider can keep for the next one: what the author wrote before any input has its say.

use serde::Serialize;

use super::parts::{Parts, Said};
use crate::chat::message::{ContentPart, Role};

/// A message's own beginning is cut off for the cache from so many bytes on: less than that is not worth a block.
const WORTH_A_BLOCK: usize = 256;

/// The mark of Anthropic's cache.
#[derive(Clone, Copy, Serialize)]
pub(super) struct CacheControl {
    r#type: &'static str,
}

impl CacheControl {
    pub(super) const EPHEMERAL: Self = Self { r#type: "ephemeral" };
}

/// Where the stable prefix ends: within a message, after so many bytes of its first text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Breakpoint {
    pub(super) message: usize,
    pub(super) bytes: usize,
}

impl Breakpoint {
    /// The end of what the author wrote, in the order in which the provider reads: instructions first.
    ///
    /// Who wrote what is known of messages that were split from a prompt. Of all others, nothing is stable.
    pub(super) fn find(said: &[Said<'_>]) -> Option<Self> {
        let is_system = |index: &usize| matches!(said[*index].message.role, Role::System | Role::Developer);
        let (system, others): (Vec<_>, Vec<_>) = (0..said.len()).partition(is_system);
        let mut found = None;
        for index in system.into_iter().chain(others) {
            let [ContentPart::Text(part)] = &*said[index].message.content else { break };
            let is_whole = part.stable == part.value.len() && matches!(said[index].parts, Parts::Text(_));
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

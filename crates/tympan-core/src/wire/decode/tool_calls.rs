//! Tool calls that arrive in fragments.

use crate::error::{Error, Kind, Result};
use crate::wire::response::{Delta, ToolCall};

/// The tool calls of one response, in the order in which they started.
#[derive(Debug)]
pub(super) struct ToolCalls {
    calls: Vec<Numbered>,
    max: usize,
}

/// A call and the provider's number for it. Numbers may have gaps, so they are not list indexes.
#[derive(Debug)]
struct Numbered {
    number: u64,
    call: ToolCall,
}

/// A fragment of a call. Empty strings are missing values.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ToolCallFragment<'a> {
    /// The provider's number for the call. Some servers do not send one.
    pub(super) number: Option<u64>,
    pub(super) id: &'a str,
    pub(super) name: &'a str,
    pub(super) arguments: &'a str,
}

impl ToolCalls {
    /// Creates an empty list that accepts at most `max` calls.
    pub(super) fn new(max: usize) -> Self {
        Self { calls: Vec::new(), max }
    }

    /// Adds a fragment to the call that it belongs to, or starts a new call.
    pub(super) fn add(&mut self, fragment: ToolCallFragment<'_>, deltas: &mut Vec<Delta>) -> Result<()> {
        let index = match self.find(fragment)? {
            Some(index) => index,
            None => self.begin(fragment)?,
        };
        let call = &mut self.calls[index].call;
        if call.id.is_empty() {
            call.id.push_str(fragment.id);
        }
        if call.name.is_empty() && !fragment.name.is_empty() {
            call.name.push_str(fragment.name);
            deltas.push(Delta::ToolCall { index, id: call.id.clone(), name: call.name.clone() });
            if !call.arguments.is_empty() {
                deltas.push(Delta::ToolArguments { index, fragment: call.arguments.clone() });
            }
        }
        if !fragment.arguments.is_empty() {
            call.arguments.push_str(fragment.arguments);
            // Arguments are useless to a caller that does not know the tool's name yet.
            if !call.name.is_empty() {
                deltas.push(Delta::ToolArguments { index, fragment: fragment.arguments.to_owned() });
            }
        }
        Ok(())
    }

    /// Returns the index of the call that a fragment continues.
    fn find(&self, fragment: ToolCallFragment<'_>) -> Result<Option<usize>> {
        let found = match fragment.number {
            Some(number) => self.calls.iter().rposition(|numbered| numbered.number == number),
            None if !fragment.id.is_empty() => self.calls.iter().rposition(|numbered| numbered.call.id == fragment.id),
            None if !fragment.name.is_empty() => None,
            None => self.calls.len().checked_sub(1),
        };
        let Some(call) = found.map(|index| &self.calls[index].call) else { return Ok(None) };
        let differs = |old: &str, new: &str| !old.is_empty() && !new.is_empty() && old != new;
        if !differs(&call.id, fragment.id) && !differs(&call.name, fragment.name) {
            return Ok(found);
        }
        // Some servers give all calls the same number, but send each one whole. An incomplete call must never turn into
        // a different one: the user may already have approved it.
        let is_whole = serde_json::from_str::<serde::de::IgnoredAny>(&call.arguments).is_ok();
        match is_whole && differs(&call.id, fragment.id) {
            true => Ok(None),
            false => Err(Error::new(Kind::StreamParse, "a tool call changes its id or name while it is streamed")),
        }
    }

    fn begin(&mut self, fragment: ToolCallFragment<'_>) -> Result<usize> {
        if self.calls.len() >= self.max {
            let max = self.max;
            return Err(Error::new(Kind::ResponseTooLarge, format_args!("more than {max} tool calls")));
        }
        let last = self.calls.last().map_or(0, |numbered| numbered.number.saturating_add(1));
        self.calls.push(Numbered { number: fragment.number.unwrap_or(last), call: ToolCall::default() });
        Ok(self.calls.len() - 1)
    }

    /// Returns whether there are no calls.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns whether the call with this number already has arguments.
    pub(super) fn has_arguments(&self, number: Option<u64>) -> bool {
        self.calls.iter().any(|numbered| Some(numbered.number) == number && !numbered.call.arguments.is_empty())
    }

    /// Returns the calls in the order of their numbers.
    pub(super) fn finish(mut self) -> Result<Vec<ToolCall>> {
        self.calls.sort_by_key(|numbered| numbered.number);
        if self.calls.iter().any(|numbered| numbered.call.name.is_empty()) {
            return Err(Error::new(Kind::StreamParse, "tool call without a name"));
        }
        Ok(self.calls.into_iter().map(|numbered| numbered.call).collect())
    }
}

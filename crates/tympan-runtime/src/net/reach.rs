//! Checks where requests may be sent. All requests pass through this one check.
//!
//! A turn can involve several prompts that call each other, and tools. A value that one of them read from the
//! environment may end up in the conversation of another. The turn therefore tracks the values that its prompts have
//! read, and every request within the turn counts as carrying them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tympan_core::secret::env_value::{EnvPlace, ValueSource};
use tympan_core::spec::{Secret, Tool};
use tympan_core::wire::compatible::Provider;
use tympan_core::wire::{Address, Carried, check_destination};
use tympan_core::{Prompt, Result};
use url::Url;

use crate::host::runtime::Runtime;

/// The values from the environment that may be part of a turn's conversation. Clones share the same state.
#[derive(Clone, Debug, Default)]
pub(crate) struct TurnValues(Arc<Mutex<BTreeMap<(String, ValueSource), Carried>>>);

impl TurnValues {
    /// Adds the values that a prompt may put into the conversation.
    pub(crate) fn add(&self, prompt: &Prompt) {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for found in prompt.env_values().iter().filter(|found| found.place.is_in_conversation()) {
            values.insert((found.variable.clone(), found.source.clone()), found.into());
        }
    }

    fn carried(&self) -> Vec<Carried> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

impl Runtime {
    /// Records that a prompt takes part in the current turn, if there is one.
    pub(crate) fn joins_turn(&self, prompt: &Prompt) {
        if let Some(values) = self.turn_values() {
            values.add(prompt);
        }
    }

    /// Checks whether a model request that carries these values may be sent.
    ///
    /// # Errors
    /// Returns an error if [`check_destination`] does.
    pub(crate) fn check_model_request(
        &self,
        address: &Address,
        mut carried: Vec<Carried>,
        provider: &Provider,
    ) -> Result<()> {
        carried.extend(self.turn_values().map(TurnValues::carried).unwrap_or_default());
        check_destination(address, &carried, Some(provider), &self.options().allow_endpoints)
    }
}

/// The requests of a tool: their address, and what they carry besides the conversation.
#[derive(Clone, Debug)]
pub(crate) struct ToolReach {
    address: Address,
    carried: Vec<Carried>,
    /// Whether they carry arguments that a model wrote.
    has_arguments: bool,
}

impl ToolReach {
    /// Describes the requests of a tool, with its connection's key, to an address that does not come from the host, but
    /// from the tool's declaration or a document that it refers to.
    pub(crate) fn new(prompt: &Prompt, tool: &Tool, url: &Url, key: Option<&Secret>) -> Self {
        let index = index_of(prompt, tool);
        let own = prompt.env_values().iter().filter(|found| found.place.is_of_tool(index));
        let address = Address::of_prompt(url.clone(), own.clone());
        let mut carried: Vec<_> = own.map(Carried::from).collect();
        if let Some(key) = key {
            let is_in_key =
                |carried: &Carried| !carried.value.expose().is_empty() && key.expose().contains(carried.value.expose());
            if !carried.iter().any(is_in_key) {
                let what = format!("the key for `{}`", tool.name);
                carried.push(Carried { what, source: ValueSource::Prompt, value: key.clone() });
            }
        }
        Self { address, carried, has_arguments: true }
    }

    /// Describes the request that fetches the document of a tool. It carries only what is in its URL.
    pub(crate) fn of_document(prompt: &Prompt, tool: &Tool, url: &Url) -> Self {
        let place = EnvPlace::Specification(index_of(prompt, tool));
        let own = prompt.env_values().iter().filter(|found| found.place == place);
        let address = Address::of_prompt(url.clone(), own.clone());
        Self { address, carried: own.map(Carried::from).collect(), has_arguments: false }
    }

    /// Returns the address of the requests.
    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Checks whether the requests may be sent. Arguments may contain anything from the conversation.
    ///
    /// # Errors
    /// Returns an error if [`check_destination`] does.
    pub(crate) fn check(&self, runtime: &Runtime) -> Result<()> {
        let mut carried = self.carried.clone();
        if self.has_arguments {
            carried.extend(runtime.turn_values().map(TurnValues::carried).unwrap_or_default());
        }
        check_destination(&self.address, &carried, None, &runtime.options().allow_endpoints)
    }
}

fn index_of(prompt: &Prompt, tool: &Tool) -> usize {
    prompt.spec().tools.iter().position(|other| other.name == tool.name).unwrap_or(usize::MAX)
}

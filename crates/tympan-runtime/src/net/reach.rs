//! Where requests may go: the one check that all of them go through, whoever makes them.
//!
//! A turn has prompts in it that call each other, and tools. What one of them got from the environment may be in the
//! conversation of another one afterwards, so the turn remembers what its prompts got, and every request within the turn
//! carries it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tympan_core::secret::env_value::{EnvPlace, ValueSource};
use tympan_core::spec::{Secret, Tool};
use tympan_core::wire::compatible::Provider;
use tympan_core::wire::{Address, Carried, check_destination};
use tympan_core::{Prompt, Result};
use url::Url;

use crate::host::runtime::Runtime;

/// The values from the environment that may be in the conversation of a turn. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct TurnValues(Arc<Mutex<BTreeMap<(String, ValueSource), Carried>>>);

impl TurnValues {
    /// Adds what a prompt may put into the conversation.
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
    /// Notes that a prompt takes part in the turn, if there is one.
    pub(crate) fn joins_turn(&self, prompt: &Prompt) {
        if let Some(values) = self.turn_values() {
            values.add(prompt);
        }
    }

    /// Checks a request to a model that carries these values.
    ///
    /// # Errors
    /// As [`check_destination`].
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

/// The requests of a tool: where they go, and what they carry besides the conversation.
#[derive(Clone, Debug)]
pub(crate) struct ToolReach {
    address: Address,
    carried: Vec<Carried>,
    /// Whether they carry what a model wrote.
    has_arguments: bool,
}

impl ToolReach {
    /// The requests of a tool, with the key of its connection, to an address that is not the host's: its declaration
    /// names it, or a document that the declaration leads to.
    pub(crate) fn new(prompt: &Prompt, tool: &Tool, url: &Url, key: Option<&Secret>) -> Self {
        let index = index_of(prompt, tool);
        let own = prompt.env_values().iter().filter(|found| found.place.is_of_tool(index));
        let address = Address::of_prompt(url.clone(), own.clone());
        let mut carried: Vec<_> = own.map(Carried::from).collect();
        if let Some(key) = key {
            let is_in_key =
                |carried: &Carried| !carried.value.expose().is_empty() && key.expose().contains(carried.value.expose());
            if !carried.iter().any(is_in_key) {
                let what = format!("the key of `{}`", tool.name);
                carried.push(Carried { what, source: ValueSource::Prompt, value: key.clone() });
            }
        }
        Self { address, carried, has_arguments: true }
    }

    /// The one request that fetches the document of a tool. It carries what is in its address.
    pub(crate) fn of_document(prompt: &Prompt, tool: &Tool, url: &Url) -> Self {
        let place = EnvPlace::Specification(index_of(prompt, tool));
        let own = prompt.env_values().iter().filter(|found| found.place == place);
        let address = Address::of_prompt(url.clone(), own.clone());
        Self { address, carried: own.map(Carried::from).collect(), has_arguments: false }
    }

    /// Checks what every request carries. The arguments of a call may hold anything that is in the conversation.
    ///
    /// # Errors
    /// As [`check_destination`].
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

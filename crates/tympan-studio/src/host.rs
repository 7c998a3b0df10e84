//! What the host of a studio decides: how prompts are run, and with which tools.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use tympan_core::spec::flow::ToolFlow;
use tympan_core::wire::catalog::Catalog;
use tympan_core::{Prompt, Result};
use tympan_runtime::{Runtime, RuntimeOptions, Tool};

/// The implementations of a prompt's tools.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Tools {
    /// The implementations, by name.
    pub runs: HashMap<String, Arc<dyn Tool>>,
    /// What is declared about tools that are implemented elsewhere.
    pub flows: HashMap<String, ToolFlow>,
}

impl Tools {
    /// Creates tools from their implementations, and from what is declared about others.
    pub fn new(runs: HashMap<String, Arc<dyn Tool>>, flows: HashMap<String, ToolFlow>) -> Self {
        Self { runs, flows }
    }
}

/// The program that a studio belongs to.
pub trait Host: Send + Sync {
    /// Creates a runtime that calls the model of a prompt file.
    fn runtime(&self, prompt: &Path, options: RuntimeOptions) -> Runtime {
        let _ = prompt;
        Runtime::new(options)
    }

    /// Returns the implementations of a prompt's tools.
    ///
    /// # Errors
    /// Returns an error if the configuration of the tools is invalid.
    fn tools(&self, runtime: &Runtime, prompt: &Prompt) -> Result<Tools> {
        let _ = (runtime, prompt);
        Ok(Tools::default())
    }

    /// Returns the prices and context windows of models.
    fn catalog(&self) -> Catalog {
        Catalog::default()
    }

    /// Returns whether an environment variable that usually holds the key of a provider has a value.
    fn has_variable(&self, name: &str) -> bool {
        std::env::var_os(name).is_some_and(|value| !value.is_empty())
    }
}

/// The host that adds nothing.
pub(crate) struct DefaultHost;

impl Host for DefaultHost {}

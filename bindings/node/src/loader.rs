//! Prompts by name, from memory and from a folder.

use napi_derive::napi;
use tympan::PromptLoader;

use crate::border::guarded;
use crate::prompt::NativePrompt;

/// Prompts by name.
#[napi]
pub struct NativeLoader {
    loader: PromptLoader,
}

#[napi]
impl NativeLoader {
    /// Creates a loader for the prompts in `folder`, or for prompts in memory if `folder` is `None`.
    #[napi(constructor)]
    pub fn new(folder: Option<String>) -> Self {
        Self { loader: folder.map_or_else(PromptLoader::memory, PromptLoader::folder) }
    }

    /// Adds a prompt.
    #[napi]
    pub fn insert(&self, name: String, prompt: &NativePrompt) {
        self.loader.insert(name, prompt.prompt.clone());
    }

    /// Returns the prompt with this name.
    #[napi]
    pub fn load(&self, name: String) -> napi::Result<NativePrompt> {
        guarded(|| Ok(NativePrompt { prompt: self.loader.load(&name)? }))
    }

    /// Returns the names of all prompts.
    #[napi]
    pub fn names(&self) -> napi::Result<Vec<String>> {
        guarded(|| self.loader.names())
    }
}

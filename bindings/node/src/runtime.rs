//! A runtime: what computes. What waits for a network is in `turn`.

use std::path::PathBuf;
use std::sync::Arc;

use napi::bindgen_prelude::AsyncTask;
use napi_derive::napi;
use tympan::{Prompt, RenderOptions, Rendered, Result};
use tympan_runtime::{Runtime, config};

use crate::border::{guarded, read, written};
use crate::job::{Job, Made, job};
use crate::prompt::{NativePrompt, NativeRendered};
use crate::show;

/// Registries and options.
#[napi]
pub struct NativeRuntime {
    pub(crate) runtime: Runtime,
}

#[napi]
impl NativeRuntime {
    /// A runtime with these options, as JSON.
    #[napi(constructor)]
    pub fn new(options: String) -> napi::Result<Self> {
        guarded(|| {
            let options = config::runtime_options(read("options", &options)?)?;
            Ok(Self { runtime: Runtime::new(options) })
        })
    }

    /// Loads a prompt file.
    #[napi]
    pub fn load(&self, path: String) -> napi::Result<NativePrompt> {
        guarded(|| self.runtime.load(path).map(Into::into))
    }

    /// The same in a thread of the pool.
    #[napi]
    pub fn load_async(&self, path: String) -> AsyncTask<Job> {
        let runtime = self.runtime.clone();
        job(move || Ok(Made::Prompt(runtime.load(path)?.into())))
    }

    /// Loads a prompt from the text of a prompt file.
    #[napi]
    pub fn load_str(&self, text: String, name: String, base_dir: String) -> napi::Result<NativePrompt> {
        guarded(|| self.runtime.load_str(&text, &name, PathBuf::from(base_dir)).map(Into::into))
    }

    /// Fills in defaults and checks that nothing required is missing.
    #[napi]
    pub fn validate_inputs(&self, prompt: &NativePrompt, inputs: String) -> napi::Result<String> {
        guarded(|| written(&self.runtime.validate_inputs(&prompt.prompt, &read("inputs", &inputs)?)?))
    }

    /// Renders a prompt.
    #[napi]
    pub fn render(
        &self,
        prompt: &NativePrompt,
        inputs: String,
        variant: Option<String>,
    ) -> napi::Result<NativeRendered> {
        guarded(|| Ok(NativeRendered { rendered: render(&self.runtime, &prompt.prompt, &inputs, variant.as_deref())? }))
    }

    /// The same in a thread of the pool.
    #[napi]
    pub fn render_async(&self, prompt: &NativePrompt, inputs: String, variant: Option<String>) -> AsyncTask<Job> {
        let (runtime, prompt) = (self.runtime.clone(), prompt.prompt.clone());
        job(move || Ok(Made::Rendered(Box::new(render(&runtime, &prompt, &inputs, variant.as_deref())?))))
    }

    /// Splits a rendered prompt into messages.
    #[napi]
    pub fn parse(&self, prompt: &NativePrompt, rendered: &NativeRendered) -> napi::Result<String> {
        guarded(|| show::messages(self.runtime.parse(&prompt.prompt, &rendered.rendered)?))
    }

    /// The same in a thread of the pool.
    #[napi]
    pub fn parse_async(&self, prompt: &NativePrompt, rendered: &NativeRendered) -> AsyncTask<Job> {
        let (runtime, prompt, rendered) = (self.runtime.clone(), prompt.prompt.clone(), rendered.rendered.clone());
        job(move || Ok(Made::Text(show::messages(runtime.parse(&prompt, &rendered)?)?)))
    }

    /// Renders a prompt and splits it into messages.
    #[napi]
    pub fn prepare(&self, prompt: &NativePrompt, inputs: String) -> napi::Result<String> {
        guarded(|| prepare(&self.runtime, &prompt.prompt, &inputs))
    }

    /// The same in a thread of the pool.
    #[napi]
    pub fn prepare_async(&self, prompt: &NativePrompt, inputs: String) -> AsyncTask<Job> {
        let (runtime, prompt) = (self.runtime.clone(), prompt.prompt.clone());
        job(move || Ok(Made::Text(prepare(&runtime, &prompt, &inputs)?)))
    }

    /// Makes a result of a provider's answer.
    #[napi]
    pub fn process(&self, prompt: &NativePrompt, body: String, options: String) -> napi::Result<String> {
        guarded(|| process(&self.runtime, &prompt.prompt, &body, &options))
    }

    /// The same in a thread of the pool.
    #[napi]
    pub fn process_async(&self, prompt: &NativePrompt, body: String, options: String) -> AsyncTask<Job> {
        let (runtime, prompt) = (self.runtime.clone(), Arc::clone(&prompt.prompt));
        job(move || Ok(Made::Text(process(&runtime, &prompt, &body, &options)?)))
    }
}

fn render(runtime: &Runtime, prompt: &Prompt, inputs: &str, variant: Option<&str>) -> Result<Rendered> {
    let options = RenderOptions { variant, ..runtime.render_options() };
    runtime.render_with(prompt, &read("inputs", inputs)?, &options)
}

fn prepare(runtime: &Runtime, prompt: &Prompt, inputs: &str) -> Result<String> {
    show::messages(runtime.prepare(prompt, &read("inputs", inputs)?)?)
}

fn process(runtime: &Runtime, prompt: &Prompt, body: &str, options: &str) -> Result<String> {
    let options = config::run_options(read("options", options)?)?;
    written(&show::run(&runtime.process_with(prompt, body.as_bytes(), &options)?))
}

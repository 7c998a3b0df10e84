//! The operations of a runtime that only compute. Those that call models are in `turn`.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use napi::Env;
use napi_derive::napi;
use tympan::Runtime;
use tympan::chat::marker;
use tympan::chat::thread::{ThreadRoles, parse_thread};
use tympan::chat::{ParseTextOptions, parse_text};
use tympan::host::config;
use tympan::host::data;
use tympan::{JsonMap, Prompt, Rendered, Result};

use crate::border::{guarded, read, written};
use crate::host::{Listener, Registered, here};
use crate::prompt::{NativePrompt, NativeRendered};
use crate::show;
use crate::work::{Made, Work};

/// Options and registries.
#[napi]
pub struct NativeRuntime {
    pub(crate) runtime: Runtime,
    /// The JavaScript registry, once something is registered.
    pub(crate) registered: OnceLock<Arc<Registered>>,
}

impl Drop for NativeRuntime {
    /// Ends all waiting: there will be no more answers, and pending questions must not delay the exit.
    fn drop(&mut self) {
        if let Some(registered) = self.registered.get() {
            registered.host.close();
        }
    }
}

#[napi]
impl NativeRuntime {
    /// Creates a runtime with these options, as JSON.
    #[napi(constructor)]
    pub fn new(options: String) -> napi::Result<Self> {
        guarded(|| {
            let options = config::runtime_options(read("options", &options)?)?;
            Ok(Self { runtime: Runtime::new(options), registered: OnceLock::new() })
        })
    }

    /// Loads a prompt file.
    #[napi]
    pub fn load(&self, path: String) -> napi::Result<NativePrompt> {
        guarded(|| self.runtime.load(path).map(Into::into))
    }

    /// Loads a prompt file on another thread.
    #[napi]
    pub fn load_async(&self, path: String, listener: Listener) -> Work {
        let runtime = self.runtime.clone();
        Work::compute(listener, move || Ok(Made::Prompt(runtime.load(path)?.into())))
    }

    /// Loads a prompt from the text of a prompt file.
    #[napi]
    pub fn load_str(&self, text: String, name: String, base_dir: String) -> napi::Result<NativePrompt> {
        guarded(|| self.runtime.load_str(&text, &name, PathBuf::from(base_dir)).map(Into::into))
    }

    /// Fills in default values and checks that no required input is missing.
    #[napi]
    pub fn validate_inputs(&self, prompt: &NativePrompt, inputs: String) -> napi::Result<String> {
        guarded(|| written(&self.runtime.validate_inputs(&prompt.prompt, &read::<JsonMap>("inputs", &inputs)?)?))
    }

    /// Renders a prompt. The options, as JSON, override those of the runtime.
    #[napi]
    pub fn render(
        &self,
        env: Env,
        prompt: &NativePrompt,
        inputs: String,
        options: Option<String>,
    ) -> napi::Result<NativeRendered> {
        here(env, || guarded(|| render(&self.runtime, &prompt.prompt, &inputs, options.as_deref())))
            .map(|rendered| NativeRendered { rendered })
    }

    /// Renders a prompt on another thread.
    #[napi]
    pub fn render_async(
        &self,
        prompt: &NativePrompt,
        inputs: String,
        options: Option<String>,
        listener: Listener,
    ) -> Work {
        let (runtime, prompt) = (self.runtime.clone(), prompt.prompt.clone());
        Work::compute(listener, move || {
            Ok(Made::Rendered(Box::new(render(&runtime, &prompt, &inputs, options.as_deref())?)))
        })
    }

    /// Splits a rendered prompt into messages.
    #[napi]
    pub fn parse(&self, env: Env, prompt: &NativePrompt, rendered: &NativeRendered) -> napi::Result<String> {
        here(env, || guarded(|| show::messages(self.runtime.parse(&prompt.prompt, &rendered.rendered)?)))
    }

    /// Splits a rendered prompt into messages on another thread.
    #[napi]
    pub fn parse_async(&self, prompt: &NativePrompt, rendered: &NativeRendered, listener: Listener) -> Work {
        let (runtime, prompt, rendered) = (self.runtime.clone(), prompt.prompt.clone(), rendered.rendered.clone());
        Work::compute(listener, move || Ok(Made::Text(show::messages(runtime.parse(&prompt, &rendered)?)?)))
    }

    /// Renders a prompt and splits it into messages.
    #[napi]
    pub fn prepare(&self, env: Env, prompt: &NativePrompt, inputs: String) -> napi::Result<String> {
        here(env, || guarded(|| prepare(&self.runtime, &prompt.prompt, &inputs)))
    }

    /// Renders a prompt and splits it into messages on another thread.
    #[napi]
    pub fn prepare_async(&self, prompt: &NativePrompt, inputs: String, listener: Listener) -> Work {
        let (runtime, prompt) = (self.runtime.clone(), prompt.prompt.clone());
        Work::compute(listener, move || Ok(Made::Text(prepare(&runtime, &prompt, &inputs)?)))
    }

    /// Converts a provider's response to a result.
    #[napi]
    pub fn process(&self, prompt: &NativePrompt, body: String, options: String) -> napi::Result<String> {
        guarded(|| process(&self.runtime, &prompt.prompt, &body, &options))
    }

    /// Converts a provider's response to a result on another thread.
    #[napi]
    pub fn process_async(&self, prompt: &NativePrompt, body: String, options: String, listener: Listener) -> Work {
        let (runtime, prompt) = (self.runtime.clone(), prompt.prompt.clone());
        Work::compute(listener, move || Ok(Made::Text(process(&runtime, &prompt, &body, &options)?)))
    }
}

fn render(runtime: &Runtime, prompt: &Prompt, inputs: &str, options: Option<&str>) -> Result<Rendered> {
    let inputs: JsonMap = read("inputs", inputs)?;
    match options {
        None => runtime.render(prompt, &inputs),
        Some(options) => {
            let settings = config::render_settings(read("options", options)?)?;
            runtime.render_with(prompt, &inputs, &settings.over(runtime.render_options()))
        }
    }
}

fn prepare(runtime: &Runtime, prompt: &Prompt, inputs: &str) -> Result<String> {
    show::messages(runtime.prepare(prompt, &read::<JsonMap>("inputs", inputs)?)?)
}

fn process(runtime: &Runtime, prompt: &Prompt, body: &str, options: &str) -> Result<String> {
    let options = config::run_options(read("options", options)?)?;
    written(&data::run(&runtime.process_with(prompt, body.as_bytes(), &options)?))
}

/// Splits text of unknown origin into messages, as JSON.
#[napi(js_name = "parseText")]
pub fn split_text(text: String, nonce: Option<String>, threads: String) -> napi::Result<String> {
    guarded(|| {
        let threads: JsonMap = read("threads", &threads)?;
        let thread = |(name, thread)| Ok((name, parse_thread(&thread, ThreadRoles::Any)?));
        let threads = threads.into_iter().map(thread).collect::<Result<_>>()?;
        show::messages(parse_text(&text, &ParseTextOptions { nonce, threads })?)
    })
}

/// Writes a nonce into the role markers of a template.
#[napi]
pub fn pre_render(text: String, nonce: String) -> String {
    marker::pre_render(&text, &nonce)
}

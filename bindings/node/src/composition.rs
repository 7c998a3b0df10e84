//! Compositions of several prompts, and steering of a running turn.

use std::sync::Arc;

use napi_derive::napi;
use tympan::Steering;
use tympan::{Composition, Inputs, Prompt};

use crate::border::{guarded, read};
use crate::prompt::{NativePrompt, NativeRendered};
use crate::runtime::NativeRuntime;
use crate::show;

/// A sequence of prompts, each with its own inputs.
#[napi]
#[derive(Default)]
pub struct NativeComposition {
    parts: Vec<Part>,
}

struct Part {
    prompt: Arc<Prompt>,
    inputs: Inputs,
    variant: Option<String>,
}

impl NativeComposition {
    fn borrow(&self) -> Composition<'_> {
        let mut composition = Composition::default();
        for Part { prompt, inputs, variant } in &self.parts {
            composition.push_variant(prompt, variant.as_deref(), inputs.clone());
        }
        composition
    }
}

#[napi]
impl NativeComposition {
    /// Creates an empty composition.
    #[napi(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a prompt.
    #[napi]
    pub fn push(&mut self, prompt: &NativePrompt, inputs: String, variant: Option<String>) -> napi::Result<()> {
        guarded(|| {
            let (prompt, inputs) = (prompt.prompt.clone(), read("inputs", &inputs)?);
            self.parts.push(Part { prompt, inputs, variant });
            Ok(())
        })
    }

    /// Renders every prompt.
    #[napi]
    pub fn render(&self, runtime: &NativeRuntime) -> napi::Result<Vec<NativeRendered>> {
        guarded(|| {
            let rendered = self.borrow().render(&runtime.runtime.render_options())?;
            Ok(rendered.into_iter().map(|rendered| NativeRendered { rendered }).collect())
        })
    }

    /// Renders every prompt and joins their messages.
    #[napi]
    pub fn messages(&self, runtime: &NativeRuntime) -> napi::Result<String> {
        guarded(|| show::messages(self.borrow().messages(&runtime.runtime.render_options())?))
    }
}

/// A queue of user messages for a running turn.
#[napi]
#[derive(Default)]
pub struct NativeSteering {
    pub(crate) steering: Steering,
}

#[napi]
impl NativeSteering {
    /// Creates an empty queue.
    #[napi(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a message, which the model receives in the next round.
    #[napi]
    pub fn send(&self, message: String) {
        self.steering.send(message);
    }

    /// Returns whether a message is pending.
    #[napi]
    pub fn has_pending(&self) -> bool {
        self.steering.has_pending()
    }
}

//! Work that computes, in a thread of Node's pool.

use napi::bindgen_prelude::{AsyncTask, Either3};
use napi::{Env, Task};
use tympan::{Error, Kind, Rendered, Result};

use crate::border::guarded;
use crate::prompt::{NativePrompt, NativeRendered};

/// What work can come to.
pub enum Made {
    /// A value, as JSON.
    Text(String),
    /// A prompt.
    Prompt(NativePrompt),
    /// A rendered prompt.
    Rendered(Box<Rendered>),
}

/// Work for a thread of Node's pool.
pub struct Job(Option<Box<dyn FnOnce() -> Result<Made> + Send>>);

/// Puts work into the pool.
pub(crate) fn job(work: impl FnOnce() -> Result<Made> + Send + 'static) -> AsyncTask<Job> {
    AsyncTask::new(Job(Some(Box::new(work))))
}

impl Task for Job {
    type Output = Made;
    type JsValue = Either3<String, NativePrompt, NativeRendered>;

    fn compute(&mut self) -> napi::Result<Made> {
        let work = self.0.take();
        guarded(|| work.ok_or_else(|| Error::new(Kind::Internal, "work was begun twice"))?())
    }

    fn resolve(&mut self, _env: Env, made: Made) -> napi::Result<Self::JsValue> {
        Ok(match made {
            Made::Text(text) => Either3::A(text),
            Made::Prompt(prompt) => Either3::B(prompt),
            Made::Rendered(rendered) => Either3::C(NativeRendered { rendered: *rendered }),
        })
    }
}

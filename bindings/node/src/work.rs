//! Asynchronous work, which runs on Tympan's driver and reports its outcome to JavaScript.

use std::future::Future;
use std::sync::{Arc, Weak};

use napi_derive::napi;
use tympan::CancelToken;
use tympan::net::io::{self, Task};
use tympan::{Error, Kind, Rendered, Result};

use crate::border::error_text;
use crate::host::{Host, Listener, Question};
use crate::prompt::{NativePrompt, NativeRendered};

/// The outcome of work.
pub(crate) enum Made {
    /// A value, as JSON.
    Text(String),
    /// A prompt.
    Prompt(NativePrompt),
    /// A rendered prompt.
    Rendered(Box<Rendered>),
}

impl From<Made> for Question {
    fn from(made: Made) -> Self {
        match made {
            Made::Text(text) => text.into(),
            Made::Prompt(prompt) => Self::default().about(prompt),
            Made::Rendered(rendered) => Self::default().rendered(NativeRendered { rendered: *rendered }),
        }
    }
}

/// Work in progress.
#[napi]
pub struct Work {
    task: Option<Task<()>>,
    /// Dropped with the work. Node does not exit before that.
    host: Weak<Host>,
    cancel: CancelToken,
}

impl Work {
    /// Starts some work. Its outcome is sent as `done`, and its error as `failed`.
    pub(crate) fn begin(
        host: Arc<Host>,
        cancel: CancelToken,
        work: impl Future<Output = Result<Made>> + Send + 'static,
    ) -> Self {
        let (work, weak) = (io::spawn(work), Arc::downgrade(&host));
        let task = io::spawn(async move {
            match work.await {
                Ok(made) => host.say("done", made.into()),
                Err(error) => host.say("failed", error_text(&error).into()),
            }
            Ok(())
        });
        Self { task: Some(task), host: weak, cancel }
    }

    /// Starts a computation on a thread that may block.
    pub(crate) fn compute(listener: Listener, work: impl FnOnce() -> Result<Made> + Send + 'static) -> Self {
        Self::begin(Host::of_work(listener), CancelToken::default(), async move {
            let computed = tokio::task::spawn_blocking(work).await;
            computed.unwrap_or_else(|_| Err(Error::new(Kind::Internal, "the engine panicked")))
        })
    }
}

#[napi]
impl Work {
    /// Stops the work immediately. Nothing more is sent.
    #[napi]
    pub fn stop(&mut self) {
        self.task = None;
        if let Some(host) = self.host.upgrade() {
            host.close();
        }
    }

    /// Cancels the work. It sends `failed` when it has ended.
    #[napi]
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Answers a question.
    #[napi]
    pub fn answer(&self, question: u32, ok: bool, text: String) {
        if let Some(host) = self.host.upgrade() {
            host.answer(question, if ok { Ok(text) } else { Err(text) });
        }
    }
}

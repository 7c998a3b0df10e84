//! Providers that the host brings, and what they are asked.

use futures_util::future::BoxFuture;
use tympan_core::wire::echo;
use tympan_core::wire::response::{Delta, Response};
use tympan_core::{Message, Prompt, Result};

use crate::model::run::RunOptions;

/// Serves models in a way that the host brings: in place of HTTP, or around it.
pub trait Provider: Send + Sync {
    /// Calls a model.
    ///
    /// # Errors
    /// Whatever the provider finds wrong.
    fn call<'a>(&'a self, call: ModelCall<'a>) -> BoxFuture<'a, Result<Reply>>;
}

/// What a model is asked.
#[derive(Clone, Copy, Debug)]
pub struct ModelCall<'a> {
    /// The prompt, with its model, its tools and its outputs.
    pub prompt: &'a Prompt,
    /// The conversation.
    pub messages: &'a [Message],
    /// What the caller wants to be different from what the prompt says.
    pub options: &'a RunOptions,
    /// Whether the caller would like the answer as a stream. A whole answer will do.
    pub stream: bool,
}

/// What a provider answers.
#[expect(clippy::large_enum_variant, reason = "there is one for each call, and it is taken apart at once")]
pub enum Reply {
    /// All at once.
    Whole(Response),
    /// Step by step.
    Stream(Box<dyn Deltas>),
}

/// The steps of a streamed answer.
pub trait Deltas: Send {
    /// The next step; `None` after the last.
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Delta>>>;

    /// All that the steps added up to, after the last of them.
    ///
    /// # Errors
    /// The answer ended too early, or is none.
    fn finish(self: Box<Self>) -> Result<Response>;
}

/// The provider `echo`: no model, no key, no network.
pub(crate) struct Echo;

impl Provider for Echo {
    fn call<'a>(&'a self, call: ModelCall<'a>) -> BoxFuture<'a, Result<Reply>> {
        let answer = echo::answer(call.prompt, call.messages, call.options.api_type.as_deref());
        Box::pin(std::future::ready(answer.map(|response| match call.stream {
            true => Reply::Stream(Box::new(Ready::new(echo::deltas(&response), response))),
            false => Reply::Whole(response),
        })))
    }
}

/// Steps that are known already.
pub(crate) struct Ready {
    deltas: std::vec::IntoIter<Delta>,
    response: Response,
}

impl Ready {
    pub(crate) fn new(deltas: Vec<Delta>, response: Response) -> Self {
        Self { deltas: deltas.into_iter(), response }
    }
}

impl Deltas for Ready {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Delta>>> {
        Box::pin(std::future::ready(self.deltas.next().map(Ok)))
    }

    fn finish(self: Box<Self>) -> Result<Response> {
        Ok(self.response)
    }
}

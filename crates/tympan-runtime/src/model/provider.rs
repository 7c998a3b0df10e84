//! Custom providers, and the calls that they receive.

use futures_util::future::BoxFuture;
use tympan_core::wire::echo;
use tympan_core::wire::response::{Delta, Response};
use tympan_core::{Message, Prompt, Result};

use crate::model::run::RunOptions;

/// A custom provider, which replaces or wraps HTTP.
pub trait Provider: Send + Sync {
    /// Calls a model.
    ///
    /// # Errors
    /// Returns an error if the call fails.
    fn call<'a>(&'a self, call: ModelCall<'a>) -> BoxFuture<'a, Result<Reply>>;
}

impl<T: Provider + ?Sized> Provider for std::sync::Arc<T> {
    fn call<'a>(&'a self, call: ModelCall<'a>) -> BoxFuture<'a, Result<Reply>> {
        (**self).call(call)
    }
}

/// A model call.
#[derive(Clone, Copy, Debug)]
pub struct ModelCall<'a> {
    /// The prompt, with its model, its tools and its outputs.
    pub prompt: &'a Prompt,
    /// The conversation.
    pub messages: &'a [Message],
    /// The caller's overrides of what the prompt specifies.
    pub options: &'a RunOptions,
    /// Whether the caller prefers a streamed response. A complete response is accepted too.
    pub stream: bool,
}

/// The reply of a provider.
#[expect(clippy::large_enum_variant, reason = "there is one for each call, and it is taken apart at once")]
pub enum Reply {
    /// A complete response.
    Whole(Response),
    /// A streamed response.
    Stream(Box<dyn Deltas>),
}

/// The deltas of a streamed response.
pub trait Deltas: Send {
    /// Returns the next delta; `None` after the last.
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Delta>>>;

    /// Returns the accumulated response, after the last delta.
    ///
    /// # Errors
    /// Returns an error if the response is incomplete or invalid.
    fn finish(self: Box<Self>) -> Result<Response>;
}

/// The `echo` provider, which needs no model, no key and no network.
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

/// Deltas that are already known.
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

//! Answers as they arrive.

use std::collections::VecDeque;

use futures_util::future::BoxFuture;
use futures_util::stream::{Stream, unfold};
use tympan_core::spec::schema::Property;
use tympan_core::wire::StreamDecoder;
use tympan_core::wire::response::{Delta, Response};
use tympan_core::{Error, Prompt, Redactor, Result};

use crate::model::provider::Deltas;
use crate::model::run::Run;
use crate::net::exchange::Chunks;
use crate::net::io;
use crate::trace::Span;
use crate::trace::event;

/// An answer that is still arriving.
///
/// It is an iterator over the steps, and [`ResponseStream::next_async`] and [`ResponseStream::into_stream`] are its
/// async twins. After the last step, [`ResponseStream::finish`] has the result. Dropping it stops the model.
pub struct ResponseStream {
    deltas: Box<dyn Deltas>,
    outputs: Vec<Property>,
    /// Whether an error has been given on, after which nothing comes.
    failed: bool,
    /// The stages that go on for as long as the answer arrives: the call, and all of it.
    execute: Span,
    span: Span,
}

impl ResponseStream {
    pub(crate) fn new(prompt: &Prompt, deltas: Box<dyn Deltas>, span: Span, execute: Span) -> Self {
        Self { deltas, outputs: prompt.spec().outputs.clone(), failed: false, execute, span }
    }

    /// The next step; `None` after the last.
    pub async fn next_async(&mut self) -> Option<Result<Delta>> {
        if self.failed {
            return None;
        }
        let next = self.deltas.next().await;
        if let Some(Err(error)) = &next {
            self.failed = true;
            self.execute.error(error);
            self.span.error(error);
        }
        next
    }

    /// The result, once all has arrived. Steps that nobody has asked for are skipped.
    ///
    /// # Errors
    /// The answer ended too early, or is none. What had arrived is in [`Error::partial_text`].
    pub fn finish(self) -> Result<Run> {
        io::wait(self.finish_async())
    }

    /// The async twin of [`ResponseStream::finish`].
    ///
    /// # Errors
    /// As [`ResponseStream::finish`].
    pub async fn finish_async(mut self) -> Result<Run> {
        while let Some(step) = self.next_async().await {
            step?;
        }
        let response = event::failed(&self.span, event::failed(&self.execute, self.deltas.finish()))?;
        event::answered(&self.execute, &response);
        drop(self.execute);
        Run::new(&self.span, &self.outputs, response)
    }

    /// The steps as a stream of the `futures` crates.
    pub fn into_stream(self) -> impl Stream<Item = Result<Delta>> + Send {
        unfold(self, |mut stream| async move { stream.next_async().await.map(|step| (step, stream)) })
    }
}

impl Iterator for ResponseStream {
    type Item = Result<Delta>;

    /// Blocks the thread until the next step is there, inside and outside of asynchronous code.
    fn next(&mut self) -> Option<Self::Item> {
        io::wait(self.next_async())
    }
}

impl std::fmt::Debug for ResponseStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResponseStream").finish_non_exhaustive()
    }
}

/// The steps of an answer that comes over HTTP.
pub(crate) struct HttpDeltas {
    chunks: Chunks,
    decoder: StreamDecoder,
    /// Errors repeat what the provider has written.
    redactor: Redactor,
    ready: VecDeque<Delta>,
    /// Why there is nothing more to come, if that is not the end of the answer.
    failure: Option<Error>,
}

impl HttpDeltas {
    pub(crate) fn new(chunks: Chunks, decoder: StreamDecoder, redactor: Redactor) -> Self {
        Self { chunks, decoder, redactor, ready: VecDeque::new(), failure: None }
    }

    async fn advance(&mut self) -> Option<Result<Delta>> {
        loop {
            if let Some(delta) = self.ready.pop_front() {
                return Some(Ok(delta));
            }
            // What came before a failure has been given on, and now the failure is.
            if let Some(failure) = &self.failure {
                return Some(Err(failure.clone()));
            }
            if self.decoder.is_done() {
                return None;
            }
            let mut deltas = Vec::new();
            let pushed = match self.chunks.next().await? {
                Ok(chunk) => self.decoder.push(&chunk, &mut deltas),
                Err(error) => Err(error.with_partial_text(self.decoder.partial_text())),
            };
            self.ready.extend(deltas);
            self.failure = pushed.err().map(|error| error.without_secrets(&self.redactor));
        }
    }
}

impl Deltas for HttpDeltas {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Delta>>> {
        Box::pin(self.advance())
    }

    fn finish(self: Box<Self>) -> Result<Response> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let response = self.decoder.finish().map_err(|error| error.without_secrets(&self.redactor))?;
        self.chunks.keep()?;
        Ok(response)
    }
}

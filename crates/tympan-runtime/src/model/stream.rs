//! Streamed responses.

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

/// A response that is still arriving.
///
/// It is a blocking iterator over the deltas. In async code, use [`ResponseStream::next_async`] or
/// [`ResponseStream::into_stream`]. After the last delta, [`ResponseStream::finish`] returns the result. Dropping the
/// stream cancels the response.
pub struct ResponseStream {
    deltas: Box<dyn Deltas>,
    outputs: Vec<Property>,
    /// Whether an error has been returned, after which the stream is over.
    failed: bool,
    /// The spans that last until the response is complete: the model call, and the run as a whole.
    execute: Span,
    span: Span,
}

impl ResponseStream {
    pub(crate) fn new(prompt: &Prompt, deltas: Box<dyn Deltas>, span: Span, execute: Span) -> Self {
        Self { deltas, outputs: prompt.spec().outputs.clone(), failed: false, execute, span }
    }

    /// Returns the next delta; `None` after the last.
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

    /// Waits for the rest of the response and returns the result. Deltas that have not been read are skipped.
    ///
    /// # Errors
    /// Returns an error if the response is incomplete or invalid. [`Error::partial_text`] contains the text received so
    /// far.
    pub fn finish(self) -> Result<Run> {
        io::wait(self.finish_async())
    }

    /// Waits for the rest of the response and returns the result: the async variant of [`ResponseStream::finish`].
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`ResponseStream::finish`].
    pub async fn finish_async(mut self) -> Result<Run> {
        while let Some(step) = self.next_async().await {
            step?;
        }
        let response = event::record_error(&self.span, event::record_error(&self.execute, self.deltas.finish()))?;
        event::record_response(&self.execute, &response);
        drop(self.execute);
        Run::new(&self.span, &self.outputs, response)
    }

    /// Converts the response to a `Stream` of deltas, as defined by the `futures` crates.
    pub fn into_stream(self) -> impl Stream<Item = Result<Delta>> + Send {
        unfold(self, |mut stream| async move { stream.next_async().await.map(|step| (step, stream)) })
    }
}

impl Iterator for ResponseStream {
    type Item = Result<Delta>;

    /// Blocks the thread until the next delta arrives. This works inside and outside of async code.
    fn next(&mut self) -> Option<Self::Item> {
        io::wait(self.next_async())
    }
}

impl std::fmt::Debug for ResponseStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResponseStream").finish_non_exhaustive()
    }
}

/// The deltas of a response over HTTP.
pub(crate) struct HttpDeltas {
    chunks: Chunks,
    decoder: StreamDecoder,
    /// Removes secrets from errors, which may quote what the provider sent.
    redactor: Redactor,
    ready: VecDeque<Delta>,
    /// The error that ended the stream early, if any.
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
            // Return the failure only after all deltas that arrived before it.
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

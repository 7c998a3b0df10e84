//! Calls a model with messages, and converts its response to a result.

use std::fmt;

use serde::de::DeserializeOwned;
use tympan_core::Redactor;
use tympan_core::secret::url::redacted_url;
use tympan_core::spec::schema::Property;
use tympan_core::spec::{ModelOptions, Secret};
use tympan_core::turn::outcome;
use tympan_core::wire::echo::ECHO;
use tympan_core::wire::response::{FinishReason, Output, Response, Usage};
use tympan_core::wire::{self, EncodeOptions, Function, ModelSelection, StreamDecoder, WireRequest};
use tympan_core::{Message, Outcome, Prompt, Result};

use crate::host::runtime::Runtime;
use crate::model::budget::counted;
use crate::model::cassette::Cassette;
use crate::model::credentials::Purpose;
use crate::model::provider::{Deltas, Echo, ModelCall, Provider, Ready, Reply};
use crate::model::spending::{CallSize, settled};
use crate::model::stream::{HttpDeltas, ResponseStream};
use crate::net::exchange::{Received, exchange};
use crate::net::io;
use crate::trace::Span;
use crate::trace::event;

/// Overrides of what the prompt specifies. They come from the host and are trusted: keys from the environment may be
/// sent to a base URL given here.
#[derive(Clone, Default)]
pub struct RunOptions {
    /// The provider's name.
    pub provider: Option<String>,
    /// The provider's name for the model.
    pub model: Option<String>,
    /// The API type: `chat`, `responses`, `embedding` or `image`.
    pub api_type: Option<String>,
    /// The base URL that the provider's paths are appended to.
    pub base_url: Option<String>,
    /// The API key.
    pub api_key: Option<Secret>,
    /// Functions that the model may call, in addition to those that the prompt declares.
    pub functions: Vec<Function>,
}

impl fmt::Debug for RunOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunOptions")
            .field("provider", &self.provider)
            .field("model", &self.model)
            .field("api_type", &self.api_type)
            .field("base_url", &self.base_url.as_deref().map(redacted_url))
            .field("api_key", &self.api_key)
            .field("functions", &self.functions)
            .finish()
    }
}

impl RunOptions {
    /// Returns the names of the provider, the API type and the model to call: those in these options, or else the
    /// prompt's.
    pub fn select_model<'a>(&'a self, prompt: &'a Prompt) -> ModelSelection<'a> {
        ModelSelection::new(prompt, &self.encode_options())
    }

    /// Returns the part of the options for encoding a request that does not depend on credentials.
    pub(crate) fn encode_options(&self) -> EncodeOptions<'_> {
        EncodeOptions {
            provider: self.provider.as_deref(),
            model: self.model.as_deref(),
            api_type: self.api_type.as_deref(),
            functions: &self.functions,
            ..EncodeOptions::default()
        }
    }
}

/// The result of a model call.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The outcome.
    pub outcome: Outcome,
    /// The token usage.
    pub usage: Option<Usage>,
    /// The model that answered.
    pub model: Option<String>,
    /// The provider's ID for the response.
    pub id: Option<String>,
    /// Why the model stopped.
    pub finish_reason: Option<FinishReason>,
    /// The model's explanation, if it refused to answer.
    pub refusal: Option<String>,
}

impl Run {
    /// Converts a response to a result, and records it in a span.
    pub(crate) fn new(span: &Span, outputs: &[Property], mut response: Response) -> Result<Self> {
        let (id, model) = (response.id.take(), response.model.take());
        let (finish_reason, usage) = (response.finish_reason.take(), response.usage.take());
        let refusal = match &response.output {
            Output::Answer(answer) => answer.refusal.clone(),
            _ => None,
        };
        let outcome = outcome::finish_as(outputs, response);
        event::record_outcome(&span.child("process"), &outcome);
        event::record_outcome(span, &outcome);
        Ok(Self { outcome: outcome?, usage, model, id, finish_reason, refusal })
    }

    /// Deserializes the result into a type, directly from what the model wrote.
    ///
    /// # Errors
    /// Returns an error if the result does not match the type.
    pub fn cast<T: DeserializeOwned>(&self) -> Result<T> {
        self.outcome.cast()
    }
}

impl Runtime {
    /// Calls the model of a prompt with these messages.
    ///
    /// # Errors
    /// Returns an error if the request is invalid, if the provider cannot be reached or responds with an error, or if
    /// the response is invalid.
    pub fn run(&self, prompt: &Prompt, messages: &[Message]) -> Result<Run> {
        io::wait(self.run_async(prompt, messages))
    }

    /// Calls the model of a prompt: the async variant of [`Runtime::run`]. It works with any async runtime.
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::run`].
    pub async fn run_async(&self, prompt: &Prompt, messages: &[Message]) -> Result<Run> {
        self.run_with_async(prompt, messages, &RunOptions::default()).await
    }

    /// Calls the model of a prompt with custom options.
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::run`].
    pub fn run_with(&self, prompt: &Prompt, messages: &[Message], options: &RunOptions) -> Result<Run> {
        io::wait(self.run_with_async(prompt, messages, options))
    }

    /// Calls the model of a prompt with custom options: the async variant of [`Runtime::run_with`].
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::run`].
    pub async fn run_with_async(&self, prompt: &Prompt, messages: &[Message], options: &RunOptions) -> Result<Run> {
        let span = self.tracer().start("run");
        self.run_as(&span, prompt, messages, options).await
    }

    /// Calls the model of a prompt with custom options, and returns its response as it was decoded.
    /// [`Runtime::finish`] converts it to a result, now or after it was saved.
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::run`], as far as they are not about the result.
    pub fn respond(&self, prompt: &Prompt, messages: &[Message], options: &RunOptions) -> Result<Response> {
        io::wait(self.respond_async(prompt, messages, options))
    }

    /// Calls the model of a prompt: the async variant of [`Runtime::respond`].
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::respond`].
    pub async fn respond_async(&self, prompt: &Prompt, messages: &[Message], options: &RunOptions) -> Result<Response> {
        let span = self.tracer().start("run");
        self.respond_as(&span, prompt, messages, options).await
    }

    /// Converts a response to the result of a prompt, as [`Runtime::run`] does.
    ///
    /// # Errors
    /// Returns an error if a response with embeddings or images is empty.
    pub fn finish(&self, prompt: &Prompt, response: Response) -> Result<Run> {
        Run::new(&self.tracer().start("process"), &prompt.spec().outputs, response)
    }

    /// Calls the model, and records the call in a span.
    pub(crate) async fn run_as(
        &self,
        span: &Span,
        prompt: &Prompt,
        messages: &[Message],
        options: &RunOptions,
    ) -> Result<Run> {
        let response = self.respond_as(span, prompt, messages, options).await?;
        Run::new(span, &prompt.spec().outputs, response)
    }

    async fn respond_as(
        &self,
        span: &Span,
        prompt: &Prompt,
        messages: &[Message],
        options: &RunOptions,
    ) -> Result<Response> {
        event::record_request(span, prompt, messages);
        let call = ModelCall { prompt, messages, options, stream: false };
        let execute = span.child_client("execute");
        let response = match self.call(&execute, call).await {
            Ok(Reply::Whole(response)) => Ok(response),
            Ok(Reply::Stream(mut deltas)) => drain(&mut *deltas).await.and_then(|()| deltas.finish()),
            Err(error) => Err(error),
        };
        let response = event::record_error(span, event::record_error(&execute, response))?;
        event::record_response(&execute, &response);
        Ok(response)
    }

    /// Calls a model and streams its response. The call has already started when this returns.
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::run`], as far as they occur before the response begins.
    pub fn stream(&self, prompt: &Prompt, messages: &[Message], options: &RunOptions) -> Result<ResponseStream> {
        io::wait(self.stream_async(prompt, messages, options))
    }

    /// Calls a model and streams its response: the async variant of [`Runtime::stream`].
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::stream`].
    pub async fn stream_async(
        &self,
        prompt: &Prompt,
        messages: &[Message],
        options: &RunOptions,
    ) -> Result<ResponseStream> {
        let span = self.tracer().start("run");
        event::record_request(&span, prompt, messages);
        let call = ModelCall { prompt, messages, options, stream: true };
        let execute = span.child_client("execute");
        let reply = self.call(&execute, call).await;
        let deltas = match event::record_error(&span, event::record_error(&execute, reply))? {
            Reply::Whole(response) => Box::new(Ready::new(response.deltas(), response)),
            Reply::Stream(deltas) => deltas,
        };
        Ok(ResponseStream::new(prompt, deltas, span, execute))
    }

    /// Returns the request that a run would send, without a key from the environment. Nothing is sent.
    ///
    /// # Errors
    /// Returns an error if the request is invalid, or if a run would refuse to send it.
    pub fn request(
        &self,
        prompt: &Prompt,
        messages: &[Message],
        options: &RunOptions,
        stream: bool,
    ) -> Result<WireRequest> {
        let credentials = self.credentials(prompt, options, Purpose::Show)?;
        wire::encode(prompt, messages, &credentials.options(options, stream))
    }

    /// Converts the body of a provider's response, complete or streamed, to a result.
    ///
    /// # Errors
    /// Returns an error if the body is not a valid response.
    pub fn process(&self, prompt: &Prompt, body: &[u8]) -> Result<Run> {
        self.process_with(prompt, body, &RunOptions::default())
    }

    /// Converts the body of a response like [`Runtime::process`], for a provider or API type other than the prompt's.
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::process`].
    pub fn process_with(&self, prompt: &Prompt, body: &[u8], options: &RunOptions) -> Result<Run> {
        let selection = options.select_model(prompt);
        let protocol = wire::protocol(selection.provider, selection.api_type.unwrap_or_default())?;
        let span = self.tracer().start("process");
        let response = event::record_error(&span, wire::decode_received(protocol, body))?;
        Run::new(&span, &prompt.spec().outputs, response)
    }

    /// Converts the body of a response: the async variant of [`Runtime::process`]. It completes immediately.
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::process`].
    pub async fn process_async(&self, prompt: &Prompt, body: &[u8]) -> Result<Run> {
        self.process(prompt, body)
    }

    /// Calls the provider that the options or the prompt specify.
    pub(crate) async fn call(&self, span: &Span, call: ModelCall<'_>) -> Result<Reply> {
        let ModelCall { prompt, options, .. } = call;
        let selection = options.select_model(prompt);
        self.joins_turn(prompt);
        event::record_request(span, prompt, call.messages);
        let model = prompt.spec().model.as_ref();
        let none = ModelOptions::default();
        let model_options = model.map_or(&none, |model| &model.options);
        span.request(Some(selection.provider), selection.api_type, selection.model, model_options);
        let budget = self.budget();
        budget.map_or(Ok(()), |budget| budget.call_model())?;
        let reply = match self.get_provider(selection.provider) {
            Some(provider) => self.call_custom(&*provider, call).await,
            None if selection.provider == ECHO => Echo.call(call).await,
            None => self.call_over_http(span, call).await,
        }?;
        Ok(counted(reply, budget))
    }

    async fn call_custom(&self, provider: &dyn Provider, call: ModelCall<'_>) -> Result<Reply> {
        let Some(limit) = self.spend_limit() else { return provider.call(call).await };
        let selection = call.options.select_model(call.prompt);
        let size = CallSize::of_call(selection.provider, selection.model, call.messages, call.prompt);
        let reservation = limit.reserve(&size).await?;
        Ok(settled(provider.call(call).await?, Some(reservation)))
    }

    async fn call_over_http(&self, span: &Span, call: ModelCall<'_>) -> Result<Reply> {
        let ModelCall { prompt, messages, options, stream } = call;
        let cassette = self.cassette();
        let mut credentials = self.credentials(prompt, options, Purpose::of(cassette))?;
        credentials.obtain_token(self).await?;
        let request = wire::encode(prompt, messages, &credentials.options(options, stream))?;
        let protocol = request.protocol;
        let secrets = credentials.secrets(prompt, options, &request.url);
        span.hide(&secrets);
        let mut redactor = Redactor::default();
        redactor.register_all(&secrets);
        let reservation = match self.spend_limit().filter(|_| !matches!(cassette, Some(Cassette::Replay(_)))) {
            Some(limit) => {
                let selection = options.select_model(prompt);
                let size = CallSize::of_request(selection.provider, selection.model, messages, &request);
                Some(limit.reserve(&size).await?)
            }
            None => None,
        };
        let received = exchange(|| self.client(), cassette, request, reservation.as_ref(), &redactor).await;
        match credentials.after(self, received)? {
            Received::Whole(whole) => {
                let response = wire::decode(protocol, &whole.body).map_err(|error| error.without_secrets(&redactor))?;
                let reply = settled(Reply::Whole(response), reservation);
                whole.keep()?;
                Ok(reply)
            }
            Received::Stream(chunks) => {
                let deltas = HttpDeltas::new(chunks, StreamDecoder::new(protocol), redactor);
                Ok(settled(Reply::Stream(Box::new(deltas)), reservation))
            }
        }
    }
}

/// Waits until the whole response has arrived.
async fn drain(deltas: &mut dyn Deltas) -> Result<()> {
    while let Some(step) = deltas.next().await {
        step?;
    }
    Ok(())
}

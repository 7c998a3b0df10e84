//! From messages to a result: the call of a model, and what its answer comes to.

use std::fmt;

use serde::de::DeserializeOwned;
use tympan_core::Redactor;
use tympan_core::secret::url::redacted_url;
use tympan_core::spec::schema::Property;
use tympan_core::spec::{ModelOptions, Secret};
use tympan_core::turn::outcome;
use tympan_core::wire::compatible::DEFAULT_PROVIDER;
use tympan_core::wire::echo::ECHO;
use tympan_core::wire::response::{FinishReason, Response, Usage};
use tympan_core::wire::{self, Function, StreamDecoder, WireRequest};
use tympan_core::{Message, Outcome, Prompt, Result};

use crate::host::runtime::Runtime;
use crate::model::budget::counted;
use crate::model::credentials::Purpose;
use crate::model::provider::{Deltas, Echo, ModelCall, Provider, Ready, Reply};
use crate::model::stream::{HttpDeltas, ResponseStream};
use crate::net::exchange::{Received, exchange};
use crate::net::io;
use crate::trace::Span;
use crate::trace::event;

/// What a caller wants to be different from what the prompt says. It is the host's word: an address in it may get the
/// keys of the environment.
#[derive(Clone, Default)]
pub struct RunOptions {
    /// The provider.
    pub provider: Option<String>,
    /// The model's name at the provider.
    pub model: Option<String>,
    /// The interface: `chat`, `responses`, `embedding`, `image`.
    pub api_type: Option<String>,
    /// The address that the provider's paths are added to.
    pub base_url: Option<String>,
    /// The key.
    pub api_key: Option<Secret>,
    /// Functions that the model may call besides those that the prompt declares.
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
    /// The provider that is asked: the one that is named here, or else the prompt's, or else the usual one.
    pub fn provider_of<'a>(&'a self, prompt: &'a Prompt) -> &'a str {
        let own = || prompt.spec().model.as_ref()?.provider.as_deref();
        self.provider.as_deref().or_else(own).unwrap_or(DEFAULT_PROVIDER)
    }

    /// The model that is asked for.
    pub fn model_of<'a>(&'a self, prompt: &'a Prompt) -> Option<&'a str> {
        self.model.as_deref().or_else(|| prompt.spec().model.as_ref()?.id.as_deref())
    }

    /// The interface; without one it is the provider's first.
    pub fn api_type_of<'a>(&'a self, prompt: &'a Prompt) -> Option<&'a str> {
        self.api_type.as_deref().or_else(|| prompt.spec().model.as_ref()?.api_type.as_deref())
    }
}

/// What a call of a model came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The result.
    pub outcome: Outcome,
    /// What it cost, in tokens.
    pub usage: Option<Usage>,
    /// The model that answered.
    pub model: Option<String>,
    /// The provider's name for the answer.
    pub id: Option<String>,
    /// Why the model stopped.
    pub finish_reason: Option<FinishReason>,
}

impl Run {
    /// Processes an answer, as a stage of the one that a span stands for.
    pub(crate) fn new(span: &Span, outputs: &[Property], mut response: Response) -> Result<Self> {
        let (id, model) = (response.id.take(), response.model.take());
        let (finish_reason, usage) = (response.finish_reason.take(), response.usage.take());
        let outcome = outcome::finish_as(outputs, response);
        event::came_to(&span.child("process"), &outcome);
        event::came_to(span, &outcome);
        Ok(Self { outcome: outcome?, usage, model, id, finish_reason })
    }

    /// The result as a value of a type, read straight from what the model wrote.
    ///
    /// # Errors
    /// The result is something else.
    pub fn cast<T: DeserializeOwned>(&self) -> Result<T> {
        self.outcome.cast()
    }
}

impl Runtime {
    /// Calls the model of a prompt with these messages.
    ///
    /// # Errors
    /// The request cannot be made, the provider cannot be reached or answers with an error, or its answer is none.
    pub fn run(&self, prompt: &Prompt, messages: &[Message]) -> Result<Run> {
        io::wait(self.run_async(prompt, messages))
    }

    /// The async twin of [`Runtime::run`]. It needs no asynchronous runtime of a certain kind.
    ///
    /// # Errors
    /// As [`Runtime::run`].
    pub async fn run_async(&self, prompt: &Prompt, messages: &[Message]) -> Result<Run> {
        self.run_with_async(prompt, messages, &RunOptions::default()).await
    }

    /// Calls a model as the caller wants it.
    ///
    /// # Errors
    /// As [`Runtime::run`].
    pub fn run_with(&self, prompt: &Prompt, messages: &[Message], options: &RunOptions) -> Result<Run> {
        io::wait(self.run_with_async(prompt, messages, options))
    }

    /// The async twin of [`Runtime::run_with`].
    ///
    /// # Errors
    /// As [`Runtime::run`].
    pub async fn run_with_async(&self, prompt: &Prompt, messages: &[Message], options: &RunOptions) -> Result<Run> {
        let span = self.tracer().start("run");
        self.run_as(&span, prompt, messages, options).await
    }

    /// Calls the model as the stage that a span stands for.
    pub(crate) async fn run_as(
        &self,
        span: &Span,
        prompt: &Prompt,
        messages: &[Message],
        options: &RunOptions,
    ) -> Result<Run> {
        event::asked(span, prompt, messages);
        let call = ModelCall { prompt, messages, options, stream: false };
        let execute = span.child_client("execute");
        let response = match self.call(&execute, call).await {
            Ok(Reply::Whole(response)) => Ok(response),
            Ok(Reply::Stream(mut deltas)) => drain(&mut *deltas).await.and_then(|()| deltas.finish()),
            Err(error) => Err(error),
        };
        let response = event::failed(span, event::failed(&execute, response))?;
        event::answered(&execute, &response);
        drop(execute);
        Run::new(span, &prompt.spec().outputs, response)
    }

    /// Calls a model, and gives its answer on as it arrives. The call is under way when this returns.
    ///
    /// # Errors
    /// As [`Runtime::run`], as far as that is known before the answer begins.
    pub fn stream(&self, prompt: &Prompt, messages: &[Message], options: &RunOptions) -> Result<ResponseStream> {
        io::wait(self.stream_async(prompt, messages, options))
    }

    /// The async twin of [`Runtime::stream`].
    ///
    /// # Errors
    /// As [`Runtime::stream`].
    pub async fn stream_async(
        &self,
        prompt: &Prompt,
        messages: &[Message],
        options: &RunOptions,
    ) -> Result<ResponseStream> {
        let span = self.tracer().start("run");
        event::asked(&span, prompt, messages);
        let call = ModelCall { prompt, messages, options, stream: true };
        let execute = span.child_client("execute");
        let reply = self.call(&execute, call).await;
        let deltas = match event::failed(&span, event::failed(&execute, reply))? {
            Reply::Whole(response) => Box::new(Ready::new(response.deltas(), response)),
            Reply::Stream(deltas) => deltas,
        };
        Ok(ResponseStream::new(prompt, deltas, span, execute))
    }

    /// Returns the request that a run would send, without a key of the environment. Nothing is sent.
    ///
    /// # Errors
    /// The request cannot be made, or a run would not send it.
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

    /// Makes a result of a provider's answer: the body of a response, or of a stream, as it came.
    ///
    /// # Errors
    /// It is no such answer.
    pub fn process(&self, prompt: &Prompt, body: &[u8]) -> Result<Run> {
        self.process_with(prompt, body, &RunOptions::default())
    }

    /// As [`Runtime::process`], for the answer of another provider or interface than the prompt's.
    ///
    /// # Errors
    /// As [`Runtime::process`].
    pub fn process_with(&self, prompt: &Prompt, body: &[u8], options: &RunOptions) -> Result<Run> {
        let protocol = wire::protocol(options.provider_of(prompt), options.api_type_of(prompt).unwrap_or_default())?;
        let span = self.tracer().start("process");
        let response = event::failed(&span, wire::decode_received(protocol, body))?;
        Run::new(&span, &prompt.spec().outputs, response)
    }

    /// The async twin of [`Runtime::process`], which never waits.
    ///
    /// # Errors
    /// As [`Runtime::process`].
    pub async fn process_async(&self, prompt: &Prompt, body: &[u8]) -> Result<Run> {
        self.process(prompt, body)
    }

    /// Asks the provider that the prompt, or the caller, names.
    pub(crate) async fn call(&self, span: &Span, call: ModelCall<'_>) -> Result<Reply> {
        let ModelCall { prompt, options, .. } = call;
        let name = options.provider_of(prompt);
        self.joins_turn(prompt);
        event::asked(span, prompt, call.messages);
        let model = prompt.spec().model.as_ref();
        let none = ModelOptions::default();
        let model_options = model.map_or(&none, |model| &model.options);
        span.request(Some(name), options.api_type_of(prompt), options.model_of(prompt), model_options);
        let budget = self.budget();
        budget.map_or(Ok(()), |budget| budget.call_model())?;
        let reply = match self.get_provider(name) {
            Some(provider) => provider.call(call).await,
            None if name == ECHO => Echo.call(call).await,
            None => self.call_over_http(span, call).await,
        }?;
        Ok(counted(reply, budget))
    }

    async fn call_over_http(&self, span: &Span, call: ModelCall<'_>) -> Result<Reply> {
        let ModelCall { prompt, messages, options, stream } = call;
        let cassette = self.options().cassette.as_ref();
        let credentials = self.credentials(prompt, options, Purpose::of(cassette))?;
        let request = wire::encode(prompt, messages, &credentials.options(options, stream))?;
        let protocol = request.protocol;
        let secrets = credentials.secrets(prompt, options, &request.url);
        span.hide(&secrets);
        let mut redactor = Redactor::default();
        redactor.register_all(&secrets);
        match exchange(|| self.client(), cassette, request, &redactor).await? {
            Received::Whole(whole) => {
                let response = wire::decode(protocol, &whole.body).map_err(|error| error.without_secrets(&redactor))?;
                whole.keep()?;
                Ok(Reply::Whole(response))
            }
            Received::Stream(chunks) => {
                Ok(Reply::Stream(Box::new(HttpDeltas::new(chunks, StreamDecoder::new(protocol), redactor))))
            }
        }
    }
}

/// Waits until all has arrived.
async fn drain(deltas: &mut dyn Deltas) -> Result<()> {
    while let Some(step) = deltas.next().await {
        step?;
    }
    Ok(())
}

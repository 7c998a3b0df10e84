//! A runtime: what waits for models and tools.

use std::path::Path;
use std::sync::Arc;

use napi::bindgen_prelude::Either;
use napi_derive::napi;
use tympan::thread::{ThreadRoles, parse_thread};
use tympan::{Inputs, Message, Prompt, Result};
use tympan_runtime::{CancelToken, PromptSource, TurnSettings, config};

use crate::border::{guarded, read, written};
use crate::composition::NativeSteering;
use crate::prompt::NativePrompt;
use crate::runtime::NativeRuntime;
use crate::show;
use crate::tool::{NativeTool, approve, host_tools};
use crate::work::{Host, Listener, Work};

/// A prompt, or where to find it.
enum Source {
    Prompt(Arc<Prompt>),
    File(String),
}

impl Source {
    fn new(source: Either<&NativePrompt, String>) -> Self {
        match source {
            Either::A(prompt) => Self::Prompt(prompt.prompt.clone()),
            Either::B(path) => Self::File(path),
        }
    }

    fn borrow(&self) -> PromptSource<'_> {
        match self {
            Self::Prompt(prompt) => PromptSource::Prompt(prompt),
            Self::File(path) => PromptSource::File(Path::new(path)),
        }
    }
}

/// How a turn goes, and what the other side does for it.
#[napi(object)]
pub struct NativeTurn {
    /// The settings that are data, as JSON.
    pub settings: String,
    /// The functions.
    pub tools: Vec<NativeTool>,
    /// Whether it wants to know what happens.
    pub events: bool,
    /// Whether it is asked before tools run that need it.
    pub approves: bool,
}

fn settings(turn: NativeTurn, steering: Option<&NativeSteering>, host: &Arc<Host>) -> Result<TurnSettings> {
    let mut settings = config::turn_settings(read("options", &turn.settings)?)?;
    settings.tools = host_tools(host, turn.tools)?;
    if let Some(steering) = steering {
        settings.steering = steering.steering.clone();
    }
    if turn.approves {
        settings.approve = Some(approve(host.clone()));
    }
    if turn.events {
        let host = host.clone();
        settings.on_event = Some(Arc::new(move |event| host.tell("event", &show::event(event))));
    }
    Ok(settings)
}

fn messages(text: &str) -> Result<Vec<Message>> {
    parse_thread(&read("messages", text)?, ThreadRoles::Any)
}

#[napi]
impl NativeRuntime {
    /// Calls the model of a prompt with messages.
    #[napi]
    pub fn run(
        &self,
        prompt: &NativePrompt,
        messages: String,
        options: String,
        listener: Listener,
    ) -> napi::Result<Work> {
        guarded(|| {
            let (runtime, prompt) = (self.runtime.clone(), prompt.prompt.clone());
            let messages = self::messages(&messages)?;
            let options = config::run_options(read("options", &options)?)?;
            let work = async move { written(&show::run(&runtime.run_with_async(&prompt, &messages, &options).await?)) };
            Ok(Work::begin(Host::new(listener), CancelToken::default(), work))
        })
    }

    /// As `run`, with the steps of the answer as they arrive, each as `delta`.
    #[napi]
    pub fn stream(
        &self,
        prompt: &NativePrompt,
        messages: String,
        options: String,
        listener: Listener,
    ) -> napi::Result<Work> {
        guarded(|| {
            let (runtime, prompt, host) = (self.runtime.clone(), prompt.prompt.clone(), Host::new(listener));
            let messages = self::messages(&messages)?;
            let options = config::run_options(read("options", &options)?)?;
            let teller = host.clone();
            let work = async move {
                let mut stream = runtime.stream_async(&prompt, &messages, &options).await?;
                while let Some(step) = stream.next_async().await {
                    teller.tell("delta", &show::delta(&step?));
                }
                written(&show::run(&stream.finish_async().await?))
            };
            Ok(Work::begin(host, CancelToken::default(), work))
        })
    }

    /// From a prompt and its inputs to a result.
    #[napi]
    pub fn invoke(
        &self,
        prompt: Either<&NativePrompt, String>,
        inputs: String,
        options: String,
        listener: Listener,
    ) -> napi::Result<Work> {
        let source = Source::new(prompt);
        guarded(|| {
            let runtime = self.runtime.clone();
            let inputs: Inputs = read("inputs", &inputs)?;
            let options = config::run_options(read("options", &options)?)?;
            let work = async move {
                let run = runtime.invoke_with_async(source.borrow(), &inputs, &options).await?;
                written(&show::run(&run))
            };
            Ok(Work::begin(Host::new(listener), CancelToken::default(), work))
        })
    }

    /// Goes through a turn; or, without inputs, goes on with the one in the journal.
    #[napi]
    pub fn turn(
        &self,
        prompt: Either<&NativePrompt, String>,
        inputs: Option<String>,
        turn: NativeTurn,
        steering: Option<&NativeSteering>,
        listener: Listener,
    ) -> napi::Result<Work> {
        let source = Source::new(prompt);
        guarded(|| {
            let (runtime, host) = (self.runtime.clone(), Host::new(listener));
            let inputs: Option<Inputs> = inputs.map(|inputs| read("inputs", &inputs)).transpose()?;
            let settings = settings(turn, steering, &host)?;
            let cancel = settings.cancel.clone();
            let work = async move {
                let run = match &inputs {
                    Some(inputs) => runtime.turn_async(source.borrow(), inputs, &settings).await,
                    None => runtime.resume_async(source.borrow(), &settings).await,
                };
                show::turn(run?)
            };
            Ok(Work::begin(host, cancel, work))
        })
    }
}

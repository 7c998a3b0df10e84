//! The operations of a runtime that call models and tools.

use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use napi_derive::napi;
use serde::Serialize;
use tympan::chat::thread::{ThreadRoles, parse_thread};
use tympan::host::config;
use tympan::host::data;
use tympan::net::io;
use tympan::turn::Verdict;
use tympan::{CancelToken, Compact, Run, TurnSettings};
use tympan::{Error, Inputs, Kind, Message, Result, wire};

use crate::border::{guarded, read, written};
use crate::composition::NativeSteering;
use crate::host::{Host, Listener, Question};
use crate::prompt::NativePrompt;
use crate::runtime::NativeRuntime;
use crate::show;
use crate::tool::{NativeTool, approve, host_tools, verdict};
use crate::work::{Made, Work};

/// The settings and hooks of a turn.
#[napi(object)]
pub struct NativeTurn {
    /// The settings that are data, as JSON.
    pub settings: String,
    /// The messages to start with, as JSON, if the prompt is not rendered.
    pub messages: Option<String>,
    /// The tools.
    pub tools: Vec<NativeTool>,
    /// Whether JavaScript receives events.
    pub events: bool,
    /// The hooks: `approve`, `judgeInput`, `judgeOutput`, `judgeTool` and `compact`.
    pub asks: Vec<String>,
}

fn settings(
    turn: NativeTurn,
    steering: Option<&NativeSteering>,
    compact: Option<&NativePrompt>,
    host: &Arc<Host>,
) -> Result<TurnSettings> {
    let mut settings = config::turn_settings(read("options", &turn.settings)?)?;
    settings.tools = host_tools(host, turn.tools)?;
    if let Some(steering) = steering {
        settings.steering = steering.steering.clone();
    }
    if let Some(prompt) = compact {
        settings.compact = Some(Compact::Prompt(prompt.prompt.clone()));
    }
    for asked in turn.asks {
        let judge = Judge { host: host.clone(), cancel: settings.cancel.clone(), kind: asked };
        match judge.kind.as_str() {
            "approve" => settings.approve = Some(approve(host.clone())),
            "judgeInput" => settings.judge_input = Some(Arc::new(move |messages| judge.ask(&all(messages)))),
            "judgeOutput" => settings.judge_output = Some(Arc::new(move |message| judge.ask(message))),
            "judgeTool" => settings.judge_tool = Some(Arc::new(move |run| judge.ask(&data::tool_run(run)))),
            _ => settings.compact = Some(compact_by(host.clone())),
        }
    }
    if turn.events {
        let host = host.clone();
        settings.on_event = Some(Arc::new(move |event| host.tell("event", &data::event(event))));
    }
    Ok(settings)
}

/// Converts images, audio and files to separate parts, as far as possible.
fn all(messages: &[Message]) -> Vec<Message> {
    let mut messages = messages.to_vec();
    // Invalid media are reported when the model is called.
    let _ = wire::inline_media(&mut messages);
    messages
}

/// The reason for denials after a turn was cancelled. JavaScript compares with this text.
const ABANDONED: &str = "the turn was cancelled";

/// A JavaScript function that decides whether something is allowed.
struct Judge {
    host: Arc<Host>,
    cancel: CancelToken,
    kind: String,
}

impl Judge {
    /// Asks JavaScript, until the turn is cancelled.
    fn ask(&self, about: &impl Serialize) -> Verdict {
        let question = match Question::new(about) {
            Ok(question) => question,
            Err(reason) => return Verdict::Deny(reason),
        };
        let answer = async {
            let asked = pin!(self.host.ask(&self.kind, question));
            match select(asked, pin!(self.cancel.cancelled())).await {
                Either::Left((answer, _)) => verdict(answer),
                Either::Right(_) => Verdict::Deny(ABANDONED.to_owned()),
            }
        };
        tokio::task::block_in_place(|| io::wait(answer))
    }
}

/// Creates a summarizer that calls JavaScript.
fn compact_by(host: Arc<Host>) -> Compact {
    Compact::With(Arc::new(move |messages| {
        let host = host.clone();
        Box::pin(async move {
            let failed = |words: String| Error::new(Kind::InvalidOperation, format_args!("compact: {words}"));
            let answer = host.ask("compact", Question::new(&all(&messages)).map_err(failed)?).await.map_err(failed)?;
            read("return value of compact", &answer)
        })
    }))
}

fn run(run: &Run) -> Result<Made> {
    written(&data::run(run)).map(Made::Text)
}

fn messages(text: &str) -> Result<Vec<Message>> {
    parse_thread(&read("messages", text)?, ThreadRoles::Any)
}

#[napi]
impl NativeRuntime {
    /// Calls the prompt's model with messages.
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
            let work = async move { run(&runtime.run_with_async(&prompt, &messages, &options).await?) };
            Ok(Work::begin(Host::of_work(listener), CancelToken::default(), work))
        })
    }

    /// Calls the prompt's model with messages and sends each delta of the answer as `delta`.
    #[napi]
    pub fn stream(
        &self,
        prompt: &NativePrompt,
        messages: String,
        options: String,
        listener: Listener,
    ) -> napi::Result<Work> {
        guarded(|| {
            let (runtime, prompt, host) = (self.runtime.clone(), prompt.prompt.clone(), Host::of_work(listener));
            let messages = self::messages(&messages)?;
            let options = config::run_options(read("options", &options)?)?;
            let teller = host.clone();
            let work = async move {
                let mut stream = runtime.stream_async(&prompt, &messages, &options).await?;
                while let Some(step) = stream.next_async().await {
                    teller.tell("delta", &data::delta(&step?));
                }
                run(&stream.finish_async().await?)
            };
            Ok(Work::begin(host, CancelToken::default(), work))
        })
    }

    /// Lists the models of a provider, as JSON.
    #[napi]
    pub fn list_models(
        &self,
        prompt: Option<&NativePrompt>,
        options: String,
        listener: Listener,
    ) -> napi::Result<Work> {
        guarded(|| {
            let (runtime, prompt) = (self.runtime.clone(), prompt.map(|prompt| prompt.prompt.clone()));
            let options = config::run_options(read("options", &options)?)?;
            let work =
                async move { written(&runtime.list_models_async(prompt.as_deref(), &options).await?).map(Made::Text) };
            Ok(Work::begin(Host::of_work(listener), CancelToken::default(), work))
        })
    }

    /// Renders a prompt, calls its model, and returns the result.
    #[napi]
    pub fn invoke(
        &self,
        prompt: &NativePrompt,
        inputs: String,
        options: String,
        listener: Listener,
    ) -> napi::Result<Work> {
        guarded(|| {
            let (runtime, prompt) = (self.runtime.clone(), prompt.prompt.clone());
            let inputs: Inputs = read("inputs", &inputs)?;
            let options = config::run_options(read("options", &options)?)?;
            let work = async move { run(&runtime.invoke_with_async(&*prompt, &inputs, &options).await?) };
            Ok(Work::begin(Host::of_work(listener), CancelToken::default(), work))
        })
    }

    /// Runs a turn or, without inputs, resumes the one in the journal.
    #[napi]
    pub fn turn(
        &self,
        prompt: &NativePrompt,
        inputs: Option<String>,
        turn: NativeTurn,
        steering: Option<&NativeSteering>,
        compact: Option<&NativePrompt>,
        listener: Listener,
    ) -> napi::Result<Work> {
        guarded(|| {
            let (runtime, prompt, host) = (self.runtime.clone(), prompt.prompt.clone(), Host::of_work(listener));
            let inputs: Option<Inputs> = inputs.map(|inputs| read("inputs", &inputs)).transpose()?;
            let messages = turn.messages.as_deref().map(messages).transpose()?;
            let settings = settings(turn, steering, compact, &host)?;
            let cancel = settings.cancel.clone();
            let work = async move {
                let run = match (&inputs, messages) {
                    (Some(inputs), Some(messages)) => {
                        runtime.turn_messages_async(&*prompt, inputs, messages, &settings).await
                    }
                    (Some(inputs), None) => runtime.turn_async(&*prompt, inputs, &settings).await,
                    (None, Some(messages)) => runtime.resume_messages_async(&*prompt, messages, &settings).await,
                    (None, None) => runtime.resume_async(&*prompt, &settings).await,
                };
                show::turn(run?).map(Made::Text)
            };
            Ok(Work::begin(host, cancel, work))
        })
    }
}

//! The model's answers: where they come from, and what they contain.
//!
//! An answer is replayed from a cassette, echoed, or fixed in the test file. A model is called only to record a cassette
//! or if the host asks for it. If the prompt declares tools, an answer is a whole turn: the tools return the results that
//! the case states, and run nothing.

mod calls;
pub mod check;
mod convert;
mod cost;
mod messages;
mod program;
mod recordings;
mod tools;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use tympan_core::spec::test_suite::{AnswerSource, CaseSettings};
use tympan_core::turn::MessageLabel;
use tympan_core::wire::echo::ECHO;
use tympan_core::wire::response::Usage;
use tympan_core::{Error, Guard, Inputs, JsonMap, Kind, Message, Prompt, Result};
use tympan_runtime::{Cassette, RunOptions, Runtime};

pub use messages::ModelMessages;

use recordings::{Recordings, Turn};

/// Where answers come from that are not fixed in the test file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnswerMode {
    /// From cassettes. Nothing is sent.
    #[default]
    Replay,
    /// From the model. Its answers are recorded as cassettes.
    Record,
    /// From the model.
    Live,
}

/// A function that returns the cost of an answer in US dollars, by the model's name and the number of tokens.
pub type Price = Arc<dyn Fn(&str, &Usage) -> Option<f64> + Send + Sync>;

/// How answers are obtained.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct AnswerOptions {
    /// Where answers come from.
    pub mode: AnswerMode,
    /// The prices of models.
    pub price: Option<Price>,
    /// What the host chooses for all calls, such as a base URL. It overrides what prompts and test files name.
    pub run: RunOptions,
    /// What was recorded with these options. Clones share it.
    recordings: Recordings,
}

impl fmt::Debug for AnswerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerOptions").field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl AnswerOptions {
    /// Creates options.
    pub fn new(mode: AnswerMode, price: Option<Price>) -> Self {
        Self { mode, price, ..Self::default() }
    }
}

/// What a model is asked: a case that has been rendered, and the number of the repetition.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The runtime, with the host's tools and providers.
    pub runtime: &'a Runtime,
    /// The prompt.
    pub prompt: &'a Prompt,
    /// The inputs.
    pub inputs: &'a Inputs,
    /// The messages, with the guard's advisory.
    pub messages: &'a [Message],
    /// The labels of the messages. Without them, the policy for tools does not know where the messages came from.
    pub labels: Option<&'a [MessageLabel]>,
    /// The guard that wraps the results of tools.
    pub guard: Option<&'a Guard>,
    /// The settings of the case, with the defaults of its file.
    pub settings: &'a CaseSettings,
    /// The directory of the cassettes.
    pub cassettes: &'a Path,
    /// The number of the repetition, counted from 1.
    pub repetition: u32,
}

/// A model's answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Answer {
    /// The result: the value that the prompt's `outputs` declare, or the text.
    pub result: Json,
    /// The text that the model wrote.
    pub text: String,
    /// The tool calls, in the order in which the model wrote them.
    pub tool_calls: Vec<AnsweredCall>,
    /// Why the model stopped.
    pub finish_reason: Option<String>,
    /// The number of model calls.
    pub rounds: u32,
    /// The tokens of all model calls.
    pub usage: Option<Usage>,
    /// The model that was asked, as `provider/model`.
    pub model: Option<String>,
    /// The model's explanation, if it refused to answer.
    pub refusal: Option<String>,
    /// How long the model took, in seconds, if it was called.
    pub seconds: Option<f64>,
    /// The mismatches with the prompt's `outputs`, or `None` if it declares none.
    pub problems: Option<Vec<String>>,
    /// The estimated cost in US dollars, if the price is known.
    pub cost: Option<f64>,
    /// Whether a model wrote the answer, now or when it was recorded. It did not if the answer is fixed or echoed.
    pub is_from_model: bool,
}

/// A tool call of an answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AnsweredCall {
    /// The tool's name.
    pub name: String,
    /// The arguments, or `None` if they are not valid JSON.
    pub arguments: Option<JsonMap>,
    /// The arguments as the model wrote them.
    pub raw: String,
    /// The number of the model call, counted from 1.
    pub round: u32,
    /// Why the policy asked about the call, if it did. Calls of tools with a fixed result are approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// Why the call did not run, if it did not: the message that the model received instead of a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// The end of an attempt to obtain an answer.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each repetition, and it is taken apart at once")]
pub enum Obtained {
    /// There is an answer.
    Answered(Answer),
    /// Nobody was asked, because the cassette is missing. The text says what is missing, and what to do.
    Missing(String),
    /// Something failed.
    Failed(Error),
}

/// Returns the directory of the cassettes of a repetition. The first one has the directory itself.
pub fn cassette_directory(cassettes: &Path, repetition: u32) -> PathBuf {
    match repetition {
        0 | 1 => cassettes.to_owned(),
        more => cassettes.join(format!("repeat-{more}")),
    }
}

/// Obtains the answer of one repetition of a case.
///
/// With [`AnswerMode::Record`], the same question is asked once per run: others get the answer that was recorded.
///
/// With [`AnswerMode::Replay`], nothing is sent: a provider that the host registered is not called either, because its
/// answers are not recorded.
pub async fn obtain(question: &Question<'_>, options: &AnswerOptions) -> Obtained {
    let source = question.settings.answer.as_ref().unwrap_or(&AnswerSource::Cassette);
    if let AnswerSource::Fixed { text } = source {
        return convert::fixed(question, text).map_or_else(Obtained::Failed, Obtained::Answered);
    }
    let call = Call::new(question, matches!(source, AnswerSource::Echo), &options.run);
    let directory = cassette_directory(question.cassettes, question.repetition);
    let mut turn = match options.mode {
        AnswerMode::Record if !call.is_echo() => {
            Some(options.recordings.turn(question, call.selection(), &directory).await)
        }
        _ => None,
    };
    let mode = if turn.as_ref().is_some_and(Turn::is_recorded) { AnswerMode::Replay } else { options.mode };
    let runtime = match call.runtime(mode, &directory) {
        Ok(runtime) => runtime,
        Err(reason) => return Obtained::Missing(reason),
    };
    let started = Instant::now();
    let answered = call.perform(&runtime).await;
    let seconds = started.elapsed().as_secs_f64();
    match answered {
        Ok(mut answer) => {
            turn.iter_mut().for_each(Turn::set_recorded);
            if !call.is_echo() {
                answer.is_from_model = true;
                answer.seconds = (mode != AnswerMode::Replay).then_some(seconds);
                answer.cost = cost::of_answer(&answer, call.selection(), options.price.as_ref());
            }
            Obtained::Answered(answer)
        }
        Err(error) if error.kind() == Kind::UnknownExchange => Obtained::Missing(missing(&error)),
        Err(error) => Obtained::Failed(error),
    }
}

/// Returns the options for the calls of a case. What the host chooses comes first.
pub(crate) fn options(settings: &CaseSettings, host: &RunOptions) -> RunOptions {
    let CaseSettings { provider, model, .. } = settings;
    let provider = host.provider.clone().or_else(|| provider.clone());
    let model = host.model.clone().or_else(|| model.clone());
    RunOptions { provider, model, ..host.clone() }
}

/// A call of the model that a question is for.
pub(crate) struct Call<'a> {
    question: &'a Question<'a>,
    options: RunOptions,
}

impl<'a> Call<'a> {
    fn new(question: &'a Question<'a>, is_echo: bool, host: &RunOptions) -> Self {
        let mut options = options(question.settings, host);
        if is_echo {
            options.provider = Some(ECHO.to_owned());
        }
        Self { question, options }
    }

    fn is_echo(&self) -> bool {
        self.options.select_model(self.question.prompt).provider == ECHO
    }

    /// Returns the names of the provider and the model.
    fn selection(&self) -> (&str, Option<&str>) {
        let selection = self.options.select_model(self.question.prompt);
        (selection.provider, selection.model)
    }

    fn runtime(&self, mode: AnswerMode, directory: &Path) -> std::result::Result<Runtime, String> {
        runtime_for(self.question.runtime, self.selection().0, mode, directory)
    }

    async fn perform(&self, runtime: &Runtime) -> Result<Answer> {
        let Question { prompt, messages, .. } = self.question;
        let answer = match prompt.spec().tools.is_empty() {
            true => {
                runtime.run_with_async(prompt, messages, &self.options).await.map(|run| convert::whole(prompt, &run))
            }
            false => tools::turn(self.question, runtime, &self.options).await,
        };
        let mut answer = answer.or_else(|error| convert::refused(prompt, error))?;
        let (provider, model) = self.selection();
        answer.model = Some(model.map_or_else(|| provider.to_owned(), |model| format!("{provider}/{model}")));
        Ok(answer)
    }
}

/// Returns the runtime that calls a provider in a mode, or the reason why nobody can be asked.
pub(crate) fn runtime_for(
    runtime: &Runtime,
    provider: &str,
    mode: AnswerMode,
    directory: &Path,
) -> std::result::Result<Runtime, String> {
    if provider == ECHO {
        return Ok(runtime.clone());
    }
    match mode {
        AnswerMode::Live => Ok(runtime.clone()),
        _ if runtime.get_provider(provider).is_some() => Err(format!(
            "the answers of the custom provider `{provider}` cannot be recorded; run the case with `--live`"
        )),
        AnswerMode::Record => Ok(runtime.with_cassette(Cassette::Record(directory.to_owned()))),
        AnswerMode::Replay => Ok(runtime.with_cassette(Cassette::Replay(directory.to_owned()))),
    }
}

/// Describes a missing cassette.
pub(crate) fn missing(error: &Error) -> String {
    let help = error.help().map(|help| help.strip_suffix("; record the exchange first").unwrap_or(help));
    let help = help.map_or_else(String::new, |help| format!(" ({help})"));
    format!("{}{help}; record it with `--record`", error.message())
}

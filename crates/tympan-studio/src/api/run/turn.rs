//! A run from its prompt to its result, as events for the page.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};
use tempfile::TempDir;
use tympan_core::turn::{Approval, Label, MessageLabel, TurnEvent, TurnOptions, Verdict, message_labels};
use tympan_core::wire::echo::ECHO;
use tympan_core::{Message, Prompt, RenderOptions, Rendered, Result};
use tympan_runtime::host::data;
use tympan_runtime::{
    AgentEvent, CancelToken, Cassette, Run, RunOptions, Runtime, RuntimeOptions, TurnRun, TurnSettings,
};

use super::super::RenderRequest;
use super::super::count::{runtime_options, text_of};
use crate::failure::Failure;
use crate::project::{Base, RelativePath, WriteError};
use crate::server::App;
use crate::stream::{Events, Gone};

/// A run.
pub(super) struct Turn {
    pub(super) app: Arc<App>,
    pub(super) run: u64,
    pub(super) cancel: CancelToken,
    pub(super) events: Events,
    pub(super) path: RelativePath,
    /// The directory of the cassette to record.
    pub(super) record: Option<RelativePath>,
    pub(super) request: RenderRequest,
    /// Text that waits for a page that reads slowly. It becomes one event.
    pub(super) pending: Mutex<String>,
}

/// The maximum size of text that waits, in bytes.
const MAX_PENDING: usize = 16 << 20;

/// The parts of a run that are known before the model is called.
struct Prepared {
    runtime: Runtime,
    prompt: Prompt,
    messages: Vec<Message>,
    labels: Vec<MessageLabel>,
    /// Where exchanges are recorded at first.
    recording: Option<TempDir>,
}

impl Turn {
    /// Performs the run. It is cancelled when the page is gone.
    pub(super) async fn perform(self) {
        if self.events.send("start", json!({"run": self.run})).is_err() {
            return;
        }
        let turn = Arc::new(self);
        let started = Instant::now();
        let preparing = turn.clone();
        let prepared = tokio::task::spawn_blocking(move || preparing.prepare()).await;
        let prepared = match prepared {
            Ok(Ok(prepared)) => prepared,
            Ok(Err(failure)) => return turn.fail(&failure),
            Err(_) => return turn.fail(&Failure::invalid("the run failed")),
        };
        let finished = {
            let answering = turn.answer(&prepared);
            tokio::pin!(answering);
            tokio::select! {
                finished = &mut answering => finished,
                () = turn.events.closed() => {
                    turn.cancel.cancel();
                    // Tools and requests that are running end with the turn.
                    answering.await
                }
            }
        };
        let finished = match finished {
            Ok(finished) => finished,
            Err(error) => return turn.fail(&error.into()),
        };
        let recorded = turn.clone().save(prepared.recording).await;
        let mut done = turn.done(&finished, &prepared.prompt);
        done["time_ms"] = json!(started.elapsed().as_secs_f64() * 1000.0);
        match recorded {
            Ok(files) => done["recorded"] = json!(files),
            Err(failure) => done["record_error"] = failure.message.into(),
        }
        if let Some(text) = turn.take_pending() {
            let _ = turn.events.send_when_read("delta", text).await;
        }
        let _ = turn.events.send_when_read("done", done).await;
    }

    /// Reports an error. A page that is gone, or reads too slowly, learns of it from the end of the stream.
    fn fail(&self, failure: &Failure) {
        let error = json!({"code": failure.code, "message": failure.message, "help": failure.help});
        let _ = self.send_pending();
        let _ = self.events.send("error", json!({"finding": error}));
    }

    /// Loads and renders the prompt.
    fn prepare(&self) -> std::result::Result<Prepared, Failure> {
        let (app, options) = (&self.app, &self.request.options);
        let text = text_of(&app.project, &self.path, self.request.text.clone())?;
        let recording = self.record.as_ref().map(|_| TempDir::new()).transpose()?;
        let cassette = recording.as_ref().map(|folder| Cassette::Record(folder.path().to_owned()));
        let options = RuntimeOptions { cassette, ..runtime_options(options) };
        let runtime = app.options.host.runtime(&app.project.absolute(&self.path), options);
        let prompt = app.project.load(&self.path, text, &runtime.options().load)?;
        let options = RenderOptions { variant: self.request.options.variant.as_deref(), ..runtime.render_options() };
        let rendered = runtime.render_with(&prompt, &self.request.inputs, &options)?;
        let messages = runtime.parse(&prompt, &rendered)?;
        let labels = message_labels(&prompt, &rendered)?;
        let (messages, labels) = with_advisory(messages, labels, &rendered);
        Ok(Prepared { runtime, prompt, messages, labels, recording })
    }

    /// Calls the model, and the tools that it asks for.
    async fn answer(self: &Arc<Self>, prepared: &Prepared) -> Result<TurnRun> {
        let Prepared { runtime, prompt, messages, labels, .. } = prepared;
        let tools = self.app.options.host.tools(runtime, prompt)?;
        let mut turn =
            TurnOptions { guard: runtime.options().guard.clone(), max_llm_retries: 1, ..TurnOptions::default() };
        turn.flow.labels = Some(labels.clone());
        turn.flow.tools = tools.flows;
        let (asking, reporting) = (self.clone(), self.clone());
        let settings = TurnSettings {
            turn,
            run: self.run_options(),
            tools: tools.runs,
            // Everything that happens is shown to the person at the page, and nothing happens without them.
            approve_all: true,
            approve: Some(Arc::new(move |approval| {
                let asking = asking.clone();
                Box::pin(async move { asking.ask(&approval).await })
            })),
            on_event: Some(Arc::new(move |event| reporting.report(event))),
            cancel: self.cancel.clone(),
            ..TurnSettings::default()
        };
        runtime.turn_messages_async(prompt, &self.request.inputs, messages.clone(), &settings).await
    }

    fn run_options(&self) -> RunOptions {
        let options = &self.request.options;
        RunOptions { provider: options.provider.clone(), model: options.model.clone(), ..RunOptions::default() }
    }

    /// Reports an event. A page that does not read its events cannot watch the run, so the run ends.
    fn report(&self, event: &AgentEvent) {
        let (name, data) = match event {
            AgentEvent::Token(text) => return self.add_text(text),
            AgentEvent::Thinking(text) => ("thinking", json!({"text": text})),
            AgentEvent::Turn(TurnEvent::ToolCallStart { .. }) => ("tool_call", data::event(event)),
            AgentEvent::Turn(TurnEvent::ToolResult { .. }) => ("tool_result", data::event(event)),
            AgentEvent::Turn(TurnEvent::Policy { .. }) => ("policy", data::event(event)),
            _ => return,
        };
        if self.send_pending().and_then(|()| self.events.send(name, data)).is_err() {
            self.cancel.cancel();
        }
    }

    /// Reports more text of the answer. Text that arrives faster than the page reads is sent together.
    fn add_text(&self, text: &str) {
        let is_too_much = {
            let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
            pending.push_str(text);
            pending.len() > MAX_PENDING
        };
        if is_too_much || self.events.has_room() && self.send_pending().is_err() {
            self.cancel.cancel();
        }
    }

    fn take_pending(&self) -> Option<Value> {
        let text = std::mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner));
        (!text.is_empty()).then(|| json!({"text": text}))
    }

    fn send_pending(&self) -> std::result::Result<(), Gone> {
        self.take_pending().map_or(Ok(()), |text| self.events.send("delta", text))
    }

    /// Asks the person at the page about a tool call.
    async fn ask(&self, approval: &Approval) -> Verdict {
        let nobody = || Verdict::Deny("nobody answered".to_owned());
        let Some((id, answer)) = self.app.runs.ask(self.run) else { return nobody() };
        let mut question = data::approval(approval);
        question["call"] = question["id"].take();
        question["id"] = id.into();
        if self.send_pending().and_then(|()| self.events.send("approval", question)).is_err() {
            self.cancel.cancel();
            return nobody();
        }
        tokio::select! {
            answer = answer => answer.unwrap_or_else(|_| nobody()),
            () = self.cancel.cancelled() => nobody(),
            () = self.events.closed() => nobody(),
        }
    }

    fn done(&self, finished: &TurnRun, prompt: &Prompt) -> Value {
        let TurnRun { run, usage, rounds, label, .. } = finished;
        let options = self.run_options();
        let selection = options.select_model(prompt);
        let is_echo = selection.provider == ECHO;
        let model = run.model.as_deref().or(selection.model);
        let catalog = self.app.options.host.catalog();
        let cost = model.filter(|_| !is_echo).and_then(|model| catalog.cost(model, usage));
        let mut done = data::run(run);
        done["text"] = text(run).into();
        done["usage"] = json!(usage);
        done["cost"] = json!(cost);
        done["rounds"] = json!(rounds);
        done["label"] = data::label(label);
        done["model"] = json!(model);
        done["provider"] = selection.provider.into();
        done
    }

    /// Moves recorded exchanges to the project, and returns the paths of new files.
    async fn save(self: Arc<Self>, recording: Option<TempDir>) -> std::result::Result<Vec<String>, Failure> {
        let (Some(recording), Some(target)) = (recording, self.record.clone()) else { return Ok(Vec::new()) };
        let saving = move || {
            let mut files = Vec::new();
            for entry in recording.path().read_dir()? {
                files.extend(self.save_file(&entry?.path(), &target)?);
            }
            Ok(files)
        };
        tokio::task::spawn_blocking(saving).await.unwrap_or_else(|_| Err(Failure::invalid("nothing was saved")))
    }

    /// Copies a recorded exchange, unless there is the same already. Returns its path.
    fn save_file(&self, path: &Path, target: &RelativePath) -> std::result::Result<Option<String>, Failure> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(target) = target.join(name) else { return Ok(None) };
        let text = std::fs::read_to_string(path)?;
        let project = &self.app.project;
        let now = project.read(&target).ok().map(|(_, now)| now.hash);
        let written = project.write(&target, &text, now.as_deref().map_or(Base::New, Base::Hash));
        match written {
            Ok(_) => Ok(Some(target.as_str().to_owned())),
            Err(WriteError::Io(error)) => Err(error.into()),
            Err(_) => Err(Failure::forbidden(format!("`{}` cannot be replaced by a cassette", target.as_str()))),
        }
    }
}

/// Returns the text of a result, if it is one.
fn text(run: &Run) -> Option<String> {
    run.outcome.to_json().as_str().map(str::to_owned)
}

/// Adds the guard's advisory to the instructions, and the label of the author for it.
fn with_advisory(
    mut messages: Vec<Message>,
    mut labels: Vec<MessageLabel>,
    rendered: &Rendered,
) -> (Vec<Message>, Vec<MessageLabel>) {
    let Some(guard) = rendered.guard() else { return (messages, labels) };
    let before = messages.clone();
    guard.insert_into(&mut messages);
    let same = messages.iter().zip(&before).take_while(|(now, then)| now == then).count();
    if let Some(message) = messages.get(same).filter(|_| messages.len() > before.len()) {
        labels.insert(same, MessageLabel::whole(message, &Label::author()));
    }
    (messages, labels)
}

//! Model calls, with the tool loop if the prompt has tools.

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tympan::secret::url::redacted_url;
use tympan::turn::{TurnEvent, TurnOptions, Verdict};
use tympan::wire::catalog::Catalog;
use tympan::wire::echo::ECHO;
use tympan::wire::response::Delta;
use tympan::{AgentEvent, Approve, CancelToken, Journal, ResponseStream, RunOptions, Runtime, TurnSettings};
use tympan::{Error, Inputs, Kind, Prompt};

use super::approval::{Answer, NOBODY, ask_about};
use super::render::Labeled;
use super::show::{Finished, Manner, Show, Waiting, is_question, locked, show_tool, summary};
use crate::args::ToolPolicyArgs;
use crate::escape::visible_line;
use crate::prompt_file::in_prompt;
use crate::report::Failure;
use crate::tools::Programs;
use crate::{output, report};

/// The exit status that shells use for a program stopped by Ctrl-C.
const INTERRUPTED: u8 = 130;

/// A model call.
pub(super) struct Call<'a> {
    pub(super) runtime: &'a Runtime,
    pub(super) prompt: &'a Prompt,
    pub(super) inputs: &'a Inputs,
    pub(super) messages: &'a Labeled,
    pub(super) options: RunOptions,
    /// The programs that run the tools, or `None` if tools do not run.
    pub(super) tools: Option<Programs>,
    /// Whether tools that need approval are approved.
    pub(super) yes: bool,
    pub(super) journal: Option<CallJournal<'a>>,
    /// The prices of models.
    pub(super) catalog: Catalog,
    pub(super) manner: Manner,
}

/// The journal of a call.
pub(super) struct CallJournal<'a> {
    pub(super) journal: Journal,
    pub(super) path: &'a Path,
    /// The tools file, which must be passed to `tympan resume` again.
    pub(super) tools: Option<&'a Path>,
    /// The policy for tools, which must be the same as before.
    pub(super) policy: &'a ToolPolicyArgs,
    /// Whether the call resumes from the journal.
    pub(super) resume: bool,
}

impl Call<'_> {
    /// Makes the call and prints the result.
    ///
    /// # Errors
    /// Returns an error if the call fails or if the output cannot be written.
    pub(super) fn perform(&self) -> Result<ExitCode, Failure> {
        let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let status = tokio.block_on(self.show());
        #[cfg(feature = "mcp")]
        self.runtime.close_mcp_servers();
        status
    }

    async fn show(&self) -> Result<ExitCode, Failure> {
        let (manner, started) = (self.manner, Instant::now());
        let waiting = Waiting::begin(manner.quiet, self.model_name());
        let show = Arc::new(Mutex::new(Show::new(manner, self.prompt)));
        let finished = tokio::select! {
            // Start listening for Ctrl-C before anything is sent.
            biased;
            _ = tokio::signal::ctrl_c() => {
                waiting.end();
                return self.interrupted(&show);
            }
            finished = self.answer(&waiting, &show) => finished,
        };
        waiting.end();
        if let Err(Failure::Engine(error)) = &finished
            && error.kind() == Kind::Cancelled
        {
            return self.interrupted(&show);
        }
        let mut show = locked(&show);
        show.line_end()?;
        let finished = finished?;
        show.result(&finished, manner)?;
        if !manner.quiet {
            report::mismatches(&finished.run.outcome);
            if let Some(torn @ 1..) = finished.resumed.map(|resumed| resumed.torn_bytes) {
                let message = format!(
                    "the journal ended with {torn} bytes of an incomplete record, which were \
                    removed"
                );
                report::warn_plainly("torn_journal", &message);
            }
            output::print_error(&summary(&finished, self.is_echo(), started.elapsed(), &self.catalog));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn interrupted(&self, show: &Mutex<Show>) -> Result<ExitCode, Failure> {
        locked(show).interrupted(self.manner.json)?;
        self.say_how_to_resume();
        Ok(ExitCode::from(INTERRUPTED))
    }

    fn say_how_to_resume(&self) {
        if let Some(saved) = self.journal.as_ref().filter(|saved| !self.manner.json && saved.path.exists()) {
            let shown = |path: &Path| visible_line(&path.display().to_string());
            let mut command = format!("tympan resume {}", shown(saved.path));
            // Name these again: `resume` does not take them from the journal, which others may be able to write.
            if let Some(tools) = saved.tools {
                command += &format!(" --tools {}", shown(tools));
            }
            if let Some(choice) = saved.policy.tool_policy {
                command += &format!(" --tool-policy {}", choice.as_str());
            }
            for address in &saved.policy.allow_destination {
                command += &format!(" --allow-destination {}", visible_line(address));
            }
            if let Some(url) = &self.options.base_url {
                command += &format!(" --base-url {}", visible_line(&redacted_url(url)));
            }
            output::print_error(&format!("resume with: {command}\n"));
        }
    }

    async fn answer(&self, waiting: &Waiting, show: &Arc<Mutex<Show>>) -> Result<Finished, Failure> {
        let in_file = |error: Error| match error.kind() {
            // The prompt is not at fault, so its source would be misleading.
            Kind::InvalidJournal | Kind::JournalBusy => error,
            _ => in_prompt(error, self.prompt),
        };
        if self.tools.is_some() || self.journal.is_some() {
            return Ok(self.turn(waiting, show).await.map_err(in_file)?);
        }
        if self.manner.no_stream {
            let run = self.runtime.run_with_async(self.prompt, &self.messages.messages, &self.options).await;
            return Ok(run.map_err(in_file)?.into());
        }
        let stream = self.runtime.stream_async(self.prompt, &self.messages.messages, &self.options).await;
        let mut stream: ResponseStream = stream.map_err(in_file)?;
        while let Some(delta) = stream.next_async().await {
            if let Delta::Text(text) = delta.map_err(in_file)? {
                waiting.end();
                locked(show).text(&text)?;
            }
        }
        Ok(stream.finish_async().await.map_err(in_file)?.into())
    }

    /// Runs the tool loop.
    async fn turn(&self, waiting: &Waiting, show: &Arc<Mutex<Show>>) -> tympan::Result<Finished> {
        let settings = self.settings(waiting.clone(), show.clone(), &CancelToken::default());
        let messages = self.messages.messages.clone();
        let turn = match self.journal.as_ref().is_some_and(|saved| saved.resume) {
            true => self.runtime.resume_messages_async(self.prompt, messages, &settings).await?,
            false => self.runtime.turn_messages_async(self.prompt, self.inputs, messages, &settings).await?,
        };
        Ok(Finished { run: turn.run, usage: Some(turn.usage), rounds: turn.rounds, resumed: turn.resumed })
    }

    fn settings(&self, waiting: Waiting, show: Arc<Mutex<Show>>, cancel: &CancelToken) -> TurnSettings {
        let (quiet, can_ask) = (self.manner.quiet, self.can_ask());
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let approve = self.approver(cancel, waiting.clone(), show.clone(), asked.clone());
        let on_event = move |event: &AgentEvent| match event {
            AgentEvent::Token(text) => {
                waiting.end();
                // A write error surfaces when the result is printed.
                let _ = locked(&show).text(text);
            }
            // The question says it, and shows the call.
            AgentEvent::Turn(TurnEvent::ToolCallStart { name, .. }) if take(&asked, name) => {}
            AgentEvent::Turn(event) if can_ask && is_question(event) => {}
            AgentEvent::Turn(event) if !quiet => show_tool(event, &waiting, &mut locked(&show)),
            _ => {}
        };
        let mut turn = turn_options(self.runtime);
        turn.flow.labels = Some(self.messages.labels.clone());
        turn.flow.tools = self.tools.as_ref().map(|tools| tools.flows.clone()).unwrap_or_default();
        TurnSettings {
            turn,
            run: self.options.clone(),
            tools: self.tools.as_ref().map(|tools| tools.runs.clone()).unwrap_or_default(),
            approve: Some(approve),
            cancel: cancel.clone(),
            on_event: (!self.manner.no_stream).then(|| Arc::new(on_event) as _),
            journal: self.journal.as_ref().map(|saved| saved.journal.clone()),
            ..TurnSettings::default()
        }
    }

    /// Returns whether there is a user who can be asked.
    fn can_ask(&self) -> bool {
        !self.manner.json && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
    }

    /// Returns the approver. `--yes` approves tools that require approval, and does not answer the questions of the
    /// policy: these need a person.
    fn approver(
        &self,
        cancel: &CancelToken,
        waiting: Waiting,
        show: Arc<Mutex<Show>>,
        asked: Arc<Mutex<Vec<String>>>,
    ) -> Approve {
        let (yes, can_ask, cancel) = (self.yes, self.can_ask(), cancel.clone());
        Arc::new(move |approval| {
            let (cancel, waiting, show, asked) = (cancel.clone(), waiting.clone(), show.clone(), asked.clone());
            Box::pin(async move {
                match (approval.reasons.is_empty(), can_ask) {
                    (true, _) if yes => return Verdict::Allow,
                    (_, true) => {}
                    (true, false) => {
                        return Verdict::Deny("approval is required: pass --yes to approve all tools".to_owned());
                    }
                    (false, false) => return Verdict::Deny(NOBODY.to_owned()),
                }
                waiting.end();
                // A write error surfaces when the result is printed.
                let _ = locked(&show).line_end();
                asked.lock().unwrap_or_else(PoisonError::into_inner).push(approval.run.name.clone());
                match ask_about(&approval, false).await.unwrap_or(Answer::Quit) {
                    Answer::Yes | Answer::Always => Verdict::Allow,
                    Answer::No(reason) => Verdict::Deny(reason),
                    Answer::Quit => {
                        cancel.cancel();
                        // Cancelling ends the turn, which must not receive a verdict before that.
                        std::future::pending().await
                    }
                }
            })
        })
    }

    fn model_name(&self) -> &str {
        self.options.select_model(self.prompt).model.unwrap_or("the model")
    }

    fn is_echo(&self) -> bool {
        self.options.select_model(self.prompt).provider == ECHO
    }
}

/// Removes a name from a list. Returns whether it was there.
fn take(names: &Mutex<Vec<String>>, name: &str) -> bool {
    let mut names = names.lock().unwrap_or_else(PoisonError::into_inner);
    let at = names.iter().position(|other| other == name);
    at.map(|at| names.remove(at)).is_some()
}

/// Returns the options of turns that a user waits for.
pub(super) fn turn_options(runtime: &Runtime) -> TurnOptions {
    TurnOptions {
        guard: runtime.options().guard.clone(),
        // The HTTP client already retries where it makes sense. Part of an interrupted answer is already on the screen.
        max_llm_retries: 1,
        ..TurnOptions::default()
    }
}

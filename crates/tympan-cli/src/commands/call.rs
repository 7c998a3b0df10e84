//! Model calls, with the tool loop if the prompt has tools.

use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tympan::secret::url::redacted_url;
use tympan::turn::{TurnOptions, Verdict};
use tympan::wire::echo::ECHO;
use tympan::wire::response::Delta;
use tympan::{AgentEvent, Approve, Journal, ResponseStream, RunOptions, Runtime, TurnSettings};
use tympan::{Error, Inputs, Kind, Message, Prompt};

use super::show::{Finished, Manner, Show, Waiting, locked, show_tool, summary};
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
    pub(super) messages: &'a [Message],
    pub(super) options: RunOptions,
    /// The programs that run the tools, or `None` if tools do not run.
    pub(super) tools: Option<Programs>,
    /// Whether tools that need approval are approved.
    pub(super) yes: bool,
    pub(super) journal: Option<CallJournal<'a>>,
    pub(super) manner: Manner,
}

/// The journal of a call.
pub(super) struct CallJournal<'a> {
    pub(super) journal: Journal,
    pub(super) path: &'a Path,
    /// The tools file, which must be passed to `tympan resume` again.
    pub(super) tools: Option<&'a Path>,
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
                locked(&show).interrupted(manner.json)?;
                self.say_how_to_resume();
                return Ok(ExitCode::from(INTERRUPTED));
            }
            finished = self.answer(&waiting, &show) => finished,
        };
        waiting.end();
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
            output::print_error(&summary(&finished, self.is_echo(), started.elapsed()));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn say_how_to_resume(&self) {
        if let Some(saved) = self.journal.as_ref().filter(|saved| !self.manner.json && saved.path.exists()) {
            let shown = |path: &Path| visible_line(&path.display().to_string());
            let mut command = format!("tympan resume {}", shown(saved.path));
            // Name these again: `resume` does not take them from the journal, which others may be able to write.
            if let Some(tools) = saved.tools {
                command += &format!(" --tools {}", shown(tools));
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
            let run = self.runtime.run_with_async(self.prompt, self.messages, &self.options).await;
            return Ok(run.map_err(in_file)?.into());
        }
        let stream = self.runtime.stream_async(self.prompt, self.messages, &self.options).await;
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
        let settings = self.settings(waiting.clone(), show.clone());
        let messages = self.messages.to_vec();
        let turn = match self.journal.as_ref().is_some_and(|saved| saved.resume) {
            true => self.runtime.resume_messages_async(self.prompt, messages, &settings).await?,
            false => self.runtime.turn_messages_async(self.prompt, self.inputs, messages, &settings).await?,
        };
        Ok(Finished { run: turn.run, usage: Some(turn.usage), rounds: turn.rounds, resumed: turn.resumed })
    }

    fn settings(&self, waiting: Waiting, show: Arc<Mutex<Show>>) -> TurnSettings {
        let quiet = self.manner.quiet;
        let on_event = move |event: &AgentEvent| match event {
            AgentEvent::Token(text) => {
                waiting.end();
                // A write error surfaces when the result is printed.
                let _ = locked(&show).text(text);
            }
            AgentEvent::Turn(event) if !quiet => show_tool(event, &waiting, &mut locked(&show)),
            _ => {}
        };
        let agree: Approve = Arc::new(|_| Box::pin(std::future::ready(Verdict::Allow)));
        TurnSettings {
            turn: turn_options(self.runtime),
            run: self.options.clone(),
            tools: self.tools.as_ref().map(|tools| tools.runs.clone()).unwrap_or_default(),
            approve: self.yes.then_some(agree),
            on_event: (!self.manner.no_stream).then(|| Arc::new(on_event) as _),
            journal: self.journal.as_ref().map(|saved| saved.journal.clone()),
            ..TurnSettings::default()
        }
    }

    fn model_name(&self) -> &str {
        self.options.select_model(self.prompt).model.unwrap_or("the model")
    }

    fn is_echo(&self) -> bool {
        self.options.select_model(self.prompt).provider == ECHO
    }
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

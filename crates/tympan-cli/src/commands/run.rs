//! `tympan run`: calls the model of a prompt.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value as Json, json};
use tympan::echo::ECHO;
use tympan::response::{Delta, Usage};
use tympan::turn::{TurnEvent, TurnOptions};
use tympan::{ContentPart, Inputs, Message, Outcome, Prompt};
use tympan_runtime::tool::ToolAddresses;
use tympan_runtime::{AgentEvent, Cassette, ResponseStream, Run, RunOptions, Runtime, RuntimeOptions, TurnSettings};

use super::render::{messages, render_in};
use crate::args::{CallArgs, ModelArgs, PromptArgs, RunArgs};
use crate::escape::{visible, visible_line};
use crate::prompt_file::in_prompt;
use crate::report::Failure;
use crate::tools::Programs;
use crate::{json, output, prices, prompt_file, report, tools, traces};

/// The most characters of a tool's result that are shown.
const MAX_SHOWN: usize = 200;

/// What is said after an answer of the provider that is none.
pub(super) const ECHO_NOTE: &str = "echo: no model was called; the answer is made of the prompt itself\n";

/// What a shell says of a program that Ctrl-C has stopped.
const INTERRUPTED: u8 = 130;

pub(super) fn run(args: &RunArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let runtime = prompt_file::runtime(&args.render.prompt.file, args.call.options(&args.render.prompt), quiet);
    let traces = traces::start(&runtime, args.call.trace.as_deref())?;
    let span = runtime.tracer().start("invoke");
    let runtime = runtime.under(&span);
    let (prompt, inputs, rendered) = render_in(&runtime, &args.render.prompt, quiet)?;
    let help = "`--tools FILE` says which program runs it; with `--no-tools`, the call is the result";
    let tools =
        (!args.no_tools).then(|| tools::of_prompt(args.call.tools.as_deref(), &runtime, &prompt, help)).transpose()?;
    let tools = tools.filter(|_| !prompt.spec().tools.is_empty());
    let messages = messages(&runtime, &prompt, &rendered)?;
    let options = args.model.options();
    let call = Call { runtime: &runtime, prompt: &prompt, inputs: &inputs, messages: &messages, options, tools };
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let started = Instant::now();
    let status = tokio.block_on(call.perform(args, quiet, started));
    runtime.close_mcp_servers();
    drop(span);
    traces.flush();
    status
}

impl CallArgs {
    /// What the command line says about a runtime that calls models and tools.
    pub(super) fn options(&self, prompt: &PromptArgs) -> RuntimeOptions {
        let record = self.record.clone().map(Cassette::Record);
        RuntimeOptions {
            cassette: record.or_else(|| self.replay.clone().map(Cassette::Replay)),
            tool_addresses: ToolAddresses { allow_private: self.allow_private, ..ToolAddresses::default() },
            ..super::render::options(prompt)
        }
    }
}

impl ModelArgs {
    /// What the command line says about the model, as the host's word.
    pub(crate) fn options(&self) -> RunOptions {
        RunOptions {
            provider: self.provider.clone(),
            model: self.model.clone(),
            base_url: self.base_url.clone(),
            ..RunOptions::default()
        }
    }
}

/// A call of a model.
struct Call<'a> {
    runtime: &'a Runtime,
    prompt: &'a Prompt,
    inputs: &'a Inputs,
    messages: &'a [Message],
    options: RunOptions,
    /// What runs the tools that the model asks for, if they are to be run.
    tools: Option<Programs>,
}

/// What a call came to, with the number of answers it took.
struct Finished {
    run: Run,
    usage: Option<Usage>,
    rounds: u32,
}

impl From<Run> for Finished {
    fn from(run: Run) -> Self {
        Self { usage: run.usage.clone(), run, rounds: 1 }
    }
}

impl Call<'_> {
    async fn perform(&self, args: &RunArgs, quiet: bool, started: Instant) -> Result<ExitCode, Failure> {
        let waiting = Waiting::begin(quiet, self.model_name());
        let show = Arc::new(Mutex::new(Show::new(args, self.prompt)));
        let finished = tokio::select! {
            // Ctrl-C is listened for before anything is sent.
            biased;
            _ = tokio::signal::ctrl_c() => {
                waiting.end();
                locked(&show).interrupted(args.render.json)?;
                return Ok(ExitCode::from(INTERRUPTED));
            }
            finished = self.answer(args, quiet, &waiting, &show) => finished,
        };
        waiting.end();
        let show = locked(&show);
        show.line_end()?;
        let finished = finished?;
        show.result(&finished, args)?;
        if !quiet {
            report::mismatches(&finished.run.outcome);
            output::print_error(&summary(&finished, self.is_echo(), started.elapsed()));
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn answer(
        &self,
        args: &RunArgs,
        quiet: bool,
        waiting: &Waiting,
        show: &Arc<Mutex<Show>>,
    ) -> Result<Finished, Failure> {
        let in_file = |error| in_prompt(error, self.prompt);
        if let Some(tools) = &self.tools {
            return Ok(self.turn(tools, args.no_stream, quiet, waiting, show).await.map_err(in_file)?);
        }
        if args.no_stream {
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

    /// Runs the loop around tools.
    async fn turn(
        &self,
        tools: &Programs,
        no_stream: bool,
        quiet: bool,
        waiting: &Waiting,
        show: &Arc<Mutex<Show>>,
    ) -> tympan::Result<Finished> {
        let (waiting, show) = (waiting.clone(), show.clone());
        let on_event = move |event: &AgentEvent| match event {
            AgentEvent::Token(text) => {
                waiting.end();
                // What cannot be printed will be noticed at the end.
                let _ = locked(&show).text(text);
            }
            AgentEvent::Turn(event) if !quiet => show_tool(event, &waiting, &locked(&show)),
            _ => {}
        };
        let settings = TurnSettings {
            turn: turn_options(self.runtime),
            run: self.options.clone(),
            tools: tools.runs.clone(),
            on_event: (!no_stream).then(|| Arc::new(on_event) as _),
            ..TurnSettings::default()
        };
        let messages = self.messages.to_vec();
        let turn = self.runtime.turn_messages_async(self.prompt, self.inputs, messages, &settings).await?;
        Ok(Finished { run: turn.run, usage: Some(turn.usage), rounds: turn.rounds })
    }

    fn model_name(&self) -> &str {
        self.options.model_of(self.prompt).unwrap_or("the model")
    }

    fn is_echo(&self) -> bool {
        self.options.provider_of(self.prompt) == ECHO
    }
}

/// How turns go that a person waits for.
pub(super) fn turn_options(runtime: &Runtime) -> TurnOptions {
    TurnOptions {
        guard: runtime.options().guard.clone(),
        // The HTTP client tries again where that makes sense. An answer that breaks off is half on the screen already.
        max_llm_retries: 1,
        ..TurnOptions::default()
    }
}

/// Shows calls of tools and what they came to, apart from the answer.
fn show_tool(event: &TurnEvent, waiting: &Waiting, show: &Show) {
    if let Some(line) = tool_line(event) {
        waiting.end();
        let _ = show.line_end();
        output::print_error(&line);
    }
}

/// A line about the call of a tool, or what it came to.
pub(super) fn tool_line(event: &TurnEvent) -> Option<String> {
    let line = match event {
        TurnEvent::ToolCallStart { name, arguments } => format!("→ {name} {arguments}"),
        TurnEvent::ToolResult { name, result } => {
            let text: String = result.parts.iter().filter_map(ContentPart::as_text).collect();
            let mut shown: String = text.chars().take(MAX_SHOWN).collect();
            if shown.len() < text.len() {
                shown.push('…');
            }
            format!("← {name} {shown}")
        }
        _ => return None,
    };
    Some(visible_line(&line) + "\n")
}

fn locked(show: &Mutex<Show>) -> MutexGuard<'_, Show> {
    show.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows that something is under way, on a terminal.
#[derive(Clone)]
pub(super) struct Waiting(Option<ProgressBar>);

impl Waiting {
    pub(super) fn begin(quiet: bool, model: &str) -> Self {
        if quiet || !std::io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = ProgressBar::new_spinner().with_message(format!("waiting for {}", visible_line(model)));
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        Self(Some(bar))
    }

    pub(super) fn end(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// What has been shown of an answer.
struct Show {
    /// Whether text is shown as it arrives. What a program reads, or is to be laid out, is shown at the end.
    as_it_arrives: bool,
    is_seen: bool,
    arrived: String,
}

impl Show {
    fn new(args: &RunArgs, prompt: &Prompt) -> Self {
        let as_it_arrives = !args.render.json && (args.raw || prompt.spec().outputs.is_empty());
        Self { as_it_arrives, is_seen: output::looks().is_seen, arrived: String::new() }
    }

    fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.arrived.push_str(text);
        if self.as_it_arrives {
            output::print(&self.printable(text))?;
        }
        Ok(())
    }

    fn printable(&self, text: &str) -> String {
        if self.is_seen { visible(text).into_owned() } else { text.to_owned() }
    }

    /// Ends the line that the text ended in.
    fn line_end(&self) -> Result<(), Failure> {
        let is_open = self.as_it_arrives && !self.arrived.is_empty() && !self.arrived.ends_with('\n');
        if is_open {
            output::print("\n")?;
        }
        Ok(())
    }

    fn result(&self, finished: &Finished, args: &RunArgs) -> Result<(), Failure> {
        let Finished { run, usage, rounds } = finished;
        if args.render.json {
            let object = report_json(run.outcome.to_json(), usage.as_ref(), *rounds);
            return Ok(output::print(&(json::pretty(&object) + "\n"))?);
        }
        if self.as_it_arrives && !self.arrived.is_empty() {
            return Ok(());
        }
        let text = match (&run.outcome, args.raw) {
            (Outcome::Text(text), _) => text.clone(),
            (Outcome::Structured(structured), true) => structured.raw.clone(),
            (other, _) => json::pretty(&other.to_json()),
        };
        Ok(output::print(&(self.printable(&text) + "\n"))?)
    }

    /// Shows what had arrived when somebody stopped it.
    fn interrupted(&self, is_json: bool) -> Result<(), Failure> {
        if is_json {
            let mut object = report_json(Json::String(self.arrived.clone()), None, 1);
            object["interrupted"] = true.into();
            output::print(&(json::pretty(&object) + "\n"))?;
        } else {
            if !self.as_it_arrives {
                output::print(&self.printable(&self.arrived))?;
            }
            self.line_end()?;
            output::print_error("interrupted\n");
        }
        Ok(())
    }
}

fn report_json(result: Json, usage: Option<&Usage>, rounds: u32) -> Json {
    json!({ "result": result, "usage": usage, "rounds": rounds })
}

/// What it took, in a line.
fn summary(finished: &Finished, is_echo: bool, took: Duration) -> String {
    let Finished { run, usage, rounds } = finished;
    if is_echo {
        return ECHO_NOTE.to_owned();
    }
    let mut parts: Vec<String> = run.model.iter().map(|model| visible_line(model)).collect();
    if let Some(usage) = usage {
        parts.push(format!("{} tokens in, {} out", usage.input_tokens, usage.output_tokens));
        let cost = run.model.as_deref().and_then(|model| prices::cost(model, usage));
        parts.extend(cost.map(|dollars| format!("${dollars:.6}")));
    }
    if *rounds > 1 {
        parts.push(format!("{rounds} rounds"));
    }
    parts.push(format!("{:.1} s", took.as_secs_f64()));
    parts.join(" · ") + "\n"
}

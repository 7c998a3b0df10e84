//! Output of a model call, during the call and at its end.

use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value as Json, json};
use tympan::turn::{Decision, TurnEvent};
use tympan::wire::catalog::Catalog;
use tympan::wire::response::Usage;
use tympan::{ContentPart, Outcome, Prompt};
use tympan::{Resumed, Run};

use crate::escape::{visible, visible_line};
use crate::report::Failure;
use crate::rows::Rows;
use crate::{json, output};

/// A note after answers of the `echo` provider, which calls no model.
pub(super) const ECHO_NOTE: &str = "echo: no model was called; the response is made from the prompt itself\n";

/// The maximum number of characters of a model's name shown while waiting.
const MAX_NAME: usize = 40;

/// The maximum number of characters of a tool's result shown.
const MAX_SHOWN: usize = 200;

/// How to print the answer.
#[derive(Clone, Copy)]
pub(super) struct Manner {
    /// Print JSON.
    pub(super) json: bool,
    /// Print the model's text unchanged.
    pub(super) raw: bool,
    /// Request the answer in one piece.
    pub(super) no_stream: bool,
    /// Print nothing but the answer.
    pub(super) quiet: bool,
}

/// The result of a call, with the number of model calls it took.
pub(super) struct Finished {
    pub(super) run: Run,
    pub(super) usage: Option<Usage>,
    pub(super) rounds: u32,
    /// What the journal contained, if the turn was resumed.
    pub(super) resumed: Option<Resumed>,
}

impl From<Run> for Finished {
    fn from(run: Run) -> Self {
        Self { usage: run.usage.clone(), run, rounds: 1, resumed: None }
    }
}

/// Prints tool calls and their results to standard error.
pub(super) fn show_tool(event: &TurnEvent, waiting: &Waiting, show: &mut Show) {
    if let Some(line) = tool_line(event) {
        waiting.end();
        let _ = show.line_end();
        output::print_error(&line);
    }
}

/// Returns whether an event says that the policy for tools asks for approval.
pub(super) fn is_question(event: &TurnEvent) -> bool {
    matches!(event, TurnEvent::Policy { ruling, .. } if ruling.decision == Decision::Ask)
}

/// Formats a tool call, its result, or what the policy says about it as a line.
pub(super) fn tool_line(event: &TurnEvent) -> Option<String> {
    let line = match event {
        TurnEvent::Policy { name, ruling } => {
            let reasons: Vec<_> = ruling.reasons.iter().map(ToString::to_string).collect();
            let what = if is_question(event) { "needs approval" } else { "is denied" };
            format!("! {name} {what}: {}", reasons.join("; "))
        }
        TurnEvent::ToolCallStart { name, arguments, .. } => format!("→ {name} {arguments}"),
        TurnEvent::ToolResult { name, result, .. } => {
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

pub(super) fn locked(show: &Mutex<Show>) -> MutexGuard<'_, Show> {
    show.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A progress indicator, shown on a terminal.
#[derive(Clone)]
pub(super) struct Waiting(Option<ProgressBar>);

impl Waiting {
    pub(super) fn begin(quiet: bool, model: &str) -> Self {
        if quiet || !std::io::stderr().is_terminal() {
            return Self(None);
        }
        // The indicator must fit into one row.
        let model: String = visible_line(model).chars().take(MAX_NAME).collect();
        let bar = ProgressBar::new_spinner().with_message(format!("waiting for {model}"));
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

/// The state of an answer's output.
pub(super) struct Show {
    /// Whether to print text as it arrives. Output for programs and data that needs formatting are printed at the end.
    as_it_arrives: bool,
    /// The layout of the answer on a terminal. It is indented, so that it cannot be mistaken for a line about a tool.
    rows: Option<Rows>,
    arrived: String,
}

impl Show {
    pub(super) fn new(manner: Manner, prompt: &Prompt) -> Self {
        let as_it_arrives = !manner.json && (manner.raw || prompt.spec().outputs.is_empty());
        let rows = output::looks().is_seen.then(|| Rows::indented(output::stdout_width()));
        Self { as_it_arrives, rows, arrived: String::new() }
    }

    pub(super) fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.arrived.push_str(text);
        if self.as_it_arrives {
            let text = self.printable(text);
            output::print(&text)?;
        }
        Ok(())
    }

    fn printable(&mut self, text: &str) -> String {
        match &mut self.rows {
            Some(rows) => rows.lay_out(&visible(text)),
            None => text.to_owned(),
        }
    }

    /// Ends the current line of the answer, if it is not empty.
    pub(super) fn line_end(&mut self) -> Result<(), Failure> {
        let is_open = self.as_it_arrives && !self.arrived.is_empty() && !self.arrived.ends_with('\n');
        if is_open {
            let end = self.printable("\n");
            output::print(&end)?;
        }
        Ok(())
    }

    pub(super) fn result(&mut self, finished: &Finished, manner: Manner) -> Result<(), Failure> {
        let Finished { run, usage, rounds, .. } = finished;
        if manner.json {
            let object = report_json(run.outcome.to_json(), usage.as_ref(), *rounds);
            return Ok(output::print(&(json::pretty(&object) + "\n"))?);
        }
        if self.as_it_arrives && !self.arrived.is_empty() {
            return Ok(());
        }
        let text = match (&run.outcome, manner.raw) {
            (Outcome::Text(text), _) => text.clone(),
            (Outcome::Structured(structured), true) => structured.raw.clone(),
            (other, _) => json::pretty(&other.to_json()),
        };
        Ok(output::print(&self.printable(&(text + "\n")))?)
    }

    /// Prints what had arrived when the call was interrupted.
    pub(super) fn interrupted(&mut self, is_json: bool) -> Result<(), Failure> {
        if is_json {
            let mut object = report_json(Json::String(self.arrived.clone()), None, 1);
            object["interrupted"] = true.into();
            output::print(&(json::pretty(&object) + "\n"))?;
        } else {
            if !self.as_it_arrives {
                let arrived = self.arrived.clone();
                output::print(&self.printable(&arrived))?;
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

/// Summarizes tokens, cost and time in one line.
pub(super) fn summary(finished: &Finished, is_echo: bool, took: Duration, catalog: &Catalog) -> String {
    let Finished { run, usage, rounds, .. } = finished;
    if is_echo {
        return ECHO_NOTE.to_owned();
    }
    let mut parts: Vec<String> = run.model.iter().map(|model| visible_line(model)).collect();
    if let Some(usage) = usage {
        parts.push(format!("{} tokens in, {} out", usage.input_tokens, usage.output_tokens));
        let cost = run.model.as_deref().and_then(|model| catalog.cost(model, usage));
        parts.extend(cost.map(|dollars| format!("${dollars:.6}")));
    }
    if *rounds > 1 {
        parts.push(format!("{rounds} rounds"));
    }
    parts.push(format!("{:.1} s", took.as_secs_f64()));
    parts.join(" · ") + "\n"
}

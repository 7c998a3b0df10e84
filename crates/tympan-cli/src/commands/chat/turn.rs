//! The turns of a chat: a question, the model's answer, and what is printed meanwhile.

use std::pin::pin;
use std::sync::{Arc, Mutex};

use tympan::turn::{Label, MessageLabel, TurnEvent};
use tympan::{AgentEvent, CancelToken, Runtime, TurnRun, TurnSettings};
use tympan::{Error, Kind, Message, Outcome, Role};

use super::Chat;
use super::approval::{Approval, locked};
use super::conversation::{Prepared, Question};
use super::screen::Screen;
use crate::commands::call::turn_options;
use crate::commands::render::Labeled;
use crate::commands::show::{is_question, tool_line};
use crate::prompt_file::in_prompt;
use crate::report::{Failure, Form};
use crate::{json, report};

impl Chat<'_> {
    /// Asks the model for the first answer, if the prompt itself contains a question.
    pub(super) fn begin(&mut self) -> Result<(), Failure> {
        if self.conversation.asks_first(self.runtime)? { self.ask(None) } else { Ok(()) }
    }

    /// Asks the model and prints the answer. If the turn fails, the chat continues.
    pub(super) fn ask(&mut self, question: Question) -> Result<(), Failure> {
        self.unanswered = None;
        let span = self.runtime.tracer().start("chat");
        let runtime = self.runtime.under(&span);
        let turn = match self.conversation.prepare(&runtime, question.as_deref()) {
            Ok(prepared) => {
                let before = (answers(&prepared.messages.messages), prepared.messages.label());
                self.turn(&runtime, prepared).map(|turn| (turn, before)).map_err(Failure::Engine)
            }
            Err(failure) => Err(failure),
        };
        self.approval.turn_over();
        match turn {
            Ok((turn, (before, label))) => {
                self.totals.add(&turn);
                self.show(&turn);
                self.conversation.add(question, answered(turn, before, &label));
            }
            Err(failure) => {
                locked(&self.screen).settle();
                self.unanswered = Some(question);
                self.has_failed = true;
                self.show_failure(failure);
            }
        }
        Ok(locked(&self.screen).check()?)
    }

    /// Runs a turn. Ctrl-C cancels it.
    fn turn(&self, runtime: &Runtime, prepared: Prepared) -> Result<TurnRun, Error> {
        let cancel = CancelToken::default();
        let (screen, approval) = (self.screen.clone(), self.approval.clone());
        let quiet = self.quiet;
        let on_event = move |event: &AgentEvent| show_event(event, &screen, &approval, quiet);
        let mut turn = turn_options(runtime);
        turn.flow.tools = self.programs.flows.clone();
        turn.flow.labels = Some(prepared.messages.labels.clone());
        let settings = TurnSettings {
            turn,
            run: self.options.clone(),
            tools: self.programs.runs.clone(),
            on_event: Some(Arc::new(on_event)),
            cancel: cancel.clone(),
            approve: Some(self.approval.approve(&cancel)),
            approve_all: true,
            turn_number: Some(self.totals.next_question()),
            ..TurnSettings::default()
        };
        locked(&self.screen).begin();
        let Prepared { inputs, messages: Labeled { messages, .. } } = prepared;
        self.tokio.block_on(async {
            let mut turn = pin!(runtime.turn_messages_async(self.prompt, &inputs, messages, &settings));
            tokio::select! {
                // Start listening for Ctrl-C before anything is sent.
                biased;
                // Without a terminal, Ctrl-C ends the program as usual.
                _ = tokio::signal::ctrl_c(), if self.is_terminal => {
                    cancel.cancel();
                    // A cancelled turn ends immediately. If its tools are still being set up, it is dropped.
                    tokio::select! {
                        biased;
                        turn = &mut turn => turn,
                        () = std::future::ready(()) => Err(Error::new(Kind::Cancelled, "the turn was stopped")),
                    }
                }
                turn = &mut turn => turn,
            }
        })
    }

    /// Prints what was not printed while it arrived.
    fn show(&self, turn: &TurnRun) {
        let mut screen = locked(&self.screen);
        if !screen.has_text() {
            let text = match &turn.run.outcome {
                Outcome::Text(text) => text.clone(),
                other => json::pretty(&other.to_json()),
            };
            screen.text(&text);
        }
        screen.settle();
        if !self.quiet {
            report::mismatches(&turn.run.outcome);
        }
    }

    fn show_failure(&self, failure: Failure) {
        match failure {
            Failure::Engine(error) if error.kind() == Kind::Cancelled => {
                self.say("interrupted: the question was dropped; /retry asks it again");
            }
            Failure::Engine(error) => {
                report::failure(&Failure::Engine(in_prompt(error, self.prompt)), Form::Human);
            }
            other => {
                report::failure(&other, Form::Human);
            }
        }
    }
}

/// Returns the messages that a turn added, with their labels. `before` is the number of answers that the turn began with.
/// Without tools, a turn has no labels, and its answer has that of everything that it began with.
fn answered(mut turn: TurnRun, before: usize, label: &Label) -> Labeled {
    let start = turn.messages.len() - answers(&turn.messages).saturating_sub(before);
    let messages = turn.messages.split_off(start);
    let labels = match turn.labels.len() == start + messages.len() {
        true => turn.labels.split_off(start),
        false => messages.iter().map(|message| MessageLabel::whole(message, label)).collect(),
    };
    Labeled { messages, labels }
}

/// Counts the trailing messages from the model and its tools. A turn adds no others, but may shorten earlier messages.
fn answers(messages: &[Message]) -> usize {
    messages.iter().rev().take_while(|message| matches!(message.role, Role::Assistant | Role::Tool)).count()
}

/// Prints an event of a turn.
fn show_event(event: &AgentEvent, screen: &Mutex<Screen>, approval: &Approval, quiet: bool) {
    match event {
        AgentEvent::Token(text) => locked(screen).text(text),
        AgentEvent::Turn(TurnEvent::ToolCallStart { name, .. }) if approval.has_shown(name) => {}
        // The question says it.
        AgentEvent::Turn(event) if is_question(event) && approval.can_ask() => {}
        AgentEvent::Turn(event) => {
            if let Some(line) = tool_line(event).filter(|_| !quiet) {
                locked(screen).note(&line);
            }
            if let TurnEvent::ToolResult { .. } = event {
                locked(screen).wait();
            }
        }
        _ => {}
    }
}

//! `tympan chat`: a conversation with the prompt's model.

mod approval;
mod command;
mod conversation;
mod line;
mod reader;
mod save;
mod screen;
mod totals;

use std::path::Path;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use tympan::spec::{Tool, ToolKind};
use tympan::turn::TurnEvent;
use tympan::wire::echo::ECHO;
use tympan::{AgentEvent, CancelToken, RunOptions, Runtime, TurnRun, TurnSettings};
use tympan::{Error, Kind, Message, Outcome, Prompt, Role};

use self::approval::{Approval, ApprovalPolicy, locked};
use self::command::Command;
use self::conversation::{Conversation, Prepared, Question};
use self::line::Line;
use self::reader::{Reader, Typed};
use self::screen::Screen;
use self::totals::Totals;
use super::call::turn_options;
use super::inspect::table;
use super::show::{ECHO_NOTE, tool_line};
use crate::args::ChatArgs;
use crate::prompt_file::{in_prompt, is_stdin};
use crate::report::{Failure, Form};
use crate::tools::{self, Programs};
use crate::{json, output, prompt_file, report, traces};

pub(super) fn run(args: &ChatArgs, quiet: bool) -> Result<ExitCode, Failure> {
    if [Some(args.prompt.file.as_path()), args.prompt.inputs.inputs.as_deref()].into_iter().flatten().any(is_stdin) {
        return Err(Failure::Usage(
            "chat reads questions from standard input, so neither the prompt nor its inputs can be `-`".into(),
        ));
    }
    let options = args.model.endpoint.over(args.call.options(&args.prompt));
    let runtime = prompt_file::runtime(&args.prompt.file, options, quiet);
    let (prompt, inputs) = super::render::load_in(&runtime, &args.prompt, quiet)?;
    let programs = tools::of_prompt(
        args.call.tools.as_deref(),
        &runtime,
        &prompt,
        "configure the program that runs it with \
            `--tools FILE`",
    )?;
    let conversation = Conversation::new(&prompt, args.prompt.variant.as_deref(), inputs, args.question.as_deref())?;
    let reader = Reader::new(!args.no_history)?;
    // Start tracing after loading, so that each turn is a separate trace and loading is not traced.
    let traces = traces::start(&runtime, args.call.trace.as_deref())?;
    let mut chat = Chat::new(&runtime, &prompt, conversation, programs, args, &reader, quiet)?;
    let ended = chat.talk(reader);
    #[cfg(feature = "mcp")]
    runtime.close_mcp_servers();
    traces.flush();
    ended
}

/// A running chat.
struct Chat<'a> {
    runtime: &'a Runtime,
    prompt: &'a Prompt,
    conversation: Conversation<'a>,
    programs: Programs,
    options: RunOptions,
    quiet: bool,
    is_terminal: bool,
    screen: Arc<Mutex<Screen>>,
    approval: Approval,
    totals: Totals,
    /// The last question, if it was not answered.
    unanswered: Option<Question>,
    /// Whether any question was not answered.
    has_failed: bool,
    tokio: tokio::runtime::Runtime,
}

/// Whether the chat continues.
#[derive(PartialEq, Eq)]
enum Then {
    GoOn,
    Leave,
}

impl<'a> Chat<'a> {
    fn new(
        runtime: &'a Runtime,
        prompt: &'a Prompt,
        conversation: Conversation<'a>,
        programs: Programs,
        args: &ChatArgs,
        reader: &Reader,
        quiet: bool,
    ) -> Result<Self, Failure> {
        let options = args.model.options();
        let policy = match (args.call.yes, reader.is_terminal()) {
            (true, _) => ApprovalPolicy::All,
            (false, true) => ApprovalPolicy::Ask,
            (false, false) => ApprovalPolicy::None,
        };
        let model = options.model_of(prompt).unwrap_or("the model").to_owned();
        let screen = Arc::new(Mutex::new(Screen::new(&model, quiet)));
        Ok(Self {
            runtime,
            prompt,
            conversation,
            programs,
            options,
            quiet,
            is_terminal: reader.is_terminal(),
            approval: Approval::new(policy, screen.clone()),
            screen,
            totals: Totals::default(),
            unanswered: None,
            has_failed: false,
            tokio: tokio::runtime::Builder::new_current_thread().enable_all().build()?,
        })
    }

    /// Runs the chat until the user leaves or the input ends.
    fn talk(&mut self, mut reader: Reader) -> Result<ExitCode, Failure> {
        self.greet();
        self.begin()?;
        loop {
            let then = match reader.read()? {
                Typed::Lines(typed) => self.take(Line::new(&typed))?,
                Typed::Interrupted => {
                    self.say("press Ctrl-D or type /quit to leave");
                    Then::GoOn
                }
                Typed::End => Then::Leave,
            };
            if then == Then::Leave {
                break;
            }
        }
        self.part();
        // On a terminal, the user has already seen the errors. A program needs the exit status.
        let is_silent_failure = self.has_failed && !self.is_terminal;
        Ok(if is_silent_failure { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    fn greet(&self) {
        if self.is_terminal && !self.quiet {
            self.say("type /help for the commands; Ctrl-C stops a response, Ctrl-D leaves");
        }
        if self.approval.runs_none() && !self.prompt.spec().tools.is_empty() && !self.quiet {
            report::warn_plainly(
                "consent",
                "tools will not run: approval needs a terminal; use --yes to approve all of them",
            );
        }
    }

    /// Prints the totals at the end.
    fn part(&self) {
        if self.quiet {
            return;
        }
        if self.options.provider_of(self.prompt) == ECHO {
            output::print_error(ECHO_NOTE);
        } else if !self.totals.is_empty() {
            self.say(&self.totals.shown());
        }
    }

    /// Asks the model for the first answer, if the prompt itself contains a question.
    fn begin(&mut self) -> Result<(), Failure> {
        if self.conversation.asks_first(self.runtime)? { self.ask(None) } else { Ok(()) }
    }

    /// Executes a line that was typed.
    fn take(&mut self, line: Line) -> Result<Then, Failure> {
        match line {
            Line::Empty => {}
            Line::Text(text) => self.ask(Some(text))?,
            Line::Command(name, argument) => match Command::named(&name) {
                Ok(Command::Quit) => return Ok(Then::Leave),
                Ok(command) => self.obey(command, &argument)?,
                Err(complaint) => self.complain(&complaint),
            },
        }
        Ok(Then::GoOn)
    }

    fn obey(&mut self, command: Command, argument: &str) -> Result<(), Failure> {
        match command {
            Command::Help => output::print_error(&command::help()),
            Command::Retry => match self.unanswered.take().or_else(|| self.conversation.take_last()) {
                Some(question) => self.ask(question)?,
                None => self.complain("no question to repeat"),
            },
            Command::Undo => {
                let undone = self.unanswered.take().or_else(|| self.conversation.take_last());
                match undone {
                    Some(Some(question)) => self.say(&format!("removed: {question}")),
                    Some(None) => self.say("removed: the question of the prompt"),
                    None => self.complain("no question to remove"),
                }
            }
            Command::Clear => {
                self.conversation.clear();
                self.unanswered = None;
                self.begin()?;
            }
            Command::Save | Command::SaveOver => self.save(Path::new(argument), command == Command::SaveOver)?,
            Command::Tools => self.list_tools(),
            Command::Usage => self.say(&self.totals.shown()),
            // Handled by the loop that reads lines.
            Command::Quit => {}
        }
        Ok(())
    }

    /// Asks the model and prints the answer. If the turn fails, the chat continues.
    fn ask(&mut self, question: Question) -> Result<(), Failure> {
        self.unanswered = None;
        let span = self.runtime.tracer().start("chat");
        let runtime = self.runtime.under(&span);
        let turn = match self.conversation.prepare(&runtime, question.as_deref()) {
            Ok(prepared) => {
                let before = answers(&prepared.messages);
                self.turn(&runtime, prepared).map(|turn| (turn, before)).map_err(Failure::Engine)
            }
            Err(failure) => Err(failure),
        };
        self.approval.turn_over();
        match turn {
            Ok((mut turn, before)) => {
                self.totals.add(&turn);
                self.show(&turn);
                let added = answers(&turn.messages).saturating_sub(before);
                let answered = turn.messages.split_off(turn.messages.len() - added);
                self.conversation.add(question, answered);
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
        let settings = TurnSettings {
            turn: turn_options(runtime),
            run: self.options.clone(),
            tools: self.programs.runs.clone(),
            on_event: Some(Arc::new(on_event)),
            cancel: cancel.clone(),
            approve: Some(self.approval.approve(&cancel)),
            approve_all: true,
            ..TurnSettings::default()
        };
        locked(&self.screen).begin();
        let Prepared { inputs, messages } = prepared;
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

    fn save(&self, path: &Path, replaces: bool) -> Result<(), Failure> {
        if path.as_os_str().is_empty() {
            self.complain("/save needs a file name");
            return Ok(());
        }
        let messages = self.conversation.transcript(self.runtime)?;
        let shown = path.display();
        match save::save(path, &messages, replaces) {
            Ok(()) => self.say(&format!("saved {} messages to {shown}", messages.len())),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                self.complain(&format!("{shown} already exists; /save! {shown} replaces it"));
            }
            Err(error) => self.complain(&format!("cannot write {shown}: {error}")),
        }
        Ok(())
    }

    fn list_tools(&self) {
        let rows: Vec<_> = self.prompt.spec().tools.iter().map(|tool| self.tool_row(tool)).collect();
        if rows.is_empty() {
            return self.say("the prompt declares no tools");
        }
        let mut out = String::new();
        table(&mut out, "tools", &["NAME", "KIND", "RUN BY", "DESCRIPTION"], rows);
        output::print_error(out.trim_start());
    }

    fn tool_row(&self, tool: &Tool) -> Vec<String> {
        let program = self.programs.commands.get(&tool.name).cloned();
        let runs = program.unwrap_or_else(|| match &tool.kind {
            ToolKind::Mcp { server_name, .. } => server_name.as_ref().unwrap_or(&tool.name).clone(),
            ToolKind::Prompty { path, .. } => path.clone().unwrap_or_default(),
            _ => String::new(),
        });
        vec![tool.name.clone(), tool.kind.as_str().to_owned(), runs, tool.description.clone().unwrap_or_default()]
    }

    fn say(&self, line: &str) {
        locked(&self.screen).remark(line);
    }

    fn complain(&self, line: &str) {
        locked(&self.screen).settle();
        report::warn_plainly("chat", line);
    }
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

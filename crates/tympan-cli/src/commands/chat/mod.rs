//! `tympan chat`: a conversation with the prompt's model.

mod action;
mod approval;
mod command;
mod conversation;
mod labels;
mod line;
mod reader;
mod save;
mod screen;
mod totals;
mod turn;

use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use tympan::wire::echo::ECHO;
use tympan::{Prompt, RunOptions, Runtime};

use self::approval::{Approval, ApprovalPolicy, locked};
use self::command::Command;
use self::conversation::{Conversation, Question};
use self::line::Line;
use self::reader::{Reader, Typed};
use self::screen::Screen;
use self::totals::Totals;
use super::show::ECHO_NOTE;
use crate::args::ChatArgs;
use crate::project::Project;
use crate::prompt_file::is_stdin;
use crate::report::Failure;
use crate::tools::{self, Programs};
use crate::{config, output, prompt_file, report, traces};

pub(super) fn run(args: &ChatArgs, quiet: bool) -> Result<ExitCode, Failure> {
    if [Some(args.prompt.file.as_path()), args.prompt.inputs.inputs.as_deref()].into_iter().flatten().any(is_stdin) {
        return Err(Failure::Usage(
            "chat reads questions from standard input, so neither the prompt nor its inputs can be `-`".into(),
        ));
    }
    let options = args.model.endpoint.over(args.call.options(&args.prompt)?);
    let runtime = prompt_file::runtime(&args.prompt.file, options, quiet);
    config::register_credentials(&runtime, args.model.credentials.credential_command.as_deref())?;
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
        let model = options.select_model(prompt).model.unwrap_or("the model").to_owned();
        let screen = Arc::new(Mutex::new(Screen::new(&model, quiet)));
        Ok(Self {
            runtime,
            prompt,
            conversation,
            programs,
            options,
            quiet,
            is_terminal: reader.is_terminal(),
            approval: Approval::new(policy, reader.is_terminal(), screen.clone()),
            screen,
            totals: Totals::new(Project::catalog()?),
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
        if self.options.select_model(self.prompt).provider == ECHO {
            output::print_error(ECHO_NOTE);
        } else if !self.totals.is_empty() {
            self.say(&self.totals.shown());
        }
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

    fn say(&self, line: &str) {
        locked(&self.screen).remark(line);
    }

    fn complain(&self, line: &str) {
        locked(&self.screen).settle();
        report::warn_plainly("chat", line);
    }
}

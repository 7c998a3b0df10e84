//! `tympan resume`: resumes a crashed turn.

use std::path::Path;
use std::process::ExitCode;

use tympan::{Error, Kind};
use tympan::{Journal, RunOptions, RuntimeOptions};

use super::call::{Call, CallJournal};
use super::render::{messages, options_of, render_with};
use super::run::Began;
use super::show::Manner;
use crate::args::{CallArgs, ResumeArgs};
use crate::escape::visible_line;
use crate::project::Project;
use crate::report::Failure;
use crate::{config, policy, prompt_file, tools, traces};

pub(super) fn run(args: &ResumeArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let journal = Journal::at(&args.file)?;
    let header = journal.header()?;
    let began: Began = serde_json::from_value(header.host.clone()).map_err(|_| not_of_run())?;
    if let (Some(tools), None) = (&began.tools, &args.call.tools) {
        return Err(tools_only_in_journal(tools).into());
    }
    let file = args.prompt.as_deref().unwrap_or(Path::new(&header.prompt));
    let options = options_of(began.strict, began.lenient, began.guard);
    let policy = args.policy.as_ref().map(|value| policy::parse(value, file)).transpose()?;
    let policy = match (policy, began.policy()?) {
        (Some(own), Some(other)) => Some(own.and(other)),
        (own, other) => own.or(other),
    };
    let options = RuntimeOptions { strict_inputs: began.strict_inputs, seed: began.seed, policy, ..options };
    let options = args.call.options_over(options)?;
    let catalog = Project::catalog()?;
    let options = args.model.endpoint.over(args.env.over(options));
    let runtime = prompt_file::runtime(file, options, quiet);
    config::register_credentials(&runtime, args.model.credentials.credential_command.as_deref())?;
    let traces = traces::start(&runtime, args.call.trace.as_deref())?;
    let span = runtime.tracer().start("invoke");
    let runtime = runtime.under(&span);
    let prompt = prompt_file::load_and_warn(&runtime, file, quiet)?;
    let rendered = render_with(&runtime, &prompt, &header.inputs, began.variant.as_deref())?;
    let messages = messages(&runtime, &prompt, &rendered)?;
    let help = "configure the program that runs it with `--tools FILE`";
    let tools = Some(tools::of_prompt(args.call.tools.as_deref(), &runtime, &prompt, help)?);
    let now = args.model.options();
    let options = RunOptions {
        provider: now.provider.or_else(|| header.provider.clone()),
        model: now.model.or_else(|| header.model.clone()),
        ..now
    };
    let manner = Manner { json: args.json, raw: args.raw, no_stream: args.no_stream, quiet };
    let CallArgs { tools: tools_file, policy, .. } = &args.call;
    let (path, tools_file) = (args.file.as_path(), tools_file.as_deref());
    let journal = Some(CallJournal { journal, path, tools: tools_file, policy, resume: true });
    let (prompt, inputs, messages) = (&prompt, &header.inputs, &messages);
    let yes = args.call.yes;
    let call = Call { runtime: &runtime, prompt, inputs, messages, options, tools, yes, journal, catalog, manner };
    let status = call.perform();
    drop(span);
    traces.flush();
    status
}

/// Returns the error for a tools file that only the journal names. A tools file determines which programs run, and a
/// person who can write to the journal must not be able to choose them.
fn tools_only_in_journal(tools: &str) -> Error {
    let tools = visible_line(tools);
    Error::new(
        Kind::JournalMismatch,
        format_args!(
            "the run was started with the tools of `{tools}`, but no tools \
        are configured now"
        ),
    )
    .with_help(format!("a journal cannot choose which programs run; pass the file again with `--tools {tools}`"))
}

fn not_of_run() -> Error {
    Error::new(Kind::JournalMismatch, "the turn was not started by `tympan run`")
        .with_help("`tympan resume` continues runs that were started with `tympan run --journal`")
}

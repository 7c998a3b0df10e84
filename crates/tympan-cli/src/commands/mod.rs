//! The commands, one file per command.

mod approval;
#[cfg(feature = "batch")]
mod batch;
mod call;
mod chat;
mod check;
mod completions;
mod count;
mod diff;
mod fmt;
mod hash;
mod inspect;
mod keygen;
mod lock;
#[cfg(feature = "lsp")]
mod lsp;
mod man;
mod messages;
mod models;
mod parse;
mod process;
mod reach;
mod render;
mod request;
mod resume;
mod rule;
mod run;
mod schema;
mod show;
mod sign;
#[cfg(feature = "studio")]
mod studio;
mod test;
mod trace;
mod verify;

use std::process::ExitCode;

use crate::args::{Args, Command};
use crate::report::Failure;

/// Runs the command.
///
/// # Errors
/// Returns the reason that the command failed.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    // With JSON output, standard error must contain nothing but the error.
    let quiet = args.quiet || args.command.is_json();
    match &args.command {
        Command::Render(render_args) => render::run(render_args, quiet)?,
        Command::Messages(render_args) => messages::run(render_args, quiet)?,
        Command::Run(run_args) => return run::run(run_args, quiet),
        Command::Resume(resume_args) => return resume::run(resume_args, quiet),
        Command::Chat(chat_args) => return chat::run(chat_args, quiet),
        Command::Models(models_args) => models::run(models_args, quiet)?,
        Command::Count(count_args) => count::run(count_args, quiet)?,
        #[cfg(feature = "batch")]
        Command::Batch(batch_args) => return batch::run(batch_args, quiet),
        Command::Request(request_args) => request::run(request_args, quiet)?,
        Command::Parse(parse_args) => parse::run(parse_args)?,
        Command::Inspect(inspect_args) if inspect_args.reach => return reach::run(inspect_args, quiet),
        Command::Inspect(inspect_args) => inspect::run(inspect_args, quiet)?,
        Command::Check(check_args) => return check::run(check_args, args.quiet),
        Command::Diff(diff_args) => return diff::run(diff_args, quiet),
        Command::Fmt(fmt_args) => return fmt::run(fmt_args, args.quiet),
        Command::Test(test_args) => return test::run(test_args, args.quiet),
        Command::Rule(rule_args) => rule::run(rule_args)?,
        Command::Hash(hash_args) => hash::run(hash_args, quiet)?,
        Command::Lock(lock_args) => return lock::run(lock_args),
        #[cfg(feature = "lsp")]
        Command::Lsp { .. } => return lsp::run(),
        #[cfg(feature = "studio")]
        Command::Studio(studio_args) => return studio::run(studio_args, quiet),
        Command::Process(process_args) => process::run(process_args, quiet)?,
        Command::Schema(args) => schema::run(args)?,
        Command::Verify(verify_args) => return verify::run(verify_args),
        Command::Sign(sign_args) => sign::run(sign_args, quiet)?,
        Command::Keygen(keygen_args) => keygen::run(keygen_args)?,
        Command::Trace(trace_args) => trace::run(trace_args)?,
        Command::Completions { shell } => completions::run(*shell)?,
        Command::Man { command } => man::run(command.as_deref())?,
    }
    Ok(ExitCode::SUCCESS)
}

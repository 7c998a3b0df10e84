//! `tympan batch`: prompts over tables.

mod answer;
mod estimate;
mod job;
mod plan;
mod prepare;
mod results;
mod rows;
mod run;

use std::process::ExitCode;

use crate::args::{BatchArgs, BatchCommand};
use crate::report::Failure;

pub(super) fn run(args: &BatchArgs, quiet: bool) -> Result<ExitCode, Failure> {
    match &args.command {
        BatchCommand::Prepare(prepare_args) => prepare::run(prepare_args, quiet),
        BatchCommand::Submit(submit_args) => job::submit(submit_args, quiet),
        BatchCommand::Status(status_args) => job::status(status_args, quiet),
        BatchCommand::Collect(collect_args) => job::collect(collect_args, quiet),
        BatchCommand::Cancel(cancel_args) => job::cancel(cancel_args, quiet),
        BatchCommand::Run(run_args) => run::run(run_args, quiet),
        BatchCommand::Plan(plan_args) => plan::run(plan_args, quiet),
    }
}

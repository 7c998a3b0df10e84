//! `tympan batch`: prompts over tables.

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
        BatchCommand::Run(run_args) => run::run(run_args, quiet),
        BatchCommand::Plan(plan_args) => plan::run(plan_args, quiet),
    }
}

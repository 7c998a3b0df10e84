//! `tympan batch`: prompts over tables.

mod prepare;
mod rows;

use std::process::ExitCode;

use crate::args::{BatchArgs, BatchCommand};
use crate::report::Failure;

pub(super) fn run(args: &BatchArgs, quiet: bool) -> Result<ExitCode, Failure> {
    match &args.command {
        BatchCommand::Prepare(prepare_args) => prepare::run(prepare_args, quiet),
    }
}

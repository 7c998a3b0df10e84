//! The `tympan` command: loads, checks and renders prompt files, splits them into messages, and shows the origin of
//! every byte.
//!
//! This is the only part of Tympan that prints or loads a `.env` file. [`args`] defines the command line, and each file
//! in [`commands`] implements one command.

mod args;
mod color;
mod commands;
mod config;
mod diff;
mod dotenv;
mod escape;
mod excerpt;
mod inputs;
mod json;
mod output;
mod policy;
mod prices;
mod project;
mod prompt_file;
mod report;
mod rows;
mod tools;
mod traces;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args = match args::Args::from_environment() {
        Ok(args) => args,
        Err(error) => return report::usage(&error),
    };
    args.color.write_global();
    let form = if args.command.is_json() { report::Form::Json } else { report::Form::Human };
    let status = match commands::run(&args) {
        Ok(status) => status,
        Err(failure) => report::failure(&failure, form),
    };
    // Whoever was stopped in the middle leaves programs behind.
    tympan::tool::end_programs();
    status
}

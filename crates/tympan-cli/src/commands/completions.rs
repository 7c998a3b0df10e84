//! `tympan completions`: generates a shell completion script.

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::args::Args;
use crate::output;
use crate::report::Failure;

pub(super) fn run(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    generate(shell, &mut Args::command(), "tympan", &mut script);
    Ok(output::print(&String::from_utf8_lossy(&script))?)
}

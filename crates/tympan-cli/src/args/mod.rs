//! Command-line arguments.

#[cfg(feature = "batch")]
mod batch;
mod call;
mod check;
mod color;
mod command;
mod count;
mod diff;
mod file;
mod fmt;
mod model;
mod reach;
mod render;
mod response;
mod resume;
mod signatures;
#[cfg(feature = "studio")]
mod studio;
mod test;

use std::ffi::OsStr;

use clap::builder::Resettable;
use clap::{Arg, CommandFactory, FromArgMatches, Parser};

#[cfg(feature = "batch")]
pub(crate) use batch::{
    BatchArgs, BatchCancelArgs, BatchCollectArgs, BatchCommand, BatchFilesArgs, BatchFormatChoice, BatchJobArgs,
    BatchPlanArgs, BatchPrepareArgs, BatchPromptArgs, BatchResultsArgs, BatchResultsChoice, BatchRowsArgs,
    BatchRunArgs, BatchStatusArgs, BatchSubmitArgs, BatchTargetChoice,
};
pub(crate) use call::{CallArgs, ChatArgs, RunArgs};
pub(crate) use check::{CheckArgs, OutputFormat, SettingsArgs};
pub(crate) use color::Color;
pub(crate) use command::Command;
pub(crate) use count::CountArgs;
pub(crate) use diff::DiffArgs;
pub(crate) use file::{HashArgs, InspectArgs, LockArgs, RuleArgs, SchemaArgs, SchemaKind};
pub(crate) use fmt::FmtArgs;
pub(crate) use model::{ModelArgs, ModelsArgs};
pub(crate) use reach::{EnvArgs, FileArgs, ToolPolicyArgs, ToolPolicyChoice};
pub(crate) use render::{InputArgs, KindsChoice, PromptArgs, RenderArgs, RequestArgs};
pub(crate) use response::{ParseArgs, ProcessArgs, TraceArgs};
pub(crate) use resume::ResumeArgs;
pub(crate) use signatures::{KeygenArgs, SignArgs, VerifyArgs};
#[cfg(feature = "studio")]
pub(crate) use studio::StudioArgs;
pub(crate) use test::{TestArgs, TestComparisonArgs, TestFormat};

/// A prompt engine that remembers who wrote every byte
///
/// Tympan reads a `.prompty` file or a prompt definition (YAML, JSON or TOML), renders its template with your inputs,
/// and splits the result into chat messages. No input can forge a message.
#[derive(Debug, Parser)]
#[command(name = "tympan", version)]
#[command(after_long_help = "Examples:
  tympan render greeting.prompty --set name=Ada
  tympan messages support.prompty --sample
  tympan check prompts

Exit status: 0 on success; 1 for an error in a prompt or its inputs; 2 for an invalid command line.")]
pub(crate) struct Args {
    /// The command to run
    #[command(subcommand)]
    pub(crate) command: Command,

    /// When to use colors
    ///
    /// `auto` uses colors only on a terminal. The environment variables NO_COLOR and CLICOLOR_FORCE are respected.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    pub(crate) color: Color,

    /// Suppress warnings and the legend
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

impl Args {
    /// Parses the command line, and the environment variables that options can be set with. An empty variable counts as
    /// one that is not set.
    ///
    /// # Errors
    /// Returns an error if an argument or a variable is invalid, or if help was requested.
    pub(crate) fn from_environment() -> Result<Self, clap::Error> {
        let matches = without_empty_variables(Self::command()).try_get_matches()?;
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut Self::command()))
    }
}

fn without_empty_variables(command: clap::Command) -> clap::Command {
    let is_blank = |value: &OsStr| value.to_str().is_some_and(|value| value.trim().is_empty());
    let is_empty = |arg: &Arg| arg.get_env().and_then(std::env::var_os).is_some_and(|value| is_blank(&value));
    let command = command.mut_args(|arg| if is_empty(&arg) { arg.env(Resettable::Reset) } else { arg });
    command.mut_subcommands(without_empty_variables)
}

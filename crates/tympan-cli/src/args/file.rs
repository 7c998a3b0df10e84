//! Arguments of the commands that describe prompt files.

use std::path::PathBuf;

use super::check::SettingsArgs;
use super::reach::{EnvArgs, FileArgs};

/// Arguments of `inspect`.
#[derive(Debug, clap::Args)]
pub(crate) struct InspectArgs {
    /// The prompt file, or with `--reach` a directory; `-` reads standard input
    pub(crate) file: PathBuf,

    /// Show which inputs can reach which messages: as text, only through a filter, or only by deciding
    #[arg(long)]
    pub(crate) reach: bool,

    /// The variant of a prompt definition to show; defaults to the definition's default variant
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,

    #[command(flatten)]
    pub(crate) env: EnvArgs,

    /// Print JSON; errors are printed as JSON to standard error
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `rule`.
#[derive(Debug, clap::Args)]
pub(crate) struct RuleArgs {
    /// The code or the name of the rule, such as TY101 or undeclared_variable; without it, all rules are listed
    #[arg(value_name = "CODE|NAME", conflicts_with = "all")]
    pub(crate) rule: Option<String>,

    /// Print the pages of all rules
    #[arg(long)]
    pub(crate) all: bool,

    /// Print JSON; errors are printed as JSON to standard error
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `schema`.
#[derive(Debug, clap::Args)]
pub(crate) struct SchemaArgs {
    /// The kind of file that the schema describes
    #[arg(value_enum, default_value_t = SchemaKind::Definition, value_name = "KIND")]
    pub(crate) kind: SchemaKind,
}

/// A kind of file that has a JSON Schema.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum SchemaKind {
    /// Prompt definitions in YAML, JSON or TOML
    Definition,
    /// Test files, such as greeting.test.yaml
    Tests,
}

/// Arguments of `hash`.
#[derive(Debug, clap::Args)]
pub(crate) struct HashArgs {
    /// The prompt files; `-` reads standard input
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) allowed: FileArgs,

    /// Print JSON; errors are printed as JSON to standard error
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `lock`.
#[derive(Debug, clap::Args)]
pub(crate) struct LockArgs {
    /// The directory to lock; the lock file is `tympan.lock` in this directory
    #[arg(default_value = ".")]
    pub(crate) directory: PathBuf,

    /// Compare with the lock file without writing it
    #[arg(long)]
    pub(crate) check: bool,

    #[command(flatten)]
    pub(crate) allowed: FileArgs,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    /// Print JSON; errors are printed as JSON to standard error
    #[arg(long)]
    pub(crate) json: bool,
}

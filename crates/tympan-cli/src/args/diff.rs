//! Arguments of `diff`.

use std::path::PathBuf;

use super::check::SettingsArgs;
use super::reach::EnvArgs;
use super::render::InputArgs;

/// Arguments of `diff`.
#[derive(Debug, clap::Args)]
pub(crate) struct DiffArgs {
    /// The version before the change: a prompt file, or `REV:PATH`
    #[arg(value_name = "A")]
    pub(crate) before: PathBuf,

    /// The version after the change: a prompt file, or `REV:PATH`
    #[arg(value_name = "B")]
    pub(crate) after: PathBuf,

    #[command(flatten)]
    pub(crate) inputs: InputArgs,

    /// The variant of a prompt definition to render; defaults to all variants
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,

    #[command(flatten)]
    pub(crate) env: EnvArgs,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    /// Print JSON; errors are printed as JSON to standard error
    #[arg(long)]
    pub(crate) json: bool,
}

//! Arguments of `count`.

use clap::ArgAction;

use super::render::RenderArgs;

/// Arguments of `count`.
#[derive(Debug, clap::Args)]
pub(crate) struct CountArgs {
    #[command(flatten)]
    pub(crate) render: RenderArgs,

    /// The model to count for, instead of the prompt's; can be repeated to compare models
    #[arg(long = "model", help_heading = "Model", value_name = "ID", action = ArgAction::Append)]
    pub(crate) models: Vec<String>,
}

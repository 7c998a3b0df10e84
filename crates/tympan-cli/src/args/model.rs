//! Which model or provider is asked.

use std::path::PathBuf;

use super::reach::{EndpointArgs, EnvArgs};

/// Which model is called, where that is not what the prompt says.
#[derive(Debug, clap::Args)]
pub(crate) struct ModelArgs {
    /// The model, in place of the prompt's
    #[arg(long, help_heading = "Model", value_name = "ID")]
    pub(crate) model: Option<String>,

    /// The provider, in place of the prompt's
    #[arg(long, help_heading = "Model", value_name = "NAME")]
    pub(crate) provider: Option<String>,

    /// The address of the provider, in place of its own
    ///
    /// The key of the environment goes there: it is your word, and not the prompt's.
    #[arg(long, help_heading = "Model", value_name = "URL")]
    pub(crate) base_url: Option<String>,

    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,
}

/// What `models` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct ModelsArgs {
    /// A prompt file whose provider to ask
    pub(crate) file: Option<PathBuf>,

    /// The provider
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,

    /// The address of the provider, in place of its own
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,

    #[command(flatten)]
    pub(crate) env: EnvArgs,

    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,

    /// Print JSON; an error is JSON on standard error
    #[arg(long)]
    pub(crate) json: bool,
}

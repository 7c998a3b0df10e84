//! Arguments that select a model or a provider.

use std::path::PathBuf;

use super::reach::{CredentialArgs, EndpointArgs, EnvArgs};

/// Overrides of the prompt's model and provider.
#[derive(Debug, clap::Args)]
pub(crate) struct ModelArgs {
    /// The model to call, overriding the prompt's
    #[arg(long, help_heading = "Model", value_name = "ID")]
    pub(crate) model: Option<String>,

    /// The provider to call, overriding the prompt's
    #[arg(long, help_heading = "Model", value_name = "NAME")]
    pub(crate) provider: Option<String>,

    /// The base URL of the provider, overriding its default
    ///
    /// The key from the environment is sent to this address, because you named it and not the prompt.
    #[arg(long, help_heading = "Model", value_name = "URL")]
    pub(crate) base_url: Option<String>,

    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,

    #[command(flatten)]
    pub(crate) credentials: CredentialArgs,
}

/// Arguments of `models`.
#[derive(Debug, clap::Args)]
pub(crate) struct ModelsArgs {
    /// A prompt file whose provider to query
    pub(crate) file: Option<PathBuf>,

    /// The provider to query
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,

    /// The base URL of the provider, overriding its default
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,

    #[command(flatten)]
    pub(crate) env: EnvArgs,

    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,

    #[command(flatten)]
    pub(crate) credentials: CredentialArgs,

    /// Print JSON; errors are printed as JSON to standard error
    #[arg(long)]
    pub(crate) json: bool,
}

//! Arguments of the commands that read rendered text, responses and traces.

use std::path::PathBuf;

use super::reach::EnvArgs;

/// Arguments of `parse`.
#[derive(Debug, clap::Args)]
pub(crate) struct ParseArgs {
    /// A JSON file that maps the nonces or input names of threads to lists of messages
    #[arg(long, value_name = "FILE")]
    pub(crate) threads: Option<PathBuf>,

    /// The nonce that every role marker must carry
    #[arg(long, value_name = "NONCE")]
    pub(crate) nonce: Option<String>,

    /// Print JSON; errors are printed as JSON to standard error
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `process`.
#[derive(Debug, clap::Args)]
pub(crate) struct ProcessArgs {
    /// The prompt file; `-` reads standard input
    pub(crate) file: PathBuf,

    /// The file with the provider's response; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) response: PathBuf,

    /// The provider that sent the response, overriding the prompt's
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,

    /// The API that sent the response, overriding the prompt's: chat, responses, embedding or image
    #[arg(long, value_name = "NAME")]
    pub(crate) api_type: Option<String>,

    #[command(flatten)]
    pub(crate) env: EnvArgs,

    /// Print only the result, as JSON; errors are printed as JSON to standard error
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `trace`.
#[derive(Debug, clap::Args)]
pub(crate) struct TraceArgs {
    /// The `.tracy` files; `-` reads standard input
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Print JSON; errors are printed as JSON to standard error
    #[arg(long)]
    pub(crate) json: bool,
}

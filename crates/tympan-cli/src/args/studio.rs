//! Arguments of `studio`.

use std::path::PathBuf;

use clap::ArgAction;

use super::reach::{CredentialArgs, EndpointArgs, ToolPolicyArgs};

/// Arguments of `studio`.
#[derive(Debug, clap::Args)]
pub(crate) struct StudioArgs {
    /// The folder with prompts
    #[arg(value_name = "DIR", default_value = ".")]
    pub(crate) directory: PathBuf,

    /// Write nothing
    #[arg(long)]
    pub(crate) read_only: bool,

    /// The port; without this option, the system chooses a free one
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,

    /// Print the address, and do not open a browser
    #[arg(long)]
    pub(crate) no_open: bool,

    /// Write a static site with the prompts instead of starting a server
    ///
    /// The site renders prompts in the browser, and needs nothing but a file server. It contains the prompts and tests of
    /// the folder and the files that they refer to, and no other files.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["read_only", "port", "no_open"])]
    pub(crate) export: Option<PathBuf>,

    /// A TOML file with the programs and servers that run tools; see `tympan run --help`
    #[arg(long, value_name = "FILE")]
    pub(crate) tools: Option<PathBuf>,

    /// Print the address, or the result of the export, as JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,

    #[command(flatten)]
    pub(crate) credentials: CredentialArgs,

    #[command(flatten)]
    pub(crate) policy: ToolPolicyArgs,

    /// Restrict prompt files to environment variables with this name; `*` matches any characters
    ///
    /// Without this option, `${env:NAME}` in a prompt file can name any variable. Can be repeated.
    #[arg(long, help_heading = "Trust", value_name = "NAME", action = ArgAction::Append)]
    pub(crate) allow_env: Vec<String>,
}

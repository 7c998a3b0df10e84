//! Arguments of the commands that verify and create signatures.

use std::path::PathBuf;

use clap::ArgAction;

/// Arguments of `verify`.
#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {
    /// The directives; `-` reads standard input
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// A folder with the TOML files of trusted keys; can be repeated
    #[arg(long, value_name = "FOLDER", required = true, action = ArgAction::Append)]
    pub(crate) trust: Vec<PathBuf>,

    /// Fail unless the signature covers the whole file and not only the metadata
    #[arg(long)]
    pub(crate) whole_file: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `sign`.
#[derive(Debug, clap::Args)]
pub(crate) struct SignArgs {
    /// The directives, which are modified in place
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// The private key file
    #[arg(long, value_name = "FILE")]
    pub(crate) key: PathBuf,

    /// Sign the whole file and not only the metadata
    #[arg(long)]
    pub(crate) whole_file: bool,
}

/// Arguments of `keygen`.
#[derive(Debug, clap::Args)]
pub(crate) struct KeygenArgs {
    /// The new private key file
    pub(crate) file: PathBuf,

    /// The name of the key's owner
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<String>,

    /// The folder of trusted keys to write the public key to; if omitted, its TOML is printed
    #[arg(long, value_name = "FOLDER")]
    pub(crate) trust: Option<PathBuf>,
}

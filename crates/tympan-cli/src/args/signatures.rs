//! What can be asked for about the signatures of directives.

use std::path::PathBuf;

use clap::ArgAction;

/// What `verify` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {
    /// The directives; `-` reads one from standard input
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// A folder with the TOML files of keys that you trust; can be given many times
    #[arg(long, value_name = "FOLDER", required = true, action = ArgAction::Append)]
    pub(crate) trust: Vec<PathBuf>,

    /// Fail unless the whole file is covered, and not only the metadata
    #[arg(long)]
    pub(crate) whole_file: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `sign` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct SignArgs {
    /// The directives; they are changed in place
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// The file of the private key
    #[arg(long, value_name = "FILE")]
    pub(crate) key: PathBuf,

    /// Cover the whole file, and not only the metadata
    #[arg(long)]
    pub(crate) whole_file: bool,
}

/// What `keygen` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct KeygenArgs {
    /// The new file of the private key
    pub(crate) file: PathBuf,

    /// Whose key it is
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<String>,

    /// The folder of trusted keys that the public key goes into; without it, its TOML is printed
    #[arg(long, value_name = "FOLDER")]
    pub(crate) trust: Option<PathBuf>,
}

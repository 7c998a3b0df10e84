//! Arguments that limit which variables and addresses prompt files can use.

use std::path::PathBuf;

use clap::{ArgAction, ValueEnum};
use tympan::{EnvPolicy, LoadOptions, RuntimeOptions};

use crate::policy::check_destination;

/// The environment variables that prompt files may read.
#[derive(Debug, clap::Args)]
pub(crate) struct EnvArgs {
    /// Restrict prompt files to environment variables with this name; `*` matches any characters
    ///
    /// Without this option, `${env:NAME}` in a prompt file can name any variable. Provider variables such as
    /// OPENAI_API_KEY are not affected, because prompt files do not need to name them. Can be repeated.
    #[arg(long, help_heading = "Trust", value_name = "NAME", action = ArgAction::Append)]
    pub(crate) allow_env: Vec<String>,

    #[command(flatten)]
    pub(crate) files: FileArgs,
}

/// The directories that prompt files may read from.
#[derive(Debug, clap::Args)]
pub(crate) struct FileArgs {
    /// Allow `${file:path}` in prompt files to read from this directory and everything below it
    ///
    /// Prompt files can always read from their own directory. Can be repeated.
    #[arg(long, help_heading = "Trust", value_name = "DIR", action = ArgAction::Append)]
    pub(crate) allow_dir: Vec<PathBuf>,
}

impl FileArgs {
    /// Returns the options with the allowed directories added.
    pub(crate) fn over(&self, mut options: RuntimeOptions) -> RuntimeOptions {
        options.load.file_roots.extend_from_slice(&self.allow_dir);
        options
    }
}

impl EnvArgs {
    /// Returns the options with these restrictions applied.
    pub(crate) fn over(&self, options: RuntimeOptions) -> RuntimeOptions {
        let options = self.files.over(options);
        if self.allow_env.is_empty() {
            return options;
        }
        let load = LoadOptions { env: EnvPolicy::allow(&self.allow_env), ..options.load };
        RuntimeOptions { load, ..options }
    }
}

/// The addresses that may receive values from the environment.
#[derive(Debug, clap::Args)]
pub(crate) struct EndpointArgs {
    /// Allow keys and other values from the environment to be sent to this address and everything below it
    ///
    /// They are always sent to the provider's own addresses and to addresses that you name with `--base-url` or in the
    /// environment. An address that only a prompt file, a `.env` file or a journal names must be allowed. Can be
    /// repeated.
    #[arg(long, help_heading = "Trust", value_name = "URL", action = ArgAction::Append, value_parser = parse_endpoint)]
    pub(crate) allow_endpoint: Vec<String>,
}

impl EndpointArgs {
    /// Returns the options with the allowed addresses applied.
    pub(crate) fn over(&self, options: RuntimeOptions) -> RuntimeOptions {
        RuntimeOptions { allow_endpoints: self.allow_endpoint.clone(), ..options }
    }
}

/// The program that prints access tokens.
#[derive(Debug, clap::Args)]
pub(crate) struct CredentialArgs {
    /// A program that prints an access token, for connections without a key
    ///
    /// It is used for connections of the kinds `foundry`, `oauth` and `anonymous`, and is run without a shell, as in
    /// `--credential-command 'az account get-access-token --resource https://cognitiveservices.azure.com'`. It prints
    /// the token, or JSON with `accessToken` and its expiry. The token is sent only to addresses that you name with
    /// `--base-url`, `--allow-endpoint` or in the environment; for `foundry`, also to Azure. Instead of this option, you
    /// can write `[credentials.foundry]` with `command = ["az", …]` to `tympan/config.toml` in your configuration
    /// directory.
    #[arg(long, help_heading = "Trust", value_name = "COMMAND")]
    pub(crate) credential_command: Option<String>,
}

fn parse_endpoint(text: &str) -> Result<String, String> {
    match tympan::wire::parse_endpoint(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("expected a URL, as in `--allow-endpoint https://proxy.example.com/v1`".to_owned()),
    }
}

/// What tools may do after the model has read untrusted or confidential content.
#[derive(Debug, clap::Args)]
pub(crate) struct ToolPolicyArgs {
    /// Which tool calls need approval after the model has read untrusted or confidential content
    ///
    /// The default policy is about tools that declare their effect. With `strict`, tools without an effect in the tools
    /// file count as external. `off` runs all tools, whatever the project says.
    #[arg(long, help_heading = "Trust", value_enum, value_name = "POLICY")]
    pub(crate) tool_policy: Option<ToolPolicyChoice>,

    /// Allow tools to send confidential data to this address
    ///
    /// `*@example.com` allows all addresses of a domain, and `https://example.com/*` everything below a URL. Can be
    /// repeated.
    #[arg(long, help_heading = "Trust", value_name = "ADDRESS", action = ArgAction::Append, value_parser = parse_destination)]
    pub(crate) allow_destination: Vec<String>,
}

/// A policy for tool calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolPolicyChoice {
    /// Ask about tools that declare an effect
    Default,
    /// Ask about all tools that may have an effect
    Strict,
    /// Do not ask
    Off,
}

impl ToolPolicyChoice {
    /// Returns the word of the command line.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Strict => "strict",
            Self::Off => "off",
        }
    }
}

fn parse_destination(text: &str) -> Result<String, String> {
    check_destination(text).map(|()| text.to_owned())
}

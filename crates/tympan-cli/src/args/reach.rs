//! What prompt files may reach.

use clap::ArgAction;
use tympan::{EnvPolicy, LoadOptions, RuntimeOptions};

/// Which environment variables prompt files may read.
#[derive(Debug, clap::Args)]
pub(crate) struct EnvArgs {
    /// Let prompt files read only the environment variables with this name; `*` matches any characters
    ///
    /// Without this option, `${env:NAME}` in a prompt file may name any variable. It does not concern the variables of
    /// providers, such as OPENAI_API_KEY, which prompt files need not name. Can be given many times.
    #[arg(long, help_heading = "Trust", value_name = "NAME", action = ArgAction::Append)]
    pub(crate) allow_env: Vec<String>,
}

impl EnvArgs {
    /// These options, with what the command line says about variables.
    pub(crate) fn over(&self, options: RuntimeOptions) -> RuntimeOptions {
        if self.allow_env.is_empty() {
            return options;
        }
        let load = LoadOptions { env: EnvPolicy::allow(&self.allow_env), ..options.load };
        RuntimeOptions { load, ..options }
    }
}

/// Which addresses may get values of the environment.
#[derive(Debug, clap::Args)]
pub(crate) struct EndpointArgs {
    /// Let keys and other values of the environment go to this address, and to all below it
    ///
    /// They go to the provider's own addresses and to those that you name: with `--base-url` or in the environment. An
    /// address that only a prompt file, a `.env` file or a journal names has to be allowed. Can be given many times.
    #[arg(long, help_heading = "Trust", value_name = "URL", action = ArgAction::Append, value_parser = parse_endpoint)]
    pub(crate) allow_endpoint: Vec<String>,
}

impl EndpointArgs {
    /// These options, with what the command line says about addresses.
    pub(crate) fn over(&self, options: RuntimeOptions) -> RuntimeOptions {
        RuntimeOptions { allow_endpoints: self.allow_endpoint.clone(), ..options }
    }
}

fn parse_endpoint(text: &str) -> Result<String, String> {
    match tympan::wire::parse_endpoint(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("expected an address, as in `--allow-endpoint https://proxy.example.com/v1`".to_owned()),
    }
}

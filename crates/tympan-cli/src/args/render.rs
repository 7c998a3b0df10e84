//! Arguments that select a prompt, its inputs and how it is rendered.

use std::path::PathBuf;

use clap::{ArgAction, ValueEnum};
use tympan::KindCheck;

use super::model::ModelArgs;
use super::reach::EnvArgs;

/// Arguments of `render` and `messages`, also used by `run` and `request`.
#[derive(Debug, clap::Args)]
pub(crate) struct RenderArgs {
    #[command(flatten)]
    pub(crate) prompt: PromptArgs,

    /// Print JSON; errors are printed as JSON to standard error
    #[arg(long)]
    pub(crate) json: bool,
}

/// The prompt and its rendering options.
#[derive(Debug, clap::Args)]
pub(crate) struct PromptArgs {
    /// The prompt file; `-` reads standard input
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) inputs: InputArgs,

    /// The variant of a prompt definition to render; defaults to the definition's default variant
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,

    /// Fail if an untrusted input contains a line that looks like a role marker
    #[arg(long)]
    pub(crate) strict: bool,

    /// Wrap text from untrusted inputs in `<untrusted>…</untrusted>`
    ///
    /// Inside, `&`, `<` and `>` are written as entities. The instruction that explains this to the model is printed to
    /// standard error and included in the JSON output of `render`.
    #[arg(long)]
    pub(crate) guard: bool,

    /// Fail if text of an untrusted input is in a message of another role
    ///
    /// A comma-separated list of roles, or the path of a settings file with a `[policy]`. Only text counts, not what an
    /// input decides; `tympan check` reports both.
    #[arg(long, value_name = "ROLES|FILE")]
    pub(crate) policy: Option<String>,

    /// Render variables without a value as empty text instead of failing
    #[arg(long)]
    pub(crate) lenient: bool,

    /// What to do if the value of an input does not match its declared kind or enum
    ///
    /// A value matches if it can be read as the kind: `"3"` and `3.0` are integers.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = KindsChoice::Warn)]
    pub(crate) kinds: KindsChoice,
    /// Fail if an optional input that the template uses has no value
    ///
    /// Without this option, such an input renders as nothing. In a directive, the reference `{input:name}` stays in the
    /// text.
    #[arg(long)]
    pub(crate) strict_inputs: bool,
    /// The seed of the template filter `random`; equal seeds give equal choices
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,

    #[command(flatten)]
    pub(crate) env: EnvArgs,
}

/// The values of `--kinds`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindsChoice {
    /// Do not check values
    Off,
    /// Print a warning
    Warn,
    /// Fail before rendering
    Error,
}

impl KindsChoice {
    /// Returns the setting for the runtime. The command prints warnings itself.
    pub(crate) fn for_runtime(self) -> KindCheck {
        if self == Self::Error { KindCheck::Error } else { KindCheck::Off }
    }
}

/// Arguments of `request`.
#[derive(Debug, clap::Args)]
pub(crate) struct RequestArgs {
    #[command(flatten)]
    pub(crate) render: RenderArgs,

    #[command(flatten)]
    pub(crate) model: ModelArgs,

    /// Request a stream
    #[arg(long)]
    pub(crate) stream: bool,

    /// Print a curl command that reads the key from its environment variable
    #[arg(long, conflicts_with = "json")]
    pub(crate) curl: bool,
}

/// The sources of inputs. `--set` overrides `--inputs`, and `--inputs` overrides `--sample`.
#[derive(Debug, clap::Args)]
pub(crate) struct InputArgs {
    /// Set an input; `NAME=@FILE` reads the value from a file
    ///
    /// The value is parsed as the type that the prompt declares: a number, `true` or `false`, or a list or map as JSON.
    /// Text is used as is, and undeclared inputs are text. Write `@@` for a value that starts with `@`. Can be
    /// repeated.
    #[arg(long, help_heading = "Inputs", value_name = "NAME=VALUE", action = ArgAction::Append, value_parser = parse_setting)]
    pub(crate) set: Vec<(String, String)>,

    /// Read inputs from a file that contains a JSON or YAML map; `-` reads standard input
    #[arg(long, help_heading = "Inputs", value_name = "FILE")]
    pub(crate) inputs: Option<PathBuf>,

    /// Use the example values that the prompt declares
    #[arg(long, help_heading = "Inputs")]
    pub(crate) sample: bool,
}

fn parse_setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE, as in `--set name=Ada`".to_owned()),
    }
}

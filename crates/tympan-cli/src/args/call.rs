//! Arguments of the commands that call models and tools.

use std::path::PathBuf;

use super::model::ModelArgs;
use super::reach::ToolPolicyArgs;
use super::render::{PromptArgs, RenderArgs};

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) render: RenderArgs,

    #[command(flatten)]
    pub(crate) model: ModelArgs,

    /// Print the model's text unchanged, even if the prompt declares outputs
    #[arg(long, conflicts_with = "json")]
    pub(crate) raw: bool,

    /// Request the answer in one piece instead of as a stream
    #[arg(long)]
    pub(crate) no_stream: bool,

    /// Show the model's tool calls instead of running them
    #[arg(long, conflicts_with_all = ["journal", "tools"])]
    pub(crate) no_tools: bool,

    /// Save the run to a new file, so that `tympan resume FILE` can resume it after a crash
    ///
    /// If the name ends in `.db`, `.sqlite` or `.sqlite3`, the journal is a SQLite database. The file contains the
    /// inputs and the conversation, so only you can read it. It does not contain keys.
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) call: CallArgs,
}

/// Arguments of `chat`.
#[derive(Debug, clap::Args)]
pub(crate) struct ChatArgs {
    #[command(flatten)]
    pub(crate) prompt: PromptArgs,

    #[command(flatten)]
    pub(crate) model: ModelArgs,

    /// The input to fill with what you type; defaults to the only required text input without a value
    #[arg(long, help_heading = "Inputs", value_name = "NAME")]
    pub(crate) question: Option<String>,

    /// Do not read or write the history file
    #[arg(long)]
    pub(crate) no_history: bool,

    #[command(flatten)]
    pub(crate) call: CallArgs,
}

/// How `run`, `chat` and `resume` call models and tools.
#[derive(Debug, clap::Args)]
pub(crate) struct CallArgs {
    /// A TOML file that maps the prompt's tools to programs and servers
    ///
    /// For each function, `[NAME]` with `command = ["prog", "arg"]` and, optionally, `timeout = 30` in seconds. The
    /// program receives the arguments as JSON on standard input and prints JSON or text. For each MCP server, `[NAME]`
    /// with `server = ["prog", "arg"]` or `url = "http://…"`. `effect = "read"`, `"write"` or `"external"` says what a
    /// tool does, and is the basis of the policy for tools.
    #[arg(long, value_name = "FILE")]
    pub(crate) tools: Option<PathBuf>,

    /// Allow tools to call private addresses, such as servers on this machine
    #[arg(long)]
    pub(crate) allow_private: bool,

    #[command(flatten)]
    pub(crate) policy: ToolPolicyArgs,

    /// Run all tools without asking, including those that need approval
    ///
    /// This does not answer the questions of the policy for tools: see `--tool-policy`.
    #[arg(long, short)]
    pub(crate) yes: bool,

    /// Record the exchanges with the provider to files in this directory
    #[arg(long, value_name = "DIR", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,

    /// Replay recorded answers from this directory without calling the provider
    #[arg(long, value_name = "DIR")]
    pub(crate) replay: Option<PathBuf>,

    /// Write a trace to this directory; `-` prints its spans to standard error
    #[arg(long, value_name = "DIR")]
    pub(crate) trace: Option<PathBuf>,
}

//! Command-line arguments.

mod model;
mod reach;
mod resume;
mod signatures;

use std::path::PathBuf;

use clap::{ArgAction, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub(crate) use model::{ModelArgs, ModelsArgs};
pub(crate) use reach::EnvArgs;
pub(crate) use resume::ResumeArgs;
pub(crate) use signatures::{KeygenArgs, SignArgs, VerifyArgs};

/// A prompt engine that remembers who wrote every byte
///
/// Tympan reads a `.prompty` file or a prompt definition (YAML, JSON or TOML), renders its template with your inputs,
/// and splits the result into chat messages. No input can forge a message.
#[derive(Debug, Parser)]
#[command(name = "tympan", version)]
#[command(after_long_help = "Examples:
  tympan render greeting.prompty --set name=Ada
  tympan messages support.prompty --sample
  tympan check prompts/*.prompty

Exit status: 0 on success; 1 for an error in a prompt or its inputs; 2 for an invalid command line.")]
pub(crate) struct Args {
    /// The command to run
    #[command(subcommand)]
    pub(crate) command: Command,

    /// When to use colours
    ///
    /// `auto` uses colours only on a terminal. The environment variables NO_COLOR and CLICOLOR_FORCE are respected.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    pub(crate) color: Color,

    /// Suppress warnings and the legend
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Color {
    /// Only on a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Color {
    /// Sets this choice for everything that prints.
    pub(crate) fn write_global(self) {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Render a prompt's template to text
    ///
    /// Prints the rendered text. On a terminal, colours show its origin: the author, a trusted input, or an untrusted
    /// input. Otherwise the output is byte-exact.
    #[command(after_long_help = "Examples:
  tympan render greeting.prompty --set name=Ada
  tympan render report.prompty --inputs values.yaml --set title=@title.txt
  tympan render support.prompty --sample --json")]
    Render(RenderArgs),

    /// Render a prompt and split it into chat messages
    ///
    /// Prints the messages that the model would receive. Only the prompt's author can start a message: a line such as
    /// `system:` in an input stays text.
    #[command(after_long_help = "Examples:
  tympan messages support.prompty --set question='Where is my order?'
  tympan messages support.prompty --sample --json")]
    Messages(RenderArgs),

    /// Show the request that would be sent to the provider
    ///
    /// Prints the method, the URL, the headers without the key, and the body. Sends nothing and needs no key.
    #[command(after_long_help = "Examples:
  tympan request support.prompty --sample
  tympan request support.prompty --sample --provider anthropic --model claude-sonnet-4-5
  tympan request support.prompty --sample --curl")]
    Request(RequestArgs),

    /// Call the prompt's model and print its answer
    ///
    /// Prints text as it arrives. If the prompt declares `outputs`, prints the result as data at the end. Runs the
    /// tools that the prompt declares when the model calls them. Prints usage to standard error. Keys come from the
    /// prompt's connection or from the provider's usual environment variable. The provider `echo` needs neither a key
    /// nor a network.
    #[command(after_long_help = "Examples:
  tympan run support.prompty --sample --provider echo
  tympan run support.prompty --set question='Where is my order?' --model gpt-4o
  tympan run extract.prompty --inputs letter.json --json
  tympan run extract.prompty --sample --record cassettes

Exit status: 130 if interrupted with Ctrl-C; the text received so far is printed.")]
    Run(RunArgs),

    /// Resume a crashed run from its journal
    ///
    /// Reads a journal written by `tympan run --journal FILE`. Saved answers are not requested again, and finished tool
    /// calls do not run again. A tool call that had started runs again if the tool is declared `idempotent`; otherwise,
    /// the model is told that the outcome is unknown. If the run had finished, its result is printed again.
    #[command(after_long_help = "Examples:
  tympan run support.prompty --sample --tools tools.toml --journal support.journal
  tympan resume support.journal

Exit status: 130 if interrupted with Ctrl-C; the run can be resumed again.")]
    Resume(ResumeArgs),

    /// Chat with the prompt's model
    ///
    /// Each line that you type is a question, and the answer is printed as it arrives. You are asked before a tool
    /// runs. `/help` lists the commands, Ctrl-C stops an answer, and Ctrl-D exits. If standard input is not a terminal,
    /// each of its lines is a question.
    #[command(mut_arg("file", |file| file.help("The prompt file")))]
    #[command(mut_arg("inputs", |inputs| inputs.help("Read inputs from a file that contains a JSON or YAML map")))]
    #[command(after_long_help = "Examples:
  tympan chat support.prompty --set customer=Jane --tools tools.toml
  tympan chat letter.prompty --sample --question request --yes
  printf 'Hello!\\n/save talk.md\\n' | tympan chat echo.prompty

Exit status: 0 on success; 1 if standard input is not a terminal and a question got no response.")]
    Chat(ChatArgs),

    /// List a provider's models
    #[command(after_long_help = "Examples:
  tympan models --provider openai
  tympan models --provider ollama
  tympan models support.prompty --json")]
    Models(ModelsArgs),

    /// Convert a provider's response to the result of a prompt
    ///
    /// The response is the raw body from the provider: JSON, or the events of a stream. Prints the tool calls in it or,
    /// if there are none, its content in the shape that the prompt's `outputs` declare. Mismatches are warnings.
    #[command(after_long_help = "Examples:
  tympan process support.prompty --response answer.json
  curl … | tympan process support.prompty --response - --json")]
    Process(ProcessArgs),

    /// Split rendered text from standard input into messages
    ///
    /// The origin of the text is not known here, so every role marker in it counts. With `--nonce`, only markers that
    /// carry the nonce are accepted; any other marker is an error.
    #[command(after_long_help = "Examples:
  tympan render hello.prompty --sample | tympan parse
  tympan parse --threads threads.json --nonce 0123456789abcdef < rendered.txt")]
    Parse(ParseArgs),

    /// Show what a prompt file declares
    ///
    /// Prints a summary of the model, the inputs, the outputs, the tools and the template's messages. Credentials are
    /// never shown.
    #[command(after_long_help = "Examples:
  tympan inspect support.prompty
  tympan inspect support.prompty --json")]
    Inspect(InspectArgs),

    /// Check prompt files for errors
    ///
    /// Reports all errors and warnings in all files, each with its line and how to fix it. Templates are compiled but
    /// not rendered.
    #[command(after_long_help = "Examples:
  tympan check prompts/*.prompty
  tympan check support.prompty --json")]
    Check(CheckArgs),

    /// Print the hashes of prompt files
    ///
    /// `definition` is the hash of everything that determines what the model sees. It does not depend on the file's
    /// format or the order of its keys. The other lines are the hashes of the templates, one per variant.
    #[command(after_long_help = "Examples:
  tympan hash greeting.yaml
  tympan hash prompts/* --json")]
    Hash(HashArgs),

    /// Write or verify a lock file of all prompts in a directory
    ///
    /// `tympan.lock` lists the hashes of every prompt in the directory and its subdirectories, so that a review shows
    /// which prompts a change touches. With `--check`, writes nothing, reports differences, and exits with status 1 if
    /// there are any.
    #[command(after_long_help = "Examples:
  tympan lock prompts
  tympan lock prompts --check")]
    Lock(LockArgs),

    /// Print the JSON Schema of prompt definitions
    Schema,

    /// Verify the signatures of directives
    ///
    /// A signature must match the file, and its key must be in a folder of trusted keys. Reports which lines the
    /// signature covers and which it does not.
    #[command(after_long_help = "Examples:
  tympan verify --trust keys directives/*.md
  tympan verify --trust keys deploy.md --json")]
    Verify(VerifyArgs),

    /// Sign directives
    ///
    /// Writes a signature to the first line of each file, replacing any existing one. By default, the signature is in
    /// Rye's format and covers only the metadata. With `--whole-file`, it covers every byte after the first line and
    /// the time of signing.
    #[command(after_long_help = "Examples:
  tympan sign --key me.pem deploy.md
  tympan sign --key me.pem --whole-file deploy.md")]
    Sign(SignArgs),

    /// Generate a key for signing directives
    ///
    /// Writes the private key to a new file that only you can read, and the public key to a folder of trusted keys.
    #[command(after_long_help = "Example:
  tympan keygen me.pem --owner Ada --trust keys")]
    Keygen(KeygenArgs),

    /// Show traces as trees, with times, tokens and cost
    ///
    /// Reads the `.tracy` files of runs. Costs are estimates based on the published prices of well-known models; if a
    /// price is unknown, no cost is shown.
    #[command(after_long_help = "Examples:
  tympan trace traces/*.tracy
  tympan trace run.tracy --json")]
    Trace(TraceArgs),

    /// Generate a shell completion script
    #[command(after_long_help = "Example:
  tympan completions bash > ~/.local/share/bash-completion/completions/tympan")]
    Completions {
        /// The shell
        shell: Shell,
    },

    /// Generate a manual page
    #[command(after_long_help = "Examples:
  tympan man > tympan.1
  tympan man render > tympan-render.1")]
    Man {
        /// The command to document; defaults to `tympan` itself
        command: Option<String>,
    },
}

impl Command {
    /// Returns whether the output is JSON.
    pub(crate) fn is_json(&self) -> bool {
        match self {
            Self::Render(args) | Self::Messages(args) => args.json,
            Self::Run(args) => args.render.json,
            Self::Resume(args) => args.json,
            Self::Models(args) => args.json,
            Self::Request(args) => args.render.json,
            Self::Parse(args) => args.json,
            Self::Inspect(args) => args.json,
            Self::Check(args) => args.json,
            Self::Hash(args) => args.json,
            Self::Lock(args) => args.json,
            Self::Process(args) => args.json,
            Self::Verify(args) => args.json,
            Self::Trace(args) => args.json,
            Self::Sign(_) | Self::Keygen(_) | Self::Chat(_) => false,
            Self::Schema | Self::Completions { .. } | Self::Man { .. } => false,
        }
    }
}

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

    /// Render variables without a value as empty text instead of failing
    #[arg(long)]
    pub(crate) lenient: bool,

    #[command(flatten)]
    pub(crate) env: EnvArgs,
}

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
    /// with `server = ["prog", "arg"]` or `url = "http://…"`.
    #[arg(long, value_name = "FILE")]
    pub(crate) tools: Option<PathBuf>,

    /// Allow tools to call private addresses, such as servers on this machine
    #[arg(long)]
    pub(crate) allow_private: bool,

    /// Run all tools without asking, including those that need approval
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

/// Arguments of `inspect`.
#[derive(Debug, clap::Args)]
pub(crate) struct InspectArgs {
    /// The prompt file; `-` reads standard input
    pub(crate) file: PathBuf,

    /// The variant of a prompt definition to show; defaults to the definition's default variant
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,

    #[command(flatten)]
    pub(crate) env: EnvArgs,

    /// Print JSON; errors are printed as JSON to standard error
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// The prompt files; `-` reads standard input
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) env: EnvArgs,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `hash`.
#[derive(Debug, clap::Args)]
pub(crate) struct HashArgs {
    /// The prompt files; `-` reads standard input
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Print JSON; errors are printed as JSON to standard error
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `lock`.
#[derive(Debug, clap::Args)]
pub(crate) struct LockArgs {
    /// The directory to lock; the lock file is `tympan.lock` in this directory
    #[arg(default_value = ".")]
    pub(crate) directory: PathBuf,

    /// Compare with the lock file without writing it
    #[arg(long)]
    pub(crate) check: bool,

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

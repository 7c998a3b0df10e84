//! What can be asked for on the command line.

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

/// Renders prompt files, and remembers who wrote every byte
///
/// Tympan reads a `.prompty` file or a prompt definition (YAML, JSON or TOML), renders its template with your inputs,
/// and splits the result into chat messages that no input can forge.
#[derive(Debug, Parser)]
#[command(name = "tympan", version)]
#[command(after_long_help = "Examples:
  tympan render greeting.prompty --set name=Ada
  tympan messages support.prompty --sample
  tympan check prompts/*.prompty

Exit status: 0 if all went well; 1 if a prompt or its inputs are at fault; 2 if the command line is.")]
pub(crate) struct Args {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: Command,

    /// When to use colours
    ///
    /// `auto` uses them on a terminal. The environment variables NO_COLOR and CLICOLOR_FORCE are respected.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    pub(crate) color: Color,

    /// Show no warnings and no legend
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Color {
    /// Makes it the choice of everything that prints.
    pub(crate) fn write_global(self) {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Render a prompt's template to text
    ///
    /// Prints the text that the template becomes with the inputs given. On a terminal it is coloured by who wrote it:
    /// the author, a trusted input, or an untrusted one. Elsewhere the bytes are exact.
    #[command(after_long_help = "Examples:
  tympan render greeting.prompty --set name=Ada
  tympan render report.prompty --inputs values.yaml --set title=@title.txt
  tympan render support.prompty --sample --json")]
    Render(RenderArgs),

    /// Render a prompt and split it into chat messages
    ///
    /// Prints the messages that a model would get. Only the author of the prompt can begin a message: a line such as
    /// `system:` inside an input stays text.
    #[command(after_long_help = "Examples:
  tympan messages support.prompty --set question='Where is my order?'
  tympan messages support.prompty --sample --json")]
    Messages(RenderArgs),

    /// Show the request that a provider would get
    ///
    /// Prints the method, the address, the headers without the key, and the body. Nothing is sent, and no key is needed.
    #[command(after_long_help = "Examples:
  tympan request support.prompty --sample
  tympan request support.prompty --sample --provider anthropic --model claude-sonnet-4-5
  tympan request support.prompty --sample --curl")]
    Request(RequestArgs),

    /// Call the model of a prompt, and print what it answers
    ///
    /// The text is printed as it arrives; a prompt with `outputs` has its result printed as data at the end. The tools
    /// that the prompt declares run when the model asks for them. What it took goes to standard error. Keys come from the prompt's connection or from the provider's usual variable. The
    /// provider `echo` needs neither a key nor a network.
    #[command(after_long_help = "Examples:
  tympan run support.prompty --sample --provider echo
  tympan run support.prompty --set question='Where is my order?' --model gpt-4o
  tympan run extract.prompty --inputs letter.json --json
  tympan run extract.prompty --sample --record cassettes

Exit status: 130 if Ctrl-C stopped it; what had arrived is printed.")]
    Run(RunArgs),

    /// Go on with a run that has died, from its journal
    ///
    /// The journal is what `tympan run --journal FILE` wrote. No answer is asked for again, and no tool that had come to
    /// its end is run again. One that had begun is run again if it is declared as `idempotent`; of any other the model is
    /// told that nobody knows. A run that was over has its result printed again.
    #[command(after_long_help = "Examples:
  tympan run support.prompty --sample --tools tools.toml --journal support.journal
  tympan resume support.journal

Exit status: 130 if Ctrl-C stopped it; it can be resumed again.")]
    Resume(ResumeArgs),

    /// Talk with the model of a prompt
    ///
    /// What you type is a question, and the answer is printed as it arrives. Before a tool runs, you are asked. `/help`
    /// shows the commands; Ctrl-C stops an answer, and Ctrl-D leaves. If standard input is no terminal, each line of it
    /// is a question.
    #[command(mut_arg("file", |file| file.help("The prompt file")))]
    #[command(mut_arg("inputs", |inputs| inputs.help("Take inputs from a file that holds a JSON or YAML map")))]
    #[command(after_long_help = "Examples:
  tympan chat support.prompty --set customer=Jane --tools tools.toml
  tympan chat letter.prompty --sample --question request --yes
  printf 'Hello!\\n/save talk.md\\n' | tympan chat echo.prompty

Exit status: 0; 1 if standard input is no terminal and a question got no answer.")]
    Chat(ChatArgs),

    /// List the models of a provider
    #[command(after_long_help = "Examples:
  tympan models --provider openai
  tympan models --provider ollama
  tympan models support.prompty --json")]
    Models(ModelsArgs),

    /// Read a model's answer as the result of a prompt
    ///
    /// The answer is what a provider sent: JSON, or the events of a stream. Prints the calls of tools in it, or else
    /// what it says, in the shape that the prompt's `outputs` declare. What does not fit them is a warning.
    #[command(after_long_help = "Examples:
  tympan process support.prompty --response answer.json
  curl … | tympan process support.prompty --response - --json")]
    Process(ProcessArgs),

    /// Split rendered text from standard input into messages
    ///
    /// Who wrote which part of the text is not known here, so every role marker in it counts. With `--nonce`, only
    /// markers that carry the nonce are accepted, and any other is an error.
    #[command(after_long_help = "Examples:
  tympan render hello.prompty --sample | tympan parse
  tympan parse --threads threads.json --nonce 0123456789abcdef < rendered.txt")]
    Parse(ParseArgs),

    /// Show what a prompt file declares
    ///
    /// Prints a summary: the model, the inputs, the outputs, the tools and the messages of the template. Credentials
    /// are never shown.
    #[command(after_long_help = "Examples:
  tympan inspect support.prompty
  tympan inspect support.prompty --json")]
    Inspect(InspectArgs),

    /// Check prompt files for mistakes
    ///
    /// Reports all mistakes and warnings of all files, each with its line and what to do about it. The templates are
    /// compiled, but not rendered.
    #[command(after_long_help = "Examples:
  tympan check prompts/*.prompty
  tympan check support.prompty --json")]
    Check(CheckArgs),

    /// Print the hashes of prompt files
    ///
    /// `definition` is the hash of everything that decides what a model sees, whatever the file's format and the order
    /// of its keys. The other lines are the hashes of the templates, one for each variant.
    #[command(after_long_help = "Examples:
  tympan hash greeting.yaml
  tympan hash prompts/* --json")]
    Hash(HashArgs),

    /// Write or verify a lock file of all prompts in a directory
    ///
    /// `tympan.lock` lists the hashes of every prompt below the directory, so that a review shows which prompts a
    /// change touches. With `--check` nothing is written: what differs is reported, and the exit status is 1.
    #[command(after_long_help = "Examples:
  tympan lock prompts
  tympan lock prompts --check")]
    Lock(LockArgs),

    /// Print the JSON Schema of prompt definitions
    Schema,

    /// Check the signatures of directives
    ///
    /// A signature has to fit the file, and its key has to be in a folder of keys that you trust. Says which lines the
    /// signature covers, and which it does not.
    #[command(after_long_help = "Examples:
  tympan verify --trust keys directives/*.md
  tympan verify --trust keys deploy.md --json")]
    Verify(VerifyArgs),

    /// Sign directives
    ///
    /// Writes a signature into the first line of each file, in place of the one that it may have. Rye's form covers the
    /// metadata alone. With `--whole-file` every byte after the first line is covered, and the time of signing.
    #[command(after_long_help = "Examples:
  tympan sign --key me.pem deploy.md
  tympan sign --key me.pem --whole-file deploy.md")]
    Sign(SignArgs),

    /// Make a key to sign directives with
    ///
    /// Writes a private key to a new file that only you can read, and the public one into a folder of trusted keys.
    #[command(after_long_help = "Example:
  tympan keygen me.pem --owner Ada --trust keys")]
    Keygen(KeygenArgs),

    /// Show traces as trees, with times, tokens and cost
    ///
    /// Reads the `.tracy` files of runs. Costs are estimates, from the published prices of well-known models; where a
    /// price is not known, none is shown.
    #[command(after_long_help = "Examples:
  tympan trace traces/*.tracy
  tympan trace run.tracy --json")]
    Trace(TraceArgs),

    /// Print a completion script for a shell
    #[command(after_long_help = "Example:
  tympan completions bash > ~/.local/share/bash-completion/completions/tympan")]
    Completions {
        /// The shell
        shell: Shell,
    },

    /// Print a manual page
    #[command(after_long_help = "Examples:
  tympan man > tympan.1
  tympan man render > tympan-render.1")]
    Man {
        /// The command whose page to print; all of `tympan` if it is not given
        command: Option<String>,
    },
}

impl Command {
    /// Whether the answer is for a program.
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

/// What `render` and `messages` take, and `request` too.
#[derive(Debug, clap::Args)]
pub(crate) struct RenderArgs {
    #[command(flatten)]
    pub(crate) prompt: PromptArgs,

    /// Print JSON; an error is JSON on standard error
    #[arg(long)]
    pub(crate) json: bool,
}

/// A prompt, and how it is rendered.
#[derive(Debug, clap::Args)]
pub(crate) struct PromptArgs {
    /// The prompt file; `-` reads it from standard input
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) inputs: InputArgs,

    /// The variant of a prompt definition to render; without it, the default one
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,

    /// Fail if an untrusted input holds a line that reads like a role marker
    #[arg(long)]
    pub(crate) strict: bool,

    /// Put `<untrusted>` and `</untrusted>` around what untrusted inputs wrote
    ///
    /// In between, `&`, `<` and `>` are written as entities. What a model is to be told about it is shown on standard
    /// error, and is in the JSON of `render`.
    #[arg(long)]
    pub(crate) guard: bool,

    /// Render variables without a value as nothing, instead of failing
    #[arg(long)]
    pub(crate) lenient: bool,

    #[command(flatten)]
    pub(crate) env: EnvArgs,
}

/// What `run` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) render: RenderArgs,

    #[command(flatten)]
    pub(crate) model: ModelArgs,

    /// Print what the model wrote, unchanged, also where outputs are declared
    #[arg(long, conflicts_with = "json")]
    pub(crate) raw: bool,

    /// Ask for the answer in one piece
    #[arg(long)]
    pub(crate) no_stream: bool,

    /// Show the tools that the model asks for instead of running them
    #[arg(long, conflicts_with_all = ["journal", "tools"])]
    pub(crate) no_tools: bool,

    /// Keep the run in a new file, so that `tympan resume FILE` can go on with it if it dies
    ///
    /// A name that ends in `.db`, `.sqlite` or `.sqlite3` makes it a SQLite database. The inputs and the conversation are
    /// in it, so only you can read it. Keys are not.
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) call: CallArgs,
}

/// What `chat` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct ChatArgs {
    #[command(flatten)]
    pub(crate) prompt: PromptArgs,

    #[command(flatten)]
    pub(crate) model: ModelArgs,

    /// The input that what you type goes into; without it, the one required text that has no value
    #[arg(long, help_heading = "Inputs", value_name = "NAME")]
    pub(crate) question: Option<String>,

    /// Neither read nor write the file that keeps what you typed
    #[arg(long)]
    pub(crate) no_history: bool,

    #[command(flatten)]
    pub(crate) call: CallArgs,
}

/// How models and tools are called, in `run` and `chat`.
#[derive(Debug, clap::Args)]
pub(crate) struct CallArgs {
    /// A TOML file that says which program or server each tool is that the prompt declares
    ///
    /// For each function, `[NAME]` with `command = ["prog", "arg"]` and, if wanted, `timeout = 30` in seconds. The program
    /// gets the arguments as JSON on standard input, and prints JSON or text. For each MCP server, `[NAME]` with
    /// `server = ["prog", "arg"]` or `url = "http://…"`.
    #[arg(long, value_name = "FILE")]
    pub(crate) tools: Option<PathBuf>,

    /// Let tools call private addresses, such as servers on this machine
    #[arg(long)]
    pub(crate) allow_private: bool,

    /// Run all tools without asking, also those that need consent
    #[arg(long, short)]
    pub(crate) yes: bool,

    /// Keep what is exchanged with the provider in files in this directory
    #[arg(long, value_name = "DIR", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,

    /// Take answers from such files, and call nobody
    #[arg(long, value_name = "DIR")]
    pub(crate) replay: Option<PathBuf>,

    /// Write a trace into this directory; `-` shows its spans on standard error
    #[arg(long, value_name = "DIR")]
    pub(crate) trace: Option<PathBuf>,
}

/// What `request` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct RequestArgs {
    #[command(flatten)]
    pub(crate) render: RenderArgs,

    #[command(flatten)]
    pub(crate) model: ModelArgs,

    /// Ask for a stream
    #[arg(long)]
    pub(crate) stream: bool,

    /// Print a command line for curl that takes the key from its environment variable
    #[arg(long, conflicts_with = "json")]
    pub(crate) curl: bool,
}

/// Where inputs come from. `--set` wins over `--inputs`, and `--inputs` over `--sample`.
#[derive(Debug, clap::Args)]
pub(crate) struct InputArgs {
    /// Set an input; `NAME=@FILE` takes the value from a file
    ///
    /// The value is read as the kind that the prompt declares: a number, `true` or `false`, a list or a map as JSON.
    /// Text is taken as it is. An input that is not declared is text. Write `@@` for a value that begins with `@`.
    /// Can be given many times.
    #[arg(long, help_heading = "Inputs", value_name = "NAME=VALUE", action = ArgAction::Append, value_parser = parse_setting)]
    pub(crate) set: Vec<(String, String)>,

    /// Take inputs from a file that holds a JSON or YAML map; `-` reads standard input
    #[arg(long, help_heading = "Inputs", value_name = "FILE")]
    pub(crate) inputs: Option<PathBuf>,

    /// Use the examples that the prompt declares
    #[arg(long, help_heading = "Inputs")]
    pub(crate) sample: bool,
}

fn parse_setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE, as in `--set name=Ada`".to_owned()),
    }
}

/// What `parse` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct ParseArgs {
    /// A JSON file that maps the nonces of threads, or the names of their inputs, to lists of messages
    #[arg(long, value_name = "FILE")]
    pub(crate) threads: Option<PathBuf>,

    /// The nonce that every role marker has to carry
    #[arg(long, value_name = "NONCE")]
    pub(crate) nonce: Option<String>,

    /// Print JSON; an error is JSON on standard error
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `inspect` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct InspectArgs {
    /// The prompt file; `-` reads it from standard input
    pub(crate) file: PathBuf,

    /// The variant of a prompt definition whose template to show; without it, the default one
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,

    #[command(flatten)]
    pub(crate) env: EnvArgs,

    /// Print JSON; an error is JSON on standard error
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `check` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// The prompt files; `-` reads one from standard input
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) env: EnvArgs,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `hash` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct HashArgs {
    /// The prompt files; `-` reads one from standard input
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Print JSON; an error is JSON on standard error
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `lock` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct LockArgs {
    /// The directory whose prompts to lock; the lock file is `tympan.lock` in it
    #[arg(default_value = ".")]
    pub(crate) directory: PathBuf,

    /// Compare with the lock file, and write nothing
    #[arg(long)]
    pub(crate) check: bool,

    /// Print JSON; an error is JSON on standard error
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `process` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct ProcessArgs {
    /// The prompt file; `-` reads it from standard input
    pub(crate) file: PathBuf,

    /// The file with the provider's answer; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) response: PathBuf,

    /// Who has answered, if not the provider that the prompt names
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,

    /// Which interface has answered, if not the one that the prompt names: chat, responses, embedding or image
    #[arg(long, value_name = "NAME")]
    pub(crate) api_type: Option<String>,

    #[command(flatten)]
    pub(crate) env: EnvArgs,

    /// Print the result alone, as JSON; an error is JSON on standard error
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `trace` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct TraceArgs {
    /// The `.tracy` files; `-` reads one from standard input
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Print JSON; an error is JSON on standard error
    #[arg(long)]
    pub(crate) json: bool,
}

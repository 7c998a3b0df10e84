//! The subcommands and their help.

use clap::Subcommand;
use clap_complete::Shell;

use super::{
    ChatArgs, CheckArgs, CountArgs, DiffArgs, FmtArgs, HashArgs, InspectArgs, KeygenArgs, LockArgs, ModelsArgs,
    ParseArgs, ProcessArgs, RenderArgs, RequestArgs, ResumeArgs, RuleArgs, RunArgs, SchemaArgs, SignArgs, TestArgs,
    TestFormat, TraceArgs, VerifyArgs,
};

#[cfg(feature = "studio")]
use super::StudioArgs;

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Render a prompt's template to text
    ///
    /// Prints the rendered text. On a terminal, colors show its origin: the author, a trusted input, or an untrusted
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

    /// Count the tokens of a prompt and estimate its price
    ///
    /// Prints the tokens of each message, of the author's text and of each input, and for each model the share of its
    /// context window, the price of a call, and the part at the beginning that a provider can cache. Counts are exact
    /// for the text of OpenAI's models. For all others they are estimates, as are the tokens for roles, tools, outputs,
    /// images, audio and files.
    ///
    /// A token can contain text of several writers. It counts for the one who wrote most of its bytes, and in doubt for
    /// an input.
    ///
    /// Prices come from public price lists, and from `[models]` in `tympan.toml` in the working directory or above it.
    #[command(after_long_help = "Examples:
  tympan count support.prompty --sample
  tympan count support.prompty --inputs values.yaml --model gpt-4o --model claude-sonnet-4-5
  tympan count support.prompty --sample --json")]
    Count(CountArgs),

    /// Run a prompt over the rows of a table
    ///
    /// Prepares the files that batch APIs of providers take, for millions of rows, sends them, and collects the answers.
    #[cfg(feature = "batch")]
    #[command(after_long_help = "Examples:
  tympan batch prepare tickets.parquet --prompt classify.prompty -o job
  tympan batch submit job
  tympan batch collect job --wait
  tympan batch prepare --help")]
    Batch(super::BatchArgs),

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
    /// the model receives the message that its outcome is unknown. If the run had finished, its result is printed again.
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
  tympan inspect support.prompty --json
  tympan inspect --reach prompts")]
    Inspect(InspectArgs),

    /// Check prompt files for errors
    ///
    /// Reports all errors and warnings in files and directories, each with its line and how to fix it. Templates are
    /// compiled but not rendered, and environment variables are not read. In directories, ignore files such as
    /// `.gitignore` are respected, and YAML, JSON, TOML and Markdown files count only if they contain a prompt.
    ///
    /// Settings are read from `tympan.toml` in the working directory or above it. Environment variables override the
    /// settings, and options override both.
    // Environment variables are not read, so this only keeps scripts working.
    #[command(mut_arg("allow_env", |allow_env| allow_env.hide(true)))]
    #[command(after_long_help = "Examples:
  tympan check
  tympan check prompts --select trust --deny warnings
  tympan check prompts --fix
  tympan check support.prompty --output-format sarif > check.sarif
  tympan check - --stdin-filename support.prompty < support.prompty

Exit status: 0 if there are no errors; 1 if there are; 2 for an invalid command line or settings file.")]
    Check(CheckArgs),

    /// Format prompt files
    ///
    /// Lays out front matter and YAML or JSON definitions, and the white space inside of template tags. Text outside of
    /// tags is what the model sees, so it is never touched. A file is written only if its prompt means the same as
    /// before. If a template changes, so do the hashes of the prompt, which are shown.
    #[command(after_long_help = "Examples:
  tympan fmt prompts
  tympan fmt --check
  tympan fmt --diff support.prompty
  tympan fmt - --stdin-filename support.prompty < support.prompty

Exit status: 0 on success; 1 if a file has errors or, with `--check` or `--diff`, would change; 2 for an invalid command
line, or if formatting would have changed what a prompt means, which is a bug.")]
    Fmt(FmtArgs),

    /// Run the tests of prompts
    ///
    /// Runs the cases in `NAME.test.yaml` files and in the `tests` of prompt files: renders the prompts, and checks the
    /// messages, who wrote which part of them, and the model's answers. Answers come from recordings; no model is called
    /// without `--live` or `--record`.
    #[command(after_long_help = "Examples:
  tympan test
  tympan test prompts -k greeting
  tympan test --record
  tympan test --accept
  tympan test --against main
  tympan test --report junit=report.xml --report html=report.html
  tympan test --import promptfooconfig.yaml -o prompts

Exit status: 0 if all cases pass; 1 if a case fails or cannot run; 2 for an invalid command line or settings file.
With `--import`: 0 if everything was carried over; 1 if something was not; 2 for an invalid command line.")]
    Test(TestArgs),

    /// Compare two versions of a prompt
    ///
    /// Shows what changed: inputs that newly reach the system message, what the prompt declares, what inputs reach, the
    /// rendered messages word by word, their tokens, the findings of `check`, and the hashes. Each version is a file, or
    /// a file of a git revision as `REV:PATH`. As in git, the path is relative to the root of the repository, unless it
    /// starts with `./` or `../`.
    ///
    /// Without inputs, both versions are rendered with the example values that they declare. Removed text is written as
    /// `[-text-]`, new text as `{+text+}`, and text that only has another writer as `{~text~}`. On a terminal, colors
    /// show the origin of the text: the author, a trusted input, or an untrusted input.
    #[command(after_long_help = "Examples:
  tympan diff old.prompty new.prompty
  tympan diff main:prompts/support.prompty prompts/support.prompty
  tympan diff HEAD~3:./support.prompty HEAD:./support.prompty --inputs values.yaml --json

Exit status: 0 if there are no differences; 1 if there are; 2 if a version cannot be read or rendered.")]
    Diff(DiffArgs),

    /// Explain the rules of `check`
    ///
    /// Prints what a rule reports, why it matters, an example, and how to fix it. Without a rule, lists all rules.
    #[command(after_long_help = "Examples:
  tympan rule TY101
  tympan rule undeclared_variable
  tympan rule --all --json")]
    Rule(RuleArgs),

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
    /// which prompts a change touches. If `tympan check` finds errors in a prompt, nothing is written. With `--check`,
    /// writes nothing, reports differences, and exits with status 1 if there are any.
    #[command(after_long_help = "Examples:
  tympan lock prompts
  tympan lock prompts --check")]
    Lock(LockArgs),

    /// Print the JSON Schema of prompt definitions or of test files
    #[command(after_long_help = "Examples:
  tympan schema > prompt-definition.schema.json
  tympan schema tests > test-file.schema.json")]
    Schema(SchemaArgs),

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

    /// Run the language server
    ///
    /// Speaks the Language Server Protocol over standard input and output. Editors start it; the guide describes their
    /// settings. It reads only files of the workspace, resolves no environment variables and executes nothing.
    #[cfg(feature = "lsp")]
    Lsp {
        /// Use standard input and output, which is the only transport; editors may pass this
        #[arg(long, hide = true)]
        stdio: bool,
    },

    /// Open a local web page that shows who wrote every byte of a prompt
    ///
    /// The page edits the prompts of a folder and renders them on every keystroke, runs them with approval of tool calls,
    /// counts tokens and runs tests. The server answers only the page that it opens, and writes only prompts, tests and
    /// cassettes in the folder.
    #[cfg(feature = "studio")]
    #[command(after_long_help = "Examples:
  tympan studio
  tympan studio prompts --read-only
  tympan studio prompts --export site")]
    Studio(StudioArgs),

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
            Self::Count(args) => args.render.json,
            Self::Diff(args) => args.json,
            Self::Parse(args) => args.json,
            Self::Inspect(args) => args.json,
            Self::Check(args) => args.is_json(),
            Self::Fmt(args) => args.json,
            Self::Test(args) => args.output.format() == TestFormat::JsonLines,
            Self::Rule(args) => args.json,
            Self::Hash(args) => args.json,
            Self::Lock(args) => args.json,
            Self::Process(args) => args.json,
            Self::Verify(args) => args.json,
            Self::Trace(args) => args.json,
            #[cfg(feature = "batch")]
            Self::Batch(args) => args.command.is_json(),
            Self::Sign(_) | Self::Keygen(_) | Self::Chat(_) => false,
            #[cfg(feature = "lsp")]
            Self::Lsp { .. } => false,
            #[cfg(feature = "studio")]
            Self::Studio(args) => args.json,
            Self::Schema(_) | Self::Completions { .. } | Self::Man { .. } => false,
        }
    }
}

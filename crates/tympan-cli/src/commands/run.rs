//! `tympan run`: calls the prompt's model.

use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tympan::tool::ToolAddresses;
use tympan::{Cassette, Error, Journal, Kind, Policy, Role, RunOptions, RuntimeOptions};

use super::call::{Call, CallJournal};
use super::render::{messages, render_in};
use super::show::Manner;
use crate::args::{CallArgs, ModelArgs, PromptArgs, RunArgs};
use crate::escape::visible_line;
use crate::project::Project;
use crate::report::Failure;
use crate::{config, prompt_file, tools, traces};

pub(super) fn run(args: &RunArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let options = args.model.endpoint.over(args.call.options(&args.render.prompt)?);
    let catalog = Project::catalog()?;
    let runtime = prompt_file::runtime(&args.render.prompt.file, options, quiet);
    config::register_credentials(&runtime, args.model.credentials.credential_command.as_deref())?;
    let traces = traces::start(&runtime, args.call.trace.as_deref())?;
    let span = runtime.tracer().start("invoke");
    let runtime = runtime.under(&span);
    let journal = journal(args, runtime.options().policy)?;
    let (prompt, inputs, rendered) = render_in(&runtime, &args.render.prompt, quiet)?;
    let help = "configure the program that runs it with `--tools FILE`; with `--no-tools`, the call itself is the \
        result";
    let tools =
        (!args.no_tools).then(|| tools::of_prompt(args.call.tools.as_deref(), &runtime, &prompt, help)).transpose()?;
    let tools = tools.filter(|_| !prompt.spec().tools.is_empty());
    let messages = messages(&runtime, &prompt, &rendered)?;
    let options = args.model.options();
    let manner = Manner { json: args.render.json, raw: args.raw, no_stream: args.no_stream, quiet };
    let (prompt, inputs, messages) = (&prompt, &inputs, &messages);
    let yes = args.call.yes;
    let call = Call { runtime: &runtime, prompt, inputs, messages, options, tools, yes, journal, catalog, manner };
    let status = call.perform();
    drop(span);
    traces.flush();
    status
}

impl CallArgs {
    /// Returns the options of a runtime that calls models and tools.
    ///
    /// # Errors
    /// Returns an error if the policy is invalid.
    pub(super) fn options(&self, prompt: &PromptArgs) -> Result<RuntimeOptions, Failure> {
        super::render::options(prompt).and_then(|options| self.options_over(options))
    }

    /// Applies these arguments to existing options.
    ///
    /// # Errors
    /// Returns an error if the policy for tools is invalid.
    pub(super) fn options_over(&self, options: RuntimeOptions) -> Result<RuntimeOptions, Failure> {
        let record = self.record.clone().map(Cassette::Record);
        Ok(RuntimeOptions {
            cassette: record.or_else(|| self.replay.clone().map(Cassette::Replay)),
            tool_addresses: ToolAddresses { allow_private: self.allow_private, ..ToolAddresses::default() },
            tool_policy: self.policy.policy()?,
            ..options
        })
    }
}

/// The command-line arguments that `tympan resume` needs, besides what every journal contains.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Began {
    pub(super) variant: Option<String>,
    pub(super) strict: bool,
    pub(super) lenient: bool,
    pub(super) strict_inputs: bool,
    pub(super) guard: bool,
    pub(super) seed: Option<u64>,
    /// The roles that the policy allows.
    policy: Option<Vec<String>>,
    /// The tools file.
    pub(super) tools: Option<String>,
}

impl Began {
    /// Returns the policy.
    ///
    /// # Errors
    /// Returns an error if the journal names an unknown role.
    pub(super) fn policy(&self) -> Result<Option<Policy>, Error> {
        let role = |name: &String| {
            Role::from_name(name).ok_or_else(|| {
                let name = visible_line(name);
                Error::new(Kind::JournalMismatch, format_args!("the policy of the run names an unknown role: `{name}`"))
            })
        };
        let policy = |names: &Vec<String>| names.iter().map(role).collect::<Result<Vec<_>, _>>().map(Policy::new);
        self.policy.as_ref().map(policy).transpose()
    }
}

/// Creates the journal that the command line requests.
fn journal(args: &RunArgs, policy: Option<Policy>) -> Result<Option<CallJournal<'_>>, Failure> {
    let Some(path) = args.journal.as_deref() else { return Ok(None) };
    if prompt_file::is_stdin(&args.render.prompt.file) || args.call.tools.as_deref().is_some_and(prompt_file::is_stdin)
    {
        let message = "--journal: the prompt and the tools must be files, because `tympan resume` reads them again";
        return Err(Failure::Usage(message.to_owned()));
    }
    let render = &args.render.prompt;
    let began = Began {
        variant: render.variant.clone(),
        strict: render.strict,
        lenient: render.lenient,
        strict_inputs: render.strict_inputs,
        guard: render.guard,
        seed: render.seed,
        policy: policy.map(|policy| policy.roles().map(|role| role.as_str().to_owned()).collect()),
        tools: args.call.tools.as_ref().map(|path| path.display().to_string()),
    };
    let journal = Journal::at(path)?.with_host(json!(began));
    Ok(Some(CallJournal { journal, path, tools: args.call.tools.as_deref(), policy: &args.call.policy, resume: false }))
}

impl ModelArgs {
    /// Returns the model options of the command line. They are trusted, because they do not come from the prompt.
    pub(crate) fn options(&self) -> RunOptions {
        RunOptions {
            provider: self.provider.clone(),
            model: self.model.clone(),
            base_url: self.base_url.clone(),
            ..RunOptions::default()
        }
    }
}

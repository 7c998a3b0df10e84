//! The tools file, which maps tools to programs and servers.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
#[cfg(unix)]
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Deserialize;
#[cfg(feature = "mcp")]
use tympan::McpServer;
use tympan::diagnostic::guess_name;
use tympan::secret::url::redacted_url;
use tympan::spec::flow::{Effect, Hide, ParameterFlow, ToolFlow};
use tympan::spec::{Secret, ToolKind};
use tympan::tool::{command_with_env, idempotent, with_flow};
use tympan::{Error, Kind, Prompt};
use tympan::{Runtime, Tool};

use crate::inputs;
use crate::prompt_file::in_prompt;
use crate::report::Failure;

/// An entry of the file: a program that implements a tool, a server that provides tools, or only what the policy needs
/// to know about a tool.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    command: Option<Vec<String>>,
    timeout: Option<f64>,
    /// Whether the program may run again with the same key if it is unknown whether it finished.
    #[serde(default)]
    idempotent: bool,
    server: Option<Vec<String>>,
    url: Option<String>,
    /// Environment variables to pass to the program or the server.
    #[serde(default)]
    env: Vec<String>,
    /// The environment variable that contains the key for the URL.
    key: Option<String>,
    /// What the tool does besides returning a result. For a server, this and the following are about all its tools.
    effect: Option<Effect>,
    /// Whether results are trusted.
    trusted: Option<bool>,
    /// Whether results are confidential.
    confidential: Option<bool>,
    /// Whether the model sees handles instead of untrusted results.
    hide: Option<Hide>,
    /// The parameters about which something is declared.
    #[serde(default)]
    parameters: BTreeMap<String, ParameterFlow>,
    /// What is declared about single tools of a server.
    #[serde(default)]
    tools: BTreeMap<String, ToolFlow>,
}

/// The programs that implement tools.
#[derive(Default)]
pub(crate) struct Programs {
    /// The implementation of each tool.
    pub(crate) runs: HashMap<String, Arc<dyn Tool>>,
    /// The command line of each tool, for display.
    pub(crate) commands: HashMap<String, String>,
    /// What the file declares about tools that it does not implement.
    pub(crate) flows: HashMap<String, ToolFlow>,
}

/// Returns the programs that a tools file defines for a prompt.
///
/// # Errors
/// Returns an error if the file is invalid, or if the prompt declares a function that has no implementation. The
/// error's help explains how to add one.
pub(crate) fn of_prompt(
    path: Option<&Path>,
    runtime: &Runtime,
    prompt: &Prompt,
    help: &str,
) -> Result<Programs, Failure> {
    let programs = path.map(|path| read(path, runtime)).transpose()?.unwrap_or_default();
    if path.is_some() {
        end_with_programs()?;
    }
    if let Some(path) = path {
        check_parameters(prompt, &programs).map_err(|reason| wrong(path, &reason))?;
    }
    let functions = prompt.spec().tools.iter().filter(|tool| matches!(tool.kind, ToolKind::Function { .. }));
    match functions.map(|tool| &tool.name).find(|name| !programs.runs.contains_key(*name)) {
        None => Ok(programs),
        Some(name) => Err(in_prompt(Error::new(Kind::ToolNotRegistered, name).with_help(help), prompt).into()),
    }
}

fn wrong(path: &Path, reason: &str) -> Failure {
    Failure::Usage(format!("{}: {reason}", path.display()))
}

/// Checks that functions have the parameters about which the file declares something. A misspelt name would otherwise
/// leave a parameter unprotected.
fn check_parameters(prompt: &Prompt, programs: &Programs) -> Result<(), String> {
    for tool in &prompt.spec().tools {
        let ToolKind::Function { parameters, .. } = &tool.kind else { continue };
        let Some(flow) = programs.runs.get(&tool.name).map(|run| run.flow()) else { continue };
        let is_known = |name: &str| parameters.iter().any(|parameter| parameter.name == name);
        if let Some(unknown) = flow.parameters.keys().find(|name| !is_known(name)) {
            let near = guess_name(unknown, parameters.iter().map(|parameter| parameter.name.as_str()));
            let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            return Err(format!("`{}`: the prompt declares no parameter `{unknown}`{hint}", tool.name));
        }
    }
    Ok(())
}

/// Ends the tools' programs when this process is terminated. They are in their own process groups and would keep
/// running.
///
/// # Errors
/// Returns an error if the thread that waits for the signal cannot be created.
#[cfg(unix)]
fn end_with_programs() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    static IS_WAITING: AtomicBool = AtomicBool::new(false);
    if IS_WAITING.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    let waiting = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut terminated = {
        let _inside = waiting.enter();
        signal(SignalKind::terminate())?
    };
    std::thread::Builder::new().spawn(move || {
        waiting.block_on(terminated.recv());
        tympan::tool::end_programs();
        // As a shell reports it.
        std::process::exit(128 + SignalKind::terminate().as_raw_value());
    })?;
    Ok(())
}

/// Does nothing, because this platform has no process groups.
#[cfg(not(unix))]
fn end_with_programs() -> std::io::Result<()> {
    Ok(())
}

/// Reads the file and registers its servers with the runtime.
///
/// # Errors
/// Returns an error if the file cannot be read or is invalid.
fn read(path: &Path, runtime: &Runtime) -> Result<Programs, Failure> {
    let source = inputs::read(path, "--tools")?;
    let wrong = |reason: &str| wrong(path, reason);
    let entries: HashMap<String, Entry> =
        toml::from_str(source.text()).map_err(|error| wrong(error.to_string().trim_end()))?;
    let mut programs = Programs::default();
    for (name, entry) in entries {
        let shown = entry.shown();
        match entry.read(&name, runtime).map_err(|reason| wrong(&reason))? {
            Read::Tool(tool) => {
                programs.runs.insert(name.clone(), tool);
            }
            #[cfg(feature = "mcp")]
            Read::Server(server) => runtime.register_mcp_server(&name, server),
            Read::Flow(flow) => {
                programs.flows.insert(name, flow);
                continue;
            }
        }
        programs.commands.insert(name, shown);
    }
    Ok(programs)
}

/// A parsed entry.
enum Read {
    Tool(Arc<dyn Tool>),
    #[cfg(feature = "mcp")]
    Server(McpServer),
    /// What the policy needs to know about a tool that is implemented elsewhere.
    Flow(ToolFlow),
}

impl Entry {
    /// Returns the command line or the URL, for display.
    fn shown(&self) -> String {
        let command = self.command.as_ref().or(self.server.as_ref()).map(|words| words.join(" "));
        command.or_else(|| self.url.as_deref().map(redacted_url)).unwrap_or_default()
    }

    /// Returns what the entry declares about its tool, or about all tools of its server.
    fn flow(&self) -> ToolFlow {
        let Self { effect, trusted, confidential, hide, .. } = *self;
        let parameters = self.parameters.iter().map(|(name, flow)| (name.clone(), *flow)).collect();
        ToolFlow { effect, trusted, confidential, hide, parameters }
    }

    fn read(self, name: &str, runtime: &Runtime) -> Result<Read, String> {
        let flow = self.flow();
        let Self { command: program, timeout, idempotent: may_run_again, server, url, env, key, tools, .. } = self;
        let is_stray = |what: &str, where_from: &str| {
            format!(
                "`{name}`: `{what}` is only allowed with a \
            `{where_from}`"
            )
        };
        match (program, server, url) {
            (None, None, None) if !flow.is_empty() && tools.is_empty() => {
                let strays = [("timeout", timeout.is_some()), ("idempotent", may_run_again), ("env", !env.is_empty())];
                let stray = strays.into_iter().find(|(_, is_set)| *is_set);
                let stray = stray.map(|(what, _)| is_stray(what, "command"));
                let stray = stray.or_else(|| key.is_some().then(|| is_stray("key", "url")));
                stray.map_or(Ok(Read::Flow(flow)), Err)
            }
            (Some(_), ..) | (None, None, None) if !tools.is_empty() => Err(is_stray("tools", "server` or a `url")),
            (Some(program), None, None) => {
                if key.is_some() {
                    return Err(is_stray("key", "url"));
                }
                let timeout = timeout.map(Duration::try_from_secs_f64).transpose();
                let timeout = timeout.map_err(|_| format!("`{name}`: expected `timeout` to be a number of seconds"))?;
                let program = not_empty(program, "command", name)?;
                let tool = command_with_env(program, timeout, variables(env, name, runtime)?);
                let tool = if may_run_again { idempotent(tool) } else { tool };
                Ok(Read::Tool(if flow.is_empty() { tool } else { with_flow(flow, tool) }))
            }
            _ if timeout.is_some() => Err(is_stray("timeout", "command")),
            _ if may_run_again => Err(is_stray("idempotent", "command")),
            #[cfg(not(feature = "mcp"))]
            (None, Some(_), None) | (None, None, Some(_)) => {
                Err(format!("`{name}` is an MCP server, and this command was built without the feature `mcp`"))
            }
            #[cfg(feature = "mcp")]
            (None, Some(program), None) if key.is_none() => {
                let mut server = with_flows(McpServer::stdio(not_empty(program, "server", name)?), flow, tools);
                for (variable, value) in variables(env, name, runtime)? {
                    server = server.env(variable, value);
                }
                Ok(Read::Server(server))
            }
            #[cfg(feature = "mcp")]
            (None, Some(_), None) => Err(is_stray("key", "url")),
            #[cfg(feature = "mcp")]
            (None, None, Some(_)) if !env.is_empty() => Err(is_stray("env", "command` or a `server")),
            #[cfg(feature = "mcp")]
            (None, None, Some(url)) => {
                let server = with_flows(McpServer::http(url), flow, tools);
                let Some(variable) = key else { return Ok(Read::Server(server)) };
                let bearer = format!("Bearer {}", value(&variable, name, runtime)?.expose());
                Ok(Read::Server(server.header("Authorization", Secret::new(bearer))))
            }
            _ => Err(format!("`{name}`: expected exactly one of `command`, `server` and `url`")),
        }
    }
}

/// Adds what the file declares about the tools of a server.
#[cfg(feature = "mcp")]
fn with_flows(server: McpServer, flow: ToolFlow, tools: BTreeMap<String, ToolFlow>) -> McpServer {
    tools.into_iter().fold(server.flow(flow), |server, (name, flow)| server.tool_flow(name, flow))
}

fn not_empty(command: Vec<String>, what: &str, name: &str) -> Result<Vec<String>, String> {
    if command.is_empty() { Err(format!("`{name}`: `{what}` is empty")) } else { Ok(command) }
}

/// Looks up the values of variables.
fn variables(names: Vec<String>, name: &str, runtime: &Runtime) -> Result<Vec<(String, Secret)>, String> {
    names.into_iter().map(|variable| value(&variable, name, runtime).map(|value| (variable, value))).collect()
}

/// Looks up a variable in the environment and in `.env` files.
fn value(variable: &str, name: &str, runtime: &Runtime) -> Result<Secret, String> {
    let found = runtime.options().load.variable(variable);
    found
        .map(|(value, _)| Secret::new(value))
        .ok_or_else(|| format!("`{name}`: environment variable {variable} is not set"))
}

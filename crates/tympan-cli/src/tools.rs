//! The file that says which program or server each tool is.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tympan::secret::url::redacted_url;
use tympan::spec::{Secret, ToolKind};
use tympan::tool::{command_with_env, idempotent};
use tympan::{Error, Kind, Prompt};
use tympan::{McpServer, Runtime, Tool};

use crate::inputs;
use crate::prompt_file::in_prompt;
use crate::report::Failure;

/// What stands under a name: a program that is the tool, or a server that has tools.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    command: Option<Vec<String>>,
    timeout: Option<f64>,
    /// Whether it may be run again with the same key, if nobody knows whether it came to its end.
    #[serde(default)]
    idempotent: bool,
    server: Option<Vec<String>>,
    url: Option<String>,
    /// Variables that a program or a server gets to see.
    #[serde(default)]
    env: Vec<String>,
    /// The variable that has the key for an address.
    key: Option<String>,
}

/// The programs that are tools.
#[derive(Default)]
pub(crate) struct Programs {
    /// What runs each tool.
    pub(crate) runs: HashMap<String, Arc<dyn Tool>>,
    /// The command line of each, for people.
    pub(crate) commands: HashMap<String, String>,
}

/// The programs that a file has for a prompt.
///
/// # Errors
/// As [`read`]; or the prompt declares a function that nothing runs. What to do about that is in the help.
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
    let functions = prompt.spec().tools.iter().filter(|tool| matches!(tool.kind, ToolKind::Function { .. }));
    match functions.map(|tool| &tool.name).find(|name| !programs.runs.contains_key(*name)) {
        None => Ok(programs),
        Some(name) => Err(in_prompt(Error::new(Kind::ToolNotRegistered, name).with_help(help), prompt).into()),
    }
}

/// Has the programs end when somebody ends this one: they are in process groups of their own, and would go on.
///
/// # Errors
/// The operating system has no thread for that.
#[cfg(unix)]
fn end_with_programs() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

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

/// As above, where there are no groups.
#[cfg(not(unix))]
fn end_with_programs() -> std::io::Result<()> {
    Ok(())
}

/// Reads the file. Servers are registered with the runtime.
///
/// # Errors
/// It cannot be read, or is not as it should be.
fn read(path: &Path, runtime: &Runtime) -> Result<Programs, Failure> {
    let source = inputs::read(path, "--tools")?;
    let wrong = |reason: &str| Failure::Usage(format!("{}: {reason}", path.display()));
    let entries: HashMap<String, Entry> =
        toml::from_str(source.text()).map_err(|error| wrong(error.to_string().trim_end()))?;
    let mut programs = Programs::default();
    for (name, entry) in entries {
        let shown = entry.shown();
        match entry.read(&name, runtime).map_err(|reason| wrong(&reason))? {
            Read::Tool(tool) => {
                programs.runs.insert(name.clone(), tool);
            }
            Read::Server(server) => runtime.register_mcp_server(&name, server),
        }
        programs.commands.insert(name, shown);
    }
    Ok(programs)
}

/// What an entry is.
enum Read {
    Tool(Arc<dyn Tool>),
    Server(McpServer),
}

impl Entry {
    /// The command line or the address, for people.
    fn shown(&self) -> String {
        let command = self.command.as_ref().or(self.server.as_ref()).map(|words| words.join(" "));
        command.or_else(|| self.url.as_deref().map(redacted_url)).unwrap_or_default()
    }

    fn read(self, name: &str, runtime: &Runtime) -> Result<Read, String> {
        let Self { command: program, timeout, idempotent: may_run_again, server, url, env, key } = self;
        let is_stray = |what: &str, where_from: &str| format!("`{what}` of `{name}` is for a `{where_from}`");
        match (program, server, url) {
            (Some(program), None, None) => {
                if key.is_some() {
                    return Err(is_stray("key", "url"));
                }
                let timeout = timeout.map(Duration::try_from_secs_f64).transpose();
                let timeout = timeout.map_err(|_| format!("the timeout of `{name}` is no number of seconds"))?;
                let program = not_empty(program, "command", name)?;
                let tool = command_with_env(program, timeout, variables(env, name, runtime)?);
                Ok(Read::Tool(if may_run_again { idempotent(tool) } else { tool }))
            }
            _ if timeout.is_some() => Err(is_stray("timeout", "command")),
            _ if may_run_again => Err(is_stray("idempotent", "command")),
            (None, Some(program), None) if key.is_none() => {
                let mut server = McpServer::stdio(not_empty(program, "server", name)?);
                for (variable, value) in variables(env, name, runtime)? {
                    server = server.env(variable, value);
                }
                Ok(Read::Server(server))
            }
            (None, Some(_), None) => Err(is_stray("key", "url")),
            (None, None, Some(_)) if !env.is_empty() => Err(is_stray("env", "command` or a `server")),
            (None, None, Some(url)) => {
                let server = McpServer::http(url);
                let Some(variable) = key else { return Ok(Read::Server(server)) };
                let bearer = format!("Bearer {}", value(&variable, name, runtime)?.expose());
                Ok(Read::Server(server.header("Authorization", Secret::new(bearer))))
            }
            _ => Err(format!("`{name}` has to have a `command`, a `server` or a `url`, and only one of them")),
        }
    }
}

fn not_empty(command: Vec<String>, what: &str, name: &str) -> Result<Vec<String>, String> {
    if command.is_empty() { Err(format!("the {what} of `{name}` is empty")) } else { Ok(command) }
}

/// Variables with their values.
fn variables(names: Vec<String>, name: &str, runtime: &Runtime) -> Result<Vec<(String, Secret)>, String> {
    names.into_iter().map(|variable| value(&variable, name, runtime).map(|value| (variable, value))).collect()
}

/// The value of a variable: of the environment, or of a `.env` file.
fn value(variable: &str, name: &str, runtime: &Runtime) -> Result<Secret, String> {
    let found = runtime.options().load.variable(variable);
    found
        .map(|(value, _)| Secret::new(value))
        .ok_or_else(|| format!("`{name}` wants the variable {variable}, which is not set"))
}

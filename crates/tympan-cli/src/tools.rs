//! The file that says which program each tool is.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tympan::spec::ToolKind;
use tympan::{Error, Kind, Prompt};
use tympan_runtime::Tool;
use tympan_runtime::tool::command;

use crate::inputs;
use crate::prompt_file::in_prompt;
use crate::report::Failure;

/// A tool that is a program.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    command: Vec<String>,
    timeout: Option<f64>,
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
pub(crate) fn of_prompt(path: Option<&Path>, prompt: &Prompt, help: &str) -> Result<Programs, Failure> {
    let programs = path.map(read).transpose()?.unwrap_or_default();
    let functions = prompt.spec().tools.iter().filter(|tool| matches!(tool.kind, ToolKind::Function { .. }));
    match functions.map(|tool| &tool.name).find(|name| !programs.runs.contains_key(*name)) {
        None => Ok(programs),
        Some(name) => Err(in_prompt(Error::new(Kind::ToolNotRegistered, name).with_help(help), prompt).into()),
    }
}

/// Reads the file.
///
/// # Errors
/// It cannot be read, or is not as it should be.
fn read(path: &Path) -> Result<Programs, Failure> {
    let source = inputs::read(path, "--tools")?;
    let wrong = |reason: &str| Failure::Usage(format!("{}: {reason}", path.display()));
    let entries: HashMap<String, Entry> =
        toml::from_str(source.text()).map_err(|error| wrong(error.to_string().trim_end()))?;
    let mut programs = Programs::default();
    for (name, entry) in entries {
        if entry.command.is_empty() {
            return Err(wrong(&format!("the command of `{name}` is empty")));
        }
        let timeout = entry.timeout.map(|seconds| {
            Duration::try_from_secs_f64(seconds)
                .map_err(|_| wrong(&format!("the timeout of `{name}` is no number of seconds")))
        });
        programs.commands.insert(name.clone(), entry.command.join(" "));
        programs.runs.insert(name, command(entry.command, timeout.transpose()?));
    }
    Ok(programs)
}

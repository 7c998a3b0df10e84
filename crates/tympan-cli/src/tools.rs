//! The file that says which program each tool is.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tympan_runtime::Tool;
use tympan_runtime::tool::command;

use crate::inputs;
use crate::report::Failure;

/// A tool that is a program.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    command: Vec<String>,
    timeout: Option<f64>,
}

/// Reads the file.
///
/// # Errors
/// It cannot be read, or is not as it should be.
pub(crate) fn read(path: &Path) -> Result<HashMap<String, Arc<dyn Tool>>, Failure> {
    let source = inputs::read(path, "--tools")?;
    let wrong = |reason: &str| Failure::Usage(format!("{}: {reason}", path.display()));
    let entries: HashMap<String, Entry> =
        toml::from_str(source.text()).map_err(|error| wrong(error.to_string().trim_end()))?;
    let tools = entries.into_iter().map(|(name, entry)| {
        if entry.command.is_empty() {
            return Err(wrong(&format!("the command of `{name}` is empty")));
        }
        let timeout = entry.timeout.map(|seconds| {
            Duration::try_from_secs_f64(seconds)
                .map_err(|_| wrong(&format!("the timeout of `{name}` is no number of seconds")))
        });
        Ok((name, command(entry.command, timeout.transpose()?)))
    });
    tools.collect()
}

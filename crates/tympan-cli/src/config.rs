//! The user's configuration file. Only the environment of the process decides where it is: no `.env` file, and nothing
//! in the directory of a project or a prompt.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use tympan::Runtime;
use tympan::file::read;
use tympan::turn::ToolPolicy;

use crate::policy::check_destination;
use crate::report::Failure;

/// The maximum size of the file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The kinds of connections that `--credential-command` applies to. `*` covers all other kinds of connections without a key.
const KEYLESS: [&str; 4] = ["foundry", "oauth", "anonymous", "*"];

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    /// The programs that print access tokens, by the kind of the connections that they are for.
    credentials: BTreeMap<String, Credentials>,
    policy: Policies,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Policies {
    tools: ToolPolicy,
}

/// Returns the policy for tool calls of the user's configuration.
///
/// # Errors
/// Returns an error if the file is invalid.
pub(crate) fn tool_policy() -> Result<ToolPolicy, Failure> {
    let Some(path) = file() else { return Ok(ToolPolicy::default()) };
    let tools = load(&path)?.policy.tools;
    for address in &tools.destinations {
        check_destination(address)
            .map_err(|reason| Failure::Usage(format!("{}: policy.tools.destinations: {reason}", path.display())))?;
    }
    Ok(tools)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Credentials {
    command: Vec<String>,
    timeout: Option<f64>,
}

/// Registers the programs that print access tokens: the one of the command line, or else those of the user's
/// configuration.
///
/// # Errors
/// Returns an error if the command line or the file is invalid.
pub(crate) fn register_credentials(runtime: &Runtime, command: Option<&str>) -> Result<(), Failure> {
    if let Some(command) = command {
        let wrong = |reason: &str| Failure::Usage(format!("--credential-command: {reason}"));
        let words = words(command).ok_or_else(|| wrong("a quote is not closed"))?;
        for kind in KEYLESS {
            runtime.register_credential_command(kind, words.clone(), None).map_err(|error| wrong(error.message()))?;
        }
        return Ok(());
    }
    let Some(path) = file() else { return Ok(()) };
    let wrong = |reason: &str| Failure::Usage(format!("{}: {reason}", path.display()));
    for (kind, Credentials { command, timeout }) in load(&path)?.credentials {
        let timeout = timeout.map(Duration::try_from_secs_f64).transpose();
        let timeout = timeout.map_err(|_| wrong(&format!("credentials.{kind}: expected a number of seconds")))?;
        let registered = runtime.register_credential_command(kind.as_str(), command, timeout);
        registered.map_err(|error| wrong(&format!("credentials.{kind}: {}", error.message())))?;
    }
    Ok(())
}

/// Returns the path of the file: `tympan/config.toml` in the user's configuration directory.
fn file() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config"))).or_else(|| set("APPDATA"));
    Some(folder?.join("tympan").join("config.toml"))
}

/// Reads the file. It does not have to exist.
fn load(path: &Path) -> Result<Config, Failure> {
    let wrong = |reason: &str| Failure::Usage(format!("{}: {reason}", path.display()));
    let text = match read::open_regular(path).and_then(|file| read::text(file, MAX_BYTES)) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Config::default());
        }
        Err(error) => return Err(wrong(&format!("cannot read the file: {error}"))),
    };
    toml::from_str(&text).map_err(|error| wrong(error.to_string().trim_end()))
}

/// Splits a command into words. Single and double quotes keep spaces. Nothing else has a special meaning, because no
/// shell is involved. Returns `None` if a quote is not closed.
fn words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for char in command.chars() {
        match (quote, char) {
            (Some(open), _) if char == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (None, _) if char.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn commands_are_split_without_a_shell() {
        let split = |command: &str| words(command).expect("quotes are closed");
        assert_eq!(split("  az account  get-access-token "), ["az", "account", "get-access-token"]);
        assert_eq!(split(r#"a "b c" 'd "e"' "" f"g h"i"#), ["a", "b c", "d \"e\"", "", "fg hi"]);
        assert_eq!(split("a $HOME;b|c `d` \\n"), ["a", "$HOME;b|c", "`d`", "\\n"]);
        assert_eq!(split(""), [""; 0]);
        assert_eq!(words("a 'b"), None);
    }
}

//! The environment variables that a prompt file may read.

use std::collections::HashMap;
use std::fmt;

use tympan_core::secret::env_value::ValueSource;
use tympan_core::{Error, Kind, Result};

use crate::load::LoadOptions;

/// A file of variables, such as a `.env` file.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct EnvFile {
    /// The name of the file, as shown in errors. Files with different names are different sources of values.
    pub name: String,
    /// The variables.
    pub variables: HashMap<String, String>,
}

impl fmt::Debug for EnvFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values may be credentials, so only the names are shown.
        let names = self.variables.keys().collect::<Vec<_>>();
        f.debug_struct("EnvFile").field("name", &self.name).field("variables", &names).finish()
    }
}

/// The name of [`LoadOptions::env_defaults`] in errors.
const DEFAULTS: &str = "env_defaults";

impl LoadOptions {
    /// Returns the value and the source of a variable: the host's environment, or a file of variables. This does not
    /// check whether prompts may read it; see [`LoadOptions::env`].
    pub fn variable(&self, name: &str) -> Option<(String, ValueSource)> {
        // A value that is not Unicode counts as set, but cannot be used.
        let of_host = of_host(name, self).ok()?.map(|value| (value, ValueSource::Host));
        of_host.or_else(|| self.of_files(name))
    }

    fn of_files(&self, name: &str) -> Option<(String, ValueSource)> {
        let files = self.env_files.iter().map(|file| (file.name.as_str(), &file.variables));
        let mut files = files.chain([(DEFAULTS, &self.env_defaults)]);
        files.find_map(|(file, variables)| Some((variables.get(name)?.clone(), ValueSource::EnvFile(file.into()))))
    }
}

/// The environment variables that a prompt file may read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EnvPolicy {
    /// All variables. The file is trusted as much as the program that loads it.
    #[default]
    AllowAll,
    /// Variables that match one of these patterns, in which `*` matches any characters, or none.
    AllowList(Vec<String>),
    /// No variables.
    Deny,
    /// No variables, but references do not fail: they remain as written, without their defaults. This is for tools that
    /// inspect prompts without running them, such as for hashing, so that the result is the same on every machine.
    AsWritten,
}

impl EnvPolicy {
    /// Creates a policy that allows only variables matching one of these patterns, in which `*` matches any characters.
    pub fn allow<I: IntoIterator<Item = S>, S: Into<String>>(names: I) -> Self {
        Self::AllowList(names.into_iter().map(Into::into).collect())
    }

    /// Returns whether a prompt may read this variable.
    pub fn allows(&self, name: &str) -> bool {
        match self {
            Self::AllowAll | Self::AsWritten => true,
            Self::AllowList(patterns) => patterns.iter().any(|pattern| matches(pattern, name)),
            Self::Deny => false,
        }
    }
}

/// Returns whether a name matches a pattern, in which `*` matches any characters.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(start) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    // Matching each part as early as possible leaves the most room for the others.
    for part in parts {
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
    }
    name.ends_with(end)
}

/// Returns the value of a variable, if the host allows prompts to read it.
pub(super) fn read(name: &str, options: &LoadOptions) -> Result<Option<String>> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(Error::new(Kind::EnvNotSet, name).with_help("this is not a valid variable name"));
    }
    if !options.env.allows(name) {
        return Err(Error::new(Kind::EnvNotAllowed, name)
            .with_help("if you trust this file, allow the variable with `--allow-env NAME` or LoadOptions::env"));
    }
    if options.env == EnvPolicy::AsWritten {
        return Ok(Some(format!("${{env:{name}}}")));
    }
    Ok(of_host(name, options)?.or_else(|| options.of_files(name).map(|(value, _)| value)))
}

/// Returns the value of a variable in the environment, or in the host's replacement of it.
fn of_host(name: &str, options: &LoadOptions) -> Result<Option<String>> {
    if let Some(variables) = &options.env_vars {
        return Ok(variables.get(name).cloned());
    }
    match std::env::var(name) {
        Ok(value) => Ok(Some(value)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => {
            Err(Error::new(Kind::EnvNotSet, name).with_help("its value is not valid Unicode"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        let fits = [
            ("A", "A"),
            ("*", "ANY"),
            ("AWS_*_ID", "AWS_KEY_ID"),
            ("A*", "A"),
            ("*_KEY", "MY_KEY"),
            ("A*B*C", "AxBBxC"),
        ];
        for (pattern, name) in fits {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        let others = [("A", "AB"), ("AWS_*_ID", "AWS_SECRET_ACCESS_KEY"), ("AB*BA", "ABA"), ("a", "A"), ("", "A")];
        for (pattern, name) in others {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}

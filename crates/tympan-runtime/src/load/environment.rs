//! Which environment variables a prompt file may read.

use std::collections::HashMap;

use tympan::{Error, Kind, Result};

/// Which environment variables a prompt file may read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EnvPolicy {
    /// All of them: the file is as trusted as the program that loads it.
    #[default]
    AllowAll,
    /// Those with one of these names, in which `*` stands for any characters, also none.
    AllowList(Vec<String>),
    /// None of them.
    Deny,
    /// None of them, and none is missed: a reference stays what it is, without its default. For tools that look at
    /// prompts and never use them, such as one that makes hashes: what they say is the same on every machine.
    AsWritten,
}

impl EnvPolicy {
    /// Only the variables with one of these names, in which `*` stands for any characters.
    pub fn allow<I: IntoIterator<Item = S>, S: Into<String>>(names: I) -> Self {
        Self::AllowList(names.into_iter().map(Into::into).collect())
    }

    /// Whether a prompt may read this variable.
    pub fn allows(&self, name: &str) -> bool {
        match self {
            Self::AllowAll | Self::AsWritten => true,
            Self::AllowList(patterns) => patterns.iter().any(|pattern| matches(pattern, name)),
            Self::Deny => false,
        }
    }
}

/// Whether a name fits a pattern in which `*` stands for any characters.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(start) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    // The earliest match of each part leaves the most for the others.
    for part in parts {
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
    }
    name.ends_with(end)
}

/// The value of a variable, if the host lets prompts read it.
pub(super) fn read(name: &str, policy: &EnvPolicy, vars: Option<&HashMap<String, String>>) -> Result<Option<String>> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(Error::new(Kind::EnvNotSet, name).with_help("this cannot be the name of a variable"));
    }
    if !policy.allows(name) {
        return Err(Error::new(Kind::EnvNotAllowed, name)
            .with_help("a host that trusts this file can allow the variable in LoadOptions::env"));
    }
    if *policy == EnvPolicy::AsWritten {
        return Ok(Some(format!("${{env:{name}}}")));
    }
    if let Some(vars) = vars {
        return Ok(vars.get(name).cloned());
    }
    match std::env::var(name) {
        Ok(value) => Ok(Some(value)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => {
            Err(Error::new(Kind::EnvNotSet, name).with_help("it has a value, but one that is not Unicode"))
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

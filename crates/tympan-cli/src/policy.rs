//! The policies that the command line names: for messages, and for tool calls.

use std::path::Path;

use tympan::turn::{PolicyMode, ToolPolicy};
use tympan::{Policy, Role};

use crate::args::{ToolPolicyArgs, ToolPolicyChoice};
use crate::config;
use crate::project::Project;
use crate::report::Failure;

/// Parses the value of `--policy`: roles, or the path of a settings file. A file has a policy for each prompt.
///
/// # Errors
/// Returns an error if the file cannot be read, is invalid, or has no policy for the prompt.
pub(crate) fn parse(value: &str, prompt: &Path) -> Result<Policy, Failure> {
    let roles: Option<Vec<_>> = value.split(',').map(|role| Role::from_name(role.trim())).collect();
    if let Some(roles) = roles {
        return Ok(Policy::new(roles));
    }
    let path = Path::new(value);
    if path.extension().is_none() && !path.exists() {
        let message = format!("--policy: expected roles such as `user,assistant`, or a settings file, found `{value}`");
        return Err(Failure::Usage(message));
    }
    let project = Project::open(path)?;
    let policy = project.settings.policy.of(&project.relative(prompt));
    policy.map(|check| check.policy).ok_or_else(|| Failure::Usage(format!("{value}: no policy for this prompt")))
}

impl ToolPolicyArgs {
    /// Returns the policy for tool calls: that of the user's configuration, changed by these arguments, and tightened by
    /// the project.
    ///
    /// # Errors
    /// Returns an error if the configuration or the project's settings are invalid.
    pub(crate) fn policy(&self) -> Result<ToolPolicy, Failure> {
        let mut policy = config::tool_policy()?;
        if let Some(choice) = self.tool_policy {
            policy.mode = choice.into();
        }
        policy.destinations.extend_from_slice(&self.allow_destination);
        let project = Project::tool_policy()?;
        Ok(project.map_or_else(|| policy.clone(), |project| policy.tightened(&project)))
    }
}

impl From<ToolPolicyChoice> for PolicyMode {
    fn from(choice: ToolPolicyChoice) -> Self {
        match choice {
            ToolPolicyChoice::Default => Self::Default,
            ToolPolicyChoice::Strict => Self::Strict,
            ToolPolicyChoice::Off => Self::Off,
        }
    }
}

/// Checks an address that data may go to.
///
/// # Errors
/// Returns what was expected, if the address would match nothing, or everything.
pub(crate) fn check_destination(address: &str) -> Result<(), String> {
    let is_valid = match (address.strip_prefix("*@"), address.strip_suffix("/*")) {
        (Some(domain), _) => !domain.is_empty() && !domain.contains(['*', '@']),
        (None, Some(base)) => {
            // Everything below `https:` or `https://` would be every address.
            let host = base.split_once("://").map_or(base, |(_, host)| host);
            !host.trim_matches('/').is_empty() && !host.ends_with(':') && !base.ends_with('/') && !base.contains('*')
        }
        (None, None) => !address.trim().is_empty() && !address.contains('*'),
    };
    if is_valid {
        return Ok(());
    }
    Err(format!("expected an address, `*@example.com`, or `https://example.com/*`, found `{address}`"))
}

#[cfg(test)]
mod tests {
    use super::check_destination;

    #[test]
    fn an_address_that_matches_everything_is_a_mistake() {
        for address in ["a@b.c", "*@b.c", "https://b.c", "https://b.c/*", "https://b.c/in/*", "#team", "/srv/out/*"] {
            assert_eq!(check_destination(address), Ok(()), "{address}");
        }
        for address in
            ["", " ", "*", "*@", "*@*", "/*", "//*", "https:/*", "https://*", "https:///*", "*.b.c", "a*@b.c"]
        {
            assert!(check_destination(address).is_err(), "{address}");
        }
    }
}

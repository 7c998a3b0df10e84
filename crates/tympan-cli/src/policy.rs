//! The policy that the command line names.

use std::path::Path;

use tympan::{Policy, Role};

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

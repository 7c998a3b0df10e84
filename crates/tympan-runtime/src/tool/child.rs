//! Child processes of tools: their environment and their termination.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use tokio::process::{Child, Command};
use tympan_core::spec::Secret;

/// The environment variables that child processes inherit. They do not include keys.
const VARIABLES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "SYSTEMROOT",
    "APPDATA",
    "LOCALAPPDATA",
    "USERPROFILE",
    "TEMP",
    "TMP",
    "PATHEXT",
    "COMSPEC",
];

/// Prepares a program with piped standard streams, in a new process group. It inherits only essential environment
/// variables, plus `variables`.
pub(super) fn command(program: &str, arguments: &[String], variables: &[(String, Secret)]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).env_clear();
    command.envs(VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.envs(variables.iter().map(|(name, value)| (name, value.expose())));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command.as_std_mut(), 0);
    command
}

/// The process groups that are running.
static RUNNING: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

fn running() -> std::sync::MutexGuard<'static, BTreeSet<u32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills all programs started for tools that are still running, together with their child processes. Call this before
/// the process exits: programs in a process group of their own do not receive Ctrl-C.
pub fn end_programs() {
    std::mem::take(&mut *running()).into_iter().for_each(kill);
}

/// The process group of a program. Dropping it kills all processes in the group.
pub(super) struct Group(Option<u32>);

impl Group {
    pub(super) fn of(child: &Child) -> Self {
        let id = child.id();
        running().extend(id);
        Self(id)
    }

    /// Leaves the remaining processes of the group running, because the program ended by itself.
    pub(super) fn leave(mut self) {
        if let Some(id) = self.0.take() {
            running().remove(&id);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(id) = self.0.take()
            && running().remove(&id)
        {
            kill(id);
        }
    }
}

#[cfg(unix)]
fn kill(group: u32) {
    let group = i32::try_from(group).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(group) = group {
        // The call fails if the group has already ended.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

#[cfg(not(unix))]
fn kill(_group: u32) {}

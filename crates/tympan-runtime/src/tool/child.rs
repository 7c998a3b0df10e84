//! Programs that are started for tools: what they see of the environment, and how they end.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use tokio::process::{Child, Command};
use tympan_core::spec::Secret;

/// What programs cannot do without. Keys are not among it.
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

/// A program that is about to be started, with pipes to it, in a process group of its own. Of this process's environment it
/// gets what programs cannot do without, and besides that only these variables.
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

/// The groups of programs that are running.
static RUNNING: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

fn running() -> std::sync::MutexGuard<'static, BTreeSet<u32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills all programs that were started for tools and are still running, with all that they have started. A program that
/// ends calls this last: whoever is in a process group of its own does not hear of Ctrl-C.
pub fn end_programs() {
    std::mem::take(&mut *running()).into_iter().for_each(kill);
}

/// A program and all that it has started. When this is dropped, all of them are killed.
pub(super) struct Group(Option<u32>);

impl Group {
    pub(super) fn of(child: &Child) -> Self {
        let id = child.id();
        running().extend(id);
        Self(id)
    }

    /// Leaves those alone that the program has left behind: it came to its end by itself.
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
        // Whoever has ended already need not be killed.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

#[cfg(not(unix))]
fn kill(_group: u32) {}

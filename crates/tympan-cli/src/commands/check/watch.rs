//! `--watch`: does something again whenever a file changes.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use notify::{Event, RecursiveMode, Watcher, recommended_watcher};
use tympan::file::walk::is_skipped;

use crate::args::SettingsArgs;
use crate::output;
use crate::project::{Project, absolute};
use crate::report::{self, Failure, Form};

/// Directories, and whether their subdirectories are watched too.
type Watched = BTreeSet<(PathBuf, RecursiveMode)>;

/// Changes within this time belong together: editors write files in several steps.
const TOGETHER: Duration = Duration::from_millis(100);

/// Does something, waits for a change in these paths, and does it again, until the process is stopped. Changes of `outputs`,
/// the files that it writes, do not count.
///
/// # Errors
/// Returns an error if the paths cannot be watched.
pub(in crate::commands) fn repeat(
    paths: &[PathBuf],
    settings: &SettingsArgs,
    outputs: &[&Path],
    quiet: bool,
    work: &mut dyn FnMut() -> Result<ExitCode, Failure>,
) -> Result<ExitCode, Failure> {
    let failed = |error: notify::Error| Failure::Output(io::Error::other(format!("--watch: {error}")));
    let (sender, changes) = channel();
    // If nobody listens any more, the process is about to end.
    let mut watcher = recommended_watcher(move |event| drop(sender.send(event))).map_err(failed)?;
    let watched = watched(paths, settings);
    let outputs: Vec<_> = outputs.iter().map(|path| absolute(path)).collect();
    for (path, mode) in &watched {
        watcher.watch(path, *mode).map_err(failed)?;
    }
    loop {
        if io::stdout().is_terminal() {
            // Clear the screen, and move to its first row.
            output::print("\x1b[2J\x1b[1;1H")?;
        }
        if let Err(failure) = work() {
            report::failure(&failure, Form::Human);
        }
        if !quiet {
            output::print_error("Watching for changes; press Ctrl-C to stop\n");
        }
        loop {
            match changes.recv() {
                Ok(event) if is_relevant(&event, &watched, &outputs) => break,
                Ok(_) => {}
                Err(_) => return Ok(ExitCode::SUCCESS),
            }
        }
        while !matches!(changes.recv_timeout(TOGETHER), Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected))
        {
        }
    }
}

/// Returns the directories to watch. Editors replace files, so a file is watched through its directory.
fn watched(paths: &[PathBuf], settings: &SettingsArgs) -> Watched {
    let mut watched = Watched::new();
    for path in paths {
        let path = absolute(path);
        if path.is_dir() {
            watched.insert((path, RecursiveMode::Recursive));
        } else if let Some(directory) = path.parent().filter(|directory| directory.is_dir()) {
            watched.insert((directory.to_owned(), RecursiveMode::NonRecursive));
        }
    }
    let project = Project::find(settings).map(|project| project.directory);
    watched.extend(project.ok().map(|directory| (directory, RecursiveMode::NonRecursive)));
    watched
}

/// Returns whether a change can change the result. Generated and hidden directories are not looked at.
fn is_relevant(event: &notify::Result<Event>, watched: &Watched, outputs: &[PathBuf]) -> bool {
    let Ok(event) = event else { return true };
    let is_left_out = |path: &PathBuf| {
        let is_directory = path.is_dir();
        let inside = watched.iter().filter_map(|(directory, _)| path.strip_prefix(directory).ok());
        let mut directories = inside.map(|path| path.parent().filter(|_| !is_directory).unwrap_or(path));
        outputs.contains(path)
            || directories.all(|path| path.components().any(|name| is_skipped(&name.as_os_str().to_string_lossy())))
    };
    !event.kind.is_access() && (event.paths.is_empty() || !event.paths.iter().all(is_left_out))
}

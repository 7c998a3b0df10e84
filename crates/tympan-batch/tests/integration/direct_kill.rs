//! Jobs that are killed with SIGKILL before, in the middle of and after every write to their journals.
//!
//! This cannot show that data is on the disk when a write returns; only a power failure could.

use std::fs::File;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tympan_batch::direct::Moment;

use crate::direct::Direct;

/// The environment variable with the plan for a child process.
const PLAN: &str = "TYMPAN_TEST_BATCH_KILL_PLAN";

const ROWS: usize = 8;

/// The moment at which a process is killed; the number counts these moments from 0.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Death {
    BeforeWrite(usize),
    /// This percentage of the lines is in the file, but never all of it.
    Torn(usize, usize),
    AfterWrite(usize),
    BeforeComplete(usize),
    AfterComplete(usize),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Plan {
    directory: PathBuf,
    concurrency: usize,
    death: Death,
}

impl Plan {
    /// Executes the plan in a child process, which must not survive.
    fn perform(&self) {
        let mut child = Command::new(std::env::current_exe().expect("this is a program"));
        child.args(["direct_kill::dies_as_planned", "--exact", "--ignored", "--nocapture"]);
        child.env(PLAN, serde_json::to_string(self).expect("it is JSON"));
        let status = child.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("it starts");
        assert_eq!(status.signal(), Some(9), "{self:?}: {status}");
    }
}

fn die() -> ! {
    let _ = Command::new("kill").args(["-9", &std::process::id().to_string()]).status();
    unreachable!("nobody survives that")
}

fn tear(file: &mut File, lines: &[u8], percent: usize) -> ! {
    let part = lines.len() * percent / 100;
    file.write_all(&lines[..part.clamp(1, lines.len() - 1)]).expect("writable");
    die()
}

/// The child process: runs the job until it is killed.
#[test]
#[ignore = "it is run by the other tests, and dies"]
fn dies_as_planned() {
    let plan: Plan = serde_json::from_str(&std::env::var(PLAN).expect("a plan")).expect("it is JSON");
    let mut job = Direct::new(&plan.directory, ROWS);
    job.options.concurrency = plan.concurrency;
    let counts: [AtomicUsize; 4] = Default::default();
    let death = plan.death;
    job.options.hook = Some(Arc::new(move |moment| {
        let at = |index: usize| counts[index].fetch_add(1, Ordering::SeqCst);
        match (moment, death) {
            (Moment::BeforeWrite(file, lines), death) => match (death, at(0)) {
                (Death::BeforeWrite(planned), now) if planned == now => die(),
                (Death::Torn(planned, percent), now) if planned == now => tear(file, lines, percent),
                _ => {}
            },
            (Moment::AfterWrite, Death::AfterWrite(planned)) if at(1) == planned => die(),
            (Moment::BeforeComplete, Death::BeforeComplete(planned)) if at(2) == planned => die(),
            (Moment::AfterComplete, Death::AfterComplete(planned)) if at(3) == planned => die(),
            _ => {}
        }
    }));
    job.run();
}

/// Kills a job as planned, finishes it, and returns how many rows were called twice.
fn killed_and_finished(death: Death, concurrency: usize) -> usize {
    let directory = TempDir::new().expect("a temporary directory");
    let plan = Plan { directory: directory.path().to_owned(), concurrency, death };
    plan.perform();
    let finished = rows_in(directory.path());
    let before = Direct::new(directory.path(), ROWS).calls();
    let mut job = Direct::new(directory.path(), ROWS);
    job.options.concurrency = concurrency;
    let summary = job.run();
    assert_eq!(summary.progress.answered, ROWS as u64, "{plan:?}");
    assert_eq!(summary.progress.input_tokens, 5 * ROWS as u64, "{plan:?}: nothing is counted twice");
    let rows: Vec<_> = job.answers().iter().map(|line| line["row"].as_u64().expect("a row")).collect();
    assert_eq!(rows, (0..ROWS as u64).collect::<Vec<_>>(), "{plan:?}");
    let calls = job.calls();
    assert_eq!(calls.len(), ROWS, "{plan:?}");
    for row in finished {
        let name = format!("n{row}");
        assert_eq!(calls[&name], before[&name], "{plan:?}: row {row} was finished and called again");
    }
    let twice = calls.values().filter(|calls| **calls > 1).count();
    assert!(calls.values().all(|calls| *calls <= 2), "{plan:?}: {calls:?}");
    twice
}

/// Returns the rows whose answers are completely in a file.
fn rows_in(directory: &Path) -> Vec<u64> {
    let mut rows = Vec::new();
    for entry in std::fs::read_dir(directory.join("job")).expect("readable") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("answers-") && !name.ends_with(".part") {
            let text = std::fs::read_to_string(&path).expect("readable");
            let complete = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            let lines = complete.map(|line| serde_json::from_str::<serde_json::Value>(line).expect("a whole line"));
            rows.extend(lines.map(|line| line["row"].as_u64().expect("a row")));
        }
    }
    rows
}

#[test]
fn a_job_that_is_killed_at_any_write_loses_no_row_and_calls_none_twice_but_the_one_in_flight() {
    for write in 0..ROWS {
        let (before, after) = (Death::BeforeWrite(write), Death::AfterWrite(write));
        assert_eq!(killed_and_finished(before, 1), 1, "the answer was not on the disk");
        assert_eq!(killed_and_finished(Death::Torn(write, [1, 50, 99][write % 3]), 1), 1);
        assert_eq!(killed_and_finished(after, 1), 0);
    }
}

#[test]
fn a_job_that_is_killed_while_a_file_is_completed_calls_nothing_again() {
    for file in 0..3 {
        assert_eq!(killed_and_finished(Death::BeforeComplete(file), 1), 0);
        assert_eq!(killed_and_finished(Death::AfterComplete(file), 1), 0);
    }
}

#[test]
fn with_several_calls_at_a_time_only_those_in_flight_are_called_again() {
    for write in 0..2 {
        for death in [Death::BeforeWrite(write), Death::Torn(write, 50), Death::AfterWrite(write)] {
            assert!(killed_and_finished(death, 3) <= 3);
        }
    }
}

//! Turns that are killed with SIGKILL at every write to their journal, inside their tools, and while they are resumed.
//!
//! This cannot show that data is on the disk when a commit returns; only a power failure could. `journal.rs` shows that
//! nothing is done before its record has been committed.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tempfile::TempDir;
use tympan_runtime::turn::journal::{JournalStore, JournalWriter, Stored};
use tympan_runtime::{Journal, Result, TurnRun};

use crate::journals;
use crate::journals::{Effect, Moment, STEPS, effects, inputs, prompt, runtime, settings, state};
use crate::shared;

/// The environment variable with the plan for a child process.
const PLAN: &str = "TYMPAN_TEST_KILL_PLAN";

/// The point at which a process is killed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Death {
    /// Before a commit, counted from 0. The creation of the journal does not count.
    Before(usize),
    /// In the middle of a commit. This percentage of it is in the file, but never all of it.
    Torn(usize, u64),
    /// After a commit.
    After(usize),
    /// Before the effect of a tool, counted from 0.
    BeforeEffect(usize),
    /// After the effect of a tool, before it returns.
    AfterEffect(usize),
    /// Before the journal is created.
    BeforeCreate,
    /// After the journal is created.
    AfterCreate,
}

/// The plan for a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Plan {
    directory: PathBuf,
    journal: String,
    resume: bool,
    idempotent: bool,
    compaction: bool,
    death: Death,
}

impl Plan {
    fn new(directory: &Path, death: Death) -> Self {
        let (journal, directory) = ("turn.journal".to_owned(), directory.to_owned());
        Self { directory, journal, resume: false, idempotent: true, compaction: false, death }
    }

    fn path(&self) -> PathBuf {
        self.directory.join(&self.journal)
    }

    fn effect(&self) -> Effect {
        Effect::new(&self.directory, self.idempotent)
    }

    /// Executes the plan in a child process, which must not survive.
    fn perform(&self) {
        let mut child = Command::new(std::env::current_exe().expect("this is a program"));
        child.args(["journal_kill::dies_as_planned", "--exact", "--ignored", "--nocapture"]);
        child.env(PLAN, serde_json::to_string(self).expect("it is JSON"));
        let status = child.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("it starts");
        assert_eq!(status.signal(), Some(Signal::KILL.as_raw()), "{self:?}: {status}");
    }

    /// Finishes the turn without interruption: from the journal, or from the start if there is none.
    fn finish(&self) -> TurnRun {
        let journal = Journal::at(self.path()).expect("a journal");
        let settings = settings(&self.effect(), journal, self.compaction);
        let turn = match self.path().exists() {
            true => runtime().0.resume(&prompt(), &settings),
            false => runtime().0.turn(&prompt(), inputs(), &settings),
        };
        turn.unwrap_or_else(|error| panic!("{self:?}: {error}"))
    }
}

fn die() -> ! {
    kill_process(getpid(), Signal::KILL).expect("a process may kill itself");
    unreachable!("nobody survives that")
}

/// The child process: runs the turn until it is killed.
#[test]
#[ignore = "it is run by the other tests, and dies"]
fn dies_as_planned() {
    let plan: Plan = serde_json::from_str(&std::env::var(PLAN).expect("a plan")).expect("it is JSON");
    let mut effect = plan.effect();
    let (before, after, death) = (AtomicUsize::new(0), AtomicUsize::new(0), plan.death);
    effect.interrupt = Some(Arc::new(move |_, moment| match (moment, death) {
        (Moment::BeforeEffect, Death::BeforeEffect(at)) if before.fetch_add(1, Ordering::SeqCst) == at => die(),
        (Moment::AfterEffect, Death::AfterEffect(at)) if after.fetch_add(1, Ordering::SeqCst) == at => die(),
        _ => {}
    }));
    let journal = Journal::in_store(Arc::new(Mortal::new(&plan)));
    let settings = settings(&effect, journal, plan.compaction);
    let _ = match plan.resume {
        true => runtime().0.resume(&prompt(), &settings),
        false => runtime().0.turn(&prompt(), inputs(), &settings),
    };
}

/// A store that kills the process at a commit.
struct Mortal {
    path: PathBuf,
    inner: Arc<dyn JournalStore>,
    death: Death,
}

impl Mortal {
    fn new(plan: &Plan) -> Self {
        let path = plan.path();
        Self { inner: Journal::at(&path).expect("a journal").store(), path, death: plan.death }
    }

    fn writer(&self, inner: Box<dyn JournalWriter>) -> Box<dyn JournalWriter> {
        Box::new(MortalWriter { inner, path: self.path.clone(), death: self.death, commits: 0 })
    }
}

impl JournalStore for Mortal {
    fn create(&self, first: &[u8]) -> Result<Box<dyn JournalWriter>> {
        if matches!(self.death, Death::BeforeCreate) {
            die();
        }
        let writer = self.inner.create(first)?;
        if matches!(self.death, Death::AfterCreate) {
            die();
        }
        Ok(self.writer(writer))
    }

    fn open(&self) -> Result<(Stored, Box<dyn JournalWriter>)> {
        let (stored, writer) = self.inner.open()?;
        Ok((stored, self.writer(writer)))
    }

    fn read(&self) -> Result<Stored> {
        self.inner.read()
    }
}

struct MortalWriter {
    inner: Box<dyn JournalWriter>,
    path: PathBuf,
    death: Death,
    commits: usize,
}

impl MortalWriter {
    fn length(&self) -> u64 {
        fs::metadata(&self.path).expect("it is there").len()
    }
}

impl JournalWriter for MortalWriter {
    fn commit(&mut self, records: &[Vec<u8>]) -> Result<()> {
        let number = self.commits;
        self.commits += 1;
        if matches!(self.death, Death::Before(at) if at == number) {
            die();
        }
        let before = self.length();
        self.inner.commit(records)?;
        match self.death {
            Death::After(at) if at == number => die(),
            Death::Torn(at, percent) if at == number => {
                // Simulate the result of an interrupted write.
                let written = self.length() - before;
                let left = before + (written * percent / 100).clamp(1, written - 1);
                let file = OpenOptions::new().write(true).open(&self.path).expect("it is there");
                file.set_len(left).expect("it can be cut");
                die()
            }
            _ => Ok(()),
        }
    }
}

/// The commits of each step: an answer, the start of two tools, and a result of each.
const COMMITS_OF_STEP: usize = 4;

/// The commits of a whole turn.
const COMMITS: usize = STEPS * COMMITS_OF_STEP + 1;

/// Creates a folder in memory, if possible. Killed processes do not lose data in the page cache, and waiting for a disk
/// a hundred thousand times would dominate the tests.
fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder")
}

/// Returns the final state of an uninterrupted turn.
fn undisturbed(compaction: bool) -> Value {
    let folder = folder();
    let plan = Plan { compaction, ..Plan::new(folder.path(), Death::BeforeCreate) };
    let turn = plan.finish();
    assert_eq!(turn.rounds as usize, STEPS + 1);
    state(&turn)
}

/// Kills a process as planned, finishes its turn, and checks that nothing is missing or has happened twice.
fn kill_and_finish(plan: &Plan, expected: &Value) {
    plan.perform();
    finish_as_if_nothing_had_happened(plan, expected);
}

fn finish_as_if_nothing_had_happened(plan: &Plan, expected: &Value) {
    let turn = plan.finish();
    assert_eq!(&state(&turn), expected, "{plan:?}");
    let effects = effects(&plan.effect().file);
    let distinct: HashSet<_> = effects.iter().collect();
    assert_eq!((effects.len(), distinct.len()), (STEPS * 2, STEPS * 2), "{plan:?}");
    // Resuming a finished turn gives the same state and has no effects.
    let again = plan.finish();
    assert_eq!(&state(&again), expected, "{plan:?}");
    assert_eq!(journals::effects(&plan.effect().file), effects, "{plan:?}");
}

fn each(deaths: impl Iterator<Item = Death>) {
    let expected = undisturbed(false);
    for death in deaths {
        let folder = folder();
        kill_and_finish(&Plan::new(folder.path(), death), &expected);
    }
}

#[test]
fn before_every_commit() {
    each((0..COMMITS).map(Death::Before).chain([Death::BeforeCreate, Death::AfterCreate]));
}

#[test]
fn after_every_commit() {
    each((0..COMMITS).map(Death::After));
}

#[test]
fn early_in_every_commit() {
    each((0..COMMITS).flat_map(|commit| [Death::Torn(commit, 0), Death::Torn(commit, 25)]));
}

#[test]
fn late_in_every_commit() {
    each((0..COMMITS).flat_map(|commit| [Death::Torn(commit, 60), Death::Torn(commit, 100)]));
}

#[test]
fn in_every_tool_that_may_run_again() {
    each((0..STEPS * 2).flat_map(|tool| [Death::BeforeEffect(tool), Death::AfterEffect(tool)]));
}

/// A tool that must not run twice does not. The model learns that the outcome is unknown and tries again itself.
#[test]
fn in_every_tool_that_must_not_run_again() {
    let deaths = (0..STEPS * 2).flat_map(|tool| [Death::BeforeEffect(tool), Death::AfterEffect(tool)]);
    for death in deaths.chain((0..COMMITS).map(Death::After)) {
        let folder = folder();
        let plan = Plan { idempotent: false, ..Plan::new(folder.path(), death) };
        plan.perform();
        let turn = plan.finish();
        assert_eq!(turn.run.outcome.to_json(), format!("All {STEPS} steps are done."), "{plan:?}");
        let effects = effects(&plan.effect().file);
        assert_eq!(effects.iter().collect::<HashSet<_>>().len(), effects.len(), "{plan:?}: something ran twice");
        let told: Vec<_> = turn.messages.iter().map(|message| message.to_text()).collect();
        let known = told.iter().filter(|text| text.starts_with("step ")).count();
        let unknown = told.iter().filter(|text| text.contains("its outcome is unknown")).count();
        assert!(unknown <= 2, "{plan:?}: {unknown}");
        let lost = effects.len().saturating_sub(known);
        assert!(known <= effects.len() && lost <= unknown, "{plan:?}: {known} results of {} effects", effects.len());
    }
}

#[test]
fn while_it_is_resumed() {
    let expected = undisturbed(false);
    let half = COMMITS / 2;
    for commit in 0..COMMITS - half - 1 {
        for death in [Death::Before(commit), Death::Torn(commit, 50), Death::After(commit)] {
            let folder = folder();
            Plan::new(folder.path(), Death::After(half)).perform();
            kill_and_finish(&Plan { resume: true, ..Plan::new(folder.path(), death) }, &expected);
        }
    }
}

#[test]
fn after_every_commit_of_one_turn() {
    let (expected, folder) = (undisturbed(false), folder());
    Plan::new(folder.path(), Death::AfterCreate).perform();
    let plan = Plan { resume: true, ..Plan::new(folder.path(), Death::After(0)) };
    // The start of a tool is not recorded again, so each process gets one commit further.
    (0..COMMITS).for_each(|_| plan.perform());
    let length = || fs::metadata(plan.path()).expect("it is there").len();
    let before = length();
    finish_as_if_nothing_had_happened(&plan, &expected);
    assert_eq!(length(), before, "it was over");
}

#[cfg(feature = "sqlite")]
#[test]
fn at_every_commit_of_a_database() {
    let expected = undisturbed(false);
    for death in (0..COMMITS).flat_map(|commit| [Death::Before(commit), Death::After(commit)]) {
        let folder = folder();
        kill_and_finish(&Plan { journal: "turn.db".into(), ..Plan::new(folder.path(), death) }, &expected);
    }
}

/// The shared cases.
#[test]
fn shared_cases() {
    for case in shared::attacks() {
        let Some(at) = case["inputs"]["kill_at"].as_str().filter(|_| case["class"] == "durability") else { continue };
        assert_eq!(case["inputs"]["script"], "20 steps, 3 tools, 2 parallel");
        assert_eq!((&case["expect"]["lost_results"], &case["expect"]["duplicate_effects"]), (&0.into(), &0.into()));
        let (answer, begun, first, second) = (8, 9, 10, 11);
        let death = match at {
            "before-model-call" => Death::After(second),
            "after-response-before-commit" => Death::Before(answer),
            "after-commit-before-tool" => Death::After(begun),
            "during-tool" => Death::AfterEffect(5),
            "between-parallel-tools" => Death::After(first),
            "after-tool-commit" => Death::After(second),
            "during-resume" | "during-compaction" => Death::Before(30),
            other => panic!("nobody knows when `{other}` is"),
        };
        let folder = folder();
        let compaction = at == "during-compaction";
        let mut plan = Plan { compaction, ..Plan::new(folder.path(), death) };
        if at == "during-resume" {
            plan.perform();
            plan.resume = true;
        }
        kill_and_finish(&plan, &undisturbed(compaction));
    }
}

/// A turn with a summary has additional commits. It is killed at each of them.
#[test]
fn at_every_commit_of_a_turn_that_sums_up() {
    let expected = undisturbed(true);
    for death in (0..COMMITS + 5).flat_map(|commit| [Death::Before(commit), Death::After(commit)]) {
        let folder = folder();
        kill_and_finish(&Plan { compaction: true, ..Plan::new(folder.path(), death) }, &expected);
    }
}

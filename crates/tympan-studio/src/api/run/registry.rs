//! The runs that are not over, and the questions that wait for an answer.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tympan_core::turn::Verdict;
use tympan_runtime::CancelToken;

/// The runs that are not over.
#[derive(Default)]
pub(crate) struct Runs(Mutex<State>);

#[derive(Default)]
struct State {
    last: u64,
    runs: HashMap<u64, Running>,
}

#[derive(Default)]
struct Running {
    cancel: CancelToken,
    last_question: u64,
    questions: HashMap<u64, oneshot::Sender<Verdict>>,
}

impl Runs {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a run, and returns its number and what cancels it.
    pub(super) fn begin(&self) -> (u64, CancelToken) {
        let mut state = self.state();
        state.last += 1;
        let (run, running) = (state.last, Running::default());
        let cancel = running.cancel.clone();
        state.runs.insert(run, running);
        (run, cancel)
    }

    /// Forgets a run. Its questions are not answered any more.
    pub(super) fn end(&self, run: u64) {
        self.state().runs.remove(&run);
    }

    /// Registers a question, and returns its number and where the answer arrives.
    pub(super) fn ask(&self, run: u64) -> Option<(u64, oneshot::Receiver<Verdict>)> {
        let mut state = self.state();
        let running = state.runs.get_mut(&run)?;
        running.last_question += 1;
        let (sender, receiver) = oneshot::channel();
        running.questions.insert(running.last_question, sender);
        Some((running.last_question, receiver))
    }

    /// Answers a question. Returns whether somebody waits for the answer.
    pub(super) fn answer(&self, run: u64, question: u64, verdict: Verdict) -> bool {
        let sender = self.state().runs.get_mut(&run).and_then(|running| running.questions.remove(&question));
        sender.is_some_and(|sender| sender.send(verdict).is_ok())
    }

    /// Stops a run. Returns whether it was not over.
    pub(super) fn stop(&self, run: u64) -> bool {
        let cancel = self.state().runs.get(&run).map(|running| running.cancel.clone());
        cancel.inspect(CancelToken::cancel).is_some()
    }

    /// Stops all runs.
    pub(crate) fn stop_all(&self) {
        let running: Vec<_> = self.state().runs.values().map(|running| running.cancel.clone()).collect();
        running.iter().for_each(CancelToken::cancel);
    }
}

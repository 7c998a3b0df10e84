//! Approval of tool calls.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tympan::turn::{Approval as Question, Verdict};
use tympan::{Approve, CancelToken};

use super::screen::Screen;
use crate::commands::approval::{Answer, NOBODY, ask_about};

/// The approval policy for tool calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ApprovalPolicy {
    /// All tools may run.
    All,
    /// The user is asked.
    Ask,
    /// No tool may run, because there is nobody to ask.
    None,
}

/// The user's decisions about tools.
#[derive(Default)]
struct Decisions {
    /// Tools that may run without asking.
    always: HashSet<String>,
    /// Calls that an approval prompt has already shown, by tool name.
    shown: Vec<String>,
}

/// Asks before tools run. Clones share their state.
#[derive(Clone)]
pub(super) struct Approval {
    policy: ApprovalPolicy,
    /// Whether there is a user who can be asked.
    is_terminal: bool,
    decisions: Arc<Mutex<Decisions>>,
    screen: Arc<Mutex<Screen>>,
}

impl Approval {
    pub(super) fn new(policy: ApprovalPolicy, is_terminal: bool, screen: Arc<Mutex<Screen>>) -> Self {
        Self { policy, is_terminal, decisions: Arc::default(), screen }
    }

    /// Returns whether there is a user who can be asked.
    pub(super) fn can_ask(&self) -> bool {
        self.is_terminal
    }

    /// Returns whether no tool can run.
    pub(super) fn runs_none(&self) -> bool {
        self.policy == ApprovalPolicy::None
    }

    /// Returns the approver for a turn.
    pub(super) fn approve(&self, cancel: &CancelToken) -> Approve {
        let (this, cancel) = (self.clone(), cancel.clone());
        Arc::new(move |approval| {
            let (this, cancel) = (this.clone(), cancel.clone());
            Box::pin(async move { this.verdict(approval, &cancel).await })
        })
    }

    async fn verdict(&self, question: Question, cancel: &CancelToken) -> Verdict {
        let answer = match self.known_answer(&question) {
            Some(answer) => answer,
            None => self.ask(&question).await,
        };
        match answer {
            Answer::Yes => Verdict::Allow,
            Answer::Always => {
                self.decisions().always.insert(question.run.name);
                Verdict::Allow
            }
            Answer::No(reason) => Verdict::Deny(reason),
            Answer::Quit => {
                cancel.cancel();
                // Cancelling ends the turn, which must not receive a verdict before that.
                std::future::pending().await
            }
        }
    }

    /// Returns the answer that needs no question. Neither `--yes` nor an earlier answer applies to the questions of the
    /// policy for tools.
    fn known_answer(&self, question: &Question) -> Option<Answer> {
        if !question.reasons.is_empty() {
            return (!self.is_terminal).then(|| Answer::No(NOBODY.to_owned()));
        }
        match self.policy {
            ApprovalPolicy::All => Some(Answer::Yes),
            ApprovalPolicy::None => Some(Answer::No("approval is required, but no user is available".to_owned())),
            ApprovalPolicy::Ask => self.decisions().always.contains(&question.run.name).then_some(Answer::Yes),
        }
    }

    async fn ask(&self, question: &Question) -> Answer {
        self.decisions().shown.push(question.run.name.clone());
        locked(&self.screen).settle();
        ask_about(question, true).await.unwrap_or_else(|error| {
            locked(&self.screen).fail(error);
            Answer::Quit
        })
    }

    /// Returns whether an approval prompt has already shown a call of this tool, and consumes that entry.
    pub(super) fn has_shown(&self, name: &str) -> bool {
        let mut decisions = self.decisions();
        let at = decisions.shown.iter().position(|shown| shown == name);
        at.map(|at| decisions.shown.remove(at)).is_some()
    }

    /// Clears the calls that were shown, at the end of a turn.
    pub(super) fn turn_over(&self) {
        self.decisions().shown.clear();
    }

    fn decisions(&self) -> MutexGuard<'_, Decisions> {
        self.decisions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Locks the screen.
pub(super) fn locked(screen: &Mutex<Screen>) -> MutexGuard<'_, Screen> {
    screen.lock().unwrap_or_else(PoisonError::into_inner)
}

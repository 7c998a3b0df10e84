//! Approval of tool calls.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value as Json;
use tympan::turn::{Approval as Question, Verdict};
use tympan::{Approve, CancelToken};

use super::screen::Screen;
use crate::commands::approval::{Answer, NOBODY, ask_about_policy, ask_about_tool};

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
        let answer = match question.reasons.is_empty() {
            true => self.answer_about_tool(&question).await,
            false => self.answer_about_policy(&question).await,
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

    async fn answer_about_tool(&self, question: &Question) -> Answer {
        let run = &question.run;
        match self.policy {
            ApprovalPolicy::All => return Answer::Yes,
            ApprovalPolicy::None => return Answer::No("approval is required, but no user is available".to_owned()),
            ApprovalPolicy::Ask if self.decisions().always.contains(&run.name) => return Answer::Yes,
            ApprovalPolicy::Ask => {}
        }
        self.decisions().shown.push(run.name.clone());
        let arguments = Json::Object((*run.arguments).clone());
        locked(&self.screen).ask_about(&format!("→ {} {arguments}", run.name));
        ask_about_tool().await
    }

    /// Asks a question of the policy. Neither `--yes` nor an earlier answer applies to it.
    async fn answer_about_policy(&self, question: &Question) -> Answer {
        if !self.is_terminal {
            return Answer::No(NOBODY.to_owned());
        }
        self.decisions().shown.push(question.run.name.clone());
        locked(&self.screen).settle();
        ask_about_policy(question).await.unwrap_or_else(|error| {
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

//! Approval of tool calls.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustyline::DefaultEditor;
use serde_json::Value as Json;
use tympan::turn::{ToolRun, Verdict};
use tympan::{Approve, CancelToken};

use super::screen::Screen;

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
    decisions: Arc<Mutex<Decisions>>,
    screen: Arc<Mutex<Screen>>,
}

/// The user's answer.
enum Answer {
    Yes,
    Always,
    No(String),
    /// Cancel the turn.
    Quit,
}

impl Approval {
    pub(super) fn new(policy: ApprovalPolicy, screen: Arc<Mutex<Screen>>) -> Self {
        Self { policy, decisions: Arc::default(), screen }
    }

    /// Returns whether no tool can run.
    pub(super) fn runs_none(&self) -> bool {
        self.policy == ApprovalPolicy::None
    }

    /// Returns the approver for a turn.
    pub(super) fn approve(&self, cancel: &CancelToken) -> Approve {
        let (this, cancel) = (self.clone(), cancel.clone());
        Arc::new(move |run| {
            let (this, cancel) = (this.clone(), cancel.clone());
            Box::pin(async move { this.verdict(run, &cancel).await })
        })
    }

    async fn verdict(&self, run: ToolRun, cancel: &CancelToken) -> Verdict {
        match self.policy {
            ApprovalPolicy::All => return Verdict::Allow,
            ApprovalPolicy::None => return Verdict::Deny("approval is required, but no user is available".to_owned()),
            ApprovalPolicy::Ask if self.decisions().always.contains(&run.name) => return Verdict::Allow,
            ApprovalPolicy::Ask => {}
        }
        self.decisions().shown.push(run.name.clone());
        let arguments = Json::Object((*run.arguments).clone());
        locked(&self.screen).ask_about(&format!("→ {} {arguments}", run.name));
        // Use another thread, so that waiting for the user does not block anything else.
        match tokio::task::spawn_blocking(ask).await.unwrap_or(Answer::Quit) {
            Answer::Yes => Verdict::Allow,
            Answer::Always => {
                self.decisions().always.insert(run.name);
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

/// Asks and blocks until the user answers.
fn ask() -> Answer {
    // Ignore keys typed before the prompt appears, whether they are still in the terminal's queue or were read ahead by
    // another editor.
    forget_typed_ahead();
    let Ok(mut editor) = DefaultEditor::new() else { return Answer::Quit };
    loop {
        // Ctrl-C and Ctrl-D cancel the turn.
        let Ok(answer) = editor.readline("run this tool? [y]es, [n]o, [a]lways, [q]uit the turn: ") else {
            return Answer::Quit;
        };
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => return Answer::Yes,
            "a" | "always" => return Answer::Always,
            "q" | "quit" => return Answer::Quit,
            "n" | "no" => {
                let Ok(reason) = editor.readline("reason for the model (optional): ") else {
                    return Answer::Quit;
                };
                let reason = if reason.trim().is_empty() { "the user declined" } else { reason.trim() };
                return Answer::No(reason.to_owned());
            }
            _ => {}
        }
    }
}

/// Discards keys that were typed but not read yet.
fn forget_typed_ahead() {
    #[cfg(unix)]
    // If flushing fails, reading from the terminal fails too.
    let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
}

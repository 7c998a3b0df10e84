//! Asking before tools run.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustyline::DefaultEditor;
use serde_json::Value as Json;
use tympan::turn::{ToolRun, Verdict};
use tympan::{Approve, CancelToken};

use super::screen::Screen;

/// Whether tools may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consent {
    /// All of them.
    All,
    /// Those that the user says yes to.
    Ask,
    /// None: nobody can be asked.
    None,
}

/// What the user has said about tools.
#[derive(Default)]
struct Said {
    /// Tools that may run without a question.
    always: HashSet<String>,
    /// Calls that a question has shown, by the names of their tools.
    shown: Vec<String>,
}

/// Asks before tools run. Clones are the same.
#[derive(Clone)]
pub(super) struct Approval {
    consent: Consent,
    said: Arc<Mutex<Said>>,
    screen: Arc<Mutex<Screen>>,
}

/// What somebody answered.
enum Answer {
    Yes,
    Always,
    No(String),
    /// The turn is to end.
    Quit,
}

impl Approval {
    pub(super) fn new(consent: Consent, screen: Arc<Mutex<Screen>>) -> Self {
        Self { consent, said: Arc::default(), screen }
    }

    /// Whether no tool will run.
    pub(super) fn runs_none(&self) -> bool {
        self.consent == Consent::None
    }

    /// What a turn asks with.
    pub(super) fn approve(&self, cancel: &CancelToken) -> Approve {
        let (this, cancel) = (self.clone(), cancel.clone());
        Arc::new(move |run| {
            let (this, cancel) = (this.clone(), cancel.clone());
            Box::pin(async move { this.verdict(run, &cancel).await })
        })
    }

    async fn verdict(&self, run: ToolRun, cancel: &CancelToken) -> Verdict {
        match self.consent {
            Consent::All => return Verdict::Allow,
            Consent::None => return Verdict::Deny("it needs the user's consent, and nobody can be asked".to_owned()),
            Consent::Ask if self.said().always.contains(&run.name) => return Verdict::Allow,
            Consent::Ask => {}
        }
        self.said().shown.push(run.name.clone());
        let arguments = Json::Object((*run.arguments).clone());
        locked(&self.screen).ask_about(&format!("→ {} {arguments}", run.name));
        // Somebody who thinks about it must not hold up anything else.
        match tokio::task::spawn_blocking(ask).await.unwrap_or(Answer::Quit) {
            Answer::Yes => Verdict::Allow,
            Answer::Always => {
                self.said().always.insert(run.name);
                Verdict::Allow
            }
            Answer::No(reason) => Verdict::Deny(reason),
            Answer::Quit => {
                cancel.cancel();
                // The turn ends with this; no verdict may come before.
                std::future::pending().await
            }
        }
    }

    /// Whether a question has shown a call of this tool that begins now.
    pub(super) fn has_shown(&self, name: &str) -> bool {
        let mut said = self.said();
        let at = said.shown.iter().position(|shown| shown == name);
        at.map(|at| said.shown.remove(at)).is_some()
    }

    /// Forgets which calls were shown: they were of a turn that is over.
    pub(super) fn turn_over(&self) {
        self.said().shown.clear();
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The screen, for one who prints.
pub(super) fn locked(screen: &Mutex<Screen>) -> MutexGuard<'_, Screen> {
    screen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks, and blocks until there is an answer.
fn ask() -> Answer {
    // What was typed before the question was seen is no answer to it: neither what waits in the terminal, nor what
    // another editor has read ahead.
    forget_typed_ahead();
    let Ok(mut editor) = DefaultEditor::new() else { return Answer::Quit };
    loop {
        // Ctrl-C and Ctrl-D, too, are answers.
        let Ok(answer) = editor.readline("run it? [y]es, [n]o, [a]lways this tool, [q]uit the turn: ") else {
            return Answer::Quit;
        };
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => return Answer::Yes,
            "a" | "always" => return Answer::Always,
            "q" | "quit" => return Answer::Quit,
            "n" | "no" => {
                let Ok(reason) = editor.readline("what to tell the model (nothing: Enter): ") else {
                    return Answer::Quit;
                };
                let reason = if reason.trim().is_empty() { "the user said no" } else { reason.trim() };
                return Answer::No(reason.to_owned());
            }
            _ => {}
        }
    }
}

/// Empties the terminal of what was typed and not yet read.
fn forget_typed_ahead() {
    #[cfg(unix)]
    // A terminal that cannot be emptied is one that will fail to be read.
    let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
}

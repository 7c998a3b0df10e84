//! Work that waits: it runs on Tympan's own driver, and tells the other side what comes of it.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use napi::Status;
use napi::bindgen_prelude::FnArgs;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi_derive::napi;
use serde::Serialize;
use tokio::sync::oneshot;
use tympan::Result;
use tympan_runtime::CancelToken;
use tympan_runtime::io::{self, Task};

use crate::border::{error_text, written};

/// What the other side is told: of which kind it is, the number of a question or 0, and the rest as JSON.
type Told = FnArgs<(String, u32, String)>;
/// The function of the other side that is told everything. Node does not end as long as there is one.
pub(crate) type Listener = ThreadsafeFunction<Told, (), Told, Status, false>;

/// An answer to a question, or the words of an exception.
type Answer = std::result::Result<String, String>;
type Questions = Arc<Mutex<HashMap<u32, oneshot::Sender<Answer>>>>;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The other side, as the work sees it.
pub(crate) struct Host {
    listener: Listener,
    questions: Questions,
    asked: AtomicU32,
}

impl Host {
    pub(crate) fn new(listener: Listener) -> Arc<Self> {
        Arc::new(Self { listener, questions: Questions::default(), asked: AtomicU32::new(0) })
    }

    /// Says something that wants no answer.
    pub(crate) fn tell(&self, kind: &str, value: &impl Serialize) {
        if let Ok(text) = written(value) {
            self.say(kind, 0, text);
        }
    }

    fn say(&self, kind: &str, question: u32, text: String) {
        // If nobody listens any more, Node is about to end.
        let _ = self.listener.call((kind.to_owned(), question, text).into(), ThreadsafeFunctionCallMode::NonBlocking);
    }

    /// Asks something and waits for the answer.
    pub(crate) async fn ask(&self, kind: &str, value: &impl Serialize) -> Answer {
        let text = written(value).map_err(|error| error.to_string())?;
        let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, answer) = oneshot::channel();
        locked(&self.questions).insert(number, sender);
        let _forget = Forget { questions: &self.questions, number };
        self.say(kind, number, text);
        answer.await.unwrap_or_else(|_| Err("nobody answered".to_owned()))
    }
}

/// Forgets a question that nobody waits for any more.
struct Forget<'a> {
    questions: &'a Questions,
    number: u32,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        locked(self.questions).remove(&self.number);
    }
}

/// Work that is under way.
#[napi]
pub struct Work {
    task: Option<Task<()>>,
    questions: Questions,
    cancel: CancelToken,
}

impl Work {
    /// Begins some work. What it comes to is told as `done`, and its error as `failed`.
    pub(crate) fn begin(
        host: Arc<Host>,
        cancel: CancelToken,
        work: impl Future<Output = Result<String>> + Send + 'static,
    ) -> Self {
        let questions = host.questions.clone();
        let work = io::spawn(work);
        let task = io::spawn(async move {
            match work.await {
                Ok(text) => host.say("done", 0, text),
                Err(error) => host.say("failed", 0, error_text(&error)),
            }
            Ok(())
        });
        Self { task: Some(task), questions, cancel }
    }
}

#[napi]
impl Work {
    /// Stops it at once. Nothing more is told of it.
    #[napi]
    pub fn stop(&mut self) {
        self.task = None;
    }

    /// Asks it to end. It says `failed` when it has.
    #[napi]
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Answers a question.
    #[napi]
    pub fn answer(&self, question: u32, ok: bool, text: String) {
        if let Some(sender) = locked(&self.questions).remove(&question) {
            // Who asked may have stopped waiting.
            let _ = sender.send(if ok { Ok(text) } else { Err(text) });
        }
    }
}

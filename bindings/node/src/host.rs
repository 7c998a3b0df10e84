//! Calls from the engine to JavaScript, from any thread.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use napi::bindgen_prelude::{FnArgs, FunctionRef};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Env, Status};
use serde::Serialize;
use tokio::sync::oneshot;
use tympan::net::io;

use crate::border::written;
use crate::prompt::{NativePrompt, NativeRendered};

/// A call to JavaScript: its kind, the number of a question or 0, the data as JSON, and a prompt and a rendered prompt
/// if there are any.
pub(crate) type HostCall = FnArgs<(String, u32, String, Option<NativePrompt>, Option<NativeRendered>)>;
/// The JavaScript function that receives all calls of some work. Node does not exit while it exists.
pub(crate) type Listener = ThreadsafeFunction<HostCall, (), HostCall, Status, false>;
/// The JavaScript function that receives all calls of a runtime. It does not keep Node running.
pub(crate) type WeakListener = ThreadsafeFunction<HostCall, (), HostCall, Status, false, true>;

/// An answer to a question, or the message of an exception.
pub(crate) type Answer = Result<String, String>;

/// The data of a question or a notification.
#[derive(Default)]
pub(crate) struct Question {
    text: String,
    prompt: Option<NativePrompt>,
    rendered: Option<NativeRendered>,
}

impl Question {
    /// Creates a question from a value, as JSON.
    pub(crate) fn new(value: &impl Serialize) -> Result<Self, String> {
        written(value).map(Self::from).map_err(|error| error.to_string())
    }

    /// Attaches a prompt.
    pub(crate) fn about(mut self, prompt: impl Into<NativePrompt>) -> Self {
        self.prompt = Some(prompt.into());
        self
    }

    /// Attaches a rendered prompt.
    pub(crate) fn rendered(mut self, rendered: NativeRendered) -> Self {
        self.rendered = Some(rendered);
        self
    }

    fn into_call(self, kind: &str, number: u32) -> HostCall {
        (kind.to_owned(), number, self.text, self.prompt, self.rendered).into()
    }
}

impl From<String> for Question {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

/// The open questions. `None` after the end, when no more questions are accepted.
type Questions = Mutex<Option<HashMap<u32, oneshot::Sender<Answer>>>>;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The connection to JavaScript for notifications and questions.
pub(crate) struct Host {
    /// Calls JavaScript. Returns whether the call will be delivered.
    say: Box<dyn Fn(HostCall) -> bool + Send + Sync>,
    questions: Questions,
    asked: AtomicU32,
}

impl Host {
    fn new(say: impl Fn(HostCall) -> bool + Send + Sync + 'static) -> Arc<Self> {
        let questions = Mutex::new(Some(HashMap::new()));
        Arc::new(Self { say: Box::new(say), questions, asked: AtomicU32::new(0) })
    }

    /// Creates the host of some work.
    pub(crate) fn of_work(listener: Listener) -> Arc<Self> {
        Self::new(move |call| listener.call(call, ThreadsafeFunctionCallMode::NonBlocking) == Status::Ok)
    }

    /// Creates the host of a runtime.
    pub(crate) fn of_runtime(listener: WeakListener) -> Arc<Self> {
        Self::new(move |call| listener.call(call, ThreadsafeFunctionCallMode::NonBlocking) == Status::Ok)
    }

    /// Sends a notification. If it cannot be delivered, Node is about to exit.
    pub(crate) fn say(&self, kind: &str, what: Question) {
        (self.say)(what.into_call(kind, 0));
    }

    /// Sends a value as a notification.
    pub(crate) fn tell(&self, kind: &str, value: &impl Serialize) {
        if let Ok(what) = Question::new(value) {
            self.say(kind, what);
        }
    }

    /// Sends a question and waits for the answer.
    pub(crate) async fn ask(&self, kind: &str, question: Question) -> Answer {
        const NOBODY: &str = "no response from JavaScript";
        let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, answer) = oneshot::channel();
        locked(&self.questions).as_mut().ok_or(NOBODY)?.insert(number, sender);
        let _forget = Forget { host: self, number };
        if !(self.say)(question.into_call(kind, number)) {
            return Err(NOBODY.to_owned());
        }
        answer.await.unwrap_or_else(|_| Err(NOBODY.to_owned()))
    }

    /// Sends a question and blocks until it is answered. Other tasks on this thread move to another one in the
    /// meantime.
    pub(crate) fn ask_blocking(&self, kind: &str, question: Question) -> Answer {
        let wait = || io::wait(self.ask(kind, question));
        match tokio::runtime::Handle::try_current() {
            Ok(_) => tokio::task::block_in_place(wait),
            Err(_) => wait(),
        }
    }

    /// Answers a question.
    pub(crate) fn answer(&self, number: u32, answer: Answer) {
        let sender = locked(&self.questions).as_mut().and_then(|questions| questions.remove(&number));
        if let Some(sender) = sender {
            // The task that asked may have stopped waiting.
            let _ = sender.send(answer);
        }
    }

    /// Ends all waiting, because there will be no more answers.
    pub(crate) fn close(&self) {
        *locked(&self.questions) = None;
    }
}

/// Removes a question that nobody waits for anymore.
struct Forget<'a> {
    host: &'a Host,
    number: u32,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        if let Some(questions) = locked(&self.host.questions).as_mut() {
            questions.remove(&self.number);
        }
    }
}

thread_local! {
    /// The JavaScript environment, while JavaScript waits on this thread for a call.
    static HERE: Cell<Option<Env>> = const { Cell::new(None) };
}

/// Runs some work while JavaScript waits on this thread. Questions are then asked synchronously, because JavaScript
/// could never get to a queued question.
pub(crate) fn here<T>(env: Env, work: impl FnOnce() -> T) -> T {
    struct Restore(Option<Env>);
    impl Drop for Restore {
        fn drop(&mut self) {
            HERE.set(self.0);
        }
    }
    let _restore = Restore(HERE.replace(Some(env)));
    work()
}

/// The JavaScript side of a runtime, where the registered functions are.
pub(crate) struct Registered {
    pub(crate) host: Arc<Host>,
    /// Called synchronously on JavaScript's thread. The answer starts with `+`, or with `-` for a failure.
    at_once: FunctionRef<HostCall, String>,
}

impl Registered {
    pub(crate) fn new(listener: WeakListener, at_once: FunctionRef<HostCall, String>) -> Self {
        Self { host: Host::of_runtime(listener), at_once }
    }

    /// Sends a question and blocks until it is answered, on any thread.
    pub(crate) fn ask(&self, kind: &str, question: Question) -> Answer {
        let Some(env) = HERE.get() else { return self.host.ask_blocking(kind, question) };
        let answer = self.at_once.borrow_back(&env).and_then(|function| function.call(question.into_call(kind, 0)));
        let answer = answer.map_err(|error| error.reason.clone())?;
        match answer.strip_prefix('+') {
            Some(answer) => Ok(answer.to_owned()),
            None => Err(answer.strip_prefix('-').unwrap_or(&answer).to_owned()),
        }
    }
}

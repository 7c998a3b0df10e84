//! The other side, as the engine sees it: it is told things, and asked, from any thread.

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

/// What the other side is told: of which kind it is, the number of a question or 0, and the rest as JSON, with a prompt
/// and a rendered prompt where that has them.
pub(crate) type Told = FnArgs<(String, u32, String, Option<NativePrompt>, Option<NativeRendered>)>;
/// The function of the other side that is told everything about some work. Node does not end as long as there is one.
pub(crate) type Listener = ThreadsafeFunction<Told, (), Told, Status, false>;
/// The same for a runtime, which nobody waits for.
pub(crate) type WeakListener = ThreadsafeFunction<Told, (), Told, Status, false, true>;

/// An answer to a question, or the words of an exception.
pub(crate) type Answer = Result<String, String>;

/// A question, or something that is only told.
#[derive(Default)]
pub(crate) struct Question {
    text: String,
    prompt: Option<NativePrompt>,
    rendered: Option<NativeRendered>,
}

impl Question {
    /// Something as JSON.
    pub(crate) fn new(value: &impl Serialize) -> Result<Self, String> {
        written(value).map(Self::from).map_err(|error| error.to_string())
    }

    /// Together with a prompt.
    pub(crate) fn about(mut self, prompt: impl Into<NativePrompt>) -> Self {
        self.prompt = Some(prompt.into());
        self
    }

    /// Together with a rendered prompt.
    pub(crate) fn rendered(mut self, rendered: NativeRendered) -> Self {
        self.rendered = Some(rendered);
        self
    }

    fn told(self, kind: &str, number: u32) -> Told {
        (kind.to_owned(), number, self.text, self.prompt, self.rendered).into()
    }
}

impl From<String> for Question {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

/// The questions that nobody has answered yet. None are taken after the end.
type Questions = Mutex<Option<HashMap<u32, oneshot::Sender<Answer>>>>;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Who is told, and asked.
pub(crate) struct Host {
    /// Whether the other side will get to know.
    say: Box<dyn Fn(Told) -> bool + Send + Sync>,
    questions: Questions,
    asked: AtomicU32,
}

impl Host {
    fn new(say: impl Fn(Told) -> bool + Send + Sync + 'static) -> Arc<Self> {
        let questions = Mutex::new(Some(HashMap::new()));
        Arc::new(Self { say: Box::new(say), questions, asked: AtomicU32::new(0) })
    }

    /// The host of some work.
    pub(crate) fn of_work(listener: Listener) -> Arc<Self> {
        Self::new(move |told| listener.call(told, ThreadsafeFunctionCallMode::NonBlocking) == Status::Ok)
    }

    /// The host of a runtime.
    pub(crate) fn of_runtime(listener: WeakListener) -> Arc<Self> {
        Self::new(move |told| listener.call(told, ThreadsafeFunctionCallMode::NonBlocking) == Status::Ok)
    }

    /// Says something that wants no answer. If nobody listens any more, Node is about to end.
    pub(crate) fn say(&self, kind: &str, what: Question) {
        (self.say)(what.told(kind, 0));
    }

    /// The same for a value.
    pub(crate) fn tell(&self, kind: &str, value: &impl Serialize) {
        if let Ok(what) = Question::new(value) {
            self.say(kind, what);
        }
    }

    /// Asks something and waits for the answer.
    pub(crate) async fn ask(&self, kind: &str, question: Question) -> Answer {
        const NOBODY: &str = "nobody answered";
        let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, answer) = oneshot::channel();
        locked(&self.questions).as_mut().ok_or(NOBODY)?.insert(number, sender);
        let _forget = Forget { host: self, number };
        if !(self.say)(question.told(kind, number)) {
            return Err(NOBODY.to_owned());
        }
        answer.await.unwrap_or_else(|_| Err(NOBODY.to_owned()))
    }

    /// Asks and waits, wherever that is: others who are served by the same thread get another one meanwhile.
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
            // Who asked may have stopped waiting.
            let _ = sender.send(answer);
        }
    }

    /// Ends all waiting: there will be no answers.
    pub(crate) fn close(&self) {
        *locked(&self.questions) = None;
    }
}

/// Forgets a question that nobody waits for any more.
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
    /// JavaScript, while it waits on this thread for something that it has called.
    static HERE: Cell<Option<Env>> = const { Cell::new(None) };
}

/// Does some work while JavaScript waits on this thread. What it is asked meanwhile, it is asked at once: it could never
/// get to a question that waits in a queue.
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

/// The other side of a runtime: what is registered is there.
pub(crate) struct Registered {
    pub(crate) host: Arc<Host>,
    /// Is asked on JavaScript's own thread. Its answer begins with `+`, and that of a failure with `-`.
    at_once: FunctionRef<Told, String>,
}

impl Registered {
    pub(crate) fn new(listener: WeakListener, at_once: FunctionRef<Told, String>) -> Self {
        Self { host: Host::of_runtime(listener), at_once }
    }

    /// Asks and waits, on whatever thread.
    pub(crate) fn ask(&self, kind: &str, question: Question) -> Answer {
        let Some(env) = HERE.get() else { return self.host.ask_blocking(kind, question) };
        let answer = self.at_once.borrow_back(&env).and_then(|function| function.call(question.told(kind, 0)));
        let answer = answer.map_err(|error| error.reason.clone())?;
        match answer.strip_prefix('+') {
            Some(answer) => Ok(answer.to_owned()),
            None => Err(answer.strip_prefix('-').unwrap_or(&answer).to_owned()),
        }
    }
}

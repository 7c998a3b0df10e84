//! The driver of all network I/O.
//!
//! There is one driver per process, which starts when it is first used. Callers do not need an async runtime of their
//! own, and can use any runtime: a [`Task`] can be awaited or waited for anywhere. Blocking and async callers share
//! connections, because the same driver serves both.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker, ready};
use std::thread::Thread;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use crate::{Error, Kind, Result};

mod process;

pub(crate) use process::PerProcess;

/// The number of worker threads. Two are enough, because they only transfer bytes.
const WORKERS: usize = 2;

/// The maximum number of threads for blocking work, such as DNS lookups and tools. They are started when needed.
const BLOCKING: usize = 512;

/// The driver of each process. Threads do not survive a fork, so a child process starts its own driver.
static DRIVER: PerProcess<std::io::Result<Runtime>> = PerProcess::new();

fn driver() -> Result<&'static Runtime> {
    let driver = DRIVER.get(|| {
        Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .max_blocking_threads(BLOCKING)
            .thread_name("tympan-io")
            .enable_all()
            .build()
    });
    driver.as_ref().map_err(|reason| Error::new(Kind::Internal, format_args!("cannot start network threads: {reason}")))
}

/// Starts a task on the driver.
pub fn spawn<T: Send + 'static>(work: impl Future<Output = Result<T>> + Send + 'static) -> Task<T> {
    Task { process: std::process::id(), work: driver().map(|driver| driver.spawn(work)) }
}

/// Starts a task on the driver without waiting for it.
pub(crate) fn detached(work: impl Future<Output = ()> + Send + 'static) {
    if let Ok(driver) = driver() {
        driver.spawn(work);
    }
}

/// Runs blocking work on a separate thread. The work cannot be cancelled: dropping the future only discards its result.
///
/// # Errors
/// Returns an error if the work panics, or if no thread can be started.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let running = driver()?.spawn_blocking(work);
    running.await.map_err(|_| Error::new(Kind::Internal, "a background thread panicked"))
}

/// Blocks the thread until the future is ready. This works inside and outside of async code.
pub fn wait<F: Future>(future: F) -> F::Output {
    // Inside a tokio task, a future has a cooperative budget, which is renewed only when the task yields. This one
    // never does.
    let mut future = pin!(tokio::task::unconstrained(future));
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// A waker that unparks a waiting thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Work on the driver: a future for any executor, which can also be [waited for](Task::wait).
///
/// Dropping it cancels the work.
#[must_use = "the work stops when its task is dropped"]
#[derive(Debug)]
pub struct Task<T> {
    /// The ID of the process whose driver does the work.
    process: u32,
    /// The work, or the error if it could not be started.
    work: Result<JoinHandle<Result<T>>>,
}

impl<T> Task<T> {
    /// Blocks the thread until the work is done. This works inside and outside of async code.
    ///
    /// # Errors
    ///
    /// Returns the error of the work, or [`Kind::Internal`] if it panicked.
    pub fn wait(self) -> Result<T> {
        wait(self)
    }
}

impl<T> Future for Task<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let same_process = same_process(self.process);
        let output = match &mut self.work {
            Ok(work) => {
                same_process?;
                ready!(Pin::new(work).poll(context))
            }
            Err(error) => return Poll::Ready(Err(error.clone())),
        };
        self.work = Err(Error::new(Kind::Internal, "a task was polled after completion"));
        Poll::Ready(output.unwrap_or_else(|failure| {
            let what = if failure.is_panic() { "a request task panicked" } else { "the network driver stopped" };
            Err(Error::new(Kind::Internal, what).with_help("this is a bug in Tympan; please report it"))
        }))
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        if let Ok(work) = &self.work
            && same_process(self.process).is_ok()
        {
            work.abort();
        }
    }
}

/// Returns an error if this is not the process that started something. It would wait forever, because its driver does
/// not exist here.
pub(crate) fn same_process(process: u32) -> Result<()> {
    if process == std::process::id() {
        return Ok(());
    }
    Err(Error::new(Kind::Internal, "a request started before a fork cannot continue after it")
        .with_help("start the request in the process that uses the response"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_waited_for_and_awaited() {
        assert_eq!(spawn(async { Ok(1) }).wait().expect("it succeeds"), 1);
        assert_eq!(wait(async { spawn(async { Ok(2) }).await }).expect("it succeeds"), 2);
    }

    #[test]
    fn waiting_works_inside_asynchronous_code_for_any_number_of_times() {
        let runtime = Builder::new_current_thread().build().expect("a runtime starts");
        let once = |i| spawn(async move { Ok(i) }).wait().unwrap_or(0);
        let sum: u32 = runtime.block_on(async { (0..1000).map(once).sum() });
        assert_eq!(sum, 499_500);
    }

    #[test]
    fn work_runs_on_named_threads() {
        let name = spawn(async { Ok(std::thread::current().name().map(str::to_owned)) }).wait().expect("it succeeds");
        assert_eq!(name.as_deref(), Some("tympan-io"));
    }

    #[test]
    fn a_panic_is_an_error() {
        let error = spawn::<()>(async { panic!("a test panics") }).wait().expect_err("it fails");
        assert_eq!(error.kind(), Kind::Internal);
    }

    #[test]
    fn dropping_a_task_stops_the_work() {
        struct Notice(std::sync::mpsc::Sender<()>);
        impl Drop for Notice {
            fn drop(&mut self) {
                let _ = self.0.send(());
            }
        }
        let (sender, receiver) = std::sync::mpsc::channel();
        let notice = Notice(sender);
        drop(spawn::<()>(async move {
            let _notice = notice;
            std::future::pending().await
        }));
        receiver.recv().expect("the work is dropped");
    }

    #[test]
    fn a_task_of_another_process_fails_instead_of_waiting() {
        let mut task = spawn::<()>(std::future::pending());
        task.process = task.process.wrapping_add(1);
        assert_eq!(task.wait().expect_err("it fails").kind(), Kind::Internal);
    }
}

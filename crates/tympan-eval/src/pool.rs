//! Runs cases on several threads, and returns their results in order.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// How many results may wait for an earlier one.
const WINDOW: usize = 1024;

/// The work that remains, and how far it got.
struct Queue<I> {
    items: I,
    /// The number of items that were taken.
    taken: usize,
    /// The number of results that were passed on.
    done: usize,
    is_stopped: bool,
}

/// Applies a function to items on several threads. Results are passed on in the order of the items, until `sink` breaks.
/// Only a bounded number of items and results exists at a time.
pub(crate) fn map_in_order<T, R, I>(
    items: I,
    threads: usize,
    work: impl Fn(T) -> R + Sync,
    mut sink: impl FnMut(R) -> ControlFlow<()>,
) where
    T: Send,
    R: Send,
    I: Iterator<Item = T> + Send,
{
    let queue = Mutex::new(Queue { items, taken: 0, done: 0, is_stopped: false });
    let progress = Condvar::new();
    let (sender, receiver) = sync_channel(threads * 2);
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            let (sender, queue, progress, work) = (sender.clone(), &queue, &progress, &work);
            scope.spawn(move || worker(queue, progress, work, &sender));
        }
        drop(sender);
        collect(&receiver, &queue, &progress, &mut sink);
        locked(&queue).is_stopped = true;
        progress.notify_all();
        // Workers that are sending must not wait for a receiver that takes nothing.
        for _ in &receiver {}
    });
}

fn worker<T, R, I: Iterator<Item = T>>(
    queue: &Mutex<Queue<I>>,
    progress: &Condvar,
    work: &(impl Fn(T) -> R + Sync),
    sender: &SyncSender<(usize, R)>,
) {
    loop {
        let mut state = locked(queue);
        while !state.is_stopped && state.taken >= state.done + WINDOW {
            state = progress.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.is_stopped {
            return;
        }
        let Some(item) = state.items.next() else { return };
        let index = state.taken;
        state.taken += 1;
        drop(state);
        if sender.send((index, work(item))).is_err() {
            return;
        }
    }
}

fn collect<R, I>(
    receiver: &Receiver<(usize, R)>,
    queue: &Mutex<Queue<I>>,
    progress: &Condvar,
    sink: &mut impl FnMut(R) -> ControlFlow<()>,
) {
    let mut waiting = BTreeMap::new();
    let mut next = 0;
    for (index, result) in receiver {
        waiting.insert(index, result);
        while let Some(result) = waiting.remove(&next) {
            next += 1;
            locked(queue).done = next;
            progress.notify_all();
            if sink(result).is_break() {
                return;
            }
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order() {
        let mut found = Vec::new();
        map_in_order(
            0..10_000,
            4,
            |item| item * 2,
            |result| {
                found.push(result);
                ControlFlow::Continue(())
            },
        );
        assert_eq!(found, (0..10_000).map(|item| item * 2).collect::<Vec<_>>());
    }

    #[test]
    fn the_sink_can_stop_the_work() {
        let mut found = Vec::new();
        let endless = 0_u64..;
        map_in_order(
            endless,
            3,
            |item| item,
            |result| {
                found.push(result);
                if result == 4_999 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        );
        assert_eq!(found.len(), 5_000);
    }
}

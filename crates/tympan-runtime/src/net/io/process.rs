//! Values that must not be shared across a fork.

use std::mem;
use std::sync::{Arc, OnceLock};

/// A value that each process creates for itself.
///
/// After a fork, the child process ignores its parent's value: threads that no longer exist may hold its locks, so even
/// dropping it could block forever.
#[derive(Debug)]
pub(crate) struct PerProcess<T> {
    first: OnceLock<Box<Node<T>>>,
}

/// The value of one process, followed by those of its forked child processes.
#[derive(Debug)]
struct Node<T> {
    process: u32,
    value: Arc<T>,
    next: OnceLock<Box<Node<T>>>,
}

impl<T> PerProcess<T> {
    /// Creates an empty value.
    pub(crate) const fn new() -> Self {
        Self { first: OnceLock::new() }
    }

    /// Returns the value of this process. Creates it if necessary.
    pub(crate) fn get(&self, make: impl FnOnce() -> T) -> &T {
        self.get_for(std::process::id(), make)
    }

    fn get_for(&self, process: u32, make: impl FnOnce() -> T) -> &T {
        let mut slot = &self.first;
        while let Some(node) = slot.get() {
            if node.process == process {
                return &node.value;
            }
            slot = &node.next;
        }
        // Only threads of this process can compete here, so the first one always creates the right value.
        &slot.get_or_init(|| Box::new(Node { process, value: Arc::new(make()), next: OnceLock::new() })).value
    }
}

impl<T> Drop for Node<T> {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            mem::forget(Arc::clone(&self.value));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn each_process_has_its_own_value() {
        let values = PerProcess::new();
        let made = AtomicUsize::new(0);
        let make = || made.fetch_add(1, Ordering::Relaxed);
        let seen = [1, 1, 2, 3, 2, 1].map(|process| *values.get_for(process, make));
        assert_eq!(seen, [0, 0, 1, 2, 1, 0]);
    }

    #[test]
    fn only_the_own_value_is_dropped() {
        let (own, foreign) = (Arc::new(()), Arc::new(()));
        let values = PerProcess::new();
        values.get_for(std::process::id(), || Arc::clone(&own));
        values.get_for(std::process::id().wrapping_add(1), || Arc::clone(&foreign));
        drop(values);
        assert_eq!((Arc::strong_count(&own), Arc::strong_count(&foreign)), (1, 2));
    }
}

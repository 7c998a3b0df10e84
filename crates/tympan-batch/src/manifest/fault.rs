//! Ends the process at a write of the manifest, so that tests can show that nothing is lost.

/// The number of the point at which the process ends, counted from 1.
#[cfg(debug_assertions)]
const VARIABLE: &str = "TYMPAN_TEST_ABORT_AT";

/// Marks a point before or after a transaction is committed. Release builds do nothing.
#[cfg(debug_assertions)]
pub(super) fn point() {
    use std::sync::atomic::{AtomicU64, Ordering};

    static REACHED: AtomicU64 = AtomicU64::new(0);
    let reached = REACHED.fetch_add(1, Ordering::SeqCst) + 1;
    if std::env::var(VARIABLE).is_ok_and(|number| number.parse() == Ok(reached)) {
        std::process::abort();
    }
}

/// Marks a point before or after a transaction is committed. Release builds do nothing.
#[cfg(not(debug_assertions))]
pub(super) fn point() {}

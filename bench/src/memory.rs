//! Peak allocation.
//!
//! A program of its own, `peak`, measures it: an allocator that counts would slow down whatever allocates much, and so
//! would spoil the times. `peak_alloc` counts a block that grows as old and new together, as if it had to be moved.

use crate::Result;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// By row, the most that was allocated at a time during one repetition on the large value, in multiples of the output.
pub type Peaks = BTreeMap<String, f64>;

/// Asks the program at `peak`.
pub fn peaks(peak: &Path) -> Result<Peaks> {
    let output = Command::new(peak).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

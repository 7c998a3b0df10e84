//! Peak allocation.
//!
//! A separate program, `peak`, measures it, because a counting allocator would slow down allocations and distort the
//! times. `peak_alloc` counts a reallocated block as old and new together, as if it were always moved.

use crate::Result;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The peak allocation of each row during one repetition on the large value, in multiples of the output.
pub type Peaks = BTreeMap<String, f64>;

/// Runs the program at `peak` and parses its output.
pub fn peaks(peak: &Path) -> Result<Peaks> {
    let output = Command::new(peak).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

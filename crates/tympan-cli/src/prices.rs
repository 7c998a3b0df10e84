//! Costs, as people read them.

/// Formats a cost for people. Small amounts get more digits.
pub(crate) fn shown(cost: f64) -> String {
    if cost == 0.0 || cost >= 0.01 { format!("${cost:.2}") } else { format!("${cost:.6}") }
}

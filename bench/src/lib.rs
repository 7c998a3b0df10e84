//! Benchmarks of Tympan and its peers: the same work in each library's dialect, measured in one run.
//!
//! - [`data`]: the workloads. [`generate`] creates the ones in `data/`.
//! - [`peers`]: one file per library. Each turns a workload into [`row::Row`]s.
//! - [`encode`]: encoding of a request, compared with serde_json
//! - [`check`]: checks of prompts, and diagnostics in an editor
//! - [`cases`]: cases of `tympan test` that need no model
//! - [`tables`]: prompts over tables
//! - [`measure`]: time; [`count`]: instructions; [`threads`]: two threads compared with one; [`memory`]: peak
//!   allocation
//! - [`streams`]: streamed answers, by size
//! - [`bars`]: the performance bars; [`report`]: the tables and `target/bench.json`
//!
//! `benches/peers.rs` runs all of them.
//!
//! # Fairness
//!
//! - Every row must produce the expected text before it is measured.
//! - Each library is called in the cheapest way that its API allows. See [`peers`].
//! - A build has a single set of features, and Tympan enables the features of serde_json and minijinja that preserve
//!   the order of keys. The peers pay for these too: compared with a build without them, prompty's `prepare` needs 12,
//!   7 and 23 % more instructions (w1, w2, w3), and minijinja's `render` 2, 2 and 14 %. A bar that is met by less than
//!   that does not count as met.

pub mod bars;
pub mod cases;
pub mod check;
pub mod count;
pub mod data;
pub mod encode;
pub mod flow;
pub mod generate;
pub mod measure;
pub mod memory;
pub mod peers;
pub mod report;
pub mod row;
pub mod streams;
pub mod tables;
pub mod threads;

/// Errors are only reported and never handled, so a text is sufficient.
pub type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

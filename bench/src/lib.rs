//! Tympan beside its peers: the same work in each library's dialect, measured in one run.
//!
//! - [`data`]: the workloads; [`generate`] wrote the ones in `data/`
//! - [`peers`]: one file a library, each of which turns a workload into [`row::Row`]s
//! - [`measure`]: time; [`count`]: instructions; [`threads`]: two threads against one; [`memory`]: peak allocation
//! - [`bars`]: what has to hold; [`report`]: the tables and `target/bench.json`
//!
//! `benches/peers.rs` runs all of it.

pub mod bars;
pub mod count;
pub mod data;
pub mod generate;
pub mod measure;
pub mod memory;
pub mod peers;
pub mod report;
pub mod row;
pub mod threads;

/// What can go wrong here is reported, never handled: a text is enough.
pub type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

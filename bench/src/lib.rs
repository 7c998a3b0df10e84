//! Tympan beside its peers: the same work in each library's dialect, measured in one run.
//!
//! - [`data`]: the workloads; [`generate`] wrote the ones in `data/`
//! - [`peers`]: one file a library, each of which turns a workload into [`row::Row`]s
//! - [`encode`]: a request, beside serde_json's own writing of it
//! - [`measure`]: time; [`count`]: instructions; [`threads`]: two threads against one; [`memory`]: peak allocation
//! - [`streams`]: streamed answers, by their size
//! - [`bars`]: what has to hold; [`report`]: the tables and `target/bench.json`
//!
//! `benches/peers.rs` runs all of it.
//!
//! # Fair to all
//!
//! - Every row produces the expected text before it is measured.
//! - Each library is called in the way that is cheapest for it and that its interface allows: see [`peers`].
//! - One build has one set of features, and Tympan asks serde_json and minijinja to keep the order of keys. The peers
//!   pay for that too: by instructions prompty's `prepare` needs 12, 7 and 23 % more (w1, w2, w3) than in a build
//!   without, minijinja's `render` 2, 2 and 14 %. A bar that is met by less than that is not met.

pub mod bars;
pub mod count;
pub mod data;
pub mod encode;
pub mod generate;
pub mod measure;
pub mod memory;
pub mod peers;
pub mod report;
pub mod row;
pub mod streams;
pub mod threads;

/// What can go wrong here is reported, never handled: a text is enough.
pub type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

//! The tests of prompt tests, in one program: linking many takes longer than running them.

mod answers;
mod baseline;
mod estimates;
mod judge_attacks;
mod judges;
mod messages;
mod models;
mod promptfoo;
mod recording;
mod report;
mod runs;
mod statistics;
mod tools;

use std::path::PathBuf;

/// Returns the path of a fixture.
fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}

/// Reads a fixture.
fn read(name: &str) -> String {
    std::fs::read_to_string(fixture(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

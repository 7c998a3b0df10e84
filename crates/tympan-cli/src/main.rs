//! The `tympan` command.
fn main() {}

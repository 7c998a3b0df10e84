//! The tests of the rules.

mod fixtures;
mod table;
mod valid_files;

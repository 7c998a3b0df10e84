//! The tests of the rules.

mod fixtures;
mod options;
mod reach;
mod rules_page;
mod table;
mod valid_files;

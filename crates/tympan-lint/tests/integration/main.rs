//! The tests of the rules.

mod fixtures;
mod options;
mod rules_page;
#[cfg(feature = "settings")]
mod settings;
mod table;
mod valid_files;

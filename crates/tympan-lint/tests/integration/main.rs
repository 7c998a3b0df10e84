//! The tests of the rules.

mod broken_files;
mod fixtures;
mod migration;
mod options;
mod rules_page;
#[cfg(feature = "settings")]
mod settings;
mod table;
mod valid_files;

//! The tests of the rules.

mod fixtures;
mod format;
#[path = "../../../tympan-core/tests/integration/grammar/mod.rs"]
mod grammar;
mod options;
mod rules_page;
#[cfg(feature = "settings")]
mod settings;
mod table;
mod valid_files;

//! The tests of the rules.

mod broken_files;
mod fix;
mod fixtures;
mod format;
#[path = "../../../tympan-core/tests/integration/grammar/mod.rs"]
mod grammar;
mod migration;
mod options;
mod reach;
mod rules_page;
#[cfg(feature = "settings")]
mod settings;
mod suppression;
mod table;
mod test_files;
mod valid_files;

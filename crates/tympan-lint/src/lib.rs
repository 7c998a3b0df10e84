//! The rules of `tympan check`: mistakes in prompt files, and the ways that untrusted inputs take through templates.
//!
//! Everything in this crate is a pure function over data. [`check`] applies the rules to a prompt, and [`RULES`] is the
//! table of all rules.
//!
//! ```
//! use tympan_core::Prompt;
//!
//! let prompt = Prompt::from_prompty("---\nname: hello\nauthors: [Ada]\n---\nuser:\nHi!")?;
//! let findings = tympan_lint::check(&prompt, &tympan_lint::Options::default());
//! assert_eq!(findings[0].rule.name, "legacy_key");
//! # Ok::<(), tympan_core::Error>(())
//! ```
#![warn(missing_docs)]

mod finding;
mod rule;
mod rules;

pub use finding::{Finding, Fix};
pub use rule::{FixAvailability, Group, Rule};
pub use rules::{RULES, UnknownRule, rule};

use tympan_core::Prompt;

use finding::Findings;

/// Options of a check.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {}

/// Checks a prompt and returns the findings, sorted by position and without duplicates. They include the warnings from
/// loading it.
pub fn check(prompt: &Prompt, _options: &Options) -> Vec<Finding> {
    let mut findings = Findings::default();
    findings.extend(prompt.warnings().iter().filter_map(Finding::from_diagnostic));
    findings.into_sorted()
}

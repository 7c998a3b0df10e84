//! The rules of `tympan check`: mistakes in prompt files and their tests, and the ways that untrusted inputs take through templates.
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

mod baseline;
mod conditions;
mod context;
mod difference;
mod file;
mod finding;
mod fix;
pub mod format;
#[cfg(feature = "settings")]
mod glob;
mod json;
mod lines;
mod migration;
#[cfg(feature = "settings")]
mod model_settings;
mod names;
mod policy;
mod reach;
mod recovery;
mod rule;
mod rules;
mod selection;
#[cfg(feature = "settings")]
mod settings;
mod suite;
mod suppression;
mod test_file;
mod tokens;
#[cfg(feature = "settings")]
mod tool_policy;
mod typo;
pub mod yaml;

pub use baseline::{Baseline, Entry};
pub use file::{Checked, check_file};
pub use finding::{Finding, Fix};
pub use fix::{FixMode, Fixed, fix_file};
#[cfg(feature = "settings")]
pub use glob::Glob;
pub use policy::PolicyCheck;
#[cfg(feature = "settings")]
pub use policy::PolicySettings;
pub use reach::{
    BoundInput, InputReach, ReachMap, ReachPlace, ReachedMessage, Target, how_str, reach, reach_as_far_as_possible,
};
pub use rule::{FixAvailability, Group, Rule};
pub use rules::{RULES, UnknownRule, rule};
pub use selection::{Selection, Selector, UnknownSelector};
#[cfg(feature = "settings")]
pub use settings::{CheckSettings, SETTINGS_FILE, Settings, SettingsError};
pub use suite::table_columns;

use tympan_core::format::outline::Outline;
use tympan_core::spec::PromptKind;
use tympan_core::turn::ToolPolicy;
use tympan_core::wire::catalog::Catalog;
use tympan_core::wire::unsupported;
use tympan_core::{Kind, Prompt};

use context::Context;
use finding::Findings;
use rules::INDEPENDENT;

/// Options of a check: the names that an application adds to Tympan's own, and the rules to report.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The names of registered filters.
    pub filters: Vec<String>,
    /// The names of registered tests.
    pub tests: Vec<String>,
    /// The names of registered functions.
    pub functions: Vec<String>,
    /// The names of registered providers.
    pub providers: Vec<String>,
    /// The rules to report. [`check`] reports all of them.
    pub selection: Selection,
    /// The policy of the project.
    pub policy: Option<PolicyCheck>,
    /// The policy for tool calls.
    pub tool_policy: ToolPolicy,
    /// The context windows of models.
    pub catalog: Catalog,
}

impl Options {
    /// Sets the policy of the project.
    #[must_use]
    pub fn with_policy(mut self, policy: Option<PolicyCheck>) -> Self {
        self.policy = policy;
        self
    }
}

/// Checks a prompt and returns the findings, sorted by position and without duplicates. They include the warnings from
/// loading it, and the errors in its templates.
pub fn check(prompt: &Prompt, options: &Options) -> Vec<Finding> {
    let mut findings = Findings::default();
    check_outlined(prompt, &prompt.outline(), options, &mut findings);
    findings.into_sorted()
}

/// Applies every rule to a prompt with this outline.
fn check_outlined(prompt: &Prompt, outline: &Outline<'_>, options: &Options, findings: &mut Findings) {
    findings.extend(prompt.warnings().iter().filter_map(Finding::from_diagnostic));
    let no_parser = prompt.only_role().err();
    findings.extend(no_parser.iter().flat_map(Finding::from_error).map(|finding| at_key(finding, outline, "parser")));
    findings.extend(prompt.check_schemas().iter().filter_map(Finding::from_diagnostic));
    findings.extend(unsupported(prompt).iter().filter_map(Finding::from_diagnostic));
    if prompt.kind() == PromptKind::Definition {
        let noted = prompt.check().unwrap_or_default();
        let noted = noted.iter().filter_map(Finding::from_diagnostic);
        // The other rules have checks of their own.
        findings.extend(noted.filter(|finding| finding.rule.is_reported_by_engine()));
    }
    let context = Context::new(prompt, outline, options);
    mistakes(&context, findings);
    for check in RULES.iter().filter_map(|rule| rule.check) {
        check(&context, findings);
    }
}

/// Reports all mistakes in the templates.
fn mistakes(context: &Context<'_>, findings: &mut Findings) {
    for template in &context.templates {
        let mistakes = template.analysis.mistakes(template.tree.as_ref());
        let mistakes = mistakes.iter().flat_map(Finding::from_error);
        findings.extend(mistakes.map(|finding| at_key(finding, context.outline, "format")));
    }
}

/// Adds the position of a key of `template` to a finding without one: the format or the parser is not known.
fn at_key(mut finding: Finding, outline: &Outline<'_>, key: &str) -> Finding {
    let place = || {
        let template = outline.get(&["template"])?;
        let field = template.get(key).or_else(|| template.get("type").filter(|_| key == "format"));
        let field = field.map(|field| field.get("kind").or_else(|| field.get("type")).unwrap_or(field));
        Some(field.unwrap_or(template).span)
    };
    if finding.span.is_none() && finding.rule.name == Kind::NotRegistered.code() {
        finding.span = place();
    }
    finding
}

/// Applies the rules that do not depend on declarations to the templates of a prompt whose declarations are unknown.
/// Mistakes in the templates are reported if `with_mistakes` is set.
fn check_templates(prompt: &Prompt, options: &Options, with_mistakes: bool, findings: &mut Findings) {
    let outline = Outline::default();
    let context = Context::new(prompt, &outline, options);
    if with_mistakes {
        mistakes(&context, findings);
    }
    for check in INDEPENDENT.iter().filter_map(|rule| rule.check) {
        check(&context, findings);
    }
}

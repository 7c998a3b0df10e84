//! The choice of rules: which findings are reported, and which of them count as errors.

use std::fmt;
use std::str::FromStr;

use tympan_core::diagnostic::{Severity, guess};

use crate::file::Checked;
use crate::rule::{Group, Rule};
use crate::rules::{RULES, rule};

/// A set of rules, as users write it: `ALL`, a group, the beginning of a code, a code, or a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Selector {
    /// Every rule: `ALL`.
    All,
    /// The rules of a group: `trust`, or `TY3`.
    Group(Group),
    /// The rules whose codes start with these characters, such as `TY30`.
    Prefix(&'static str),
    /// One rule: `TY301`, or `untrusted_in_system`.
    Rule(&'static Rule),
}

impl Selector {
    /// Returns whether a rule is in the set.
    pub fn contains(self, rule: &Rule) -> bool {
        match self {
            Self::All => true,
            Self::Group(group) => rule.group == group,
            Self::Prefix(prefix) => rule.code.starts_with(prefix),
            Self::Rule(one) => one == rule,
        }
    }

    /// Parses an entry of `deny`, where `warnings` selects every rule.
    ///
    /// # Errors
    /// Returns the closest known word, if there is one.
    pub fn from_denied(text: &str) -> Result<Self, UnknownSelector> {
        if text.trim() == "warnings" { Ok(Self::All) } else { text.parse() }
    }

    /// Returns how narrow the set is. A narrower selector takes precedence over a wider one.
    fn rank(self) -> usize {
        match self {
            Self::All => 0,
            Self::Group(_) => 1,
            Self::Prefix(prefix) => prefix.len(),
            Self::Rule(_) => usize::MAX,
        }
    }
}

impl FromStr for Selector {
    type Err = UnknownSelector;

    fn from_str(text: &str) -> Result<Self, UnknownSelector> {
        let wanted = text.trim();
        if wanted.eq_ignore_ascii_case("all") || wanted.eq_ignore_ascii_case("TY") {
            return Ok(Self::All);
        }
        let is_group =
            |group: &Group| group.as_str().eq_ignore_ascii_case(wanted) || group.prefix().eq_ignore_ascii_case(wanted);
        if let Some(group) = Group::ALL.into_iter().find(is_group) {
            return Ok(Self::Group(group));
        }
        if let Ok(rule) = rule(wanted) {
            return Ok(Self::Rule(rule));
        }
        let prefix = |rule: &&Rule| rule.code.get(..wanted.len()).filter(|start| start.eq_ignore_ascii_case(wanted));
        let prefix = RULES.iter().find_map(prefix).filter(|prefix| prefix.len() > 2);
        prefix.map(Self::Prefix).ok_or_else(|| UnknownSelector::new(wanted))
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::All => "ALL",
            Self::Group(group) => group.as_str(),
            Self::Prefix(prefix) => prefix,
            Self::Rule(rule) => rule.code,
        })
    }
}

/// The error for a word that selects no rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownSelector {
    /// The word.
    pub wanted: String,
    /// The word that was probably meant.
    pub suggestion: Option<&'static str>,
}

impl UnknownSelector {
    fn new(wanted: &str) -> Self {
        let is_code = wanted.bytes().any(|byte| byte.is_ascii_digit());
        let rules = RULES.iter().map(|rule| if is_code { rule.code } else { rule.name });
        let known = rules.chain(Group::ALL.map(Group::as_str)).chain(["ALL"]);
        let suggestion = guess(&wanted.replace('-', "_"), known);
        Self { wanted: wanted.to_owned(), suggestion }
    }
}

impl fmt::Display for UnknownSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown rule or group `{}`", self.wanted)?;
        match self.suggestion {
            Some(suggestion) => write!(f, ", did you mean `{suggestion}`?"),
            None => f.write_str("; `tympan rule` lists all rules"),
        }
    }
}

impl std::error::Error for UnknownSelector {}

/// Which rules are reported, and which of them count as errors. The default reports all rules as they are.
///
/// If `select` and `ignore` both contain a rule, the narrower entry decides. If they are equally narrow, the rule is
/// ignored.
///
/// ```
/// use tympan_lint::{Selection, rule};
///
/// let selection = Selection { select: vec!["trust".parse()?], ignore: vec!["TY303".parse()?], ..Selection::default() };
/// assert!(selection.is_selected(rule("TY301")?));
/// assert!(!selection.is_selected(rule("TY303")?) && !selection.is_selected(rule("TY101")?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The rules to report. If it is empty, all of them.
    pub select: Vec<Selector>,
    /// The rules not to report.
    pub ignore: Vec<Selector>,
    /// The rules whose findings are errors.
    pub deny: Vec<Selector>,
}

impl Selection {
    /// Returns whether findings of a rule are reported.
    pub fn is_selected(&self, rule: &Rule) -> bool {
        let selected = if self.select.is_empty() { Some(0) } else { narrowest(&self.select, rule) };
        selected > narrowest(&self.ignore, rule)
    }

    /// Removes findings of other rules, and turns denied ones into errors. Errors that keep a file from loading stay:
    /// nothing else is known about the file.
    pub(crate) fn apply(&self, checked: &mut Checked) {
        checked.findings.retain(|finding| finding.is_fatal || self.is_selected(finding.rule));
        for finding in &mut checked.findings {
            if self.deny.iter().any(|selector| selector.contains(finding.rule)) {
                finding.severity = Severity::Error;
            }
        }
    }
}

/// Returns how narrow the narrowest selector is that contains a rule.
pub(crate) fn narrowest(selectors: &[Selector], rule: &Rule) -> Option<usize> {
    selectors.iter().filter(|selector| selector.contains(rule)).map(|selector| selector.rank()).max()
}

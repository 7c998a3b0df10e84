//! Rules: what they report, and the text of their pages.

use std::fmt;

use tympan_core::diagnostic::Severity;

use crate::context::Context;
use crate::finding::Findings;

/// The group of a rule. It determines the first digit of the rule's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Group {
    /// What the parsers of prompt files report: `TY0xx`.
    Format,
    /// The prompt fails, or does something other than what it says: `TY1xx`.
    Correctness,
    /// The prompt works, but probably not as intended: `TY2xx`.
    Suspicious,
    /// Untrusted text reaches a place where it should not be, or a secret may leak: `TY3xx`.
    Trust,
    /// Requests cost more than they need to: `TY4xx`.
    Cost,
    /// The tests of a prompt cannot run, or test something other than what they say: `TY5xx`.
    Tests,
}

impl Group {
    /// Every group, in the order of their codes.
    pub const ALL: [Self; 6] =
        [Self::Format, Self::Correctness, Self::Suspicious, Self::Trust, Self::Cost, Self::Tests];

    /// Returns the name of the group.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Format => "format",
            Self::Correctness => "correctness",
            Self::Suspicious => "suspicious",
            Self::Trust => "trust",
            Self::Cost => "cost",
            Self::Tests => "tests",
        }
    }

    /// Returns the beginning of the codes in this group.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Format => "TY0",
            Self::Correctness => "TY1",
            Self::Suspicious => "TY2",
            Self::Trust => "TY3",
            Self::Cost => "TY4",
            Self::Tests => "TY5",
        }
    }

    /// Returns what the rules in this group report, in one sentence.
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Format => "What the parsers of prompt files report.",
            Self::Correctness => "The prompt fails, or does something other than what it says.",
            Self::Suspicious => "The prompt works, but probably not as intended.",
            Self::Trust => "Untrusted text reaches a place where it should not be, or a secret may leak.",
            Self::Cost => "Requests cost more than they need to.",
            Self::Tests => "The tests of a prompt cannot run, or test something other than what they say.",
        }
    }
}

/// Whether findings of a rule come with a fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FixAvailability {
    /// Never.
    Never,
    /// For some findings.
    Sometimes,
    /// For every finding.
    Always,
}

impl FixAvailability {
    /// Returns the word that is shown to people and programs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Sometimes => "sometimes",
            Self::Always => "always",
        }
    }
}

/// A rule: its identity, and the sections of its page.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Rule {
    /// The stable code, such as `TY101`. The code of a retired rule is never reused.
    pub code: &'static str,
    /// The name, such as `undeclared_variable`. It is the `code` of the diagnostics that the engine reports itself.
    pub name: &'static str,
    /// The group.
    pub group: Group,
    /// The usual severity of its findings.
    pub severity: Severity,
    /// Whether its findings come with a fix.
    pub fix: FixAvailability,
    /// What it does, in one sentence or more.
    pub summary: &'static str,
    /// Why it matters.
    pub why: &'static str,
    /// A part of a prompt file that has a finding.
    pub example: &'static str,
    /// How to fix a finding.
    pub how_to_fix: &'static str,
    /// The function that finds violations in a prompt. `None` if the engine reports them itself, or if the rule needs
    /// files or is about tests.
    pub(crate) check: Option<Check>,
}

/// A function that applies a rule to a prompt.
pub(crate) type Check = fn(&Context<'_>, &mut Findings);

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code
    }
}

impl Eq for Rule {}

impl Rule {
    /// Returns whether only the engine and the runtime report findings of this rule, while they load a prompt or
    /// prepare a request.
    pub const fn is_reported_by_engine(&self) -> bool {
        self.check.is_none()
    }

    /// Returns the page of the rule, in Markdown.
    pub fn page(&self) -> String {
        let Self { code, name, summary, why, example, how_to_fix, .. } = self;
        let (group, severity, fix) = (self.group.as_str(), self.severity.as_str(), self.fix.as_str());
        // The example may have a fence of its own, so it is indented instead.
        let example = example.replace('\n', "\n    ");
        format!(
            "# {name} ({code})\n\nGroup: {group}. Severity: {severity}. Fix: {fix}.\n\n\
            ## What it does\n\n{summary}\n\n## Why it matters\n\n{why}\n\n\
            ## Example\n\n    {example}\n\n## How to fix\n\n{how_to_fix}\n"
        )
    }
}

impl fmt::Debug for Rule {
    /// Shows only the identity: the texts are long, and the same every time.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rule({} {})", self.code, self.name)
    }
}

//! Findings: what a rule reports about a prompt.

use tympan_core::Error;
use tympan_core::diagnostic::{Diagnostic, Severity};
use tympan_core::text::source::Span;

use crate::rule::Rule;
use crate::rules;

/// A change to the source that removes a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// The spans to replace, and their replacements. They do not overlap.
    pub edits: Vec<(Span, String)>,
    /// Whether the prompt still means what its author wrote. Other fixes need a review.
    pub safe: bool,
}

impl Fix {
    /// Creates a fix that replaces one span and does not change what the prompt means.
    pub fn safe(span: Span, text: impl Into<String>) -> Self {
        Self { edits: vec![(span, text.into())], safe: true }
    }

    /// Creates a fix that replaces one span and needs a review.
    pub fn needs_review(span: Span, text: impl Into<String>) -> Self {
        Self { edits: vec![(span, text.into())], safe: false }
    }
}

/// One finding of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// The severity. It may differ from the usual one of the rule.
    pub severity: Severity,
    /// The position in the source of the prompt, if it is known.
    pub span: Option<Span>,
    /// What was found and what was expected.
    pub message: String,
    /// Advice on how to fix it.
    pub help: Option<String>,
    /// The change that fixes it.
    pub fix: Option<Fix>,
    /// Other positions that explain the finding, such as the path that a value takes, in order.
    pub related: Vec<(Span, String)>,
    /// Whether this is the reason that the file does not load, or that a template does not compile. The rules cannot
    /// see what is behind such an error, so neither suppressions nor a selection nor a baseline hide it.
    pub is_fatal: bool,
}

impl Finding {
    /// Creates a finding with the usual severity of a rule.
    pub fn new(rule: &'static Rule, span: impl Into<Option<Span>>, message: impl Into<String>) -> Self {
        Self {
            rule,
            severity: rule.severity,
            span: span.into(),
            message: message.into(),
            help: None,
            fix: None,
            related: Vec::new(),
            is_fatal: false,
        }
    }

    /// Adds advice on how to fix the finding.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds a fix.
    #[must_use]
    pub fn with_fix(mut self, fix: Fix) -> Self {
        self.fix = Some(fix);
        self
    }

    /// Adds positions that explain the finding.
    #[must_use]
    pub fn with_related(mut self, related: Vec<(Span, String)>) -> Self {
        self.related = related;
        self
    }

    /// Sets another severity than the usual one of the rule.
    #[must_use]
    pub fn with_severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// Returns the text that fixes the finding if it replaces exactly what the finding is about.
    pub fn replacement(&self) -> Option<&str> {
        match &self.fix.as_ref()?.edits[..] {
            [(span, text)] if Some(*span) == self.span => Some(text),
            _ => None,
        }
    }

    /// Converts a diagnostic of the engine. Returns `None` if it is not about a prompt file, such as one about the
    /// network.
    pub fn from_diagnostic(diagnostic: &Diagnostic) -> Option<Self> {
        let rule = rules::by_name(diagnostic.code)?;
        let mut finding = Self::new(rule, diagnostic.span, &*diagnostic.message).with_severity(diagnostic.severity);
        finding.help.clone_from(&diagnostic.help);
        // The engine only suggests other spellings of what is there.
        finding.fix = diagnostic.span.zip(diagnostic.fix.as_ref()).map(|(span, text)| Fix::safe(span, text));
        Some(finding)
    }

    /// Converts an error of loading a prompt and the diagnostics that were reported together with it, sorted by
    /// position. Those that are not about a prompt file are left out.
    pub fn from_error(error: &Error) -> Vec<Self> {
        let first = rules::by_name(error.code()).map(|rule| Self {
            help: error.help().map(str::to_owned),
            ..Self::new(rule, error.span(), error.message()).with_severity(Severity::Error)
        });
        let others = error.others().iter().filter_map(Self::from_diagnostic);
        let mut findings: Vec<_> = first.into_iter().chain(others).collect();
        sort(&mut findings);
        findings
    }
}

/// The findings of a prompt, as rules add them.
#[derive(Debug, Default)]
pub(crate) struct Findings(Vec<Finding>);

impl Findings {
    pub(crate) fn push(&mut self, finding: Finding) {
        self.0.push(finding);
    }

    pub(crate) fn extend(&mut self, findings: impl IntoIterator<Item = Finding>) {
        self.0.extend(findings);
    }

    /// Returns the findings, sorted by position and without duplicates.
    pub(crate) fn into_sorted(mut self) -> Vec<Finding> {
        sort(&mut self.0);
        self.0.dedup();
        self.0
    }
}

/// Sorts findings by position. Those without one come first.
fn sort(findings: &mut [Finding]) {
    findings.sort_by(|a, b| key(a).cmp(&key(b)));
}

fn key(finding: &Finding) -> (usize, usize, &str, &str) {
    let span = finding.span.unwrap_or_default();
    (span.start, span.end, finding.rule.code, &finding.message)
}

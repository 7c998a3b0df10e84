//! Reports about runs, made from results alone.
//!
//! A [`Report`] takes results one by one, in the order in which cases end, and the [`Summary`] at the end:
//!
//! ```
//! use tympan_eval::CaseResult;
//! use tympan_eval::report::{Format, ReportOptions, Summary, writer};
//!
//! let mut out = Vec::new();
//! let mut report = writer(Format::Tap, &ReportOptions::default(), &mut out)?;
//! let mut summary = Summary::default();
//! let result: CaseResult = serde_json::from_str(r#"{"id": "greeting", "verdict": "passed"}"#)?;
//! summary.add(&result);
//! report.case(&result)?;
//! report.finish(&summary)?;
//! assert_eq!(String::from_utf8_lossy(&out), "TAP version 14\nok 1 - greeting\n1..1\n# 1 passed\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Everything that a model, a file or an input wrote is escaped for the format, control characters are made visible,
//! and long texts are shortened. Only JSON Lines has all of every text.

mod difference;
mod escape;
mod failure;
mod github;
mod html;
mod json_lines;
mod junit;
mod markdown;
mod number;
mod plain;
mod summary;
mod tap;

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use crate::{CaseResult, Verdict};

pub use difference::{Piece, difference, difference_text};
pub use failure::{Failure, all_pass, failures, headline, pass_rate};
pub use plain::{Description, describe};
pub use summary::{AllPass, Summary};

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// One JSON object per line, written as soon as it is known. It has everything, and can be read again.
    JsonLines,
    /// JUnit XML, for CI servers.
    Junit,
    /// The Test Anything Protocol, version 14.
    Tap,
    /// Commands of GitHub Actions that annotate files.
    Github,
    /// A summary in Markdown, for `$GITHUB_STEP_SUMMARY`.
    Markdown,
    /// A page that needs nothing but a browser.
    Html,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 6] = [Self::JsonLines, Self::Junit, Self::Tap, Self::Github, Self::Markdown, Self::Html];

    /// Returns the name that users write.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::JsonLines => "json-lines",
            Self::Junit => "junit",
            Self::Tap => "tap",
            Self::Github => "github",
            Self::Markdown => "markdown",
            Self::Html => "html",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A name that is not the name of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFormat(pub String);

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Format::ALL.map(Format::as_str).join(", ");
        write!(f, "unknown format of a report: `{}`; expected one of {names}", self.0)
    }
}

impl std::error::Error for UnknownFormat {}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|format| format.as_str() == name);
        known.ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

/// Options of reports.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReportOptions {
    /// The title of the report, for the formats that have one.
    pub title: String,
    /// Whether cases that could not run are fine. Then reports show them as skipped.
    pub allow_missing: bool,
}

impl Default for ReportOptions {
    fn default() -> Self {
        Self { title: "tympan test".to_owned(), allow_missing: false }
    }
}

/// A report that is being written.
pub trait Report {
    /// Adds the result of a case.
    ///
    /// # Errors
    /// Returns an error if the output cannot be written.
    fn case(&mut self, result: &CaseResult) -> io::Result<()>;

    /// Ends the report.
    ///
    /// # Errors
    /// Returns an error if the output cannot be written.
    fn finish(self: Box<Self>, summary: &Summary) -> io::Result<()>;
}

/// Starts a report.
///
/// JSON Lines, TAP, annotations and HTML are written while results come in. JUnit needs totals before the first case,
/// and Markdown an overview before the first failure: they collect what they need, and write it at the end.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn writer<'out>(
    format: Format,
    options: &ReportOptions,
    out: impl Write + Send + 'out,
) -> io::Result<Box<dyn Report + Send + 'out>> {
    Ok(match format {
        Format::JsonLines => Box::new(json_lines::JsonLines::new(out)),
        Format::Junit => Box::new(junit::Junit::new(options, out)),
        Format::Tap => Box::new(tap::Tap::new(options, out)?),
        Format::Github => Box::new(github::Github::new(options, out)),
        Format::Markdown => Box::new(markdown::Markdown::new(options, out)),
        Format::Html => Box::new(html::Html::new(options, out)?),
    })
}

/// How a report counts a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    /// The case could not run, or ended with an error. It counts as failed.
    Error,
    Skipped,
}

impl Outcome {
    fn of(result: &CaseResult, options: &ReportOptions) -> Self {
        match result.verdict {
            Verdict::Passed => Self::Passed,
            Verdict::Failed if result.reason.is_some() && result.failures().next().is_none() => Self::Error,
            Verdict::Failed => Self::Failed,
            Verdict::NotRun if options.allow_missing => Self::Skipped,
            Verdict::NotRun => Self::Error,
            Verdict::Skipped => Self::Skipped,
        }
    }
}

/// Returns a path as URLs and CI servers write it: with slashes, without a leading `./`.
fn slashed(path: &str) -> String {
    let path = if cfg!(windows) { path.replace('\\', "/") } else { path.to_owned() };
    path.strip_prefix("./").map(str::to_owned).unwrap_or(path)
}

//! Failures as plain text, for test runners that print it.

use serde::Serialize;
use similar::{ChangeTag, TextDiff};

use super::escape::{shortened, visible, visible_line};
use super::failure::{Failure, failures, pass_rate};
use crate::CaseResult;

/// How many failures of a case are described. Others most likely have the same cause.
const MOST_FAILURES: usize = 20;
/// How many lines of a text are compared, and how many bytes of a line.
const MOST_LINES: usize = 400;
const LONGEST_LINE: usize = 2_000;
/// How many bytes of a message are shown.
const LONGEST_MESSAGE: usize = 4_000;
/// How many unchanged lines are shown around a change.
const CONTEXT: usize = 3;

/// Why a case did not pass. Control characters are escaped and long texts are shortened, so all of it is safe to print.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Description {
    /// The messages of the assertions that did not pass, with their positions and differences.
    pub text: String,
    /// The line of the first assertion that did not pass, or else of the case, counted from 1.
    pub line: usize,
    /// The expected text of the first assertion that compares two texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// The actual text of the same assertion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actual: Option<String>,
}

/// Describes why a case did not pass.
pub fn describe(result: &CaseResult) -> Description {
    let file = visible_line(&result.file);
    let failures = failures(result);
    let mut lines = vec![format!("{} ({file}:{})", message(&result.name), result.line)];
    lines.extend(pass_rate(result));
    if failures.is_empty() {
        lines.extend(result.reason.as_deref().map(|reason| visible(reason).into_owned()));
    }
    for failure in failures.iter().take(MOST_FAILURES) {
        let (line, assertion) = (failure.check.line, &failure.check.assertion);
        lines.push(format!("{file}:{line}: {}: {}", visible_line(assertion), message(failure.message())));
        if let Some((expected, actual)) = compared(failure) {
            unified(&mut lines, &expected, &actual);
        }
    }
    if failures.len() > MOST_FAILURES {
        lines.push(format!("and {} more", failures.len() - MOST_FAILURES));
    }
    lines.extend(result.warnings.iter().map(|warning| format!("warning: {}", message(warning))));
    let (expected, actual) = failures.iter().find_map(compared).unzip();
    let joined = |lines: Option<Vec<String>>| lines.map(|lines| lines.join("\n"));
    Description {
        text: lines.join("\n"),
        line: failures.first().map_or(result.line, |failure| failure.check.line),
        expected: joined(expected),
        actual: joined(actual),
    }
}

fn message(text: &str) -> String {
    visible_line(&shortened(text, LONGEST_MESSAGE))
}

/// Returns the lines of the two texts that an assertion compares.
fn compared(failure: &Failure<'_>) -> Option<(Vec<String>, Vec<String>)> {
    Some((lines(failure.check.expected.as_deref()?), lines(failure.check.actual.as_deref()?)))
}

fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text
        .split('\n')
        .take(MOST_LINES + 1)
        .map(|line| visible(&shortened(line, LONGEST_LINE)).into_owned())
        .collect();
    if lines.len() > MOST_LINES {
        lines.truncate(MOST_LINES);
        lines.push("…".to_owned());
    }
    lines
}

/// Adds a difference in the unified format, indented.
fn unified(out: &mut Vec<String>, expected: &[String], actual: &[String]) {
    let [before, after] = [expected, actual].map(|lines| lines.iter().map(String::as_str).collect::<Vec<_>>());
    let difference = TextDiff::from_slices(&before, &after);
    let mut hunks = difference.unified_diff().context_radius(CONTEXT).iter_hunks().peekable();
    if hunks.peek().is_some() {
        out.extend(["  --- expected".to_owned(), "  +++ actual".to_owned()]);
    }
    for hunk in hunks {
        out.push(format!("  {}", hunk.header()));
        for change in hunk.iter_changes() {
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            out.push(format!("  {sign}{}", change.value()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Attempt, Check, Verdict};

    fn failed(checks: Vec<Check>) -> CaseResult {
        CaseResult {
            name: "greets".to_owned(),
            file: "greeting.test.yaml".to_owned(),
            line: 2,
            verdict: Verdict::Failed,
            attempts: vec![Attempt { checks, ..Attempt::default() }],
            ..CaseResult::default()
        }
    }

    #[test]
    fn messages_have_positions_and_differences() {
        let check = Check::failed("message", 4, "expected another text");
        let described = describe(&failed(vec![check.with_difference("Hello Bob!\nBye.", "Hello Ada!\nBye.")]));
        assert_eq!(
            described.text,
            "greets (greeting.test.yaml:2)\ngreeting.test.yaml:4: message: expected another text\n  --- expected\n  \
             +++ actual\n  @@ -1,2 +1,2 @@\n  -Hello Bob!\n  +Hello Ada!\n   Bye."
        );
        assert_eq!(described.line, 4);
        assert_eq!(described.expected.as_deref(), Some("Hello Bob!\nBye."));
        assert_eq!(described.actual.as_deref(), Some("Hello Ada!\nBye."));
    }

    #[test]
    fn large_and_hostile_texts_are_short_and_safe() {
        let check = Check::failed("message", 4, "\u{1b}[2J".repeat(10_000));
        let check = check.with_difference("a\n".repeat(100_000), "b\u{202e}\u{9b}".repeat(1_000_000));
        let described = describe(&failed(vec![check]));
        assert!(described.text.len() < 50_000, "{}", described.text.len());
        assert!(described.actual.is_some_and(|actual| actual.len() < 20_000 && !actual.contains('\u{9b}')));
        assert!(!described.text.contains(['\u{1b}', '\u{202e}', '\u{9b}']));
    }

    #[test]
    fn cases_without_checks_have_a_reason() {
        let described = describe(&CaseResult { reason: Some("no cassette".to_owned()), ..failed(Vec::new()) });
        assert_eq!(described.text, "greets (greeting.test.yaml:2)\nno cassette");
        assert_eq!((described.line, described.expected), (2, None));
    }
}

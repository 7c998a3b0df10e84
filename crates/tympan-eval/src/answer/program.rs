//! Assertions that a program decides.
//!
//! The program reads one JSON object with `case`, `inputs`, `messages` and `answer`, and prints one with `pass`, and
//! optionally a `score` from 0 to 1 and a `reason`.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tympan_core::spec::test_suite::ProgramCheck;
use tympan_runtime::tool::{ProgramOutput, ProgramRun, run_program};

use super::check::{AnsweredCase, Finding};
use crate::quote::{quoted, visible};

/// The default time limit in seconds.
const SECONDS: f64 = 30.0;

/// The longest time limit in seconds.
const MAX_SECONDS: f64 = 24.0 * 3600.0;

/// The maximum number of bytes that a program may print.
const MAX_OUTPUT: usize = 1 << 20;

/// The number of lines of standard error in a message.
const LAST_LINES: usize = 5;

/// The verdict of a program.
#[derive(Deserialize)]
struct Verdict {
    pass: bool,
    score: Option<f64>,
    reason: Option<String>,
}

/// Runs the program of an assertion, if the host allows it.
pub(super) async fn check(wanted: &ProgramCheck, case: &AnsweredCase<'_>, is_allowed: bool) -> Finding {
    let name = visible(wanted.command.first().map_or("", String::as_str));
    if !is_allowed {
        return Finding::not_run(format!(
            "`{name}` did not run: pass `--allow-programs` to run programs of test files"
        ));
    }
    let seconds = wanted.seconds.unwrap_or(SECONDS).clamp(0.0, MAX_SECONDS);
    let run = ProgramRun {
        command: wanted.command.clone(),
        directory: case.directory.to_owned(),
        input: input(case),
        timeout: Duration::try_from_secs_f64(seconds).unwrap_or_default(),
        max_output: MAX_OUTPUT,
    };
    match run_program(run).await {
        Ok(output) => verdict(&output).unwrap_or_else(|reason| Finding::broken(format!("`{name}`: {reason}"))),
        Err(error) => Finding::broken(format!("`{name}`: {error}")),
    }
}

fn input(case: &AnsweredCase<'_>) -> Vec<u8> {
    let input = json!({
        "case": case.name,
        "inputs": case.question.inputs,
        "messages": case.question.messages,
        "answer": case.answer,
    });
    format!("{input}\n").into_bytes()
}

/// Reads the verdict that a program printed.
fn verdict(output: &ProgramOutput) -> Result<Finding, String> {
    if !output.status.success() {
        return Err(format!("{}{}", output.status, last_lines(&output.stderr)));
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    let wrong = |reason: &str| {
        let found = quoted(printed.trim());
        format!("expected a verdict such as {{\"pass\": true}}, found {found}: {reason}{}", last_lines(&output.stderr))
    };
    let verdict: Verdict = serde_json::from_str(&printed).map_err(|error| wrong(&error.to_string()))?;
    if verdict.score.is_some_and(|score| !(0.0..=1.0).contains(&score)) {
        return Err(wrong("the score is not between 0 and 1"));
    }
    let reason = verdict.reason.as_deref().map_or_else(|| "the program says no".to_owned(), visible);
    Ok(Finding::holds_if(verdict.pass, || reason).with_score(verdict.score))
}

/// Returns the last lines of standard error, on one line.
fn last_lines(stderr: &str) -> String {
    let lines: Vec<_> = stderr.lines().filter(|line| !line.trim().is_empty()).map(visible).collect();
    let lines = lines[lines.len().saturating_sub(LAST_LINES)..].join(" | ");
    if lines.is_empty() { lines } else { format!("; standard error: {lines}") }
}

//! Estimates of tokens and cost.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;
use tympan::wire::catalog::PRICES_DATE;
use tympan_eval::answer::Price;
use tympan_eval::estimate::{Estimate, EstimateBasis};
use tympan_eval::runner::{Job, Runner};

use super::{FileOrResult, all_jobs, select};
use crate::args::{TestArgs, TestFormat};
use crate::commands::count::grouped;
use crate::project::Project;
use crate::report::{Failure, warn_plainly};
use crate::{json, output, prices};

/// Returns the prices of models, with those that the project sets.
pub(in crate::commands) fn price(project: &Project) -> Price {
    let catalog = project.settings.models.clone();
    Arc::new(move |model, usage| catalog.cost(model, usage))
}

/// The maximum number of problems to list.
const MAX_LISTED: usize = 5;

/// Checks that there is a bound on what the selected cases cost, before anything is sent.
///
/// # Errors
/// Returns an error if the price of a model is not known, or if nothing limits its answers.
pub(super) fn check_bounds(args: &TestArgs, files: &[FileOrResult], runner: &Runner) -> Result<(), Failure> {
    let mut problems = BTreeSet::new();
    for job in all_jobs(files).filter_map(|job| select(args, None, job)) {
        if let Job::Case(case) = job {
            let found = runner.unbounded(&case);
            problems.extend(found.iter().map(|error| {
                let reason = error.message().trim_start_matches("Spend limit reached: ");
                error.help().map_or_else(|| reason.to_owned(), |help| format!("{reason}: {help}"))
            }));
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    let more = problems.len().saturating_sub(MAX_LISTED);
    let mut lines: Vec<_> = problems.into_iter().take(MAX_LISTED).collect();
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    Err(Failure::Usage(format!("--max-cost: nothing was sent, because {}", lines.join("\n  and because "))))
}

/// Estimates what the answers of all cases would cost, and prints it.
pub(super) fn run(args: &TestArgs, files: &[FileOrResult], runner: &Runner) -> Result<ExitCode, Failure> {
    let mut sum = Estimate::default();
    let (mut cases, mut calling, mut broken) = (0_u64, 0_u64, false);
    for job in all_jobs(files).filter_map(|job| select(args, None, job)) {
        let case = match job {
            Job::Case(case) => case,
            Job::Finished(result) => {
                broken = true;
                let reason = result.reason.as_deref().unwrap_or_default();
                warn_plainly("not_estimated", &format!("{} is not part of the estimate: {reason}", result.file));
                continue;
            }
        };
        let estimate = runner.estimate(&case);
        cases += 1;
        calling += u64::from(estimate.requests > 0);
        sum.add(&estimate);
    }
    if args.output.format() == TestFormat::JsonLines {
        output::print(&(json::pretty(&json!({ "cases": cases, "estimate": sum })) + "\n"))?;
    } else {
        output::print_lines(&shown(cases, calling, &sum))?;
    }
    Ok(if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn shown(cases: u64, calling: u64, sum: &Estimate) -> String {
    if sum.requests == 0 {
        return format!("{}, none of which calls a model\n", counted(cases, "case"));
    }
    let requests = counted(sum.requests, "request");
    let call = if calling == 1 { "calls" } else { "call" };
    let mut out = format!("{} of {} {call} a model: {requests}\n", grouped(calling), counted(cases, "case"));
    let (input, output) = (counted(sum.input_tokens, "input token"), counted(sum.output_tokens, "output token"));
    out.push_str(&format!("  about {input} and {output}\n"));
    out.push_str(&format!("  about {}, at prices of {PRICES_DATE}\n", prices::shown(sum.cost)));
    if sum.unpriced > 0 {
        let help = "set the price in `[models]` of tympan.toml";
        let requests = counted(sum.unpriced, "request");
        out.push_str(&format!("  without {requests} whose price is not known; {help}\n"));
    }
    let basis = match sum.basis {
        EstimateBasis::Recorded => "the tokens are those of the recorded answers",
        EstimateBasis::Limit => "answers count as long as the prompts allow",
        _ => "answers count as long as the prompts allow, or 1,000 tokens without a limit",
    };
    out.push_str(&format!("  {basis}\n"));
    out
}

/// Formats a number with the word for what is counted.
fn counted(number: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(number), if number == 1 { "" } else { "s" })
}

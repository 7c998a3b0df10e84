//! Estimates of tokens and cost.

use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;
use tympan::wire::catalog::PRICES_DATE;
use tympan_eval::answer::Price;
use tympan_eval::estimate::{Estimate, EstimateBasis};
use tympan_eval::runner::{Job, Runner};

use super::{FileOrResult, all_jobs, select};
use crate::args::{TestArgs, TestFormat};
use crate::project::Project;
use crate::report::Failure;
use crate::{json, output};

/// Returns the prices of models, with those that the project sets.
pub(super) fn price() -> Result<Price, Failure> {
    let catalog = Project::catalog()?;
    Ok(Arc::new(move |model, usage| catalog.cost(model, usage)))
}

/// Estimates what the answers of all cases would cost, and prints it.
pub(super) fn run(args: &TestArgs, files: &[FileOrResult], runner: &Runner) -> Result<ExitCode, Failure> {
    let mut sum = Estimate::default();
    let (mut cases, mut calling) = (0_usize, 0_usize);
    for job in all_jobs(files).filter_map(|job| select(args, None, job)) {
        let Job::Case(case) = job else { continue };
        let estimate = runner.estimate(&case);
        cases += 1;
        calling += usize::from(estimate.requests > 0);
        sum.add(&estimate);
    }
    if args.output.format() == TestFormat::JsonLines {
        output::print(&(json::pretty(&json!({ "cases": cases, "estimate": sum })) + "\n"))?;
    } else {
        output::print_lines(&shown(cases, calling, &sum))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn shown(cases: usize, calling: usize, sum: &Estimate) -> String {
    if sum.requests == 0 {
        return format!("{cases} cases, none of which calls a model\n");
    }
    let mut out = format!("{calling} of {cases} cases call a model: {} requests\n", sum.requests);
    out.push_str(&format!("  about {} input tokens and {} output tokens\n", sum.input_tokens, sum.output_tokens));
    out.push_str(&format!("  about ${:.4}, at prices of {PRICES_DATE}\n", sum.cost));
    if sum.unpriced > 0 {
        let help = "set the price in `[models]` of tympan.toml";
        out.push_str(&format!("  without {} requests whose price is not known; {help}\n", sum.unpriced));
    }
    let basis = match sum.basis {
        EstimateBasis::Recorded => "the tokens are those of the recorded answers",
        EstimateBasis::Limit => "answers count as long as the prompts allow",
        _ => "answers count as long as the prompts allow, or 1,000 tokens without a limit",
    };
    out.push_str(&format!("  {basis}\n"));
    out
}

//! Estimates of jobs, before anything is sent.

use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use tympan::model::estimate::{Estimate, EstimateBasis};
use tympan::wire::catalog::PRICES_DATE;
use tympan::{Prompt, Runtime};
use tympan_batch::plan::{Offer, PlanOptions, Way, plan};
use tympan_batch::sample::{SampleOptions, measure};
use tympan_batch::way::WayChoice;

use super::answer::{choose, why_direct};
use super::prepare::progress_bar;
use super::run::{about, run_options};
use super::{plan, rows};
use crate::args::BatchRunArgs;
use crate::commands::count::grouped;
use crate::project::Project;
use crate::report::Failure;
use crate::{json, output, prices, report};

/// Estimates the job, and prints the estimate.
pub(super) fn dry_run(
    args: &BatchRunArgs,
    runtime: &Runtime,
    prompt: &Prompt,
    directory: &Path,
    quiet: bool,
) -> Result<ExitCode, Failure> {
    if args.rows.rows.iter().any(|path| crate::prompt_file::is_stdin(path)) {
        return Err(Failure::Usage("an estimate needs files of rows, not standard input".to_owned()));
    }
    let choice = choose(args, runtime, prompt, directory)?;
    let sources = rows::sources(&args.rows, directory)?;
    let mut options = SampleOptions::default();
    options.map.clone_from(&args.rows.map);
    options.variant.clone_from(&args.prompt.variant);
    options.models = vec![run_options(args)];
    let bar = progress_bar(&sources, quiet);
    let sample = measure(runtime, prompt, &sources, &options, &|rows| bar.set_position(rows));
    bar.finish_and_clear();
    let sample = sample.map_err(|error| about(error, prompt))?;
    let mut wanted = PlanOptions::new(sample.rows);
    wanted.catalog = Project::catalog()?;
    wanted.concurrency = usize::from(args.rates.concurrency);
    wanted.requests_per_minute = args.rates.requests_per_minute;
    wanted.tokens_per_minute = args.rates.tokens_per_minute;
    let Some(offer) = plan::of_way(plan(prompt, &sample, &wanted), choice.way) else { return Ok(ExitCode::SUCCESS) };
    if args.json {
        let report = json!({
            "way": choice.way,
            "rows": sample.rows,
            "rejects": sample.rejects,
            "estimate": offer.estimate,
            "hours": offer.hours,
            "hours_are_bounded": offer.hours_are_bounded,
            "prices_date": PRICES_DATE,
        });
        output::print(&(json::pretty(&report) + "\n"))?;
    } else {
        output::print_lines(&estimate_shown(sample.rows, sample.rejects, &offer, choice.way))?;
    }
    if !quiet {
        warn(args, &choice, &offer);
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints warnings about an estimate.
fn warn(args: &BatchRunArgs, choice: &WayChoice, offer: &Offer) {
    if let Some(why) = why_direct(choice) {
        report::warn_plainly("direct_calls", why);
    }
    if args.max_cost.is_some_and(|most| offer.estimate.cost > most) {
        let what = match choice.way {
            Way::Batch => "the estimate exceeds `--max-cost`; nothing would be sent",
            Way::Direct => "the estimate exceeds `--max-cost`; the job would stop before it does",
        };
        report::warn_plainly("over_max_cost", what);
    }
}

fn estimate_shown(rows: u64, rejects: u64, offer: &Offer, way: Way) -> String {
    let Estimate { requests, input_tokens, output_tokens, cost, unpriced, basis, .. } = &offer.estimate;
    let rejected =
        if rejects > 0 { format!(", of which {} would be rejected", grouped(rejects)) } else { String::new() };
    let mut out = format!("{} rows{rejected}\n", grouped(rows));
    if *basis == EstimateBasis::NoModel {
        return out + "  the provider `echo` costs nothing\n";
    }
    out += &match way {
        Way::Batch => {
            let files = offer.files.unwrap_or(1);
            let noun = if files == 1 { "batch" } else { "batches" };
            format!("  {} requests, in {} {noun} to the provider's batch API\n", grouped(requests), grouped(files))
        }
        Way::Direct => format!("  {} requests, called directly\n", grouped(requests)),
    };
    out += &format!("  about {} input tokens and {} output tokens\n", grouped(input_tokens), grouped(output_tokens));
    out += &match unpriced {
        0 => format!("  about {}, at prices of {PRICES_DATE}\n", prices::shown(*cost)),
        _ => "  the price is not known; set it in `[models]` of tympan.toml\n".to_owned(),
    };
    let time = plan::duration(offer.hours);
    out += &match (way, offer.hours_are_bounded) {
        (Way::Batch, _) => format!("  at most {time} for each batch\n"),
        (Way::Direct, true) => format!("  at least {time}, by the limits per minute\n"),
        (Way::Direct, false) => format!("  about {time}, if a model waits a second and writes 50 tokens per second\n"),
    };
    out += match basis {
        EstimateBasis::Limit => "  answers count as long as the prompt allows\n",
        _ => "  answers count as 1,000 tokens, because the prompt sets no limit\n",
    };
    out
}

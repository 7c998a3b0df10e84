//! `tympan batch plan`: what a job would cost and take.

use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use tympan::wire::catalog::PRICES_DATE;
use tympan::{Kind, RunOptions};
use tympan_batch::plan::{BATCH_WINDOW, Offer, Plan, PlanOptions, Way, plan};
use tympan_batch::sample::{SampleOptions, count_rows, measure};

use super::prepare::megabytes;
use super::rows;
use crate::args::BatchPlanArgs;
use crate::commands::count::grouped;
use crate::escape::visible_line;
use crate::project::Project;
use crate::prompt_file::{in_prompt, is_stdin};
use crate::report::Failure;
use crate::{json, output, prices, report};

pub(super) fn run(args: &BatchPlanArgs, quiet: bool) -> Result<ExitCode, Failure> {
    if args.rows.rows.iter().any(|path| is_stdin(path)) {
        return Err(Failure::Usage("a plan needs files of rows, not standard input".to_owned()));
    }
    let (runtime, prompt) = rows::prompt(&args.prompt, quiet)?;
    let sources = rows::sources(&args.rows, Path::new("."))?;
    let mut options = SampleOptions::default();
    options.map.clone_from(&args.rows.map);
    options.variant.clone_from(&args.prompt.variant);
    options.models = vec![rows::run_options(&args.prompt)];
    options.models.extend(args.compare.iter().map(|(provider, model)| RunOptions {
        provider: Some(provider.clone()),
        model: Some(model.clone()),
        ..RunOptions::default()
    }));
    options.max_rows = Some(args.sample);
    let sample = measure(&runtime, &prompt, &sources, &options, &|_| {}).map_err(|error| match error.kind() {
        Kind::InvalidRows | Kind::InvalidBatch => error,
        _ => in_prompt(error, &prompt),
    })?;
    let count = match args.count {
        Some(count) => count,
        None if sample.is_complete => sample.rows,
        None => count_rows(&sources)?,
    };
    let mut wanted = PlanOptions::new(count);
    wanted.catalog = Project::catalog()?;
    wanted.concurrency = usize::from(args.rates.concurrency);
    wanted.requests_per_minute = args.rates.requests_per_minute;
    wanted.tokens_per_minute = args.rates.tokens_per_minute;
    wanted.within = args.within;
    let planned = plan(&prompt, &sample, &wanted);
    if args.json {
        let mut report = json!(planned);
        report["prices_date"] = json!(PRICES_DATE);
        output::print(&(json::pretty(&report) + "\n"))?;
    } else {
        output::print_lines(&shown(&planned, args))?;
    }
    if !quiet {
        planned.offers.iter().filter(|offer| offer.way == Way::Direct).for_each(warn_context);
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns what the first model costs in a way. Where the price of a batch API is not known, it is the direct price.
pub(super) fn of_way(planned: Plan, way: Way) -> Option<Offer> {
    let model = planned.offers.first().map(|offer| (offer.provider.clone(), offer.model.clone()))?;
    let mut offers: Vec<_> = planned.offers.into_iter().collect();
    offers.retain(|offer| (&offer.provider, &offer.model) == (&model.0, &model.1));
    let wanted = offers.iter().position(|offer| offer.way == way);
    match wanted {
        Some(index) => Some(offers.swap_remove(index)),
        None => {
            let hours = BATCH_WINDOW.as_secs_f64() / 3600.0;
            let mut offer = offers.pop()?;
            (offer.way, offer.hours, offer.hours_are_bounded) = (way, hours, true);
            Some(offer)
        }
    }
}

fn warn_context(offer: &Offer) {
    if let Some(context) = offer.exceeded_context {
        let model = visible_line(offer.model.as_deref().unwrap_or_default());
        let context = grouped(context);
        let message = format!("a row is longer than the context window of {model}, which has {context} tokens");
        report::warn_plainly("context_exceeded", &message);
    }
}

/// Formats hours for people.
pub(super) fn duration(hours: f64) -> String {
    match hours * 3600.0 {
        seconds if seconds < 90.0 => format!("{seconds:.0} seconds"),
        seconds if seconds < 5400.0 => format!("{:.0} minutes", seconds / 60.0),
        _ => format!("{hours:.1} hours"),
    }
}

fn shown(planned: &Plan, args: &BatchPlanArgs) -> String {
    let rejected = match planned.rejects {
        0 => String::new(),
        rejects => format!(", of which about {} would be rejected", grouped(rejects)),
    };
    let mut out = format!("{} rows{rejected}\n", grouped(planned.rows));
    out += &format!("  measured with {} rows; prices of {PRICES_DATE}\n", grouped(planned.sample_rows));
    for offer in &planned.offers {
        let model = offer.model.as_ref().map_or_else(String::new, |model| format!("/{model}"));
        let way = if offer.way == Way::Batch { "batch" } else { "direct" };
        out += &format!("\n  {}, {way}\n", visible_line(&format!("{}{model}", offer.provider)));
        if let (Some(files), Some(bytes)) = (offer.files, offer.bytes) {
            let noun = if files == 1 { "file" } else { "files" };
            out += &format!("    {} {noun}, {}\n", grouped(files), megabytes(bytes));
        }
        let (input, written) = (grouped(offer.estimate.input_tokens), grouped(offer.estimate.output_tokens));
        out += &format!("    {input} input tokens, {written} output tokens\n");
        out += &match offer.estimate.unpriced {
            0 => format!("    {}\n", prices::shown(offer.estimate.cost)),
            _ => "    the price is not known; set it in `[models]` of tympan.toml\n".to_owned(),
        };
        out += &match (offer.way, offer.hours_are_bounded) {
            (Way::Batch, _) => format!("    at most {} for each batch\n", duration(offer.hours)),
            (Way::Direct, true) => format!("    at least {}, by the limits per minute\n", duration(offer.hours)),
            (Way::Direct, false) => {
                let calls = args.rates.concurrency;
                format!(
                    "    about {} with {calls} calls at a time, if a model writes 50 tokens per second\n",
                    duration(offer.hours)
                )
            }
        };
    }
    if let Some(rendering) = &planned.rendering {
        let time = duration(rendering.seconds / 3600.0);
        out += &format!(
            "\n  rendering: {:.0} rows per second on one core of this machine, {time}\n",
            rendering.rows_per_second
        );
        if let Some(workers) = rendering.workers {
            let noun = if workers == 1 { "core" } else { "cores" };
            out += &format!("  a cluster needs {} {noun} to render them in time\n", grouped(workers));
        }
    }
    out
}

//! Plans: what a number of rows would cost and take, by provider, and how many workers a cluster needs.
//!
//! Everything is computed from a sample of the rows. Prices are those of the catalog.

use std::time::Duration;

use serde::Serialize;
use tympan_core::Prompt;
use tympan_core::wire::catalog::{Catalog, batch_share};
use tympan_runtime::model::estimate::Estimate;

use crate::limits::Limits;
use crate::sample::{ModelSample, Sample};
pub use crate::way::Way;

/// The time in which providers promise to end a batch.
pub const BATCH_WINDOW: Duration = Duration::from_secs(24 * 60 * 60);

/// The speed at which models are assumed to write, in tokens per second.
pub const ASSUMED_TOKENS_PER_SECOND: f64 = 50.0;

/// The time that a model is assumed to need before it begins to write.
pub const ASSUMED_WAIT: Duration = Duration::from_secs(1);

/// What a plan is for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlanOptions {
    /// The number of rows.
    pub rows: u64,
    /// The prices.
    pub catalog: Catalog,
    /// The number of direct calls at a time.
    pub concurrency: usize,
    /// The most requests per minute.
    pub requests_per_minute: Option<u64>,
    /// The most tokens per minute.
    pub tokens_per_minute: Option<u64>,
    /// The time in which a cluster has to render all rows.
    pub within: Option<Duration>,
}

impl PlanOptions {
    /// Creates options for a number of rows.
    pub fn new(rows: u64) -> Self {
        Self {
            rows,
            catalog: Catalog::default(),
            concurrency: 8,
            requests_per_minute: None,
            tokens_per_minute: None,
            within: None,
        }
    }
}

/// A plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Plan {
    /// The number of rows.
    pub rows: u64,
    /// The number of rows that would be rejected.
    pub rejects: u64,
    /// The number of rows of the sample.
    pub sample_rows: u64,
    /// The ways in which the rows can be answered.
    pub offers: Vec<Offer>,
    /// What rendering takes.
    pub rendering: Option<Rendering>,
}

/// A model, and a way in which it can answer the rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Offer {
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: Option<String>,
    /// The way.
    pub way: Way,
    /// The number of files for a batch API.
    pub files: Option<u64>,
    /// The size of these files.
    pub bytes: Option<u64>,
    /// The tokens and the cost.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// The time in hours: for a batch, the most that the provider promises; for calls, what the limits on rates allow, or
    /// else what is assumed.
    pub hours: f64,
    /// Whether the hours follow from limits on rates or from the provider's promise, and not from assumptions.
    pub hours_are_bounded: bool,
    /// The context window of the model, if the largest request of the sample exceeds it.
    pub exceeded_context: Option<u64>,
}

/// What rendering takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Rendering {
    /// The number of rows that one core renders in a second, measured on this machine.
    pub rows_per_second: f64,
    /// The time on one core, in seconds.
    pub seconds: f64,
    /// The number of cores that render all rows within the requested time.
    pub workers: Option<u64>,
}

/// Plans a job from a sample of its rows.
pub fn plan(prompt: &Prompt, sample: &Sample, options: &PlanOptions) -> Plan {
    let mut offers = Vec::new();
    for model in &sample.models {
        let estimate = model.estimate(sample, options.rows, prompt, &options.catalog);
        let data = options.catalog.get(model.model.as_deref().unwrap_or_default());
        let exceeded_context = data.context.filter(|context| model.most_tokens > *context);
        let offer = Offer {
            provider: model.provider.clone(),
            model: model.model.clone(),
            way: Way::Direct,
            files: None,
            bytes: None,
            hours: 0.0,
            hours_are_bounded: false,
            exceeded_context,
            estimate,
        };
        offers.extend(batch(model, sample, options, &offer));
        offers.push(direct(sample, options, offer));
    }
    let requests = sample.requests_of(options.rows);
    Plan {
        rows: options.rows,
        rejects: options.rows.saturating_sub(requests),
        sample_rows: sample.rows,
        offers,
        rendering: rendering(sample, options),
    }
}

fn batch(model: &ModelSample, sample: &Sample, options: &PlanOptions, offer: &Offer) -> Option<Offer> {
    let (target, share) = model.target.zip(batch_share(&model.provider))?;
    let limits = Limits::of(target, &model.provider);
    let bytes = model.bytes_of(sample, options.rows);
    let by_requests = offer.estimate.requests.div_ceil(limits.requests.max(1));
    let mut estimate = offer.estimate.clone();
    estimate.cost *= share;
    Some(Offer {
        way: Way::Batch,
        files: Some(by_requests.max(bytes.div_ceil(limits.bytes.max(1)))),
        bytes: Some(bytes),
        hours: BATCH_WINDOW.as_secs_f64() / 3600.0,
        hours_are_bounded: true,
        estimate,
        ..offer.clone()
    })
}

#[expect(clippy::cast_precision_loss, reason = "it is an estimate")]
fn direct(sample: &Sample, options: &PlanOptions, offer: Offer) -> Offer {
    let requests = sample.requests_of(options.rows) as f64;
    let tokens = (offer.estimate.input_tokens + offer.estimate.output_tokens) as f64;
    let by_requests = options.requests_per_minute.map(|most| requests / most.max(1) as f64);
    let by_tokens = options.tokens_per_minute.map(|most| tokens / most.max(1) as f64);
    let limited = by_requests
        .into_iter()
        .chain(by_tokens)
        .fold(None, |most: Option<f64>, minutes| Some(most.map_or(minutes, |most| most.max(minutes))));
    let hours = match limited {
        Some(minutes) => minutes / 60.0,
        None => assumed_seconds(requests, offer.estimate.output_tokens as f64, options.concurrency) / 3600.0,
    };
    Offer { hours, hours_are_bounded: limited.is_some(), ..offer }
}

/// Returns how long calls take, without limits on rates.
#[expect(clippy::cast_precision_loss, reason = "it is an estimate")]
fn assumed_seconds(requests: f64, output_tokens: f64, concurrency: usize) -> f64 {
    let writing = output_tokens / ASSUMED_TOKENS_PER_SECOND;
    (requests * ASSUMED_WAIT.as_secs_f64() + writing) / concurrency.max(1) as f64
}

#[expect(clippy::cast_precision_loss, reason = "it is an estimate")]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
fn rendering(sample: &Sample, options: &PlanOptions) -> Option<Rendering> {
    let rows_per_second = sample.rows_per_second()?;
    let seconds = options.rows as f64 / rows_per_second;
    let workers = options.within.map(|within| (seconds / within.as_secs_f64().max(0.001)).ceil().max(1.0) as u64);
    Some(Rendering { rows_per_second, seconds, workers })
}

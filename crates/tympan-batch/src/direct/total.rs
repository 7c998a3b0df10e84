//! What calls have used together.

use serde::{Deserialize, Serialize};
use tympan_core::wire::response::Usage;
use tympan_core::{Error, Kind, Result};

use crate::manifest::Manifest;
use crate::price::Price;

/// The sums of a file or of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Totals {
    /// The number of rows with an answer.
    pub(super) answered: u64,
    /// The number of rows whose last call failed.
    pub(super) failed: u64,
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    /// The cost in US dollars of the answers whose price is known.
    pub(super) cost: f64,
    /// The number of answers whose price is not known.
    pub(super) unpriced: u64,
}

impl Totals {
    pub(super) fn add_usage(&mut self, usage: &Usage, price: &Price<'_>) {
        self.input_tokens = self.input_tokens.saturating_add(usage.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(usage.output_tokens);
        match price.cost(usage) {
            Some(cost) => self.cost += cost,
            None => self.unpriced += 1,
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.answered += other.answered;
        self.failed += other.failed;
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cost += other.cost;
        self.unpriced += other.unpriced;
    }

    /// Reads the sums of a complete file.
    pub(super) fn of_file(manifest: &Manifest, number: u64) -> Result<Self> {
        let saved = manifest.get(&key(number))?;
        Ok(saved.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
    }

    /// Saves the sums of a complete file.
    pub(super) fn save(&self, manifest: &Manifest, number: u64) -> Result<()> {
        let text = serde_json::to_string(self).map_err(|error| Error::new(Kind::InvalidBatch, error))?;
        manifest.set(&[(&key(number), &text)])
    }
}

fn key(number: u64) -> String {
    format!("totals-{number}")
}

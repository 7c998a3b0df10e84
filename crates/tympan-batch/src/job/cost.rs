//! What a job costs: the most before anything is sent, and what its answers have cost.

use std::io::{BufRead, BufReader};

use serde::Deserialize;
use serde_json::value::RawValue;
use tympan_core::spec::schema::{Property, PropertyKind};
use tympan_core::wire::catalog::batch_share;
use tympan_core::{Error, Kind, Prompt, Result};
use tympan_runtime::model::spending::{BatchSize, SpendLimit};

use super::report::Findings;
use super::{BatchJob, cannot_read};
use crate::manifest::{FileState, JobFile, Submission};
use crate::price::Price;

/// What the answers of a job have used together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct JobUsage {
    /// The tokens of the requests that were answered.
    pub input_tokens: u64,
    /// The tokens of the answers.
    pub output_tokens: u64,
    /// The cost in US dollars of the answers whose price is known, at the price of the batch API.
    pub cost: f64,
    /// The number of answers whose price is not known.
    pub unpriced: u64,
}

impl BatchJob<'_> {
    /// Returns what the answers that were collected have used.
    ///
    /// # Errors
    /// Returns an error if the manifest cannot be read.
    pub fn usage(&self) -> Result<JobUsage> {
        let mut sum = JobUsage::default();
        for file in self.files()? {
            let Some(findings) = self.findings(&file)? else { continue };
            sum.input_tokens = sum.input_tokens.saturating_add(findings.usage.input_tokens);
            sum.output_tokens = sum.output_tokens.saturating_add(findings.usage.output_tokens);
            match self.price().cost(&findings.usage) {
                Some(cost) => {
                    sum.cost += cost;
                    sum.unpriced += findings.uncounted;
                }
                None => sum.unpriced += findings.answered,
            }
        }
        Ok(sum)
    }

    /// Returns an error if the requests that will be sent next could exceed the limit on the cost, together with everything
    /// that was sent.
    pub(super) fn check_cost(&self) -> Result<()> {
        let Some(most) = self.options.max_cost else { return Ok(()) };
        let files = self.files()?;
        let is_open = |file: &JobFile| matches!(file.state, FileState::Prepared | FileState::Failed);
        if !files.iter().any(is_open) {
            return Ok(());
        }
        let limit = SpendLimit::new(most, self.options.catalog.clone());
        let mut total = 0.0;
        for file in &files {
            total += self.spent(&limit, file)?;
            total += match file.state {
                FileState::Collected => 0.0,
                FileState::Prepared | FileState::Failed => self.most(&limit, &self.next(file)?)?,
                FileState::Submitting | FileState::Submitted | FileState::Ended => {
                    self.most(&limit, &self.current(file)?)?
                }
            };
        }
        if total <= most { Ok(()) } else { Err(too_expensive(total, most)) }
    }

    fn price(&self) -> Price<'_> {
        let (provider, model) = (self.downloads.provider().name, Some(self.downloads.model()));
        Price { catalog: &self.options.catalog, provider, model, share: share(provider) }
    }

    /// Returns what was found in the last results of a file.
    fn findings(&self, file: &JobFile) -> Result<Option<Findings>> {
        for attempt in (1..=file.attempts).rev() {
            let report = self.manifest.submission(file.number, attempt)?.and_then(|submission| submission.report);
            if let Some(report) = report {
                return Ok(serde_json::from_str(&report).ok());
            }
        }
        Ok(None)
    }

    /// Returns what the answers of a file have cost. Those without token counts count as the most that they can cost.
    fn spent(&self, limit: &SpendLimit, file: &JobFile) -> Result<f64> {
        let Some(findings) = self.findings(file)? else { return Ok(0.0) };
        match self.price().cost(&findings.usage) {
            Some(cost) if findings.uncounted == 0 => Ok(cost),
            _ => {
                let first = self.manifest.submission(file.number, 1)?;
                first.map_or(Ok(0.0), |first| self.most(limit, &first))
            }
        }
    }

    /// Returns the most that the requests of a file can cost.
    fn most(&self, limit: &SpendLimit, submission: &Submission) -> Result<f64> {
        let requests = self.request_file(submission);
        let path = requests.directory.join(&requests.name);
        let mut line = Vec::new();
        let first = requests.open().and_then(|file| BufReader::new(file).read_until(b'\n', &mut line));
        first.map_err(|error| cannot_read(&path, &error))?;
        let provider = self.downloads.provider().name;
        let most = limit.most_of_batch(&BatchSize {
            provider,
            model: self.downloads.model(),
            protocol: self.downloads.protocol(),
            body: body_of(&line),
            requests: submission.requests,
            bytes: submission.bytes,
            has_media: self.has_media,
        })?;
        Ok(most * share(provider))
    }
}

/// Returns the share of the direct price that a batch costs. A share that is not known counts as the whole.
fn share(provider: &str) -> f64 {
    batch_share(provider).unwrap_or(1.0)
}

/// Returns the body of a request in a line of a file.
fn body_of(line: &[u8]) -> &[u8] {
    #[derive(Deserialize)]
    struct Line<'l> {
        #[serde(borrow, alias = "params")]
        body: &'l RawValue,
    }
    serde_json::from_slice::<Line<'_>>(line).map_or(b"", |line| line.body.get().as_bytes())
}

/// Returns whether requests of a prompt may contain images or other media. All of them come from inputs of these kinds.
pub(super) fn has_media(prompt: &Prompt) -> bool {
    prompt.spec().inputs.iter().any(is_media)
}

fn is_media(property: &Property) -> bool {
    let is_kind = |kind: &PropertyKind| {
        matches!(kind, PropertyKind::Thread | PropertyKind::Image | PropertyKind::File | PropertyKind::Audio)
    };
    is_kind(&property.kind)
        || property.kinds.iter().any(is_kind)
        || property.items.as_deref().is_some_and(is_media)
        || property.properties.iter().any(is_media)
}

fn too_expensive(total: f64, most: f64) -> Error {
    let message = format_args!("the requests of the job can cost up to ${total:.6}, and the limit is ${most:.6}");
    Error::new(Kind::SpendLimit, message).permanent().with_help(
        "nothing more was sent; a batch cannot be stopped at a price, so every byte counts as a token, and every answer as \
         long as the prompt allows: set `maxOutputTokens`, or a higher `--max-cost`",
    )
}

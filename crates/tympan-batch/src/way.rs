//! The ways in which the rows of a job can be answered: the provider's batch API, or one call per row.

use std::path::Path;

use serde::Serialize;
use tympan_core::wire::{self, Protocol};
use tympan_core::{Error, Kind, Prompt, Result};
use tympan_runtime::{RunOptions, Runtime};

use crate::job::JobInfo;
use crate::limits::Target;
use crate::manifest::MANIFEST;

/// How rows are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// With the provider's batch API.
    Batch,
    /// With one call per row.
    Direct,
}

/// The providers that have a batch API, and whether it takes every model that calls take.
///
/// Azure's batch API takes only deployments that were made for it, which cannot be called in any other way. Nobody but
/// the user knows which kind a deployment is.
const PROVIDERS: [(&str, bool); 3] = [("openai", true), ("anthropic", true), ("azure", false)];

/// The way for a prompt, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WayChoice {
    /// The way.
    pub way: Way,
    /// The form of files for the batch API, if the protocol has one.
    pub target: Option<Target>,
    /// Why the way was chosen.
    pub reason: Reason,
}

/// Why a way was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The caller has asked for it.
    Requested,
    /// The job in the directory has begun this way.
    Begun,
    /// The provider has a batch API.
    HasApi,
    /// The provider has no batch API, or none that is known.
    NoApi,
    /// The address is not the provider's own, so nobody knows whether it has a batch API.
    OtherAddress,
    /// The provider's batch API takes only models that were deployed for it.
    OwnDeployments,
}

impl WayChoice {
    /// Chooses the way for the job in a directory: the requested one, or that in which it has begun, or else the batch API
    /// if the provider is known to have one.
    ///
    /// # Errors
    /// Returns an error if the batch API is requested and there is none for the protocol, if the job has begun in another
    /// way than the requested one, or if the provider is unknown.
    pub fn new(
        runtime: &Runtime,
        prompt: &Prompt,
        run: &RunOptions,
        directory: &Path,
        requested: Option<Way>,
    ) -> Result<Self> {
        let target = batch_target(prompt, run);
        let begun = begun(directory);
        if let (Some(requested), Some(begun)) = (requested, begun)
            && requested != begun
        {
            return Err(begun_otherwise(begun, directory));
        }
        let choice = |way, reason| Ok(Self { way, target, reason });
        match requested.map(|way| (way, Reason::Requested)).or(begun.map(|way| (way, Reason::Begun))) {
            Some((Way::Batch, _)) if target.is_none() => Err(no_batch_api(run.select_model(prompt).provider)),
            Some((way, reason)) => choice(way, reason),
            None => {
                let provider = run.select_model(prompt).provider;
                let provider = wire::find_provider(provider).map_or(provider, |row| row.name);
                let known = PROVIDERS.iter().find(|(name, _)| *name == provider).filter(|_| target.is_some());
                match known {
                    None => choice(Way::Direct, Reason::NoApi),
                    Some((_, false)) => choice(Way::Direct, Reason::OwnDeployments),
                    Some((_, true)) if runtime.calls_provider_itself(prompt, run)? => {
                        choice(Way::Batch, Reason::HasApi)
                    }
                    Some((_, true)) => choice(Way::Direct, Reason::OtherAddress),
                }
            }
        }
    }
}

/// Returns the form of files for the batch API of a prompt's provider, if there is one for the protocol.
pub(crate) fn batch_target(prompt: &Prompt, run: &RunOptions) -> Option<Target> {
    let selection = run.select_model(prompt);
    match wire::protocol(selection.provider, selection.api_type.unwrap_or_default()).ok()? {
        Protocol::AnthropicMessages => Some(Target::Anthropic),
        Protocol::OpenAiChat | Protocol::OpenAiResponses | Protocol::OpenAiEmbeddings => Some(Target::OpenAi),
        _ => None,
    }
}

/// Returns the way in which the job in a directory has begun.
fn begun(directory: &Path) -> Option<Way> {
    // Opening the manifest of a directory without one would create it.
    if !directory.join(MANIFEST).is_file() {
        return None;
    }
    match JobInfo::read(directory).ok()?.target {
        Target::OpenAi | Target::Anthropic => Some(Way::Batch),
        Target::JsonLines => Some(Way::Direct),
        Target::Vllm | Target::Parquet => None,
    }
}

fn begun_otherwise(begun: Way, directory: &Path) -> Error {
    let directory = directory.display();
    let (what, option) = match begun {
        Way::Batch => ("goes through the batch API", "`--batch`"),
        Way::Direct => ("calls the model row by row", "`--direct`"),
    };
    Error::new(Kind::InvalidBatch, format_args!("the job in `{directory}` {what}"))
        .with_help(format!("continue it with {option}, or choose another directory with `--job`"))
}

fn no_batch_api(provider: &str) -> Error {
    let message = format_args!("provider `{provider}` has no batch API for this kind of request");
    Error::new(Kind::InvalidBatch, message).with_help("call the model row by row, with `--direct`")
}

//! What a job is: its prompt, its provider and its model.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use tympan_core::{Error, Kind, Prompt, Result};
use tympan_runtime::RunOptions;

use crate::limits::Target;
use crate::manifest::Manifest;
use crate::prepare::SavedSource;
use crate::rows::Source;

/// The properties of a job. None of them is a key, and no address among them receives one.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct JobInfo {
    /// The identifier of the job, with which the identifiers of all its requests begin.
    pub job: String,
    /// The form of the files.
    pub target: Target,
    /// The prompt file.
    pub prompt: Option<PathBuf>,
    /// The hash of the prompt.
    pub prompt_hash: String,
    /// The number of rows, if all of them were rendered.
    pub rows: Option<u64>,
    /// The number of rejected rows.
    pub rejects: u64,
    /// The files of rows.
    saved: Vec<SavedSource>,
    /// The provider, if a command line named one.
    run_provider: Option<String>,
    /// The model, if a command line named one.
    run_model: Option<String>,
    /// The API, if a command line named one.
    run_api: Option<String>,
    /// The provider that the job was sent to.
    pub provider: Option<String>,
    /// The model that answers the requests.
    pub model: Option<String>,
    /// The scheme, the host and the port that the job was sent to.
    pub origin: Option<String>,
}

impl JobInfo {
    /// Reads the properties of the job in a directory.
    ///
    /// # Errors
    /// Returns an error if the directory has no job, or one that cannot be read.
    pub fn read(directory: &Path) -> Result<Self> {
        Self::of_manifest(&Manifest::open(directory)?, directory)
    }

    pub(crate) fn of_manifest(manifest: &Manifest, directory: &Path) -> Result<Self> {
        let damaged = |what: &str| {
            let message = format_args!("the manifest of `{}` has no {what}", directory.display());
            Error::new(Kind::InvalidBatch, message).with_help("prepare the rows again in another directory")
        };
        let identity: Json = match manifest.get("identity")? {
            Some(identity) => serde_json::from_str(&identity).map_err(|_| damaged("readable identity"))?,
            None => return Err(not_prepared(directory)),
        };
        let text = |key: &str| identity.get(key).and_then(Json::as_str).map(str::to_owned);
        let target = manifest.get("target")?.as_deref().and_then(Target::from_name);
        let job = manifest.get("job")?.filter(|job| is_job(job)).ok_or_else(|| damaged("identifier"))?;
        let number = |value: Option<String>| value.and_then(|value| value.parse().ok());
        Ok(Self {
            job,
            target: target.ok_or_else(|| damaged("target"))?,
            prompt: manifest.get("prompt_path")?.filter(|path| !path.is_empty()).map(PathBuf::from),
            prompt_hash: manifest.get("prompt_hash")?.unwrap_or_default(),
            rows: number(manifest.get("rows")?),
            rejects: number(manifest.get("rejects")?).unwrap_or_default(),
            saved: SavedSource::all(&identity).ok_or_else(|| damaged("files of rows"))?,
            run_provider: text("provider"),
            run_model: text("model"),
            run_api: text("api"),
            provider: manifest.get("provider")?,
            model: manifest.get("model")?,
            origin: manifest.get("origin")?,
        })
    }

    /// Returns the provider, the model and the API that the job was prepared for, where they are not the prompt's.
    pub fn run_options(&self) -> RunOptions {
        RunOptions {
            provider: self.run_provider.clone(),
            model: self.run_model.clone(),
            api_type: self.run_api.clone(),
            ..RunOptions::default()
        }
    }

    /// Returns the files of rows that the job was prepared with. They may be gone, or may have changed.
    pub fn sources(&self) -> Vec<Source> {
        self.saved.iter().filter_map(SavedSource::source).collect()
    }

    /// Returns an error if these are not the files of rows that the job was prepared with, or if they have changed since.
    pub(crate) fn check_sources(&self, sources: &[Source], checks_times: bool) -> Result<()> {
        if sources.len() != self.saved.len() {
            let (found, expected) = (sources.len(), self.saved.len());
            let message = format_args!("the job was prepared with {expected} files of rows, and these are {found}");
            return Err(Error::new(Kind::InvalidRows, message).with_help("name the same files in the same order"));
        }
        self.saved.iter().zip(sources).try_for_each(|(saved, source)| saved.check(source, checks_times))
    }

    /// Returns an error if no batch API takes files of this form, or if not all rows were rendered.
    ///
    /// # Errors
    /// The error says what to do instead.
    pub fn check_sendable(&self, directory: &Path) -> Result<()> {
        if matches!(self.target, Target::OpenAi | Target::Anthropic) {
            return self.check_prepared(directory);
        }
        let target = self.target.as_str();
        let message = format_args!("the job has files of the form `{target}`, which no batch API takes");
        Err(Error::new(Kind::InvalidBatch, message).with_help("prepare it with `--to openai` or `--to anthropic`"))
    }

    /// Returns an error if not all rows were rendered.
    pub(crate) fn check_prepared(&self, directory: &Path) -> Result<()> {
        if self.rows.is_some() { Ok(()) } else { Err(not_prepared(directory)) }
    }

    /// Returns an error if the prompt is not the one that the job was prepared with.
    pub(super) fn check_prompt(&self, prompt: &Prompt) -> Result<()> {
        if prompt.definition_hash() == self.prompt_hash {
            return Ok(());
        }
        let message = "the prompt has changed since the job was prepared";
        Err(Error::new(Kind::InvalidBatch, message)
            .with_help("restore the prompt, or prepare the rows again in another directory"))
    }

    /// Returns an error if the job was sent somewhere else before.
    pub(super) fn check_destination(&self, provider: &str, model: &str, origin: &str) -> Result<()> {
        for (name, saved, found, option) in [
            ("provider", &self.provider, provider, "prepare the rows again for another provider"),
            ("model", &self.model, model, "prepare the rows again for another model"),
            ("address", &self.origin, origin, "name the same address with `--base-url`"),
        ] {
            if let Some(saved) = saved.as_deref().filter(|saved| *saved != found) {
                let message = format_args!("the job was sent to the {name} `{saved}`, and this call has `{found}`");
                return Err(Error::new(Kind::InvalidBatch, message).with_help(option));
            }
        }
        Ok(())
    }
}

fn not_prepared(directory: &Path) -> Error {
    let message = format_args!("the job in `{}` is not completely prepared", directory.display());
    Error::new(Kind::InvalidBatch, message).with_help("call `tympan batch prepare` again; it continues")
}

/// Returns whether a text is the identifier of a job. It becomes part of names of files and of identifiers.
fn is_job(job: &str) -> bool {
    (1..=40).contains(&job.len()) && job.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

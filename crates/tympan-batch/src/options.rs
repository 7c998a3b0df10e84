//! Options of tables as plain data, for the packages of other languages.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value as Json;
use tympan_core::wire::compatible::PROVIDERS;
use tympan_core::{Error, Kind, KindCheck, Result};
use tympan_runtime::RunOptions;

use crate::output::{OutputKind, TableOptions};

/// The options, and the number of threads.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct TableData {
    output: String,
    map: BTreeMap<String, String>,
    variant: Option<String>,
    keep_columns: bool,
    hashes: bool,
    tokens: bool,
    origins: bool,
    provider: Option<String>,
    model: Option<String>,
    api_type: Option<String>,
    threads: usize,
}

impl Default for TableData {
    fn default() -> Self {
        Self {
            output: OutputKind::Messages.column().to_owned(),
            map: BTreeMap::new(),
            variant: None,
            keep_columns: true,
            hashes: false,
            tokens: false,
            origins: false,
            provider: None,
            model: None,
            api_type: None,
            threads: 0,
        }
    }
}

/// Reads the options of a table, and the number of threads. `output` is `messages`, `text`, `request`, or the name of a
/// provider, which means a request for this provider. Values must match the kinds of their inputs.
///
/// # Errors
/// Returns an error if an option is unknown or has an invalid value.
pub fn table_options(options: Json) -> Result<(TableOptions, usize)> {
    let data: TableData = serde_json::from_value(options)
        .map_err(|error| Error::new(Kind::InvalidInput, format_args!("options: {error}")))?;
    let mut run = RunOptions::default();
    let output = match data.output.as_str() {
        "messages" => OutputKind::Messages,
        "text" => OutputKind::Text,
        "request" => OutputKind::Request,
        provider if PROVIDERS.iter().any(|known| known.name == provider) => {
            run.provider = Some(provider.to_owned());
            OutputKind::Request
        }
        other => {
            let error = Error::new(Kind::InvalidInput, format_args!("there is no output `{other}`"));
            return Err(
                error.with_help("use `messages`, `text`, `request`, or the name of a provider, such as `openai`")
            );
        }
    };
    if data.provider.is_some() {
        run.provider = data.provider;
    }
    (run.model, run.api_type) = (data.model, data.api_type);
    let options = TableOptions {
        output,
        map: data.map.into_iter().collect(),
        variant: data.variant,
        keeps_columns: data.keep_columns,
        hashes: data.hashes,
        tokens: data.tokens,
        origins: data.origins,
        run,
        kinds: Some(KindCheck::Error),
        ..TableOptions::default()
    };
    Ok((options, data.threads))
}

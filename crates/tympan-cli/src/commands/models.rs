//! `tympan models`: lists a provider's models.

use std::path::Path;

use serde_json::json;
use tympan::{RunOptions, RuntimeOptions};

use crate::args::ModelsArgs;
use crate::escape::visible_line;
use crate::report::Failure;
use crate::{config, json, output, prompt_file};

pub(super) fn run(args: &ModelsArgs, quiet: bool) -> Result<(), Failure> {
    let file = args.file.as_deref().unwrap_or(Path::new("prompt"));
    let runtime = prompt_file::runtime(file, args.endpoint.over(args.env.over(RuntimeOptions::default())), quiet);
    config::register_credentials(&runtime, args.credentials.credential_command.as_deref())?;
    let prompt = match &args.file {
        Some(file) => Some(prompt_file::load_and_warn(&runtime, file, quiet)?),
        None => None,
    };
    let options =
        RunOptions { provider: args.provider.clone(), base_url: args.base_url.clone(), ..RunOptions::default() };
    let models = runtime.list_models(prompt.as_ref(), &options)?;
    if args.json {
        return Ok(output::print(&(json::pretty(&json!(models)) + "\n"))?);
    }
    let lines = models.iter().map(|model| visible_line(&model.id) + "\n");
    Ok(output::print_lines(&lines.collect::<String>())?)
}

//! `tympan hash`: prints the hashes of prompts.

use serde_json::{Value as Json, json};
use tympan::{Prompt, Result};

use crate::args::HashArgs;
use crate::escape::visible_line;
use crate::report::Failure;
use crate::{json, output, prompt_file};

pub(super) fn run(args: &HashArgs, quiet: bool) -> Result<(), Failure> {
    let mut prompts = Vec::new();
    let runtime = prompt_file::runtime_as_written(&args.allowed);
    for file in &args.files {
        prompts.push((file.display().to_string(), prompt_file::load_and_warn(&runtime, file, quiet)?));
    }
    if args.json {
        let list = prompts.iter().map(|(file, prompt)| to_json(file, prompt)).collect::<Result<Json>>()?;
        return Ok(output::print(&(json::pretty(&list) + "\n"))?);
    }
    let mut out = String::new();
    for (index, (file, prompt)) in prompts.iter().enumerate() {
        let gap = if index == 0 { "" } else { "\n" };
        out.push_str(&format!("{gap}{}\n", visible_line(file)));
        let width = prompt.arms().map(|arm| visible_line(arm).chars().count()).max().unwrap_or_default().max(10);
        out.push_str(&format!("  {:<width$}  {}\n", "definition", prompt.definition_hash()));
        for arm in prompt.arms() {
            out.push_str(&format!("  {:<width$}  {}\n", visible_line(arm), prompt.variant_hash(Some(arm))?));
        }
    }
    Ok(output::print_lines(&out)?)
}

fn to_json(file: &str, prompt: &Prompt) -> Result<Json> {
    let mut object = json!({ "file": file });
    if let (Json::Object(object), Json::Object(hashes)) = (&mut object, hashes(prompt)?) {
        object.extend(hashes);
    }
    Ok(object)
}

/// Returns the hashes of a prompt, with the same keys as in a lock file.
pub(super) fn hashes(prompt: &Prompt) -> Result<Json> {
    let templates = prompt.arms().map(|arm| Ok((arm.to_owned(), prompt.variant_hash(Some(arm))?.into())));
    Ok(json!({
        "name": prompt.name(),
        "definition_hash": prompt.definition_hash(),
        "template_hashes": templates.collect::<Result<serde_json::Map<String, Json>>>()?,
    }))
}

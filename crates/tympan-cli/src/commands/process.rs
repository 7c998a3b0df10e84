//! `tympan process`: converts a provider's response to a result.

use tympan::Outcome;
use tympan::{RunOptions, RuntimeOptions};

use crate::args::ProcessArgs;
use crate::escape::visible;
use crate::report::Failure;
use crate::{inputs, json, output, prompt_file, report};

pub(super) fn run(args: &ProcessArgs, quiet: bool) -> Result<(), Failure> {
    if prompt_file::is_stdin(&args.file) && prompt_file::is_stdin(&args.response) {
        return Err(Failure::Usage(
            "only one of the prompt and the response can be read from standard input".to_owned(),
        ));
    }
    let runtime = prompt_file::runtime(&args.file, args.env.over(RuntimeOptions::default()), quiet);
    let prompt = prompt_file::load_and_warn(&runtime, &args.file, quiet)?;
    let answer = inputs::read(&args.response, "--response")?;
    let options =
        RunOptions { provider: args.provider.clone(), api_type: args.api_type.clone(), ..RunOptions::default() };
    let run = runtime.process_with(&prompt, answer.text().as_bytes(), &options);
    let outcome = run.map_err(|error| error.in_source(&answer, 0))?.outcome;
    if !quiet {
        report::mismatches(&outcome);
    }
    Ok(output::print(&match &outcome {
        Outcome::Text(text) | Outcome::Image(text) if !args.json => shown(text),
        outcome => json::pretty(&outcome.to_json()) + "\n",
    })?)
}

/// Escapes text for a terminal. For programs, the text is unchanged.
fn shown(text: &str) -> String {
    match output::looks().is_seen {
        true => visible(text).into_owned() + if text.ends_with('\n') { "" } else { "\n" },
        false => text.to_owned(),
    }
}

//! `tympan parse`: splits text that was rendered elsewhere into messages.

use serde_json::Value as Json;
use tympan::chat::thread::{ThreadRoles, parse_thread};
use tympan::chat::{ParseTextOptions, parse_text};
use tympan::{Error, Kind, Message};

use super::messages::{Shown, show};
use crate::args::ParseArgs;
use crate::report::Failure;
use crate::{inputs, json, output, prompt_file};

pub(super) fn run(args: &ParseArgs) -> Result<(), Failure> {
    let threads = match &args.threads {
        Some(path) if prompt_file::is_stdin(path) => {
            return Err(Failure::Usage(
                "--threads: cannot be `-`, because standard input is the text to parse".to_owned(),
            ));
        }
        Some(path) => read_threads(&inputs::read(path, "--threads")?)?,
        None => Vec::new(),
    };
    let options = ParseTextOptions { nonce: args.nonce.clone(), threads };
    let messages = parse_text(&prompt_file::read_stdin()?, &options)?;
    if args.json {
        return Ok(output::print(&(json::pretty(&messages) + "\n"))?);
    }
    let shown: Vec<_> = messages.into_iter().map(Shown::plain).collect();
    Ok(output::print_lines(&show(&shown, output::looks()))?)
}

fn read_threads(source: &tympan::text::source::SourceFile) -> Result<Vec<(String, Vec<Message>)>, Error> {
    let value: Json = serde_json::from_str(source.text()).map_err(|error| {
        Error::new(Kind::InvalidThread, format_args!("{}: invalid JSON: {error}", source.name())).with_help(HELP)
    })?;
    let Json::Object(map) = value else {
        return Err(
            Error::new(Kind::InvalidThread, format_args!("{}: expected a JSON object", source.name())).with_help(HELP)
        );
    };
    let read = |thread| parse_thread(thread, ThreadRoles::Any).map_err(|error| error.in_source(source, 0));
    map.iter().map(|(nonce, thread)| Ok((nonce.clone(), read(thread)?))).collect()
}

const HELP: &str = "write an object that maps nonces to lists of messages";

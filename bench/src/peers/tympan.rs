//! Tympan: the only file here that calls it.

use super::chat_text;
use crate::Result;
use crate::data::Workload;
use crate::row::{Entry, Operation};
use tympan_runtime::{Message, load_str};

const FILE: &str = "bench.prompty";

pub(super) fn entries() -> Vec<Entry> {
    vec![
        Entry::new("tympan", "load", load),
        Entry::new("tympan", "render", render),
        Entry::new("tympan", "prepare", prepare),
    ]
}

fn load(workload: &Workload) -> Result<Operation> {
    let file = workload.prompty.clone();
    Ok(Operation::new(move || load_str(&file, FILE, "."), |_| None)?)
}

/// The template that template engines get, so that the work is the same: loops instead of threads.
fn render(workload: &Workload) -> Result<Operation> {
    let prompt = load_str(&workload.bare_prompty(), FILE, ".")?;
    let inputs = workload.inputs.clone();
    Ok(Operation::new(move || tympan_runtime::render(&prompt, &inputs), |rendered| Some(rendered.into_text()))?)
}

/// The file that Prompty's own runtime gets.
fn prepare(workload: &Workload) -> Result<Operation> {
    let prompt = load_str(&workload.prompty, FILE, ".")?;
    let inputs = workload.inputs.clone();
    let text = |messages: Vec<Message>| {
        Some(chat_text(messages.iter().map(|message| (message.role.as_str().to_owned(), message.to_text()))))
    };
    Ok(Operation::new(move || tympan_runtime::prepare(&prompt, &inputs), text)?)
}

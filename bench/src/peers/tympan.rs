//! Tympan. This is the only file that calls it.

use super::chat_text;
use crate::Result;
use crate::data::Workload;
use crate::row::{Entry, Operation};
use tympan::{Guard, Prompt, RenderOptions};
use tympan::{Message, load_str};

const FILE: &str = "bench.prompty";

pub(super) fn entries() -> Vec<Entry> {
    vec![
        Entry::new("tympan", "load", load),
        Entry::new("tympan", "render", render),
        Entry::new("tympan", "prepare", prepare),
        Entry::new("tympan", "definition load", definition_load),
        Entry::new("tympan", "definition render", definition_render),
        Entry::new("tympan", "definition guarded", |workload| definition_guarded(&workload.press, workload)),
        Entry::new("tympan", "definition wrapped", |workload| {
            definition_guarded(&workload.untrusted_press(), workload)
        }),
    ]
}

fn definition_load(workload: &Workload) -> Result<Operation> {
    let definition = workload.press.clone();
    Ok(Operation::new(move || Prompt::from_yaml(&definition), |_| None)?)
}

/// Renders a definition with both hashes, which prompting-press always computes.
fn definition_render(workload: &Workload) -> Result<Operation> {
    let prompt = Prompt::from_yaml(&workload.press)?;
    let inputs = workload.inputs.clone();
    let operate = move || prompt.render(&inputs).map(|rendered| (rendered.render_hash(), rendered));
    Ok(Operation::new(operate, |(_, rendered)| Some(rendered.into_text()))?)
}

/// Renders a definition with the guard on: with the declared trust, and with no trusted inputs, so that every
/// interpolation is wrapped.
fn definition_guarded(definition: &str, workload: &Workload) -> Result<Operation> {
    let prompt = Prompt::from_yaml(definition)?;
    let inputs = workload.inputs.clone();
    let guard = Guard::default();
    let operate = move || {
        let options = RenderOptions { guard: Some(&guard), ..RenderOptions::default() };
        prompt.render_with(&inputs, &options).map(|rendered| (rendered.render_hash(), rendered))
    };
    Ok(Operation::new(operate, |_| None)?)
}

fn load(workload: &Workload) -> Result<Operation> {
    let file = workload.prompty.clone();
    Ok(Operation::new(move || load_str(&file, FILE, "."), |_| None)?)
}

/// Renders the template of the template engines, so that the work is the same: loops instead of threads.
fn render(workload: &Workload) -> Result<Operation> {
    let prompt = load_str(&workload.bare_prompty(), FILE, ".")?;
    let inputs = workload.inputs.clone();
    Ok(Operation::new(move || tympan::render(&prompt, &inputs), |rendered| Some(rendered.into_text()))?)
}

/// Prepares the same file as Prompty's runtime.
fn prepare(workload: &Workload) -> Result<Operation> {
    let prompt = load_str(&workload.prompty, FILE, ".")?;
    let inputs = workload.inputs.clone();
    let text = |messages: Vec<Message>| {
        Some(chat_text(messages.iter().map(|message| (message.role.as_str().to_owned(), message.to_text()))))
    };
    Ok(Operation::new(move || tympan::prepare(&prompt, &inputs), text)?)
}

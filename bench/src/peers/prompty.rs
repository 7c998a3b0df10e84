//! prompty: the Rust runtime of Prompty.

use super::chat_text;
use crate::Result;
use crate::data::Workload;
use crate::row::{Entry, Operation};
use ::prompty::model::Message;
use serde_json::Value;
use std::hint::black_box;
use std::sync::Once;

const FILE: &str = "bench.prompty";

pub(super) fn entries() -> Vec<Entry> {
    vec![Entry::new("prompty", "load", load), Entry::new("prompty", "prepare", prepare)]
}

fn load(workload: &Workload) -> Result<Operation> {
    let file = workload.prompty.clone();
    Ok(Operation::new(move || ::prompty::load_from_string(&file, FILE), |_| None)?)
}

/// Prepares messages. `prepare` is async, although it never waits. A program that uses it is already async, so the
/// runtime is entered once for many calls and only the `.await` is measured.
fn prepare(workload: &Workload) -> Result<Operation> {
    static DEFAULTS: Once = Once::new();
    DEFAULTS.call_once(::prompty::register_defaults);

    let agent = ::prompty::load_from_string(&workload.prompty, FILE)?;
    let inputs = Value::Object(workload.inputs.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let messages = runtime.block_on(::prompty::prepare(&agent, Some(&inputs)))?;
    Ok(Operation::batched(Some(text(&messages)), move |times| {
        runtime.block_on(async {
            for _ in 0..times {
                let _ = black_box(::prompty::prepare(&agent, Some(&inputs)).await);
            }
        });
    }))
}

fn text(messages: &[Message]) -> String {
    chat_text(messages.iter().map(|message| (message.role.to_string(), message.text_content())))
}

//! One file a library. Each says how a program would use it, as favourably to that library as its interface allows.

mod askama;
mod minijinja;
mod prompting_press;
mod prompty;
mod tympan;

use crate::Result;
use crate::data::Workload;
use crate::row::{Entry, Row};

/// All operations of all libraries, in the order of the table.
pub fn entries() -> Vec<Entry> {
    [tympan::entries(), prompty::entries(), prompting_press::entries(), minijinja::entries(), askama::entries()]
        .concat()
}

/// Every library's operations on a workload, each known to produce the expected text.
pub fn rows(workload: &Workload) -> Result<Vec<Row>> {
    entries().iter().map(|entry| entry.row(workload)).collect()
}

/// The operation of this name (`prompty prepare`) alone, so that nothing else is done on the way.
pub fn row(workload: &Workload, name: &str) -> Result<Row> {
    let entry = entries().into_iter().find(|entry| entry.name.to_string() == name);
    entry.ok_or_else(|| format!("there is no row {name:?}"))?.row(workload)
}

/// Messages as the expected text has them.
fn chat_text(messages: impl IntoIterator<Item = (String, String)>) -> String {
    let messages = messages.into_iter().map(|(role, content)| format!("{role}:\n{content}"));
    messages.collect::<Vec<_>>().join("\n\n")
}

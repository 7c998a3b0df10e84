//! The libraries, one file per library. Each is used as a program would use it, in the most favourable way that its API
//! allows.

mod askama;
mod minijinja;
mod prompting_press;
mod prompty;
mod tympan;

use crate::Result;
use crate::data::Workload;
use crate::row::{Entry, Row};

/// Returns all operations of all libraries, in the order of the table.
pub fn entries() -> Vec<Entry> {
    [tympan::entries(), prompty::entries(), prompting_press::entries(), minijinja::entries(), askama::entries()]
        .concat()
}

/// Returns all operations on a workload, after checking that they produce the expected text.
pub fn rows(workload: &Workload) -> Result<Vec<Row>> {
    entries().iter().map(|entry| entry.row(workload)).collect()
}

/// Returns a single operation by name, such as `prompty prepare`, without preparing any other.
pub fn row(workload: &Workload, name: &str) -> Result<Row> {
    let entry = entries().into_iter().find(|entry| entry.name.to_string() == name);
    entry.ok_or_else(|| format!("there is no row {name:?}"))?.row(workload)
}

/// Formats messages like the expected text.
fn chat_text(messages: impl IntoIterator<Item = (String, String)>) -> String {
    let messages = messages.into_iter().map(|(role, content)| format!("{role}:\n{content}"));
    messages.collect::<Vec<_>>().join("\n\n")
}

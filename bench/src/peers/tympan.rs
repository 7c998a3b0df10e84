//! Tympan: the only file here that calls it.

use crate::row::Entry;

/// No rows yet: the engine is not there. When it is, this becomes
///
/// ```text
/// vec![
///     Entry::new("tympan", "load", load),       // of workload.prompty
///     Entry::new("tympan", "render", render),   // of workload.bare_prompty(): as template engines get it
///     Entry::new("tympan", "prepare", prepare), // of workload.prompty: as prompty gets it
/// ]
/// ```
///
/// with, for one,
///
/// ```text
/// fn prepare(workload: &Workload) -> Result<Operation> {
///     let prompt = Runtime::new().prompt_from_str(&workload.prompty, "bench.prompty")?;
///     let inputs = workload.inputs.clone();
///     let text = |messages: Vec<Message>| Some(chat_text(messages.iter().map(|m| (m.role.to_string(), m.text()))));
///     Ok(Operation::new(move || tympan_runtime::prepare(&prompt, &inputs), text)?)
/// }
/// ```
pub(super) fn entries() -> Vec<Entry> {
    Vec::new()
}

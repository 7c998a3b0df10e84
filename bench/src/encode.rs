//! Encoding of a request with fifty messages, compared with serde_json writing the same body.

use crate::data::Workload;
use crate::row::{Entry, Operation, Row};
use crate::{Result, data};
use serde::Serialize;
use serde_json::Value;
use std::convert::Infallible;
use tympan::spec::{Model, ModelOptions, PromptSpec};
use tympan::wire::{EncodeOptions, encode};
use tympan::{Message, Prompt, Role};

const MESSAGES: usize = 50;

/// Returns the rows, after checking that they write the same body.
pub fn rows() -> Result<Vec<Row>> {
    let entries = [
        Entry::new("tympan", "encode", tympan),
        Entry::new("serde_json", "encode a struct", serialized::<Body>),
        Entry::new("serde_json", "encode a value", serialized::<Value>),
    ];
    let workload = Workload::named(data::NAMES[0])?;
    // The request does not depend on the workload's text.
    entries.iter().map(|entry| entry.row(&workload)).collect()
}

fn texts() -> impl Iterator<Item = (Role, String)> {
    (0..MESSAGES).map(|index| {
        let role = match index {
            0 => Role::System,
            index if index % 2 == 1 => Role::User,
            _ => Role::Assistant,
        };
        let text =
            "Order 1042 has not arrived.\nThe tracking page says \"in transit\" since Monday, and nobody answers. ";
        (role, format!("{index}: {}", text.repeat(2)))
    })
}

fn prompt() -> Prompt {
    let options = ModelOptions { max_output_tokens: Some(1000), ..ModelOptions::default() };
    let model = Model { id: Some("gpt-4o".to_owned()), options, ..Model::default() };
    Prompt::from_spec(PromptSpec { model: Some(model), ..PromptSpec::default() })
}

fn tympan(_: &Workload) -> Result<Operation> {
    let (prompt, messages) = (prompt(), texts().map(|(role, text)| Message::text(role, text)).collect::<Vec<_>>());
    Ok(Operation::new(move || encode(&prompt, &messages, &EncodeOptions::default()), |_| None)?)
}

/// The body as a program would declare it.
#[derive(serde::Deserialize, Serialize)]
struct Body {
    model: String,
    messages: Vec<Said>,
    max_completion_tokens: i64,
}

#[derive(serde::Deserialize, Serialize)]
struct Said {
    role: String,
    content: String,
}

fn serialized<T>(_: &Workload) -> Result<Operation>
where
    T: serde::de::DeserializeOwned + Serialize + Send + Sync + 'static,
{
    let messages: Vec<_> = texts().map(|(role, text)| Message::text(role, text)).collect();
    let text = encode(&prompt(), &messages, &EncodeOptions::default())?.body;
    let body: T = serde_json::from_str(&text)?;
    if serde_json::to_string(&body)? != text {
        return Err("serde_json writes another body".into());
    }
    let written = Operation::new(move || Ok::<_, Infallible>(serde_json::to_string(&body)), |_| None);
    Ok(written.unwrap_or_else(|never| match never {}))
}

//! askama: templates compiled to Rust, with structs instead of JSON. It is not a peer but the lower bound: a program
//! that reads its prompts from files cannot use it.

use crate::Result;
use crate::data::{LARGE, Workload};
use crate::row::{Entry, Operation};
use ::askama::Template;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

// The templates `W1`, `W2` and `W3`. See `build.rs`.
include!(concat!(env!("OUT_DIR"), "/w1.rs"));
include!(concat!(env!("OUT_DIR"), "/w2.rs"));
include!(concat!(env!("OUT_DIR"), "/w3.rs"));

#[derive(Template)]
#[template(ext = "txt", source = "system:\nSummarise what follows.\n\nuser:\n{{ text }}")]
struct Large<'a> {
    text: &'a str,
}

#[derive(Deserialize)]
struct ChatInputs {
    customer: String,
    premium: bool,
    question: String,
    tone: Option<String>,
}

#[derive(Deserialize)]
struct RetrievalInputs {
    user: User,
    strict: bool,
    docs: Vec<Doc>,
    question: String,
}

#[derive(Deserialize)]
struct User {
    profile: Profile,
    groups: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    name: String,
    org: Org,
}

#[derive(Deserialize)]
struct Org {
    name: String,
}

#[derive(Deserialize)]
struct Doc {
    title: String,
    score: f64,
    body: String,
    tags: Vec<String>,
    meta: Meta,
}

#[derive(Deserialize)]
struct Meta {
    source: String,
    verified: bool,
}

#[derive(Deserialize)]
struct HistoryInputs {
    customer: String,
    history: Vec<Turn>,
    question: String,
}

#[derive(Deserialize)]
struct Turn {
    role: String,
    content: String,
}

#[derive(Deserialize)]
struct LargeInputs {
    text: String,
}

pub(super) fn entries() -> Vec<Entry> {
    vec![Entry::new("askama", "render", render)]
}

fn render(workload: &Workload) -> Result<Operation> {
    match workload.name.as_str() {
        "w1" => operation(workload, |i: &ChatInputs| {
            let tone = i.tone.as_deref();
            W1 { customer: &i.customer, premium: i.premium, question: &i.question, tone }.render()
        }),
        "w2" => operation(workload, |i: &RetrievalInputs| {
            W2 { user: &i.user, strict: i.strict, docs: &i.docs, question: &i.question }.render()
        }),
        "w3" => operation(workload, |i: &HistoryInputs| {
            W3 { customer: &i.customer, history: &i.history, question: &i.question }.render()
        }),
        LARGE => operation(workload, |i: &LargeInputs| Large { text: &i.text }.render()),
        other => Err(format!("no template was compiled for {other}").into()),
    }
}

fn operation<I>(
    workload: &Workload,
    render: impl Fn(&I) -> ::askama::Result<String> + Send + Sync + 'static,
) -> Result<Operation>
where
    I: DeserializeOwned + Send + Sync + 'static,
{
    let inputs: I = serde_json::from_value(Value::Object(workload.inputs.clone()))?;
    Ok(Operation::new(move || render(&inputs), Some)?)
}

//! What a prompt comes to: the result of a model's answer, in the shape that the prompt declares.

use std::collections::HashSet;

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, IntoDeserializer as _};
use serde_json::{Value as Json, json};

use crate::error::{Error, Kind, Result};
use crate::format::directive::fits;
use crate::json::JsonMap;
use crate::prompt::Prompt;
use crate::spec::schema::Property;
use crate::template::input::GivenRef;
use crate::wire::response::{Answer, Output, Response, ToolCall};
use crate::wire::{self, Protocol};

/// The result of a call of a model.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Text; or a refusal, if the model refused.
    Text(String),
    /// What the prompt's `outputs` declare.
    Structured(Structured),
    /// Tools that the model wants to have called.
    ToolCalls(Vec<ToolCall>),
    /// The vector of one text.
    Embedding(Vec<f64>),
    /// The vectors of several texts.
    Embeddings(Vec<Vec<f64>>),
    /// A picture: its address, or base64 data.
    Image(String),
    /// Several pictures.
    Images(Vec<String>),
}

/// A result that the prompt's `outputs` describe.
#[derive(Clone, Debug, PartialEq)]
pub struct Structured {
    /// The result.
    pub value: Json,
    /// The text that it was read from, exactly as the model wrote it.
    pub raw: String,
    /// What is wrong with it, by the prompt's `outputs`; empty if it is as declared.
    pub problems: Vec<String>,
}

/// The result that an answer is for a prompt: calls of tools, or else what it says, in the shape that the prompt's
/// `outputs` declare. What should be JSON and is none stays text.
///
/// ```
/// use tympan::{Outcome, Prompt, Response};
/// use tympan::turn::outcome::finish;
/// use tympan::wire::response::{Answer, Output};
///
/// let prompt = Prompt::from_spec(Default::default());
/// let answer = Answer { text: "Hello!".into(), ..Answer::default() };
/// let response = Response { output: Output::Answer(answer), ..Response::default() };
/// assert_eq!(finish(&prompt, response)?, Outcome::Text("Hello!".into()));
/// # Ok::<(), tympan::Error>(())
/// ```
///
/// # Errors
/// The answer is empty where there has to be something: vectors or pictures.
pub fn finish(prompt: &Prompt, response: Response) -> Result<Outcome> {
    finish_as(&prompt.spec().outputs, response)
}

/// As [`finish`], with the outputs alone, for whoever no longer has the prompt.
///
/// # Errors
/// As [`finish`].
pub fn finish_as(outputs: &[Property], response: Response) -> Result<Outcome> {
    let empty = |what: &str| Error::new(Kind::UnexpectedResponse, format_args!("Empty {what} response"));
    match response.output {
        Output::Answer(answer) => Ok(finish_answer(outputs, answer)),
        Output::Embeddings(mut vectors) => match vectors.len() {
            0 => Err(empty("embedding")),
            1 => Ok(Outcome::Embedding(vectors.swap_remove(0))),
            _ => Ok(Outcome::Embeddings(vectors)),
        },
        Output::Images(mut images) => match images.len() {
            0 => Err(empty("image")),
            1 => Ok(Outcome::Image(images.swap_remove(0))),
            _ => Ok(Outcome::Images(images)),
        },
    }
}

/// The result in the bytes of a whole answer.
///
/// # Errors
/// As [`wire::decode`] and [`finish`].
pub fn process(prompt: &Prompt, protocol: Protocol, body: &[u8]) -> Result<Outcome> {
    finish(prompt, wire::decode(protocol, body)?)
}

fn finish_answer(outputs: &[Property], answer: Answer) -> Outcome {
    let Answer { text, refusal, tool_calls, .. } = answer;
    if !tool_calls.is_empty() {
        return Outcome::ToolCalls(tool_calls);
    }
    if text.is_empty() {
        return Outcome::Text(refusal.unwrap_or_default());
    }
    if outputs.is_empty() {
        return Outcome::Text(text);
    }
    match serde_json::from_str(&text) {
        Ok(value) => {
            let problems = problems(outputs, &value);
            Outcome::Structured(Structured { value, raw: text, problems })
        }
        Err(_) => Outcome::Text(text),
    }
}

impl Outcome {
    /// The result as a type of the caller's own: straight from what the model wrote, where that is JSON.
    ///
    /// Text that is no JSON can still become a `String`, or an enum whose variants have these names.
    ///
    /// ```
    /// use tympan::Outcome;
    ///
    /// let sizes: Vec<u32> = Outcome::Text("[1, 2]".into()).cast()?;
    /// assert_eq!(sizes, [1, 2]);
    /// # Ok::<(), tympan::Error>(())
    /// ```
    ///
    /// # Errors
    /// It does not fit. The error says what the type expects and where, and never what the model wrote.
    pub fn cast<T: DeserializeOwned>(&self) -> Result<T> {
        let (read, problems) = match self {
            Self::Structured(structured) => (serde_json::from_str(&structured.raw), structured.problems.as_slice()),
            Self::Text(text) => {
                let plain = || T::deserialize(plain_text(text)).ok();
                match serde_json::from_str(text) {
                    Err(error) => (plain().ok_or(error), [].as_slice()),
                    read => (read, [].as_slice()),
                }
            }
            other => (serde_json::from_value(other.to_json()), [].as_slice()),
        };
        read.map_err(|error| {
            let refused = Error::new(Kind::InvalidResult, without_data(&error));
            match problems {
                [] => refused.with_help("compare the type with the prompt's `outputs`"),
                problems => refused.with_help(problems.join("; ")),
            }
        })
    }

    /// The result as JSON: calls of tools as a list of `id`, `name` and `arguments`, text as a string.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Text(text) | Self::Image(text) => json!(text),
            Self::Structured(structured) => structured.value.clone(),
            Self::ToolCalls(calls) => json!(calls),
            Self::Embedding(vector) => json!(vector),
            Self::Embeddings(vectors) => json!(vectors),
            Self::Images(images) => json!(images),
        }
    }

    /// What it is, as one word: `text`, `structured`, `tool_calls`, `embedding`, `embeddings`, `image` or `images`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Structured(_) => "structured",
            Self::ToolCalls(_) => "tool_calls",
            Self::Embedding(_) => "embedding",
            Self::Embeddings(_) => "embeddings",
            Self::Image(_) => "image",
            Self::Images(_) => "images",
        }
    }

    /// What is wrong with a structured result, by the prompt's `outputs`.
    pub fn problems(&self) -> &[String] {
        match self {
            Self::Structured(structured) => &structured.problems,
            _ => &[],
        }
    }
}

fn plain_text(text: &str) -> StrDeserializer<'_, serde::de::value::Error> {
    text.into_deserializer()
}

/// What an error of serde says about the type. What it says about the value stands before that, and stays there.
fn without_data(error: &serde_json::Error) -> String {
    let place = match error.line() {
        0 => String::new(),
        line => format!(", at line {line}, column {}", error.column()),
    };
    if !error.is_data() {
        return format!("it is not JSON{place}");
    }
    let message = error.to_string();
    if message.starts_with("missing field") {
        return message;
    }
    const BEFORE_DATA: [&str; 5] =
        ["invalid type", "invalid value", "invalid length", "unknown variant", "unknown field"];
    let what = BEFORE_DATA.iter().find(|what| message.starts_with(**what));
    match (what, message.rsplit_once(", expected ")) {
        (Some(what), Some((_, expected))) => format!("{what}, expected {expected}"),
        _ => format!("a value is not as expected{place}"),
    }
}

/// The most problems that are listed.
const MAX_PROBLEMS: usize = 20;

/// The most characters of a name or a value that a problem quotes.
const MAX_QUOTED: usize = 40;

/// The most steps of a check: a value that is compared with another is one.
const MAX_STEPS: usize = 1_000_000;

/// What is wrong with a result, by the declared outputs; or with the arguments of a tool, by its parameters.
pub(crate) fn problems(outputs: &[Property], value: &Json) -> Vec<String> {
    let mut problems = Problems { found: Vec::new(), steps: MAX_STEPS };
    match value {
        Json::Object(given) => problems.check_object(outputs, given, ""),
        other => problems.add(format!("expected a map, found {}", GivenRef::from(other).type_name())),
    }
    if problems.steps == 0 {
        problems.add("checking it takes too long".to_owned());
    }
    problems.found
}

/// What has been found to be wrong.
struct Problems {
    found: Vec<String>,
    /// How many are left.
    steps: usize,
}

impl Problems {
    fn add(&mut self, problem: String) {
        match self.found.len() {
            0..MAX_PROBLEMS => self.found.push(problem),
            MAX_PROBLEMS => self.found.push("and more".to_owned()),
            _ => {}
        }
    }

    /// Counts steps. Returns whether there is any use in taking them.
    fn goes_on(&mut self, steps: usize) -> bool {
        self.steps = self.steps.saturating_sub(steps);
        self.steps > 0 && self.found.len() <= MAX_PROBLEMS
    }

    fn check_object(&mut self, declared: &[Property], given: &JsonMap, path: &str) {
        if !self.goes_on(declared.len() + given.len()) {
            return;
        }
        for property in declared {
            let path = join(path, &property.name);
            match given.get(&property.name) {
                // An optional output that is left out comes back as null from providers that want all of them.
                None | Some(Json::Null) if property.required != Some(true) => {}
                None => self.add(format!("`{path}` is missing")),
                Some(value) => self.check(property, value, &path),
            }
        }
        let names: HashSet<&str> = declared.iter().map(|property| property.name.as_str()).collect();
        for name in given.keys().filter(|name| !names.contains(name.as_str())) {
            let path = join(path, name);
            self.add(format!("`{path}` is not declared"));
        }
    }

    fn check(&mut self, property: &Property, value: &Json, path: &str) {
        let allowed = property.enum_values.as_ref().map_or(0, Vec::len);
        if !self.goes_on(1 + allowed.saturating_mul(1 + weight(value))) {
            return;
        }
        let kinds = if property.kinds.is_empty() { std::slice::from_ref(&property.kind) } else { &property.kinds };
        if !kinds.iter().any(|kind| fits(value, *kind)) {
            let kinds: Vec<_> = kinds.iter().map(|kind| kind.as_str()).collect();
            return self.add(format!(
                "`{path}`: expected {}, found {}",
                kinds.join(" or "),
                GivenRef::from(value).type_name()
            ));
        }
        if let Some(allowed) = property.enum_values.as_ref().filter(|allowed| !allowed.contains(value)) {
            let allowed: Vec<_> = allowed.iter().take(MAX_PROBLEMS).map(|value| quoted(&value.to_string())).collect();
            return self.add(format!("`{path}` is none of {}", allowed.join(", ")));
        }
        match value {
            Json::Object(given) if !property.properties.is_empty() => {
                self.check_object(&property.properties, given, path);
            }
            Json::Array(items) => {
                if let Some(declared) = &property.items {
                    for (index, item) in items.iter().enumerate() {
                        self.check(declared, item, &format!("{path}[{index}]"));
                    }
                }
            }
            _ => {}
        }
    }
}

/// How many steps it takes to compare a value with another, besides the first.
fn weight(value: &Json) -> usize {
    match value {
        Json::String(text) => text.len() / 64,
        Json::Array(items) => items.len(),
        Json::Object(map) => map.len(),
        _ => 0,
    }
}

fn join(path: &str, name: &str) -> String {
    let name = quoted(name);
    if path.is_empty() { name } else { format!("{path}.{name}") }
}

fn quoted(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => text[..end].to_owned() + "…",
        None => text.to_owned(),
    }
}

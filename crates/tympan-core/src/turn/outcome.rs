//! The result of running a prompt: a model's response, in the form that the prompt declares.

use std::collections::HashSet;

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, IntoDeserializer as _};
use serde_json::{Value as Json, json};

use crate::error::{Error, Kind, Result};
use crate::format::directive::matches_kind;
use crate::json::JsonMap;
use crate::prompt::Prompt;
use crate::spec::schema::Property;
use crate::template::input::InputRef;
use crate::turn::{fenced_json, schema};
use crate::wire::response::{Answer, Output, Response, ToolCall};
use crate::wire::{self, Protocol};

/// The result of a model call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// Text, or the model's explanation if it refused to answer.
    Text(String),
    /// A value that the prompt's `outputs` declare.
    Structured(Structured),
    /// Tool calls that the model requests.
    ToolCalls(Vec<ToolCall>),
    /// The embedding of one text.
    Embedding(Vec<f64>),
    /// The embeddings of several texts.
    Embeddings(Vec<Vec<f64>>),
    /// An image, as a URL or base64 data.
    Image(String),
    /// Several images.
    Images(Vec<String>),
}

/// A structured result, as declared by the prompt's `outputs`.
#[derive(Clone, Debug, PartialEq)]
pub struct Structured {
    /// The parsed value.
    pub value: Json,
    /// The text that the value was parsed from, exactly as the model wrote it. If the model wrote the JSON in a fenced
    /// block of Markdown, the text includes the fence.
    pub raw: String,
    /// The mismatches with the prompt's `outputs`; empty if the value is valid.
    pub problems: Vec<String>,
}

/// Converts a response to the result of a prompt: its tool calls, or else its content in the form that the prompt's
/// `outputs` declare. Text that should be JSON, but is not, remains text. JSON in a fenced block of Markdown counts.
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
/// Returns an error if a response with embeddings or images is empty.
pub fn finish(prompt: &Prompt, response: Response) -> Result<Outcome> {
    finish_as(&prompt.spec().outputs, response)
}

/// Converts a response to a result, for callers that have only the prompt's `outputs`; see [`finish`].
///
/// # Errors
/// Returns an error if a response with embeddings or images is empty.
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

/// Decodes a complete response and converts it to a result.
///
/// # Errors
/// Returns an error if [`wire::decode`] or [`finish`] does.
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
    match fenced_json::parse(&text) {
        Some(value) => {
            let problems = problems(outputs, &value);
            Outcome::Structured(Structured { value, raw: text, problems })
        }
        None => Outcome::Text(text),
    }
}

impl Outcome {
    /// Deserializes the result into a type. If the model wrote JSON, deserializes directly from its text.
    ///
    /// Text that is not JSON can still become a `String`, or an enum with a variant of that name.
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
    /// Returns an error if the result does not match the type. The error says what the type expects and where, but
    /// never quotes what the model wrote.
    pub fn cast<T: DeserializeOwned>(&self) -> Result<T> {
        let (read, problems) = match self {
            Self::Structured(structured) => {
                (serde_json::from_str(fenced_json::find(&structured.raw)), structured.problems.as_slice())
            }
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
                [] => refused.with_help("compare the type with the `outputs` of the prompt"),
                problems => refused.with_help(problems.join("; ")),
            }
        })
    }

    /// Converts the result to JSON. Tool calls become a list of `id`, `name` and `arguments`; text becomes a string.
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

    /// Returns the kind of result: `text`, `structured`, `tool_calls`, `embedding`, `embeddings`, `image` or `images`.
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

    /// Returns the mismatches of a structured result with the prompt's `outputs`.
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

/// Returns what a serde error says about the type. The part that quotes the value comes before that, and is removed.
fn without_data(error: &serde_json::Error) -> String {
    let place = match error.line() {
        0 => String::new(),
        line => format!(" at line {line}, column {}", error.column()),
    };
    if !error.is_data() {
        return format!("invalid JSON{place}");
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
        _ => format!("unexpected value{place}"),
    }
}

/// The maximum number of problems to list.
const MAX_PROBLEMS: usize = 20;

/// The maximum number of characters of a name or a value to quote.
const MAX_QUOTED: usize = 40;

/// The maximum number of steps of a check. Comparing two values is one step.
const MAX_STEPS: usize = 1_000_000;

/// Checks a result against the declared outputs, or a tool's arguments against its parameters, and returns the
/// problems.
pub(crate) fn problems(outputs: &[Property], value: &Json) -> Vec<String> {
    if let Some(schema) = wire::encoded_schema(outputs, &[]) {
        return schema::declared_problems(&schema, value);
    }
    let mut problems = Problems { found: Vec::new(), steps: MAX_STEPS };
    match value {
        Json::Object(given) => problems.check_object(outputs, given, ""),
        other => problems.add(format!("expected a map, found {}", InputRef::from(other).type_name())),
    }
    if problems.steps == 0 {
        problems.add("too many values to check".to_owned());
    }
    problems.found
}

/// The problems found so far.
struct Problems {
    found: Vec<String>,
    /// The number of steps left.
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

    /// Counts steps. Returns whether to continue checking.
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
                // Providers that require all properties return null for an optional output that is omitted.
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
        if !kinds.iter().any(|kind| matches_kind(value, *kind)) {
            let kinds: Vec<_> = kinds.iter().map(|kind| kind.as_str()).collect();
            return self.add(format!(
                "`{path}`: expected {}, found {}",
                kinds.join(" or "),
                InputRef::from(value).type_name()
            ));
        }
        if let Some(allowed) = property.enum_values.as_ref().filter(|allowed| !allowed.contains(value)) {
            let allowed: Vec<_> = allowed.iter().take(MAX_PROBLEMS).map(|value| quoted(&value.to_string())).collect();
            return self.add(format!("`{path}`: expected one of {}", allowed.join(", ")));
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

/// Returns the number of additional steps to compare a value with another.
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

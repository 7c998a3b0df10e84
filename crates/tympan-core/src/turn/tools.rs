//! The tools of a turn: which there are, what they are called with, what they return.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::context::truncate;
use super::schema;
use crate::chat::message::Content;
use crate::chat::rendered::Inputs;
use crate::error::{Error, Kind, Result};
use crate::json::JsonMap;
use crate::spec::schema::Property;
use crate::spec::{Binding, BindingValue, Tool, ToolKind};
use crate::turn::outcome;
use crate::wire::Function;
use crate::wire::arguments::{self, Repair};
use crate::wire::response::ToolCall;

/// The most characters of a tool's name that an error shows.
const MAX_NAME: usize = 200;

/// A tool that is to run.
#[derive(Clone, PartialEq)]
pub struct ToolRun {
    /// Which of the calls of its round: 0 for the first.
    pub index: usize,
    /// The round: 1 for the first answer of the model. With the index it names a run within its turn.
    pub round: u32,
    /// The provider's name for the call, or one that the turn gave it. Other rounds may have the same.
    pub id: String,
    /// The tool.
    pub name: String,
    /// What it is called with.
    pub arguments: Arc<JsonMap>,
}

impl fmt::Debug for ToolRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // People bind session tokens and the like: the values are not shown.
        let arguments: Vec<_> = self.arguments.keys().collect();
        let mut run = f.debug_struct("ToolRun");
        run.field("index", &self.index).field("round", &self.round).field("id", &self.id);
        run.field("name", &self.name).field("arguments", &arguments).finish()
    }
}

/// What a tool returned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// For the model.
    pub parts: Content,
    /// For everybody else. No text decides it: a tool may well return `Error: …`.
    #[serde(default)]
    pub status: ToolStatus,
}

/// Whether a tool did what it was called for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// It did.
    #[default]
    Ok,
    /// It did not.
    Error {
        /// A short stable name of what went wrong. The turn itself uses `invalid_arguments`, `missing_input` and
        /// `guardrail`.
        code: String,
    },
}

impl ToolResult {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { parts: Content::text(text), status: ToolStatus::Ok }
    }

    /// A failure of a tool, in the words of the specification.
    pub fn failed(name: &str, code: &str, message: impl fmt::Display) -> Self {
        Self::error(code, format!("Error: Tool '{}' failed: {message}", shown(name)))
    }

    /// A failure in other words.
    pub fn error(code: &str, text: impl Into<String>) -> Self {
        Self { parts: Content::text(text), status: ToolStatus::Error { code: code.to_owned() } }
    }

    /// Whether it is a failure.
    pub fn is_error(&self) -> bool {
        self.status != ToolStatus::Ok
    }
}

/// A name that a model wrote, for people.
pub(super) fn shown(name: &str) -> String {
    truncate(name, MAX_NAME).chars().map(|char| if char.is_control() { '\u{fffd}' } else { char }).collect()
}

/// The only tools that can be called.
pub(super) struct Declared(HashMap<String, Entry>);

/// A tool.
struct Entry {
    /// What the model may set.
    parameters: Parameters,
    /// What it may not, by the parameters' names.
    bound: IndexMap<String, Bound>,
}

/// The value of a parameter that the model does not set, or the input that was not given.
type Bound = Result<Json, String>;

enum Parameters {
    /// As the prompt declares them.
    Properties(Vec<Property>),
    /// As somebody else does.
    Schema(Json),
}

impl Declared {
    /// The functions of a prompt, and further tools.
    pub(super) fn new(tools: &[Tool], further: &[TurnTool], inputs: &Inputs) -> Result<Self> {
        let mut declared = Self(HashMap::new());
        for tool in tools {
            if let ToolKind::Function { parameters, .. } = &tool.kind {
                let bound = bound(&tool.bindings);
                let is_free = |property: &&Property| !bound.contains(property.name.as_str());
                let parameters = Parameters::Properties(parameters.iter().filter(is_free).cloned().collect());
                declared.add(&tool.name, parameters, &tool.bindings, inputs)?;
            }
        }
        for TurnTool { function, bindings } in further {
            let parameters = Parameters::Schema(without_bound(&function.parameters, bindings));
            declared.add(&function.name, parameters, bindings, inputs)?;
        }
        Ok(declared)
    }

    fn add(&mut self, name: &str, parameters: Parameters, bindings: &[Binding], inputs: &Inputs) -> Result<()> {
        let bound = bindings.iter().map(|binding| {
            let value = match &binding.value {
                BindingValue::Static(value) => Ok(value.clone()),
                BindingValue::Input(input) => inputs.get(input).cloned().ok_or_else(|| input.clone()),
            };
            (binding.parameter.clone(), value)
        });
        let entry = Entry { parameters, bound: bound.collect() };
        if self.0.insert(name.to_owned(), entry).is_none() {
            return Ok(());
        }
        let error = Error::new(Kind::DuplicateName, format_args!("there are two tools named `{}`", shown(name)));
        Err(error.with_help("give one of them another name: it must be clear which of them a model calls"))
    }

    /// Whether a tool has exactly this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The arguments that a model gave, without those that it may not give; or what to tell the model.
    #[expect(clippy::result_large_err, reason = "it is the answer to a call, and used at once")]
    pub(super) fn read(&self, call: &ToolCall) -> Result<(JsonMap, Option<Repair>), ToolResult> {
        let invalid = |text: String| ToolResult::error("invalid_arguments", text);
        let (mut given, repair) = arguments::parse(&call.arguments)
            .map_err(|reason| invalid(format!("Error: Invalid JSON in tool arguments: {reason}")))?;
        let Some(entry) = self.0.get(&call.name) else { return Ok((given, repair)) };
        given.retain(|name, _| !entry.bound.contains_key(name));
        let given = Json::Object(given);
        let problems = match &entry.parameters {
            Parameters::Properties(properties) => outcome::problems(properties, &given),
            Parameters::Schema(schema) => schema::problems(schema, &given),
        };
        match (problems.is_empty(), given) {
            (true, Json::Object(given)) => Ok((given, repair)),
            _ => Err(ToolResult::failed(
                &call.name,
                "invalid_arguments",
                format_args!("the arguments do not fit its parameters: {}", problems.join("; ")),
            )),
        }
    }

    /// Sets what is bound, whatever the model gave; or what to tell the model. What it gave never takes the place of
    /// an input.
    #[expect(clippy::result_large_err, reason = "it is the answer to a call, and used at once")]
    pub(super) fn bind(&self, run: ToolRun) -> Result<ToolRun, ToolResult> {
        let Some(entry) = self.0.get(&run.name).filter(|entry| !entry.bound.is_empty()) else { return Ok(run) };
        let mut arguments = Arc::unwrap_or_clone(run.arguments);
        for (parameter, bound) in &entry.bound {
            let value = bound.as_ref().map_err(|input| {
                let message = format!("its parameter `{parameter}` is the input `{input}`, which was not given");
                ToolResult::failed(&run.name, "missing_input", message)
            })?;
            arguments.insert(parameter.clone(), value.clone());
        }
        Ok(ToolRun { arguments: Arc::new(arguments), ..run })
    }
}

/// The names of the parameters that are bound.
fn bound(bindings: &[Binding]) -> HashSet<&str> {
    bindings.iter().map(|binding| binding.parameter.as_str()).collect()
}

/// A tool that the prompt does not declare as a function.
#[derive(Clone, PartialEq)]
pub struct TurnTool {
    /// The function that the model gets to know.
    pub function: Function,
    /// Parameters that the model neither sees nor sets.
    pub bindings: Vec<Binding>,
}

impl TurnTool {
    /// The function without the parameters that are bound: what the model gets to see.
    pub fn shown(&self) -> Function {
        Function { parameters: without_bound(&self.function.parameters, &self.bindings), ..self.function.clone() }
    }
}

impl fmt::Debug for TurnTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnTool").field("name", &self.function.name).field("bindings", &self.bindings).finish()
    }
}

/// A schema that does not speak of bound parameters.
pub(super) fn without_bound(schema: &Json, bindings: &[Binding]) -> Json {
    let mut schema = schema.clone();
    let bound = bound(bindings);
    if let Some(properties) = schema.get_mut("properties").and_then(Json::as_object_mut) {
        properties.retain(|name, _| !bound.contains(name.as_str()));
    }
    if let Some(required) = schema.get_mut("required").and_then(Json::as_array_mut) {
        required.retain(|name| !name.as_str().is_some_and(|name| bound.contains(name)));
    }
    schema
}

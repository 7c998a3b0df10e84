//! The tools of a turn: their declarations, arguments and results.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::context::truncate;
use super::label::Label;
use super::schema;
use crate::chat::message::Content;
use crate::chat::rendered::Inputs;
use crate::error::{Error, Kind, Result};
use crate::json::JsonMap;
use crate::spec::flow::ToolFlow;
use crate::spec::json_schema::{schema_requires, without_bound};
use crate::spec::schema::{Property, written_schema};
use crate::spec::{Binding, BindingValue, Tool, ToolKind};
use crate::turn::outcome;
use crate::wire::arguments::{self, Repair};
use crate::wire::response::ToolCall;
use crate::wire::{Function, encoded_schema};

/// The maximum number of characters of a tool's name to show in an error.
const MAX_NAME: usize = 200;

/// A tool run that the driver is asked to perform.
#[derive(Clone, PartialEq)]
pub struct ToolRun {
    /// The index of the call in its round, starting at 0.
    pub index: usize,
    /// The number of the round, starting at 1. Together with the index, it identifies a run within its turn.
    pub round: u32,
    /// The provider's ID for the call, or one that the turn assigned. It may repeat in other rounds.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments.
    pub arguments: Arc<JsonMap>,
    /// The label of the call: the union of what the model had read and of the arguments.
    pub label: Label,
}

impl fmt::Debug for ToolRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Bound arguments may be session tokens or other secrets, so their values are not shown.
        let arguments: Vec<_> = self.arguments.keys().collect();
        let mut run = f.debug_struct("ToolRun");
        run.field("index", &self.index).field("round", &self.round).field("id", &self.id);
        run.field("name", &self.name).field("arguments", &arguments).field("label", &self.label).finish()
    }
}

/// The result of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The content for the model.
    pub parts: Content,
    /// The status for all other purposes. It never depends on the text, because a successful tool may return `Error:
    /// …`.
    #[serde(default)]
    pub status: ToolStatus,
    /// Whether the result is confidential, even if the tool is not declared so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confidential: bool,
    /// Whether the result contains untrusted content, even if the tool is declared as trusted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
}

impl From<Content> for ToolResult {
    fn from(parts: Content) -> Self {
        Self { parts, status: ToolStatus::Ok, confidential: false, untrusted: false }
    }
}

/// Whether a tool succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// The tool succeeded.
    #[default]
    Ok,
    /// The tool failed.
    Error {
        /// A short, stable error code. The turn itself uses `invalid_arguments`, `missing_input` and `guardrail`.
        code: String,
    },
}

impl ToolResult {
    /// Creates a successful result with a text.
    pub fn text(text: impl Into<String>) -> Self {
        Content::text(text).into()
    }

    /// Creates a failed result with the message that the specification prescribes.
    pub fn failed(name: &str, code: &str, message: impl fmt::Display) -> Self {
        Self::error(code, format!("Error: Tool '{}' failed: {message}", shown(name)))
    }

    /// Creates a failed result with a custom message.
    pub fn error(code: &str, text: impl Into<String>) -> Self {
        let status = ToolStatus::Error { code: code.to_owned() };
        Self { status, ..Content::text(text).into() }
    }

    /// Returns whether the tool failed.
    pub fn is_error(&self) -> bool {
        self.status != ToolStatus::Ok
    }
}

/// Makes a name that a model wrote safe to print.
pub(super) fn shown(name: &str) -> String {
    truncate(name, MAX_NAME).chars().map(|char| if char.is_control() { '\u{fffd}' } else { char }).collect()
}

/// The declared tools. Only these can be called.
pub(super) struct Declared(HashMap<String, Entry>);

/// A declared tool.
struct Entry {
    /// The parameters that the model may set.
    parameters: Parameters,
    /// The bound parameters, which the model may not set, by name.
    bound: IndexMap<String, Bound>,
}

/// A bound parameter.
enum Bound {
    /// The value that the tool receives.
    Value(Json),
    /// Bound to an optional input without a value. The tool does not receive the parameter.
    Absent,
    /// Bound to this input, which has no value although the tool needs one.
    Missing(String),
}

/// The inputs of a prompt, which bindings refer to.
#[derive(Clone, Copy)]
pub(super) struct BindingInputs<'a> {
    /// The inputs that the prompt declares.
    pub(super) declared: &'a [Property],
    /// The validated values.
    pub(super) values: &'a Inputs,
}

impl BindingInputs<'_> {
    /// Returns what a parameter is bound to. A parameter that the tool requires needs a value, and so does one that is
    /// bound to an undeclared input, whose name is probably misspelled.
    fn resolve(self, binding: &Binding, is_required: bool) -> Bound {
        let name = match &binding.value {
            BindingValue::Static(value) => return Bound::Value(value.clone()),
            BindingValue::Input(name) => name,
        };
        let declared = self.declared.iter().find(|input| input.name == *name);
        let default = || declared.and_then(|input| input.default.as_ref());
        match self.values.get(name).or_else(default) {
            Some(value) => Bound::Value(value.clone()),
            None if declared.is_some() && !is_required => Bound::Absent,
            None => Bound::Missing(name.clone()),
        }
    }
}

enum Parameters {
    /// Declared by the prompt.
    Properties(Vec<Property>),
    /// Declared by the prompt as a JSON Schema.
    Written(Json),
    /// A JSON Schema from another source.
    Schema(Json),
}

impl Declared {
    /// Collects the functions of a prompt and any additional tools.
    pub(super) fn new(tools: &[Tool], further: &[TurnTool], inputs: BindingInputs<'_>) -> Result<Self> {
        let mut declared = Self(HashMap::new());
        for tool in tools {
            if let ToolKind::Function { parameters, .. } = &tool.kind {
                let resolve = |binding: &Binding| inputs.resolve(binding, requires(parameters, &binding.parameter));
                let bound = by_parameter(&tool.bindings, resolve);
                let parameters = match encoded_schema(parameters, &tool.bindings) {
                    Some(schema) => Parameters::Written(schema),
                    None => {
                        let is_free = |property: &&Property| !bound.contains_key(&property.name);
                        Parameters::Properties(parameters.iter().filter(is_free).cloned().collect())
                    }
                };
                declared.add(&tool.name, Entry { parameters, bound })?;
            }
        }
        for TurnTool { function, bindings, .. } in further {
            let schema = &function.parameters;
            let resolve = |binding: &Binding| inputs.resolve(binding, schema_requires(schema, &binding.parameter));
            let bound = by_parameter(bindings, resolve);
            let parameters = Parameters::Schema(without_bound(schema, bindings));
            declared.add(&function.name, Entry { parameters, bound })?;
        }
        Ok(declared)
    }

    /// Adds a function that the turn provides.
    pub(super) fn add_function(&mut self, function: &Function) -> Result<()> {
        let parameters = Parameters::Schema(function.parameters.clone());
        self.add(&function.name, Entry { parameters, bound: IndexMap::new() })
    }

    fn add(&mut self, name: &str, entry: Entry) -> Result<()> {
        if self.0.insert(name.to_owned(), entry).is_none() {
            return Ok(());
        }
        let error = Error::new(Kind::DuplicateName, format_args!("two tools are named `{}`", shown(name)));
        Err(error.with_help("rename one of them: tool names must be unique"))
    }

    /// Returns whether there is a tool with exactly this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Parses the model's arguments, and removes those that it may not set. On failure, returns the result to send to the
    /// model.
    #[expect(clippy::result_large_err, reason = "it is the answer to a call, and used at once")]
    pub(super) fn parse(&self, call: &ToolCall) -> Result<(JsonMap, Option<Repair>), ToolResult> {
        let invalid = |text: String| ToolResult::error("invalid_arguments", text);
        let (mut given, repair) = arguments::parse(&call.arguments)
            .map_err(|reason| invalid(format!("Error: Invalid JSON in tool arguments: {reason}")))?;
        if let Some(entry) = self.0.get(&call.name) {
            given.retain(|name, _| !entry.bound.contains_key(name));
        }
        Ok((given, repair))
    }

    /// Returns how arguments differ from the parameters.
    pub(super) fn problems(&self, name: &str, given: &JsonMap) -> Vec<String> {
        let Some(entry) = self.0.get(name) else { return Vec::new() };
        let given = Json::Object(given.clone());
        match &entry.parameters {
            Parameters::Properties(properties) => outcome::problems(properties, &given),
            Parameters::Written(schema) => schema::declared_problems(schema, &given),
            Parameters::Schema(schema) => schema::problems(schema, &given),
        }
    }

    /// Sets the bound parameters. They always override the model's arguments. On failure, returns the result to send to
    /// the model.
    #[expect(clippy::result_large_err, reason = "it is the answer to a call, and used at once")]
    pub(super) fn bind(&self, run: ToolRun) -> Result<ToolRun, ToolResult> {
        let Some(entry) = self.0.get(&run.name).filter(|entry| !entry.bound.is_empty()) else { return Ok(run) };
        let mut arguments = Arc::unwrap_or_clone(run.arguments);
        for (parameter, bound) in &entry.bound {
            match bound {
                Bound::Value(value) => drop(arguments.insert(parameter.clone(), value.clone())),
                Bound::Absent => drop(arguments.shift_remove(parameter)),
                Bound::Missing(input) => {
                    let message = format!("parameter `{parameter}` is bound to input `{input}`, which has no value");
                    return Err(ToolResult::failed(&run.name, "missing_input", message));
                }
            }
        }
        Ok(ToolRun { arguments: Arc::new(arguments), ..run })
    }
}

/// Returns the bound parameters by name.
fn by_parameter(bindings: &[Binding], resolve: impl Fn(&Binding) -> Bound) -> IndexMap<String, Bound> {
    bindings.iter().map(|binding| (binding.parameter.clone(), resolve(binding))).collect()
}

/// Returns whether a declaration requires a parameter.
fn requires(parameters: &[Property], name: &str) -> bool {
    match written_schema(parameters) {
        Some(schema) => schema_requires(schema, name),
        None => parameters.iter().any(|parameter| parameter.name == name && parameter.required == Some(true)),
    }
}

/// A tool that the prompt does not declare as a function.
#[derive(Clone, PartialEq)]
pub struct TurnTool {
    /// The function, including bound parameters.
    pub function: Function,
    /// The bound parameters, which the model neither sees nor sets.
    pub bindings: Vec<Binding>,
    /// What the prompt and the server declare about the flow of information.
    pub flow: ToolFlow,
    /// The server that provides the function, if there is one.
    pub server: Option<String>,
    /// Whether the model reads a description that nobody has approved. It counts as untrusted content.
    pub untrusted_description: bool,
}

impl TurnTool {
    /// Creates a tool without bindings.
    pub fn new(function: Function) -> Self {
        Self { function, bindings: Vec::new(), flow: ToolFlow::default(), server: None, untrusted_description: false }
    }

    /// Returns the function without the bound parameters, as the model sees it.
    pub fn shown(&self) -> Function {
        Function { parameters: without_bound(&self.function.parameters, &self.bindings), ..self.function.clone() }
    }
}

impl fmt::Debug for TurnTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnTool").field("name", &self.function.name).field("bindings", &self.bindings).finish()
    }
}

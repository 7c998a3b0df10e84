//! Handlers, which convert tools of other kinds to functions.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value as Json, json};
use tympan_core::spec::flow::ToolFlow;
use tympan_core::spec::{Binding, Tool as Declared, ToolKind};
use tympan_core::turn::TurnTool;
use tympan_core::wire::Function;
use tympan_core::{Error, Inputs, Kind, Prompt, Result};

use crate::host::runtime::Runtime;
#[cfg(feature = "mcp")]
use crate::tool::mcp;
#[cfg(feature = "openapi")]
use crate::tool::openapi;
use crate::tool::{Tool, prompt, schema_check};
use crate::trace::Span;
use crate::turn::TurnSettings;

/// A handler for all tools of a kind. Before the first model call, it converts a declaration to functions.
pub trait ToolHandler: Send + Sync {
    /// Converts a tool that a prompt declares to functions. Their names must be unique, even among those of other
    /// tools.
    ///
    /// # Errors
    /// Returns an error if the tool is not available. The model is then not called.
    fn open<'a>(&'a self, opening: Opening<'a>) -> BoxFuture<'a, Result<Vec<OpenTool>>>;
}

impl<T: ToolHandler + ?Sized> ToolHandler for Arc<T> {
    fn open<'a>(&'a self, opening: Opening<'a>) -> BoxFuture<'a, Result<Vec<OpenTool>>> {
        (**self).open(opening)
    }
}

/// The context in which a handler opens a tool.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Opening<'a> {
    /// The runtime of the turn. Everything done with it is traced as part of the turn.
    pub runtime: &'a Runtime,
    /// The prompt.
    pub prompt: &'a Prompt,
    /// The tool's declaration.
    pub tool: &'a Declared,
    /// The validated inputs of the prompt.
    pub inputs: &'a Inputs,
    /// The settings of the turn.
    pub settings: &'a TurnSettings,
}

/// A function that was built from a tool, and its implementation.
#[derive(Clone, Debug)]
pub struct OpenTool {
    /// The function, as described to the model. Bound parameters do not have to be removed.
    pub function: Function,
    /// The implementation.
    pub tool: Arc<dyn Tool>,
    /// What a server says about the flow of information. It can only tighten what the prompt declares; what the host
    /// declares is in [`Tool::flow`].
    pub flow: ToolFlow,
    /// The server that provides the function, if there is one.
    pub server: Option<String>,
    /// Whether the description is from a server, and nobody has approved it. It counts as untrusted content.
    pub untrusted_description: bool,
}

impl OpenTool {
    /// Creates a function about which no server says anything.
    pub fn new(function: Function, tool: Arc<dyn Tool>) -> Self {
        Self { function, tool, flow: ToolFlow::default(), server: None, untrusted_description: false }
    }
}

/// The kind to register a handler under that applies to all custom kinds without one of their own.
const ANY_KIND: &str = "*";

/// The tools of a turn, ready to run.
#[derive(Default)]
pub(crate) struct OpenTools {
    /// The implementation of each function, by name.
    pub(crate) runs: HashMap<String, Arc<dyn Tool>>,
    /// The functions that the prompt does not declare as functions.
    pub(crate) turn_tools: Vec<TurnTool>,
    /// The functions whose declaration has `idempotent: true`.
    pub(crate) idempotent: HashSet<String>,
    /// The bound parameters of each function.
    pub(crate) bound: HashMap<String, Vec<String>>,
}

impl Runtime {
    /// Opens all tools of a prompt.
    pub(crate) async fn open_tools(
        &self,
        span: &Span,
        prompt: &Prompt,
        inputs: &Inputs,
        settings: &TurnSettings,
    ) -> Result<OpenTools> {
        let runtime = self.under(span);
        let mut opened = OpenTools::default();
        settings.turn.tools.iter().for_each(|tool| opened.bind(&tool.function.name, &tool.bindings));
        for tool in &prompt.spec().tools {
            // A tool registered by name takes precedence over a handler for its kind.
            let named = settings.tools.get(&tool.name).cloned().or_else(|| self.get_tool(&tool.name));
            let opening = Opening { runtime: &runtime, prompt, tool, inputs, settings };
            match (&tool.kind, named) {
                (ToolKind::Function { .. }, named) => {
                    let named = named.ok_or_else(|| missing_function(tool))?;
                    if let Some(parameters) = named.parameters() {
                        schema_check::check(tool, parameters)?;
                    }
                    opened.runs.insert(tool.name.clone(), named);
                    opened.note(tool, &tool.name);
                }
                (_, Some(named)) => opened.add(tool, OpenTool::new(declared_function(tool), named))?,
                (_, None) => {
                    for made in open(opening).await? {
                        opened.add(tool, made)?;
                    }
                }
            }
        }
        Ok(opened)
    }
}

impl OpenTools {
    fn add(&mut self, declared: &Declared, made: OpenTool) -> Result<()> {
        let OpenTool { function, tool, flow, server, untrusted_description } = made;
        let name = function.name.clone();
        let bindings = declared.bindings.iter().filter(|binding| takes(&function, binding)).cloned().collect();
        let declared_flow = declared.declared_flow();
        // A server can make an effect stronger. If nobody else declares one, tools run as they always have.
        let flow = match declared_flow.effect {
            Some(_) => declared_flow.tightened(&flow),
            None => ToolFlow { effect: None, ..declared_flow.tightened(&flow) },
        };
        self.turn_tools.push(TurnTool { function, bindings, flow, server, untrusted_description });
        self.note(declared, &name);
        if self.runs.insert(name.clone(), tool).is_none() {
            return Ok(());
        }
        let details = format_args!("`{name}` of tool `{}` is already in use", declared.name);
        Err(Error::new(Kind::DuplicateName, details)
            .with_help("remove or rename one of the two: tool names must be unique"))
    }
}

impl OpenTools {
    fn bind(&mut self, function: &str, bindings: &[Binding]) {
        let names = bindings.iter().map(|binding| binding.parameter.clone()).collect();
        self.bound.insert(function.to_owned(), names);
    }

    /// Records the other properties of a declaration.
    fn note(&mut self, declared: &Declared, function: &str) {
        if declared.extra.get("idempotent") == Some(&Json::Bool(true)) {
            self.idempotent.insert(function.to_owned());
        }
        self.bind(function, &declared.bindings);
    }
}

/// Returns whether a function accepts a bound parameter. It does not if the schema forbids undeclared parameters.
fn takes(function: &Function, binding: &Binding) -> bool {
    let schema = &function.parameters;
    let is_named = schema.pointer("/properties").is_some_and(|named| named.get(&binding.parameter).is_some());
    is_named || schema.get("additionalProperties") != Some(&Json::Bool(false))
}

async fn open(opening: Opening<'_>) -> Result<Vec<OpenTool>> {
    let index = opening.prompt.spec().tools.iter().position(|tool| tool.name == opening.tool.name);
    opening.prompt.check_tool_env(index.unwrap_or(usize::MAX))?;
    let kind = opening.tool.kind.as_str();
    let own = opening.runtime.get_tool_handler(kind);
    let handler = own.or_else(|| match &opening.tool.kind {
        ToolKind::Custom { .. } => opening.runtime.get_tool_handler(ANY_KIND),
        _ => None,
    });
    match (handler, &opening.tool.kind) {
        (Some(handler), _) => handler.open(opening).await,
        #[cfg(feature = "mcp")]
        (None, ToolKind::Mcp { .. }) => mcp::open(opening).await,
        (None, ToolKind::Prompty { path, mode }) => prompt::open(opening, path.as_deref(), mode.as_deref()).await,
        #[cfg(feature = "openapi")]
        (None, ToolKind::OpenApi { .. }) => openapi::open(opening).await,
        (None, _) => Err(Error::not_registered("tool handler", &format!("{kind} (tool `{}`)", opening.tool.name))),
    }
}

fn missing_function(tool: &Declared) -> Error {
    Error::new(Kind::ToolNotRegistered, &tool.name)
        .with_help("register its function with register_tool, or pass it in TurnSettings::tools")
}

/// Returns the function of a tool that the host runs by name. Its parameters are the JSON Schema in `parameters` of the
/// declaration, if any.
pub(crate) fn declared_function(tool: &Declared) -> Function {
    let given = match &tool.kind {
        ToolKind::Custom { options, .. } => options.get("parameters"),
        _ => None,
    };
    let parameters = given.or_else(|| tool.extra.get("parameters")).filter(|given| given.is_object()).cloned();
    Function {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters: parameters.unwrap_or_else(|| json!({ "type": "object", "properties": {} })),
        strict: false,
    }
}

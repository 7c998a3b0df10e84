//! Tools that are not functions of the host: what makes functions of them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value as Json, json};
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

/// Handles all tools of a kind: before the first call of the model it makes functions of a declaration.
pub trait ToolHandler: Send + Sync {
    /// Makes functions of a tool that a prompt declares. Names, also those of other tools, must be distinct.
    ///
    /// # Errors
    /// It cannot be made ready. No model is called then.
    fn open<'a>(&'a self, opening: Opening<'a>) -> BoxFuture<'a, Result<Vec<OpenTool>>>;
}

/// What a handler makes functions of.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Opening<'a> {
    /// The runtime of the turn, where whatever it does is a stage of the turn.
    pub runtime: &'a Runtime,
    /// The prompt.
    pub prompt: &'a Prompt,
    /// The declaration.
    pub tool: &'a Declared,
    /// The inputs of the prompt, validated.
    pub inputs: &'a Inputs,
    /// How the turn goes.
    pub settings: &'a TurnSettings,
}

/// A function that was made of a tool, and what runs it.
#[derive(Clone, Debug)]
pub struct OpenTool {
    /// What the model gets to know. Parameters that the declaration binds need not be taken out.
    pub function: Function,
    /// What runs it.
    pub tool: Arc<dyn Tool>,
}

/// The kind under which a handler is registered for all kinds that have none of their own.
const ANY_KIND: &str = "*";

/// The tools of a turn, ready to run.
#[derive(Default)]
pub(crate) struct OpenTools {
    /// What runs each function, by its name.
    pub(crate) runs: HashMap<String, Arc<dyn Tool>>,
    /// The functions that the prompt does not declare as such.
    pub(crate) turn_tools: Vec<TurnTool>,
    /// The functions whose declaration says that they may be run again: `idempotent: true`.
    pub(crate) idempotent: HashSet<String>,
    /// The parameters of each function that the model does not set.
    pub(crate) bound: HashMap<String, Vec<String>>,
}

impl Runtime {
    /// Makes all tools of a prompt ready.
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
            // What the host has under a name goes before what it has for a kind.
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
                (_, Some(named)) => opened.add(tool, OpenTool { function: declared_function(tool), tool: named })?,
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
        let OpenTool { function, tool } = made;
        let name = function.name.clone();
        let bindings = declared.bindings.iter().filter(|binding| takes(&function, binding)).cloned().collect();
        self.turn_tools.push(TurnTool { function, bindings });
        self.note(declared, &name);
        if self.runs.insert(name.clone(), tool).is_none() {
            return Ok(());
        }
        let details = format_args!("`{name}` of the tool `{}` is there already", declared.name);
        Err(Error::new(Kind::DuplicateName, details)
            .with_help("it must be clear which of them a model calls: leave one out, or give it another name"))
    }
}

impl OpenTools {
    fn bind(&mut self, function: &str, bindings: &[Binding]) {
        let names = bindings.iter().map(|binding| binding.parameter.clone()).collect();
        self.bound.insert(function.to_owned(), names);
    }

    /// Notes what else a declaration says about a function.
    fn note(&mut self, declared: &Declared, function: &str) {
        if declared.extra.get("idempotent") == Some(&Json::Bool(true)) {
            self.idempotent.insert(function.to_owned());
        }
        self.bind(function, &declared.bindings);
    }
}

/// Whether a function may get a parameter that is bound. One that refuses all that it does not name may not.
fn takes(function: &Function, binding: &Binding) -> bool {
    let schema = &function.parameters;
    let is_named = schema.pointer("/properties").is_some_and(|named| named.get(&binding.parameter).is_some());
    is_named || schema.get("additionalProperties") != Some(&Json::Bool(false))
}

async fn open(opening: Opening<'_>) -> Result<Vec<OpenTool>> {
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
        (None, _) => Err(Error::not_registered("tool handler", &format!("{kind} (the tool `{}`)", opening.tool.name))),
    }
}

fn missing_function(tool: &Declared) -> Error {
    Error::new(Kind::ToolNotRegistered, &tool.name)
        .with_help("register what runs it with register_tool, or give it in TurnSettings::tools")
}

/// The function of a tool that the host runs by its name: with the `parameters` of its declaration, a JSON Schema, if it
/// has any.
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

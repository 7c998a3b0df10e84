//! Tools that are prompt files.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tympan_core::spec::schema::{Property, PropertyKind};
use tympan_core::spec::{Binding, BindingValue};
use tympan_core::turn::{FlowOptions, Source, TurnOptions};
use tympan_core::wire::Function;
use tympan_core::{Error, Kind, Outcome, Prompt, Result};

use crate::load::load_beside;
use crate::model::run::RunOptions;
use crate::net::io;
use crate::tool::handler::{OpenTool, Opening};
use crate::tool::{Invocation, Tool, ToolError, ToolOutput};
use crate::turn::TurnSettings;
use crate::turn::cancel::Steering;

/// The maximum depth of nested calls of prompts.
const MAX_DEPTH: u32 = 8;

/// Loads the prompt and converts its inputs to the parameters of a function.
pub(super) async fn open(opening: Opening<'_>, path: Option<&str>, mode: Option<&str>) -> Result<Vec<OpenTool>> {
    let tool = opening.tool;
    let unavailable =
        |details: &dyn std::fmt::Display| Error::new(Kind::ToolUnavailable, format_args!("`{}`: {details}", tool.name));
    let path = path.ok_or_else(|| unavailable(&"missing path").with_help("add `path: other.prompty`"))?;
    let directory = opening.prompt.directory().unwrap_or(Path::new(".")).to_owned();
    let (options, path) = (opening.runtime.load_options().clone(), path.to_owned());
    let child = io::blocking(move || load_beside(&directory, &path, &options)).await??;
    // The child's description is sent to the model with the function, and its output as a result.
    opening.runtime.joins_turn(&child);
    let function = Function::of_properties(
        &tool.name,
        tool.description.clone().or_else(|| child.spec().description.clone()),
        &offered(&child, opening)
            .map_err(|reason| Error::new(Kind::ToolMismatch, format_args!("`{}`: {reason}", tool.name)))?,
    );
    // The host's settings also apply to nested turns, except for the event listener and steering.
    let settings = (mode == Some("agentic")).then(|| TurnSettings {
        turn: nested_options(&opening.settings.turn),
        run: RunOptions::default(),
        on_event: None,
        // The outer turn's journal records the tool call as a whole.
        journal: None,
        steering: Steering::default(),
        ..opening.settings.clone()
    });
    Ok(vec![OpenTool::new(function, Arc::new(PromptTool { child: Arc::new(child), settings }))])
}

/// Returns the options of a nested turn: those of the outer one, without its tools and messages.
fn nested_options(outer: &TurnOptions) -> TurnOptions {
    let flow = FlowOptions { labels: None, ..outer.flow.clone() };
    TurnOptions { tools: Vec::new(), flow, ..outer.clone() }
}

/// Returns the inputs that the model may set, and those that are bound.
///
/// Trusted inputs count as the author's own text. They may not be set by a model, or bound to an untrusted input.
fn offered(child: &Prompt, opening: Opening<'_>) -> Result<Vec<Property>, String> {
    let inputs = &child.spec().inputs;
    let bindings = &opening.tool.bindings;
    for Binding { parameter, value } in bindings {
        let input = inputs.iter().find(|input| input.name == *parameter);
        let input = input.ok_or_else(|| format!("cannot bind `{parameter}`: the prompt does not have this input"))?;
        if let (true, BindingValue::Input(from)) = (input.trusted, value)
            && !is_trusted(opening.prompt, from)
        {
            return Err(format!("trusted input `{parameter}` is bound to `{from}`, which is untrusted"));
        }
    }
    let is_bound = |name: &str| bindings.iter().any(|binding| binding.parameter == name);
    let is_rich =
        |kind| matches!(kind, PropertyKind::Thread | PropertyKind::Image | PropertyKind::File | PropertyKind::Audio);
    let mut offered = Vec::new();
    for input in inputs {
        let needs_value = input.required == Some(true) && input.default.is_none();
        let hidden = input.trusted || is_rich(input.kind);
        if hidden && needs_value && !is_bound(&input.name) {
            let what = if input.trusted { "trusted" } else { "not text" };
            return Err(format!("input `{}` is {what}, so the model cannot set it; add a binding", input.name));
        }
        if !hidden || is_bound(&input.name) {
            offered.push(Property { required: Some(needs_value), ..input.clone() });
        }
    }
    Ok(offered)
}

fn is_trusted(prompt: &Prompt, input: &str) -> bool {
    prompt.spec().inputs.iter().any(|declared| declared.name == input && declared.trusted)
}

struct PromptTool {
    child: Arc<Prompt>,
    /// The settings of the nested turn; `None` for a single model call.
    settings: Option<TurnSettings>,
}

impl Tool for PromptTool {
    fn call(&self, invocation: Invocation) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let (child, settings) = (self.child.clone(), self.settings.clone());
        Box::pin(async move {
            let Invocation { run, runtime, .. } = invocation;
            if runtime.depth() > MAX_DEPTH {
                return Err(Error::new(Kind::ToolRecursion, format_args!("more than {MAX_DEPTH} levels")).into());
            }
            let (mut confidential, mut untrusted) = (child.spec().inputs.iter().any(|input| input.confidential), false);
            let outcome = match settings {
                Some(mut settings) => {
                    // The model that calls the tool speaks through its inputs.
                    settings.turn.flow.context = run.label;
                    let turn = runtime.turn_async(&*child, &*run.arguments, &settings).await?;
                    confidential |= turn.label.confidential;
                    // Its inputs are as trusted as the call. What its own tools returned may be less so. Values that
                    // it extracted count only there: each turn has a budget of its own.
                    let is_input = |source: &Source| matches!(source, Source::Input { .. });
                    untrusted = turn.label.extracted || !turn.label.untrusted_sources.iter().all(is_input);
                    turn.run.outcome
                }
                None => runtime.invoke_async(&*child, &*run.arguments).await?.outcome,
            };
            let output = match outcome {
                Outcome::Text(text) => Ok(ToolOutput::from(text)),
                Outcome::ToolCalls(_) => {
                    Err("the prompt's model called tools, but the tool makes a single model call; declare it with \
                        `mode: agentic`"
                        .into())
                }
                other => Ok(other.to_json().into()),
            };
            output.map(|output| ToolOutput { confidential, untrusted, ..output })
        })
    }
}

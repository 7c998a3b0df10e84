//! What the policy knows about the tools of a turn.

use std::collections::HashMap;

use indexmap::IndexMap;
use serde_json::Value as Json;

use crate::spec::flow::{Effect, Hide, ParameterFlow, ToolFlow};
use crate::spec::schema::Property;
use crate::spec::{Binding, BindingValue, Tool, ToolKind};
use crate::turn::label::{Label, input_label};
use crate::turn::tools::TurnTool;

/// What the policy knows about a tool.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolRules {
    pub(crate) effect: Option<Effect>,
    pub(crate) trusted: bool,
    pub(crate) confidential: bool,
    pub(crate) hide: Hide,
    /// The server that provides the tool.
    pub(crate) server: Option<String>,
    /// The parameters that the model may set.
    pub(crate) parameters: Vec<String>,
    /// The parameters whose values must come from a trusted origin.
    pub(crate) trusted_only: Vec<String>,
    /// The parameters that are addresses.
    pub(crate) destinations: Vec<String>,
    /// What whoever declared the effect says about parameters. Only this may spare a question: a prompt that marks the
    /// parameters of a tool of the host makes nothing looser.
    pub(crate) decisive: IndexMap<String, ParameterFlow>,
    /// The labels of the bound parameters.
    pub(crate) bound: IndexMap<String, Label>,
}

impl ToolRules {
    pub(crate) fn checks_values(&self) -> bool {
        !self.trusted_only.is_empty() || !self.destinations.is_empty()
    }

    /// Returns whether a call may run without asking because the value of this parameter is the user's.
    pub(crate) fn exempts(&self, parameter: &str) -> bool {
        self.trusted_only.iter().any(|name| name == parameter)
            && self.decisive.get(parameter).is_some_and(|flow| flow.trusted_only == Some(true))
    }

    /// Returns whether confidential data may go to this parameter's value without asking, if it is on the host's list.
    pub(crate) fn addresses(&self, parameter: &str) -> bool {
        self.decisive.get(parameter).is_some_and(|flow| flow.destination == Some(true))
    }
}

/// Collects the rules of all tools, from what prompts, servers and the host declare. A strict host decides alone about
/// effects.
pub(crate) fn rules(
    tools: &[Tool],
    further: &[TurnTool],
    host: &HashMap<String, ToolFlow>,
    inputs: &[Property],
    is_strict_host: bool,
) -> HashMap<String, ToolRules> {
    let none = ToolFlow::default();
    let mut rules = HashMap::new();
    let mut add =
        |name: &str, declared: &ToolFlow, parameters: Vec<String>, bindings: &[Binding], server: Option<&str>| {
            let host = host.get(name).unwrap_or(&none);
            let flow = host.over(declared);
            let marked = |is_marked: fn(&ParameterFlow) -> Option<bool>| -> Vec<String> {
                let marked = flow.parameters.iter().filter(|(_, parameter)| is_marked(parameter) == Some(true));
                marked.map(|(name, _)| name.clone()).collect()
            };
            let bound: IndexMap<_, _> =
                bindings.iter().map(|binding| (binding.parameter.clone(), bound_label(binding, inputs))).collect();
            let is_hosts = is_strict_host || host.effect.is_some();
            let tool = ToolRules {
                effect: if is_strict_host { host.effect } else { flow.effect },
                decisive: if is_hosts { host.parameters.clone() } else { flow.parameters.clone() },
                trusted: flow.trusted == Some(true),
                confidential: flow.confidential == Some(true),
                hide: flow.hide.unwrap_or_default(),
                server: server.map(str::to_owned),
                parameters: parameters.into_iter().filter(|name| !bound.contains_key(name)).collect(),
                trusted_only: marked(|parameter| parameter.trusted_only),
                destinations: marked(|parameter| parameter.destination),
                bound,
            };
            rules.insert(name.to_owned(), tool);
        };
    for tool in tools {
        if let ToolKind::Function { parameters, .. } = &tool.kind {
            let names = parameters.iter().map(|parameter| parameter.name.clone()).collect();
            add(&tool.name, &tool.declared_flow(), names, &tool.bindings, None);
        }
    }
    for TurnTool { function, bindings, flow, server, .. } in further {
        let names = function.parameters.get("properties").and_then(Json::as_object);
        let names = names.into_iter().flatten().map(|(name, _)| name.clone()).collect();
        add(&function.name, flow, names, bindings, server.as_deref());
    }
    rules
}

/// Returns the label of a bound parameter. A literal value is the author's.
fn bound_label(binding: &Binding, inputs: &[Property]) -> Label {
    match &binding.value {
        BindingValue::Input(name) => input_label(inputs, name),
        BindingValue::Static(_) => Label::author(),
    }
}

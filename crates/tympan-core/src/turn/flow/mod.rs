//! Information flow: what a model has read, and what it may do afterwards.
//!
//! Every part of a conversation has a label that says where it came from ([`Label`]). Whatever a model writes has the
//! union of the labels of everything that it has read. Tools declare their effect ([`ToolFlow`]), and a policy
//! ([`policy`]) decides about each call from both. Results can be hidden from the model behind handles.

pub(super) mod approval;
mod capacity;
pub(super) mod handle;
pub mod policy;
pub(super) mod tool;
mod values;

use std::collections::HashMap;

use serde_json::Value as Json;

use super::tools::{ToolResult, TurnTool};
use crate::chat::message::{Content, ContentPart, Message, Role};
use crate::chat::rendered::Inputs;
use crate::json::JsonMap;
use crate::prompt::Prompt;
use crate::spec::flow::{Effect, Hide, ToolFlow};
use crate::spec::schema::{Property, PropertyKind};
use crate::wire::response::ToolCall;

use crate::turn::label::{Label, LabeledRange, MessageLabel, Source, input_label};
use capacity::{Bits, SmallType};
use handle::{Handle, Handles};
use policy::{CallFacts, Decision, PolicyMode, Ruling, ToolPolicy};
use tool::ToolRules;
use values::{Listed, TrustedValues, is_listed};

/// What a host says about the flow of information in a turn.
#[derive(Clone, Debug, Default)]
pub struct FlowOptions {
    /// The policy for tool calls. `None` means the default policy.
    pub policy: Option<ToolPolicy>,
    /// What the host declares about tools, by name. It takes precedence over what prompts and servers declare.
    pub tools: HashMap<String, ToolFlow>,
    /// The labels of the messages that the turn starts with. Without them, instructions count as the application's, and
    /// everything else is not trusted.
    pub labels: Option<Vec<MessageLabel>>,
    /// The label of what the model has read besides the messages, for a turn that is part of another one.
    pub context: Label,
}

/// The state of the flow of information in a turn.
pub(super) struct Flow {
    policy: ToolPolicy,
    tools: HashMap<String, ToolRules>,
    /// The union of the labels of everything that the model has read.
    context: Label,
    /// The labels of the messages.
    labels: Vec<MessageLabel>,
    /// The values that the policy trusts.
    trusted: TrustedValues,
    /// Whether to collect these values, because a tool checks them.
    collects: bool,
    handles: Handles,
    /// Whether results of some tools are hidden.
    hides: bool,
    bits: Bits,
    /// Whether the turn repeats what it did before there was a policy. Nothing is asked then, and no result is trusted.
    is_legacy: bool,
}

/// A call that the flow of information is concerned with.
pub(super) struct Checked {
    /// The arguments with the contents of handles, if there are any.
    pub(super) resolved: Option<JsonMap>,
    /// The label of the call.
    pub(super) label: Label,
    /// What the policy says about it.
    pub(super) ruling: Ruling,
}

/// The extraction of a value.
#[derive(Clone, Debug)]
pub(super) struct Extraction {
    schema: Json,
    label: Label,
    tool: String,
}

impl Flow {
    pub(super) fn new(
        prompt: &Prompt,
        inputs: &Inputs,
        messages: &[Message],
        options: FlowOptions,
        further: &[TurnTool],
    ) -> Self {
        let spec = prompt.spec();
        let FlowOptions { policy, tools: host, labels, context } = options;
        let mut policy = policy.unwrap_or_default();
        let is_strict_host = policy.mode == PolicyMode::Strict;
        if spec.strict_policy && policy.mode == PolicyMode::Default {
            policy.mode = PolicyMode::Strict;
        }
        let tools = tool::rules(&spec.tools, further, &host, &spec.inputs, is_strict_host);
        let hides = policy.mode != PolicyMode::Off && tools.values().any(|tool| tool.hide != Hide::Never);
        let bits = Bits::new(policy.extraction_bits);
        // If a model that has read untrusted content starts a turn, it speaks through all inputs.
        let collects = policy.mode != PolicyMode::Off
            && context.trusted
            && !context.extracted
            && tools.values().any(ToolRules::checks_values);
        let mut flow = Self {
            policy,
            tools,
            context,
            labels: Vec::new(),
            trusted: TrustedValues::default(),
            collects,
            handles: Handles::default(),
            hides,
            bits,
            is_legacy: false,
        };
        if flow.is_idle() {
            return flow;
        }
        for tool in further.iter().filter(|tool| tool.untrusted_description) {
            let (name, server) = (tool.function.name.clone(), tool.server.clone());
            flow.context.add(&Label::new(Source::Tool { name, server, call: None }, false, false));
        }
        for (_, value) in inputs.iter().filter(|(name, _)| flow.collects && is_trusted_value(&spec.inputs, name)) {
            flow.trusted.add_value(value);
        }
        let mut stated = labels.into_iter().flatten();
        for message in messages {
            let label = match stated.next() {
                Some(label) if label.parts.len() == message.content.len() => label,
                // It belongs to another message.
                Some(_) => MessageLabel::whole(message, &Label::unknown()),
                None => MessageLabel::unstated(message),
            };
            flow.push(message, label);
        }
        flow
    }

    /// Returns whether there is nothing to do, because there are no tools.
    fn is_idle(&self) -> bool {
        self.tools.is_empty()
    }

    pub(super) fn hides(&self) -> bool {
        self.hides
    }

    /// Returns whether the results of a tool may be hidden.
    pub(super) fn may_hide(&self, name: &str) -> bool {
        self.hides && self.tools.get(name).is_some_and(|tool| tool.hide != Hide::Never)
    }

    pub(super) fn context(&self) -> &Label {
        &self.context
    }

    pub(super) fn labels(&self) -> &[MessageLabel] {
        &self.labels
    }

    pub(super) fn set_legacy(&mut self, is_legacy: bool) {
        self.is_legacy = is_legacy;
    }

    /// Adds the label of a message that the turn began with, or that the user added. Its trusted text may contain values,
    /// unless a model wrote it.
    fn push(&mut self, message: &Message, label: MessageLabel) {
        let collects = self.collects && message.role != Role::Assistant;
        for (part, label) in message.content.iter().zip(&label.parts).filter(|(_, label)| collects && !label.generated)
        {
            if let ContentPart::Text(text) = part {
                add_trusted(&mut self.trusted, &text.value, &label.label, &label.ranges);
            }
        }
        self.add(label);
    }

    fn add(&mut self, label: MessageLabel) {
        label.parts.iter().for_each(|part| self.context.add(&part.label));
        self.labels.push(label);
    }

    /// Adds a message from the user.
    pub(super) fn push_user(&mut self, message: &Message) {
        if !self.is_idle() {
            self.push(message, MessageLabel::whole(message, &Label::user()));
        }
    }

    /// Adds a message that the model wrote. It has the label of everything that the model had read.
    pub(super) fn push_answer(&mut self, message: &Message) {
        if !self.is_idle() {
            self.labels.push(MessageLabel::generated(message, &self.context));
        }
    }

    /// Adds the result of a call. Only what a trusted tool returned contains trusted values. What the turn itself writes
    /// does not: its errors quote the model, and its handles contain numbers that depend on what is hidden.
    pub(super) fn push_result(&mut self, message: &Message, label: Label, is_output: bool) {
        if self.is_idle() {
            return;
        }
        if !is_output {
            return self.add(MessageLabel::generated(message, &label));
        }
        if label.trusted && !label.extracted && self.collects {
            for text in message.content.iter().filter_map(ContentPart::as_text) {
                match serde_json::from_str::<Json>(text) {
                    Ok(value) => self.trusted.add_value(&value),
                    Err(_) => self.trusted.add_text(text),
                }
            }
        }
        self.add(MessageLabel::whole(message, &label));
    }

    /// Replaces the labels of messages with that of their summary.
    pub(super) fn summarize(&mut self, dropped: &[usize], at: usize, messages: &[Message]) {
        let Some(summary) = messages.get(at).filter(|_| !self.is_idle()) else { return };
        let union = dropped.iter().filter_map(|index| self.labels.get(*index));
        let union = union.fold(Label::default(), |label, message| label.and(&message.union()));
        let mut index = 0;
        self.labels.retain(|_| {
            index += 1;
            dropped.binary_search(&(index - 1)).is_err()
        });
        self.labels.insert(at.min(self.labels.len()), MessageLabel::generated(summary, &union));
    }

    /// Returns whether arguments contain handles.
    pub(super) fn has_handles(&self, arguments: &JsonMap) -> bool {
        !self.handles.of(arguments).is_empty()
    }

    /// Checks a call: puts the contents of handles into its arguments, and applies the policy. `matches` returns
    /// whether arguments match the parameters.
    #[expect(clippy::result_large_err, reason = "it is the answer to a call, and used at once")]
    pub(super) fn check(
        &mut self,
        name: &str,
        arguments: &JsonMap,
        matches: impl Fn(&JsonMap) -> bool,
    ) -> Result<Checked, ToolResult> {
        let mut data = Label::default();
        let handles = self.handles.of(arguments);
        handles.iter().for_each(|handle| data.add(&handle.label));
        let resolved = match handles.is_empty() {
            true => None,
            false => {
                let forms = [false, true].map(|as_json| self.handles.resolve(arguments, as_json));
                match forms.into_iter().find(matches) {
                    Some(resolved) => {
                        self.bits.add_success();
                        Some(resolved)
                    }
                    None => {
                        return Err(ToolResult::failed(
                            name,
                            "invalid_arguments",
                            "the content of a handle does not match the parameters",
                        ));
                    }
                }
            }
        };
        let rules = self.tools.get(name);
        rules.into_iter().flat_map(|rules| rules.bound.values()).for_each(|bound| data.add(bound));
        let ruling = if self.is_legacy { Ruling::default() } else { self.rule(name, arguments, &data) };
        Ok(Checked { resolved, label: self.context.clone().and(&data), ruling })
    }

    /// Applies the policy to a call.
    fn rule(&self, name: &str, arguments: &JsonMap, data: &Label) -> Ruling {
        let Some(rules) = self.tools.get(name) else { return Ruling::default() };
        // Only trusted, public content: nothing to decide.
        if self.policy.mode == PolicyMode::Off || (self.context.is_plain() && data.is_plain()) {
            return Ruling::default();
        }
        let listed = Listed { values: &self.policy.trusted_values, destinations: &self.policy.destinations };
        let is_trusted = |value: &Json| {
            let has_handle = !self.handles.of(&JsonMap::from_iter([(String::new(), value.clone())])).is_empty();
            !has_handle && self.trusted.contain(value, &listed)
        };
        let needs_trust =
            |parameter: &&String| rules.trusted_only.contains(*parameter) || rules.destinations.contains(*parameter);
        let mut untrusted: Vec<&str> = Vec::new();
        for parameter in arguments.keys().filter(needs_trust) {
            if !is_trusted(&arguments[parameter]) {
                untrusted.push(parameter);
            }
        }
        let bound = rules.bound.iter().filter(|(parameter, label)| needs_trust(parameter) && !label.trusted);
        untrusted.extend(bound.map(|(parameter, _)| parameter.as_str()));
        let is_made_of_trusted_values = arguments.values().any(has_value)
            && untrusted.is_empty()
            && rules.bound.values().all(|label| label.trusted)
            && arguments.keys().chain(&rules.parameters).all(|parameter| rules.exempts(parameter));
        let mut destinations = rules.destinations.iter().filter_map(|name| Some((name, arguments.get(name)?)));
        // The list is about what the model may choose. A bound destination is another one.
        let goes_to_listed_destinations = destinations.clone().any(|(name, _)| rules.addresses(name))
            && destinations.all(|(_, value)| all_listed(&self.policy.destinations, value))
            && !rules.destinations.iter().any(|parameter| rules.bound.contains_key(parameter));
        self.policy.decide(&CallFacts {
            tool: name,
            effect: rules.effect,
            context: &self.context,
            arguments: data,
            untrusted_values: &untrusted,
            is_made_of_trusted_values,
            goes_to_listed_destinations,
        })
    }

    /// Returns the label of a tool's result. A result is trusted only if the host says so, and the call was.
    fn result_label(&self, call: &ToolCall, called: &Label, result: &ToolResult) -> Label {
        let rules = self.tools.get(&call.name);
        let is_declared = rules.is_some_and(|rules| rules.trusted);
        let is_trusted = is_declared && called.trusted && !result.untrusted && !self.is_legacy;
        let is_confidential =
            rules.is_some_and(|rules| rules.confidential) || called.confidential || result.confidential;
        let source = Source::Tool {
            name: call.name.clone(),
            server: rules.and_then(|rules| rules.server.clone()),
            call: Some(call.id.clone()),
        };
        let mut label = Label::new(source, is_trusted, is_confidential);
        label.extracted = called.extracted;
        label
    }

    /// Labels the result of a tool, and hides it if its declaration says so.
    ///
    /// The last value is whether the model sees the output of the tool itself.
    pub(super) fn returned(
        &mut self,
        call: &ToolCall,
        called: &Label,
        mut result: ToolResult,
    ) -> (ToolResult, Label, bool) {
        if self.is_idle() {
            return (result, Label::default(), true);
        }
        let label = self.result_label(call, called, &result);
        let hide = self.tools.get(&call.name).map_or(Hide::Never, |rules| rules.hide);
        // Before there was a policy, nothing was hidden.
        let hides = self.hides
            && !self.is_legacy
            && !label.trusted
            && match hide {
                Hide::Never => false,
                Hide::Always => true,
                Hide::Auto => self.context.trusted,
            };
        if !hides {
            let is_output = !result.is_error();
            return (result, label, is_output);
        }
        let is_error = result.is_error();
        let content = std::mem::take(&mut result.parts);
        let handle = Handle { content, label: label.clone(), tool: call.name.clone() };
        result.parts = Content::text(self.handles.hide(handle, is_error));
        (result, Label { trusted: true, untrusted_sources: Default::default(), confidential: false, ..label }, false)
    }

    /// Reads a hidden value. From then on, its label is part of the context.
    pub(super) fn read_value(&self, arguments: &JsonMap) -> (ToolResult, Label) {
        match self.handle(arguments) {
            Ok(handle) => (ToolResult::from(handle.content.clone()), handle.label.clone()),
            Err(result) => (result, Label::author()),
        }
    }

    /// Starts an extraction. Returns the arguments of the call that performs it.
    #[expect(clippy::result_large_err, reason = "it is the answer to a call, and used at once")]
    pub(super) fn start_extraction(&self, arguments: &JsonMap) -> Result<(Extraction, JsonMap), ToolResult> {
        let handle = self.handle(arguments)?;
        let schema = arguments.get("schema").cloned().unwrap_or_default();
        let mut given = JsonMap::from_iter([("content".to_owned(), Json::String(handle.text()))]);
        for key in ["question", "schema"] {
            given.insert(key.to_owned(), arguments.get(key).cloned().unwrap_or_default());
        }
        Ok((Extraction { schema, label: handle.label.clone(), tool: handle.tool.clone() }, given))
    }

    #[expect(clippy::result_large_err, reason = "it is the answer to a call, and used at once")]
    fn handle(&self, arguments: &JsonMap) -> Result<&Handle, ToolResult> {
        let name = arguments.get("value").and_then(Json::as_str).unwrap_or_default();
        let unknown = || ToolResult::error("unknown_handle", "Error: there is no handle with this name");
        self.handles.get(name).ok_or_else(unknown)
    }

    /// Ends an extraction. A small answer is shown, as long as there are bits left. Any other answer is hidden.
    pub(super) fn extracted(&mut self, extraction: &Extraction, result: &ToolResult) -> (ToolResult, Label) {
        let text: String = result.parts.iter().filter_map(ContentPart::as_text).collect();
        let answer = (!result.is_error()).then(|| serde_json::from_str::<Json>(&text).ok()).flatten();
        let source = Label::new(
            Source::Tool { name: extraction.tool.clone(), server: None, call: None },
            true,
            extraction.label.confidential,
        );
        let shown = Label { extracted: true, ..source.clone() };
        if let Some(small) = SmallType::of(&extraction.schema)
            && self.bits.pay(small.bits())
        {
            let value = answer.and_then(|answer| small.normalized(&answer));
            return (value.map_or_else(no_answer, |value| ToolResult::text(value.to_string())), shown);
        }
        match answer {
            Some(answer) => {
                self.bits.add_success();
                let content = match answer {
                    Json::String(text) => Content::text(text),
                    other => Content::text(other.to_string()),
                };
                let handle = Handle { content, label: extraction.label.clone(), tool: extraction.tool.clone() };
                let text = self.handles.hide_extracted(handle, &extraction.schema);
                (ToolResult::text(text), Label { confidential: false, ..source })
            }
            // That there is no answer says something about the content.
            None if self.bits.pay_failure() => (no_answer(), shown),
            None => (no_answer(), extraction.label.clone()),
        }
    }

    /// Returns the label of a result that says whether a hidden value matches. It costs bits; without them, the model
    /// counts as having read the value.
    pub(super) fn mismatch_label(&mut self, arguments: &JsonMap) -> Label {
        let handles = self.handles.of(arguments);
        let label = handles.iter().fold(Label::default(), |label, handle| label.and(&handle.label));
        if handles.is_empty() {
            return Label::author();
        }
        match self.bits.pay_failure() {
            true => Label { trusted: true, extracted: true, untrusted_sources: Default::default(), ..label },
            false => label,
        }
    }

    /// Returns what is needed to explain a call to the person who approves it.
    pub(super) fn explain(&self, arguments: &JsonMap, messages: &[Message]) -> Vec<approval::ArgumentOrigin> {
        approval::origins(self, arguments, messages)
    }

    pub(super) fn effect(&self, name: &str) -> Option<Effect> {
        self.tools.get(name).and_then(|rules| rules.effect)
    }
}

/// Returns whether everything in an input comes from a trusted origin. In a thread, the user speaks only in some of the
/// messages, which have labels of their own.
fn is_trusted_value(declared: &[Property], name: &str) -> bool {
    let is_thread = |input: &Property| input.name == name && input.kind == PropertyKind::Thread && !input.trusted;
    input_label(declared, name).trusted && !declared.iter().any(is_thread)
}

fn no_answer() -> ToolResult {
    ToolResult::error("no_answer", "Error: the content has no answer of this type")
}

/// Adds the trusted ranges of a text.
fn add_trusted(trusted: &mut TrustedValues, text: &str, label: &Label, ranges: &[LabeledRange]) {
    let is_trusted = |label: &Label| label.trusted && !label.extracted;
    if ranges.is_empty() {
        if is_trusted(label) {
            trusted.add_text(text);
        }
        return;
    }
    // Neighbors that are both trusted form one text.
    let mut at = 0;
    while at < ranges.len() {
        let end = at + ranges[at..].iter().take_while(|range| is_trusted(&range.label)).count();
        if end == at {
            at += 1;
            continue;
        }
        let (start, stop) = (ranges[at].range.start, ranges[end - 1].range.end);
        if let Some(part) = text.get(start..stop) {
            trusted.add_part(part, start > 0, stop < text.len());
        }
        at = end;
    }
}

/// Returns whether a value contains anything at all.
fn has_value(value: &Json) -> bool {
    match value {
        Json::Null => false,
        Json::Array(items) => items.iter().any(has_value),
        Json::Object(map) => map.values().any(has_value),
        _ => true,
    }
}

/// Returns whether all addresses in a value are on the host's list.
fn all_listed(destinations: &[String], value: &Json) -> bool {
    match value {
        Json::String(text) => is_listed(destinations, text),
        Json::Array(items) => !items.is_empty() && items.iter().all(|item| all_listed(destinations, item)),
        _ => false,
    }
}

/// Returns whether a decision needs an answer.
pub(super) fn asks(ruling: &Ruling) -> bool {
    ruling.decision == Decision::Ask
}

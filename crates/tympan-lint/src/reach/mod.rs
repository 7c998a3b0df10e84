//! The reach map: which inputs can reach which messages, and how.

mod items;
mod json;
mod layout;
mod marker_text;

use std::collections::BTreeMap;

use tympan_core::format::outline::Field;
use tympan_core::prompt::analysis::{TemplateAnalysis, WrittenMessage};
use tympan_core::spec::role::Role;
use tympan_core::spec::schema::PropertyKind;
use tympan_core::spec::{BindingValue, PromptKind};
use tympan_core::template::flow::{How, Sink};
use tympan_core::text::source::Span;
use tympan_core::{Prompt, Result};

pub use json::how_str;

use items::Outline;
use layout::Layout;

/// Which inputs can reach the messages and the tools of a prompt.
///
/// Values are not known here, so every branch and every loop counts: if text of an input is in a message of some role
/// after a render, or if another value of the input changes such a message, then the map names the input for a message
/// of that role. It may name more inputs than a render shows. Trusted inputs are assumed not to write role markers,
/// and nothing is known about custom renderers and parsers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReachMap {
    /// The messages of all templates, in order.
    pub messages: Vec<ReachedMessage>,
    /// The parameters of tools that inputs are bound to.
    pub bindings: Vec<BoundInput>,
}

/// A message as a template writes it, and the inputs that can reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReachedMessage {
    /// The template: `default`, or the name of a variant.
    pub template: String,
    /// The message.
    pub target: Target,
    /// The position of its role marker, or of its text if it has none. `None` for a thread that no template mentions.
    pub span: Option<Span>,
    /// The inputs that can reach it, in the order of their declarations.
    pub inputs: Vec<InputReach>,
}

/// The message that inputs reach.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// A message of this role.
    Role(Role),
    /// A message of any role, because expressions of the template assemble role markers.
    AnyRole,
    /// The messages of a thread input. Their roles are known only when the prompt is rendered.
    Thread(String),
}

impl Target {
    /// Returns the role, if it is known.
    pub fn role(&self) -> Option<Role> {
        match self {
            Self::Role(role) => Some(*role),
            _ => None,
        }
    }

    /// Returns the word for the target: the role, `any` or `thread`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Role(role) => role.as_str(),
            Self::AnyRole => "any",
            Self::Thread(_) => "thread",
        }
    }
}

/// How an input reaches a message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputReach {
    /// The name of the input.
    pub input: String,
    /// Whether the prompt declares the input.
    pub is_declared: bool,
    /// Whether the text of the input counts as the author's.
    pub trusted: bool,
    /// The strongest way: as text, only through a filter, or only by deciding.
    pub how: How,
    /// Whether the input can reach an attribute of the role marker.
    pub in_marker: bool,
    /// The environment variable that the default of the input comes from.
    pub env: Option<String>,
    /// Every place where the input reaches the message, the strongest way first.
    pub places: Vec<ReachPlace>,
}

/// A place where an input reaches a message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReachPlace {
    /// How it reaches the message here.
    pub how: How,
    /// The position of the expression that is written or, for a decision, of the condition.
    pub span: Span,
    /// The steps that the value takes before: what binds it, and where.
    pub path: Vec<(Span, String)>,
}

/// An input that is bound to a parameter of a tool, so that the application passes it instead of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BoundInput {
    /// The tool.
    pub tool: String,
    /// The parameter.
    pub parameter: String,
    /// The name of the input.
    pub input: String,
    /// Whether the text of the input counts as the author's.
    pub trusted: bool,
    /// The position of the binding.
    pub span: Option<Span>,
}

/// Returns which inputs can reach which messages of a prompt.
///
/// ```
/// use tympan_core::{Prompt, spec::role::Role};
/// use tympan_core::template::flow::How;
///
/// let prompt = Prompt::from_prompty("system:\nBe {{ tone | lower }}.\n\nuser:\n{{ question }}")?;
/// let map = tympan_lint::reach(&prompt)?;
/// let [system, user] = &map.messages[..] else { panic!("two messages") };
/// assert_eq!((system.inputs[0].input.as_str(), system.inputs[0].how), ("tone", How::Filtered));
/// assert_eq!((user.target.role(), user.inputs[0].input.as_str()), (Some(Role::User), "question"));
/// # Ok::<(), tympan_core::Error>(())
/// ```
///
/// # Errors
/// Returns an error if a template does not compile, or if the prompt names a renderer or parser that is not built in.
pub fn reach(prompt: &Prompt) -> Result<ReachMap> {
    prompt.only_role()?;
    let mut map = ReachMap { messages: Vec::new(), bindings: bindings(prompt) };
    let env = env_defaults(prompt);
    for template in prompt.templates() {
        add_template(prompt, template, &env, &mut map)?;
    }
    Ok(map)
}

/// Returns which inputs can reach which messages of a prompt that may have mistakes. Templates that do not compile are
/// left out, and all of them if the prompt names a parser that is not built in.
pub fn reach_as_far_as_possible(prompt: &Prompt) -> ReachMap {
    let mut map = ReachMap { messages: Vec::new(), bindings: bindings(prompt) };
    if prompt.only_role().is_ok() {
        let env = env_defaults(prompt);
        for template in prompt.templates() {
            // The mistakes of a template are findings of a check.
            let _ = add_template(prompt, template, &env, &mut map);
        }
    }
    map
}

/// Adds the messages of one template. If it does not compile, the map stays as it is.
fn add_template(prompt: &Prompt, template: TemplateAnalysis<'_>, env: &EnvDefaults, map: &mut ReachMap) -> Result<()> {
    TemplateReach::new(prompt, template, env)?.add_to(map)
}

/// The environment variables that the defaults of inputs come from, by the name of the input.
type EnvDefaults = BTreeMap<String, String>;

fn env_defaults(prompt: &Prompt) -> EnvDefaults {
    let outline = prompt.outline();
    let key = if prompt.kind() == PromptKind::Definition { "variables" } else { "inputs" };
    let declarations = outline.get(&[key]).into_iter().flat_map(Field::declarations);
    let found = declarations.filter_map(|(name, field)| {
        let default = field.get("default").unwrap_or(field).text()?.trim_start();
        let (scheme, rest) = default.strip_prefix("${")?.split_once(':')?;
        let end = rest.find([':', '}']).unwrap_or(rest.len());
        scheme.eq_ignore_ascii_case("env").then(|| (name.to_owned(), rest[..end].to_owned()))
    });
    found.collect()
}

fn bindings(prompt: &Prompt) -> Vec<BoundInput> {
    let outline = prompt.outline();
    let written = |tool: &str, parameter: &str| {
        let (_, tool) = outline.get(&["tools"])?.declarations().find(|(name, _)| *name == tool)?;
        let (_, binding) = tool.get("bindings")?.declarations().find(|(name, _)| *name == parameter)?;
        Some(binding.span)
    };
    let tools = prompt.spec().tools.iter();
    let bound = tools.flat_map(|tool| tool.bindings.iter().map(move |binding| (tool, binding)));
    let bound = bound.filter_map(|(tool, binding)| {
        let BindingValue::Input(input) = &binding.value else { return None };
        let declared = prompt.variables().iter().find(|variable| variable.name == *input);
        Some(BoundInput {
            tool: tool.name.clone(),
            parameter: binding.parameter.clone(),
            input: input.clone(),
            trusted: declared.is_some_and(|input| input.trusted),
            span: written(&tool.name, &binding.parameter),
        })
    });
    bound.collect()
}

/// The inputs of one message so far, by their index.
type Reached = BTreeMap<usize, InputReach>;

/// The analysis of one template.
struct TemplateReach<'p> {
    prompt: &'p Prompt,
    template: TemplateAnalysis<'p>,
    messages: Vec<WrittenMessage>,
    layout: Layout,
    env: &'p EnvDefaults,
    names: Vec<&'p str>,
}

impl<'p> TemplateReach<'p> {
    fn new(prompt: &'p Prompt, template: TemplateAnalysis<'p>, env: &'p EnvDefaults) -> Result<Self> {
        let messages = template.messages();
        let names = template.template()?.inputs().map(|(name, _)| name).collect();
        let layout = if prompt.spec().template.is_split() {
            let outline = match prompt.spec().template.format.as_str() {
                "mustache" => Outline::mustache(template.source()),
                _ => Outline::jinja(template.source()),
            };
            Layout::new(template.source(), &outline, &messages)
        } else {
            Layout::default()
        };
        Ok(Self { prompt, template, messages, layout, env, names })
    }

    fn add_to(self, map: &mut ReachMap) -> Result<()> {
        let flow = self.template.template()?.full_flow();
        let mut reached = vec![Reached::new(); self.messages.len()];
        let (mut any, mut threads) = (Reached::new(), Reached::new());
        for sink in &flow.sinks {
            if !self.is_settable(sink.input) {
                continue;
            }
            // A thread becomes messages of its own, between the parts of the message that it is in.
            if self.kind(sink.input) == Some(PropertyKind::Thread) && sink.how == How::Text {
                self.add(&mut threads, sink, false);
                continue;
            }
            for (message, in_marker) in self.messages_of(sink) {
                self.add(&mut reached[message], sink, in_marker);
            }
            if self.layout.is_assembled {
                self.add(&mut any, sink, false);
            }
        }
        if flow.is_partial {
            for (input, span) in flow.uses.iter().filter(|(input, _)| self.is_settable(**input)) {
                let sink = Sink { input: *input, how: How::Text, span: *span, path: Vec::new(), lines: Vec::new() };
                reached.iter_mut().for_each(|message| self.add(message, &sink, false));
            }
        }
        self.add_unmentioned_threads(&mut threads);
        let written = self.messages.iter().zip(reached).map(|(message, inputs)| {
            let span = message.marker.unwrap_or(message.content);
            (Target::Role(message.role), Some(self.template.locate(span)), inputs)
        });
        let any = (!any.is_empty()).then_some((Target::AnyRole, None, any));
        let threads = threads.into_iter().map(|(index, input)| {
            let span = input.places.first().map(|place| place.span);
            (Target::Thread(input.input.clone()), span, Reached::from([(index, input)]))
        });
        map.messages.extend(written.chain(any).chain(threads).map(|(target, span, inputs)| ReachedMessage {
            template: self.template.name().to_owned(),
            target,
            span,
            inputs: inputs.into_values().map(sorted).collect(),
        }));
        Ok(())
    }

    /// Returns the messages that a sink reaches, and whether it is in the marker of the message.
    fn messages_of(&self, sink: &Sink) -> Vec<(usize, bool)> {
        let at = sink.span.start;
        if !self.prompt.spec().template.is_split() {
            return vec![(0, false)];
        }
        let own = self.messages.partition_point(|message| message.start() <= at).checked_sub(1);
        let is_in_marker = |index: &usize| self.messages[*index].marker.is_some_and(|line| line.range().contains(&at));
        let in_marker = own.filter(|_| sink.how != How::Decides).filter(is_in_marker);
        if let Some(index) = in_marker {
            return vec![(index, true)];
        }
        match self.layout.messages_at(at) {
            Some(messages) if !messages.is_empty() => messages.iter().map(|index| (*index, false)).collect(),
            // The text in front of the first marker is blank, but an input writes to it.
            _ => own.or((!self.messages.is_empty()).then_some(0)).map(|index| (index, false)).into_iter().collect(),
        }
    }

    fn add(&self, reached: &mut Reached, sink: &Sink, in_marker: bool) {
        let name = self.names[sink.input];
        let declared = self.prompt.variables().get(sink.input);
        let known = reached.entry(sink.input).or_insert_with(|| InputReach {
            input: name.to_owned(),
            is_declared: declared.is_some(),
            trusted: declared.is_some_and(|input| input.trusted),
            how: sink.how,
            in_marker: false,
            env: self.env.get(name).cloned(),
            places: Vec::new(),
        });
        known.how = known.how.min(sink.how);
        known.in_marker |= in_marker;
        let path = sink.path.iter().map(|step| (self.template.locate(step.span), step.name.clone())).collect();
        let place = ReachPlace { how: sink.how, span: self.template.locate(sink.span), path };
        if !known.places.contains(&place) {
            known.places.push(place);
        }
    }

    /// Adds the threads that the template does not mention: their messages follow the last one.
    fn add_unmentioned_threads(&self, threads: &mut Reached) {
        if !self.prompt.spec().template.is_split() {
            return;
        }
        for (index, input) in self.prompt.variables().iter().enumerate() {
            if input.kind == PropertyKind::Thread {
                threads.entry(index).or_insert_with(|| InputReach {
                    input: input.name.clone(),
                    is_declared: true,
                    trusted: input.trusted,
                    how: How::Text,
                    in_marker: false,
                    env: None,
                    places: Vec::new(),
                });
            }
        }
    }

    /// Returns whether a caller can set an input. In a definition, that are only the declared ones.
    fn is_settable(&self, input: usize) -> bool {
        input < self.prompt.variables().len() || self.prompt.kind() != PromptKind::Definition
    }

    fn kind(&self, input: usize) -> Option<PropertyKind> {
        self.prompt.variables().get(input).map(|input| input.kind)
    }
}

fn sorted(mut input: InputReach) -> InputReach {
    input.places.sort_by_key(|place| (place.how, place.span.start));
    input
}

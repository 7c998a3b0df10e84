//! The conversation, and the messages that the model receives next.
//!
//! A conversation contains only questions that were answered. The messages that a turn added are stored with their
//! question, so that the last question can be undone together with its answer. Every message has its label, so that
//! what a model has read in one turn still counts in the next.

use serde_json::{Value as Json, json};
use tympan::Runtime;
use tympan::chat::Place;
use tympan::chat::thread::{ThreadRoles, parse_thread};
use tympan::diagnostic::guess_name;
use tympan::spec::schema::{Property, PropertyKind};
use tympan::turn::{Label, LabeledRange, MessageLabel, PartLabel, Source};
use tympan::{Inputs, Message, Prompt, Role};

use super::labels;
use crate::commands::render::{Labeled, labeled, render_with};
use crate::prompt_file::in_prompt;
use crate::report::Failure;

/// A question and its answer.
#[derive(Clone, Debug)]
struct Exchange {
    asked: Question,
    /// The answer, preceded by tool calls and their results.
    answered: Labeled,
}

/// The text that was typed, or `None` for a question in the prompt itself.
pub(super) type Question = Option<String>;

/// A prompt and the conversation so far.
pub(super) struct Conversation<'a> {
    prompt: &'a Prompt,
    variant: Option<&'a str>,
    inputs: Inputs,
    /// The input for questions.
    question: Option<String>,
    thread: Option<Thread>,
    exchanges: Vec<Exchange>,
}

/// The input for the conversation.
struct Thread {
    input: String,
    /// The messages from before the chat started.
    before: Labeled,
}

/// The inputs and messages of a turn.
pub(super) struct Prepared {
    pub(super) inputs: Inputs,
    pub(super) messages: Labeled,
}

impl<'a> Conversation<'a> {
    /// Creates an empty conversation. `named` overrides which input receives the questions.
    ///
    /// # Errors
    /// Returns an error if an input is missing or invalid, or if it is not clear where the conversation goes.
    pub(super) fn new(
        prompt: &'a Prompt,
        variant: Option<&'a str>,
        inputs: Inputs,
        named: Option<&str>,
    ) -> Result<Self, Failure> {
        let question = match named {
            Some(name) => Some(named_question(prompt, variant, name)?),
            None => open_question(prompt, &inputs),
        };
        let thread = thread_of(prompt, &inputs)?;
        let conversation = Self { prompt, variant, inputs, question, thread, exchanges: Vec::new() };
        // Report missing inputs before the user types a question.
        let checked = prompt.validate_inputs(conversation.inputs_for(Some("")));
        checked.map_err(|error| in_prompt(error, prompt))?;
        Ok(conversation)
    }

    /// Returns whether the prompt itself contains a question for the model to answer first.
    ///
    /// # Errors
    /// Returns an error if the prompt cannot be rendered.
    pub(super) fn asks_first(&self, runtime: &Runtime) -> Result<bool, Failure> {
        if self.question.is_some() || self.thread.is_some() || !self.exchanges.is_empty() {
            return Ok(false);
        }
        let opening = self.render(runtime, &self.inputs, &Labeled::default())?;
        Ok(opening.messages.last().is_some_and(|message| message.role == Role::User))
    }

    /// Returns the messages that the model receives for a question.
    ///
    /// # Errors
    /// Returns an error if the prompt cannot be rendered, or if its text would follow the question.
    pub(super) fn prepare(&self, runtime: &Runtime, asked: Option<&str>) -> Result<Prepared, Failure> {
        let prepared = self.prepare_after(runtime, &self.exchanges, asked)?;
        if let (Some(_), None) = (&self.thread, &self.question) {
            let last = prepared.messages.messages.iter().rfind(|message| message.role == Role::User);
            if last.map(Message::to_text).as_deref() != asked {
                return Err(Failure::Usage(
                    "your question would not be the last message: the prompt has more text after the conversation. \
                        Choose the input for your question with --question NAME"
                        .to_owned(),
                ));
            }
        }
        Ok(prepared)
    }

    fn prepare_after(
        &self,
        runtime: &Runtime,
        exchanges: &[Exchange],
        asked: Option<&str>,
    ) -> Result<Prepared, Failure> {
        let Some(thread) = &self.thread else { return self.appended(runtime, exchanges, asked) };
        let mut inputs = self.inputs_for(asked);
        let mut messages = thread.transcript(exchanges);
        if self.question.is_none() {
            messages.ask(asked);
        }
        inputs.insert(thread.input.clone(), json!(messages.messages));
        let messages = self.render(runtime, &inputs, &messages)?;
        Ok(Prepared { inputs, messages })
    }

    /// Renders the prompt with the first question and appends the rest of the conversation.
    fn appended(&self, runtime: &Runtime, exchanges: &[Exchange], asked: Option<&str>) -> Result<Prepared, Failure> {
        let first = exchanges.first().map_or(asked, |exchange| exchange.asked.as_deref());
        let inputs = self.inputs_for(first);
        let mut messages = self.render(runtime, &inputs, &Labeled::default())?;
        let questions = exchanges.iter().map(|exchange| exchange.asked.as_deref()).chain([asked]);
        let answers = exchanges.iter().map(|exchange| Some(&exchange.answered)).chain([None]);
        for (index, (asked, answered)) in questions.zip(answers).enumerate() {
            let is_rendered = index == 0 && self.question.is_some();
            messages.ask(asked.filter(|_| !is_rendered));
            if let Some(answered) = answered {
                messages.extend(answered);
            }
        }
        Ok(Prepared { inputs, messages })
    }

    /// Returns the inputs with the question filled in.
    fn inputs_for(&self, asked: Option<&str>) -> Inputs {
        let mut inputs = self.inputs.clone();
        if let (Some(question), Some(asked)) = (&self.question, asked) {
            inputs.insert(question.clone(), Json::from(asked));
        }
        inputs
    }

    /// Renders the prompt. The messages of the conversation in it keep their labels, and what was typed is the user's.
    fn render(&self, runtime: &Runtime, inputs: &Inputs, thread: &Labeled) -> Result<Labeled, Failure> {
        let rendered = render_with(runtime, self.prompt, inputs, self.variant)?;
        let mut messages = labeled(runtime, self.prompt, &rendered)?;
        if let Some(question) = &self.question {
            let parts = messages.labels.iter_mut().flat_map(|message| &mut message.parts);
            parts.for_each(|part| typed_in(part, question));
        }
        if !thread.messages.is_empty() {
            let places = self.prompt.messages_with_places(&rendered).map_err(|error| in_prompt(error, self.prompt))?;
            restore_labels(&mut messages, &places, thread);
        }
        Ok(messages.with_advisory(&rendered))
    }

    /// Adds a question and its answer.
    pub(super) fn add(&mut self, asked: Question, answered: Labeled) {
        self.exchanges.push(Exchange { asked, answered });
    }

    /// Removes the last question with its answer, and returns the question.
    pub(super) fn take_last(&mut self) -> Option<Question> {
        self.exchanges.pop().map(|exchange| exchange.asked)
    }

    /// Clears the conversation of this chat.
    pub(super) fn clear(&mut self) {
        self.exchanges.clear();
    }

    /// Returns the conversation without the prompt's instructions, in a form that can be used as a thread.
    ///
    /// # Errors
    /// Returns an error if the prompt cannot be rendered.
    pub(super) fn transcript(&self, runtime: &Runtime) -> Result<Labeled, Failure> {
        if let Some(thread) = &self.thread {
            return Ok(thread.transcript(&self.exchanges));
        }
        let Some((last, before)) = self.exchanges.split_last() else { return Ok(Labeled::default()) };
        let mut messages = self.appended(runtime, before, last.asked.as_deref())?.messages;
        messages.extend(&last.answered);
        let is_said = |(message, _): &(Message, _)| !matches!(message.role, Role::System | Role::Developer);
        let (messages, labels) = messages.messages.into_iter().zip(messages.labels).filter(is_said).unzip();
        Ok(Labeled { messages, labels })
    }
}

impl Thread {
    fn transcript(&self, exchanges: &[Exchange]) -> Labeled {
        let mut messages = self.before.clone();
        for exchange in exchanges {
            messages.ask(exchange.asked.as_deref());
            messages.extend(&exchange.answered);
        }
        messages
    }
}

impl Labeled {
    /// Adds what was typed as a user message, whatever it contains.
    fn ask(&mut self, asked: Option<&str>) {
        if let Some(text) = asked {
            self.push(Message::text(Role::User, text), &Label::user());
        }
    }
}

/// Restores the labels of the messages that came from the thread. A message that is not found stays as untrusted as its
/// input.
fn restore_labels(messages: &mut Labeled, places: &[(Message, Place)], thread: &Labeled) {
    let mut next = 0;
    for (index, (message, place)) in places.iter().enumerate() {
        let (Place::Thread(_), Some(label)) = (place, messages.labels.get_mut(index)) else { continue };
        // A template may contain the thread several times.
        let order = (next..thread.messages.len()).chain(0..next);
        let Some(found) = order.into_iter().find(|at| thread.messages[*at] == *message) else { continue };
        let is_confidential = label.union().confidential;
        label.clone_from(&thread.labels[found]);
        label.parts.iter_mut().for_each(|part| part.label.confidential |= is_confidential);
        next = found + 1;
    }
}

/// Changes the label of a part that contains what was typed: the policy for tools trusts the user.
fn typed_in(part: &mut PartLabel, question: &str) {
    let is_typed = |source: &Source| matches!(source, Source::Input { name } if name == question);
    let change = |label: &mut Label| {
        if !label.sources.iter().any(is_typed) {
            return;
        }
        let mut changed = Label { confidential: label.confidential, extracted: label.extracted, ..Label::default() };
        for source in label.sources.iter() {
            let is_trusted = is_typed(source) || !label.untrusted_sources.contains(source);
            let source = if is_typed(source) { Source::User } else { source.clone() };
            changed.add(&Label::new(source, is_trusted, false));
        }
        *label = changed;
    };
    change(&mut part.label);
    part.ranges.iter_mut().for_each(|LabeledRange { label, .. }| change(label));
}

fn holds(input: &Property, kind: PropertyKind) -> bool {
    input.kind == kind || input.kinds.contains(&kind)
}

fn named_question(prompt: &Prompt, variant: Option<&str>, name: &str) -> Result<String, Failure> {
    let declared = &prompt.spec().inputs;
    match declared.iter().find(|input| input.name == name) {
        Some(input) if holds(input, PropertyKind::String) => Ok(name.to_owned()),
        Some(input) => {
            let kind = input.kind.as_str();
            Err(Failure::Usage(format!("--question: expected a string input, but `{name}` is declared as {kind}")))
        }
        None => {
            // A template that does not compile is reported elsewhere.
            let template = prompt.variant_template(variant).ok();
            let used = template.iter().flat_map(|template| template.inputs()).map(|(name, _)| name);
            let known: Vec<&str> = declared.iter().map(|input| input.name.as_str()).chain(used).collect();
            if known.contains(&name) {
                return Ok(name.to_owned());
            }
            let near = guess_name(name, known);
            let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            Err(Failure::Usage(format!("--question: the prompt has no input `{name}`{hint}")))
        }
    }
}

/// Returns the only required input without a value, if it accepts text.
fn open_question(prompt: &Prompt, inputs: &Inputs) -> Option<String> {
    let is_missing = |input: &&Property| {
        input.required == Some(true) && input.default.is_none() && !inputs.contains_key(&input.name)
    };
    // The conversation always has a value.
    let mut missing =
        prompt.spec().inputs.iter().filter(is_missing).filter(|input| !holds(input, PropertyKind::Thread));
    match (missing.next(), missing.next()) {
        (Some(input), None) if holds(input, PropertyKind::String) => Some(input.name.clone()),
        _ => None,
    }
}

fn thread_of(prompt: &Prompt, inputs: &Inputs) -> Result<Option<Thread>, Failure> {
    let mut threads = prompt.spec().inputs.iter().filter(|input| holds(input, PropertyKind::Thread));
    let Some(input) = threads.next() else { return Ok(None) };
    if let Some(other) = threads.next() {
        let (one, other) = (&input.name, &other.name);
        return Err(Failure::Usage(format!(
            "the prompt has several thread inputs (`{one}`, `{other}`); chat supports one"
        )));
    }
    let given = inputs.get(&input.name).or(input.default.as_ref());
    let before = given.map(|value| parse_thread(value, ThreadRoles::Any)).transpose();
    let messages = before.map_err(|error| in_prompt(error, prompt))?.unwrap_or_default();
    let source = Source::Input { name: input.name.clone() };
    // The user speaks only in the user's messages. The others are what a model wrote and tools returned.
    let is_trusted = |role: Role| input.trusted || (input.speaker.is_some() && role == Role::User);
    let unknown = |message: &Message| {
        MessageLabel::whole(message, &Label::new(source.clone(), is_trusted(message.role), input.confidential))
    };
    let labels = labels::load(&messages).unwrap_or_else(|| messages.iter().map(unknown).collect());
    Ok(Some(Thread { input: input.name.clone(), before: Labeled { messages, labels } }))
}

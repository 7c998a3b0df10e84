//! The conversation, and the messages that the model receives next.
//!
//! A conversation contains only questions that were answered. The messages that a turn added are stored with their
//! question, so that the last question can be undone together with its answer.

use serde_json::{Value as Json, json};
use tympan::Runtime;
use tympan::chat::thread::{ThreadRoles, parse_thread};
use tympan::diagnostic::guess_name;
use tympan::spec::schema::{Property, PropertyKind};
use tympan::{Inputs, Message, Prompt, Role};

use crate::commands::render::{messages, render_with};
use crate::prompt_file::in_prompt;
use crate::report::Failure;

/// A question and its answer.
#[derive(Clone, Debug)]
struct Exchange {
    asked: Question,
    /// The answer, preceded by tool calls and their results.
    answered: Vec<Message>,
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
    before: Vec<Message>,
}

/// The inputs and messages of a turn.
pub(super) struct Prepared {
    pub(super) inputs: Inputs,
    pub(super) messages: Vec<Message>,
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
        let opening = self.render(runtime, &self.inputs)?;
        Ok(opening.last().is_some_and(|message| message.role == Role::User))
    }

    /// Returns the messages that the model receives for a question.
    ///
    /// # Errors
    /// Returns an error if the prompt cannot be rendered, or if its text would follow the question.
    pub(super) fn prepare(&self, runtime: &Runtime, asked: Option<&str>) -> Result<Prepared, Failure> {
        let prepared = self.prepare_after(runtime, &self.exchanges, asked)?;
        if let (Some(_), None) = (&self.thread, &self.question) {
            let last = prepared.messages.iter().rfind(|message| message.role == Role::User);
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
            messages.extend(user(asked));
        }
        inputs.insert(thread.input.clone(), json!(messages));
        let messages = self.render(runtime, &inputs)?;
        Ok(Prepared { inputs, messages })
    }

    /// Renders the prompt with the first question and appends the rest of the conversation.
    fn appended(&self, runtime: &Runtime, exchanges: &[Exchange], asked: Option<&str>) -> Result<Prepared, Failure> {
        let first = exchanges.first().map_or(asked, |exchange| exchange.asked.as_deref());
        let inputs = self.inputs_for(first);
        let mut messages = self.render(runtime, &inputs)?;
        let questions = exchanges.iter().map(|exchange| exchange.asked.as_deref()).chain([asked]);
        let answers = exchanges.iter().map(|exchange| exchange.answered.as_slice()).chain([&[][..]]);
        for (index, (asked, answered)) in questions.zip(answers).enumerate() {
            let is_rendered = index == 0 && self.question.is_some();
            messages.extend(user(asked).filter(|_| !is_rendered));
            messages.extend_from_slice(answered);
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

    fn render(&self, runtime: &Runtime, inputs: &Inputs) -> Result<Vec<Message>, Failure> {
        let rendered = render_with(runtime, self.prompt, inputs, self.variant)?;
        messages(runtime, self.prompt, &rendered)
    }

    /// Adds a question and its answer.
    pub(super) fn add(&mut self, asked: Question, answered: Vec<Message>) {
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
    pub(super) fn transcript(&self, runtime: &Runtime) -> Result<Vec<Message>, Failure> {
        if let Some(thread) = &self.thread {
            return Ok(thread.transcript(&self.exchanges));
        }
        let Some((last, before)) = self.exchanges.split_last() else { return Ok(Vec::new()) };
        let mut messages = self.appended(runtime, before, last.asked.as_deref())?.messages;
        messages.extend_from_slice(&last.answered);
        messages.retain(|message| !matches!(message.role, Role::System | Role::Developer));
        Ok(messages)
    }
}

impl Thread {
    fn transcript(&self, exchanges: &[Exchange]) -> Vec<Message> {
        let mut messages = self.before.clone();
        for exchange in exchanges {
            messages.extend(user(exchange.asked.as_deref()));
            messages.extend_from_slice(&exchange.answered);
        }
        messages
    }
}

/// Converts what was typed to a user message, whatever it contains.
fn user(asked: Option<&str>) -> Option<Message> {
    asked.map(|text| Message::text(Role::User, text))
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
    let before = before.map_err(|error| in_prompt(error, prompt))?.unwrap_or_default();
    Ok(Some(Thread { input: input.name.clone(), before }))
}

//! Rubrics: prompts that judge an answer.
//!
//! A rubric declares the input `answer`, and its `outputs` are a verdict: `pass` (a boolean), `score` (a number between
//! 0 and 1) or both, and optionally `reason` (a text). It may also declare `question` and `messages`, which receive what the
//! judged model was asked, and further inputs whose values the assertion states.
//!
//! The answer is text from a stranger who wants to pass. It is never trusted, the guard wraps it, and it can only be in
//! messages of the user.

use std::path::Path;

use serde_json::{Value as Json, json};
use tympan_core::prompt::RenderOptions;
use tympan_core::spec::role::Role;
use tympan_core::spec::schema::{Property, PropertyKind};
use tympan_core::{Guard, Inputs, JsonMap, Message, Prompt, Rendered};
use tympan_runtime::Runtime;

use crate::runner::described;

/// The input that contains the judged answer.
pub(super) const ANSWER: &str = "answer";

/// The inputs that contain what the judged model was asked.
const QUESTION: &str = "question";
const MESSAGES: &str = "messages";

/// A rubric that was loaded and checked.
#[derive(Debug)]
pub(super) struct Rubric {
    pub(super) prompt: Prompt,
    /// Whether the verdict contains `pass`.
    pub(super) has_pass: bool,
    /// Whether the verdict contains `score`.
    pub(super) has_score: bool,
}

impl Rubric {
    /// Loads a rubric.
    ///
    /// # Errors
    /// Returns a message if the file does not load, or is not a rubric.
    pub(super) fn load(runtime: &Runtime, path: &Path) -> Result<Self, String> {
        let in_file = |reason: String| format!("rubric {}: {reason}", path.display());
        let prompt = runtime.load(path).map_err(|error| in_file(described(&error)))?;
        let (has_pass, has_score) = check(&prompt).map_err(in_file)?;
        Ok(Self { prompt, has_pass, has_score })
    }

    /// Returns the messages for the judge.
    ///
    /// # Errors
    /// Returns a message if the rubric does not render, or does not put the answer into messages of the user alone.
    pub(super) fn messages(&self, runtime: &Runtime, inputs: &Inputs) -> Result<Vec<Message>, String> {
        let own = runtime.options().guard.clone().filter(|guard| guard.info().role.is_some());
        let guard = own.unwrap_or_default();
        let rendered =
            self.render(runtime, inputs, &guard).map_err(|error| format!("the rubric: {}", error.message()))?;
        self.check_places(&rendered, inputs)?;
        // Custom parsers do not say where text came from, so only the engine's are used.
        let messages = self.prompt.messages(rendered.clone());
        let mut messages = messages.map_err(|error| format!("the rubric: {}", error.message()))?;
        guard.info().insert_into(&mut messages);
        Ok(messages)
    }

    fn render(&self, runtime: &Runtime, inputs: &Inputs, guard: &Guard) -> tympan_core::Result<Rendered> {
        let options = RenderOptions { guard: Some(guard), ..runtime.render_options() };
        runtime.render_with(&self.prompt, inputs, &options)
    }

    /// Checks that the answer is in messages of the user, and nowhere else.
    fn check_places(&self, rendered: &Rendered, inputs: &Inputs) -> Result<(), String> {
        let messages = self.prompt.messages_with_segments(rendered);
        let messages = messages.map_err(|error| format!("the rubric: {}", error.message()))?;
        let is_answer = |origin| rendered.inputs().names(origin).any(|name| name == ANSWER);
        let mut with_answer = messages
            .iter()
            .filter(|message| message.segments.iter().flatten().any(|segment| is_answer(segment.origin)));
        let is_empty = inputs.get(ANSWER).and_then(Json::as_str).is_none_or(|answer| answer.trim().is_empty());
        let Some(first) = with_answer.next() else {
            return if is_empty {
                Ok(())
            } else {
                Err("the rubric does not show the input `answer` to the judge".to_owned())
            };
        };
        let other = std::iter::once(first).chain(with_answer).find(|message| message.message.role != Role::User);
        match other {
            None => Ok(()),
            Some(message) => {
                let role = message.message.role.as_str();
                Err(format!("the rubric puts the answer into a message of the role `{role}`, expected `user`"))
            }
        }
    }

    /// Returns the inputs of the judge: those that the assertion states, and what the judged model was asked.
    ///
    /// # Errors
    /// Returns a message if the assertion states the answer.
    pub(super) fn inputs(&self, answer: &str, asked: Option<&[Message]>, stated: &JsonMap) -> Result<Inputs, String> {
        if stated.contains_key(ANSWER) {
            return Err("`inputs` contains `answer`, which is the judged answer".to_owned());
        }
        let mut inputs = stated.clone();
        inputs.insert(ANSWER.to_owned(), answer.into());
        for (name, make) in [(QUESTION, question as fn(&[Message]) -> String), (MESSAGES, transcript)] {
            let declared = self.input(name).filter(|_| !stated.contains_key(name));
            if let (Some(declared), Some(asked)) = (declared, asked) {
                let value = match declared.kind {
                    PropertyKind::Array => asked.iter().map(listed).collect(),
                    _ => make(asked).into(),
                };
                inputs.insert(name.to_owned(), value);
            }
        }
        Ok(inputs)
    }

    fn input(&self, name: &str) -> Option<&Property> {
        self.prompt.spec().inputs.iter().find(|input| input.name == name)
    }
}

/// Checks that a prompt is a rubric. Returns whether its verdict has a `pass` and a `score`.
fn check(prompt: &Prompt) -> Result<(bool, bool), String> {
    let spec = prompt.spec();
    if !spec.tools.is_empty() {
        return Err("expected no tools: a judge must not act".to_owned());
    }
    let answer = spec.inputs.iter().find(|input| input.name == ANSWER);
    answer.ok_or("expected the input `answer`, which is the judged answer")?;
    for input in spec.inputs.iter().filter(|input| [ANSWER, QUESTION, MESSAGES].contains(&input.name.as_str())) {
        check_input(input)?;
    }
    let expected = "expected `outputs` with `pass` (boolean) or `score` (float), and optionally `reason` (string)";
    let (mut has_pass, mut has_score) = (false, false);
    for output in &spec.outputs {
        match (output.name.as_str(), output.kind, output.kinds.len()) {
            ("pass", PropertyKind::Boolean, 0 | 1) => has_pass = true,
            ("score", PropertyKind::Float | PropertyKind::Integer, 0 | 1) => has_score = true,
            ("reason", PropertyKind::String, _) => {}
            (name, kind, _) => return Err(format!("{expected}, found `{name}` ({})", kind.as_str())),
        }
    }
    if has_pass || has_score { Ok((has_pass, has_score)) } else { Err(format!("{expected}, found neither")) }
}

/// Checks an input that receives text which nobody vouches for.
fn check_input(input: &Property) -> Result<(), String> {
    let name = &input.name;
    if input.trusted || input.speaker.is_some() {
        return Err(format!(
            "the input `{name}` must not be trusted: it contains text that the judged model read or wrote"
        ));
    }
    let is_list = name == MESSAGES && input.kind == PropertyKind::Array;
    if input.kind != PropertyKind::String && !is_list {
        let list = if name == MESSAGES { " or a list" } else { "" };
        return Err(format!("the input `{name}`: expected a string{list}, found {}", input.kind.as_str()));
    }
    Ok(())
}

/// Returns the last message of the user.
fn question(messages: &[Message]) -> String {
    messages.iter().rev().find(|message| message.role == Role::User).map(Message::to_text).unwrap_or_default()
}

/// Returns all messages as one text.
fn transcript(messages: &[Message]) -> String {
    let shown = messages.iter().map(|message| format!("[{}]\n{}", message.role.as_str(), message.to_text()));
    shown.collect::<Vec<_>>().join("\n\n")
}

fn listed(message: &Message) -> Json {
    json!({"role": message.role.as_str(), "content": message.to_text()})
}

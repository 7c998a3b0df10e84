//! Messages: the cases in `fixtures/messages`, from a template to its messages or the error of strict mode, and the
//! cases in `fixtures/thread`, from a conversation to its messages.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tympan::chat::thread::{ThreadRoles, parse_thread};
use tympan::spec::PromptSpec;
use tympan::spec::schema::{Property, PropertyKind};
use tympan::{Inputs, Message, Prompt, RenderOptions, Result};

use crate::cases;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    template: String,
    inputs: Inputs,
    /// Inputs that are declared as threads. All others are strings.
    #[serde(default)]
    threads: Vec<String>,
    /// Inputs that are declared with `trusted: true`.
    #[serde(default)]
    trusted: Vec<String>,
    #[serde(default)]
    strict: bool,
    messages: Option<Vec<Said>>,
    /// The code of the expected error.
    error: Option<String>,
}

#[derive(Deserialize, Serialize, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
struct Said {
    role: String,
    text: String,
}

impl Said {
    fn new(message: &Message) -> Self {
        Self { role: message.role.as_str().to_owned(), text: message.to_text() }
    }
}

impl Case {
    fn messages(&self) -> Result<Vec<Message>> {
        let mut spec = PromptSpec { instructions: self.template.clone(), ..PromptSpec::default() };
        for name in self.inputs.keys() {
            let kind = if self.threads.contains(name) { PropertyKind::Thread } else { PropertyKind::String };
            let trusted = self.trusted.contains(name);
            spec.inputs.push(Property { trusted, ..Property::new(name, kind) });
        }
        let prompt = Prompt::from_spec(spec);
        let options = RenderOptions { strict: Some(self.strict), entropy: Some(&|| Ok(7)), ..RenderOptions::default() };
        prompt.messages(prompt.render_with(&self.inputs, &options)?)
    }
}

impl cases::Case for Case {
    fn title(&self) -> (&str, &str) {
        (&self.name, &self.template)
    }

    fn complaint(&self) -> Option<String> {
        match (self.messages(), &self.messages, &self.error) {
            (Ok(messages), Some(expected), None) => {
                let said: Vec<_> = messages.iter().map(Said::new).collect();
                (said != *expected).then(|| json!(said).to_string())
            }
            (Err(error), None, Some(code)) if error.code() == code => None,
            (result, ..) => Some(format!("{result:?}")),
        }
    }
}

#[test]
fn fixtures() {
    cases::run::<Case>("messages", 40);
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThreadCase {
    name: String,
    thread: Value,
    messages: Option<Value>,
    /// A part of the expected error's message.
    error: Option<String>,
}

impl cases::Case for ThreadCase {
    fn title(&self) -> (&str, &str) {
        (&self.name, "")
    }

    fn complaint(&self) -> Option<String> {
        match (parse_thread(&self.thread, ThreadRoles::Any), &self.messages, &self.error) {
            (Ok(messages), Some(expected), None) => {
                let again = parse_thread(&json!(messages), ThreadRoles::Any);
                if again.as_ref().ok() != Some(&messages) {
                    return Some(format!("parsed again: {again:?}"));
                }
                (json!(messages) != *expected).then(|| json!(messages).to_string())
            }
            (Err(error), None, Some(says)) if error.message().contains(says) => None,
            (result, ..) => Some(format!("{result:?}")),
        }
    }
}

#[test]
fn threads() {
    cases::run::<ThreadCase>("thread", 25);
}

#[test]
fn unmentioned_threads_are_reported() {
    let warnings = |body: &str| -> Vec<_> {
        let text = format!("---\ninputs:\n  - {{name: history, kind: thread}}\n---\n{body}");
        let prompt = Prompt::from_prompty(&text).expect("it loads");
        prompt.warnings().iter().map(|warning| (warning.code, warning.message.clone())).collect()
    };
    assert_eq!(warnings("system:\nHi\n{{ history }}\n"), []);
    assert_eq!(warnings("system:\nHi\n{% if history %}{{ history }}{% endif %}\n"), []);
    let message = "the template does not mention the thread `history`".to_owned();
    assert_eq!(warnings("system:\nHi\n"), [("unmentioned_thread", message)]);
    assert_eq!(warnings("system:\n{{ broken\n"), []);
    assert_eq!(warnings("system:\n{{- history -}}\n"), []);
    for body in ["{# {{ history }} #}", "{% raw %}{{ history }}{% endraw %}", "history", "{{ 'history' }}"] {
        assert_eq!(warnings(body).len(), 1, "{body}");
    }
}

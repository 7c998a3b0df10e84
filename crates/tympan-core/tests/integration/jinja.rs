//! The Jinja syntax: the cases in `fixtures/jinja`, rendered by the engine and by minijinja.

use serde::Deserialize;
use tympan::JsonMap;
use tympan::template::{CompileOptions, Template};

use crate::cases;
use crate::oracle;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    template: String,
    inputs: JsonMap,
    /// The inputs that the prompt does not declare, where the templates of a package need a prompt.
    #[serde(default, rename = "undeclared")]
    _undeclared: Vec<String>,
    #[serde(default)]
    lenient: bool,
    text: Option<String>,
    /// The code of the expected error.
    error: Option<String>,
    /// Why minijinja gives another result. Starts with [`AT_RANDOM`] if it does so only sometimes.
    differs: Option<String>,
    /// Why Python's Jinja2 gives another result. Used by a separate comparison.
    jinja2: Option<String>,
}

/// The prefix for results of minijinja that differ between runs.
const AT_RANDOM: &str = "at random: ";

impl Case {
    /// Describes how the engine's result differs from the case, if it does.
    fn of_engine(&self) -> Option<String> {
        let template = Template::compile(&self.template, CompileOptions::default());
        let outcome = template.and_then(|template| template.render_json(&self.inputs, self.lenient));
        match (&self.text, &self.error, outcome) {
            (Some(expected), None, Ok(text)) if text.as_str() == expected => None,
            (None, Some(code), Err(error)) if error.code() == code && error.span().is_some() => None,
            (_, _, Ok(text)) => Some(format!("rendered {:?}", text.as_str())),
            (_, _, Err(error)) => Some(format!("failed: {error:?}")),
        }
    }

    /// Describes how minijinja's result differs from the case, if it does.
    fn of_oracle(&self) -> Option<String> {
        let outcome = oracle::render(&self.template, &self.inputs, self.lenient);
        let is_same = match (&self.text, &outcome) {
            (Some(expected), Ok(text)) => expected == text,
            (None, Err(_)) => true,
            _ => false,
        };
        match (&self.differs, is_same) {
            (None, false) => Some(format!("minijinja: {outcome:?}")),
            (Some(reason), true) if !reason.starts_with(AT_RANDOM) => {
                Some(format!("does not differ from minijinja: {reason}"))
            }
            _ => None,
        }
    }
}

impl cases::Case for Case {
    fn title(&self) -> (&str, &str) {
        (&self.name, &self.template)
    }

    fn complaint(&self) -> Option<String> {
        let mut complaints: Vec<String> = self.of_engine().into_iter().chain(self.of_oracle()).collect();
        if self.jinja2.as_ref().is_some_and(|reason| !reason.starts_with("skip: ")) {
            complaints.push("`jinja2` has to say why it skips".to_owned());
        }
        (!complaints.is_empty()).then(|| complaints.join("; "))
    }
}

#[test]
fn fixtures() {
    cases::run::<Case>("jinja", 450);
}

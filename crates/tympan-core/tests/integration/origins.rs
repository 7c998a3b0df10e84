//! Origins: the cases in `fixtures/origins`, from a template to its segments and messages.

use serde::{Deserialize, Serialize};
use tympan::spec::PromptSpec;
use tympan::spec::schema::{Property, PropertyKind};
use tympan::{Inputs, JsonMap, Message, Prompt, Rendered, chat};

use crate::cases;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(default = "jinja2")]
    format: String,
    template: String,
    inputs: Inputs,
    /// Inputs that are declared with `trusted: true`.
    #[serde(default)]
    trusted: Vec<String>,
    segments: Vec<Segment>,
    messages: Vec<Said>,
}

fn jinja2() -> String {
    "jinja2".to_owned()
}

#[derive(Deserialize, Serialize, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
struct Segment {
    text: String,
    /// The inputs that wrote the segment. Empty if the author did.
    inputs: Vec<String>,
    trusted: bool,
}

#[derive(Deserialize, Serialize, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
struct Said {
    role: String,
    text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    metadata: Option<JsonMap>,
}

impl Case {
    fn render(&self) -> tympan::Result<Rendered> {
        let mut spec = PromptSpec { instructions: self.template.clone(), ..PromptSpec::default() };
        spec.template.format.clone_from(&self.format);
        for name in self.inputs.keys() {
            let mut property = Property::new(name, PropertyKind::default());
            property.trusted = self.trusted.contains(name);
            spec.inputs.push(property);
        }
        Prompt::from_spec(spec).render(&self.inputs)
    }
}

fn segments(rendered: &Rendered) -> Vec<Segment> {
    let names = |origin| rendered.inputs().names(origin).map(str::to_owned).collect();
    let segment = |segment: tympan::chat::rendered::Segment<'_>| Segment {
        text: segment.text.to_owned(),
        inputs: names(segment.origin),
        trusted: rendered.is_trusted(&segment),
    };
    rendered.segments().map(segment).collect()
}

fn messages(messages: Vec<Message>) -> Vec<Said> {
    let said = |message: Message| Said {
        role: message.role.as_str().to_owned(),
        text: message.to_text(),
        metadata: message.metadata,
    };
    messages.into_iter().map(said).collect()
}

impl cases::Case for Case {
    fn title(&self) -> (&str, &str) {
        (&self.name, &self.template)
    }

    fn complaint(&self) -> Option<String> {
        let rendered = match self.render() {
            Ok(rendered) => rendered,
            Err(error) => return Some(format!("failed: {error:?}")),
        };
        let (segments, messages) = (segments(&rendered), messages(chat::split(rendered)));
        if segments == self.segments && messages == self.messages {
            return None;
        }
        let found = serde_json::json!({"segments": segments, "messages": messages});
        Some(format!("{found}"))
    }
}

#[test]
fn fixtures() {
    cases::run::<Case>("origins", 75);
}

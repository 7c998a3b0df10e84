//! Who wrote what: the cases in `fixtures/origins`, from a template to its segments and messages.
#![expect(clippy::disallowed_methods, reason = "tests read their cases from files")]

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tympan::schema::{Property, PropertyKind};
use tympan::spec::PromptSpec;
use tympan::{Inputs, JsonMap, Message, Prompt, Rendered, chat};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(default = "jinja2")]
    format: String,
    template: String,
    inputs: Inputs,
    /// Inputs whose declaration says `trusted: true`.
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
    /// The inputs that wrote it; none means the author.
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

fn segments(rendered: &Rendered) -> Vec<Segment> {
    let names = |origin| rendered.inputs().names(origin).map(str::to_owned).collect();
    let segment = |segment: tympan::rendered::Segment<'_>| Segment {
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

#[test]
fn fixtures() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/origins");
    let mut complaints = String::new();
    let mut names = HashSet::new();
    for entry in std::fs::read_dir(&directory).expect("the fixtures are there") {
        let path = entry.expect("the directory can be read").path();
        let file = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("the file can be read");
        let cases: Vec<Case> = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        for case in cases {
            if let Some(complaint) = case.complaint() {
                let _ = writeln!(complaints, "{file}, {:?} {:?}: {complaint}", case.name, case.template);
            }
            assert!(names.insert(format!("{file}/{}", case.name)), "{file} has two cases named {:?}", case.name);
        }
    }
    assert!(names.len() >= 75, "{directory:?} has {} cases", names.len());
    assert!(complaints.is_empty(), "{complaints}");
}

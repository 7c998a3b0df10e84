//! Requests: the cases in `fixtures/request`, from a prompt file and its inputs to the bytes that are sent to a
//! provider.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tympan::chat::thread::{ThreadRoles, parse_thread};
use tympan::format::{NoReferences, prompty};
use tympan::spec::Secret;
use tympan::text::source::SourceFile;
use tympan::wire::{EncodeOptions, Function, WireRequest, encode, inline_media};
use tympan::{Inputs, Message, Prompt, RenderOptions, Result};

use crate::cases;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// The prompt file.
    prompt: String,
    #[serde(default)]
    inputs: Inputs,
    /// The messages, if they are not those of the prompt.
    messages: Option<Value>,
    #[serde(default)]
    options: Options,
    url: Option<String>,
    /// The redacted headers, if they matter.
    headers: Option<Map<String, Value>>,
    body: Option<Value>,
    /// The code of the expected error.
    error: Option<String>,
    /// The message of the expected error.
    says: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct Options {
    provider: Option<String>,
    model: Option<String>,
    api_type: Option<String>,
    base_url: Option<String>,
    api_key: Option<String>,
    stream: bool,
    functions: Vec<Given>,
}

#[derive(Deserialize)]
struct Given {
    name: String,
    description: Option<String>,
    parameters: Value,
    strict: bool,
}

impl Case {
    fn request(&self) -> Result<WireRequest> {
        self.request_of(Ok)
    }

    /// Builds the request after `pass` has transformed the messages.
    fn request_of(&self, pass: impl Fn(Vec<Message>) -> Result<Vec<Message>>) -> Result<WireRequest> {
        let source = SourceFile::new("case.prompty", self.prompt.as_str());
        let (document, findings) = prompty::parse(&source, &mut NoReferences);
        let document = document.unwrap_or_else(|| panic!("{}: {findings:?}", self.name));
        let prompt = Prompt::from_document(document.spec, source, document.body.start, findings);
        let messages = match &self.messages {
            Some(messages) => parse_thread(messages, ThreadRoles::Any)?,
            None => {
                let options = RenderOptions { entropy: Some(&|| Ok(7)), ..RenderOptions::default() };
                prompt.messages(prompt.render_with(&self.inputs, &options)?)?
            }
        };
        let given = self.options.functions.iter().map(|given| Function {
            name: given.name.clone(),
            description: given.description.clone(),
            parameters: given.parameters.clone(),
            strict: given.strict,
        });
        let functions: Vec<_> = given.collect();
        let key = self.options.api_key.as_deref().map(Secret::new);
        let options = EncodeOptions {
            provider: self.options.provider.as_deref(),
            model: self.options.model.as_deref(),
            api_type: self.options.api_type.as_deref(),
            base_url: self.options.base_url.as_deref(),
            connection: None,
            api_key: key.as_ref(),
            token: None,
            stream: self.options.stream,
            functions: &functions,
        };
        encode(&prompt, &pass(messages)?, &options)
    }

    fn difference(&self, request: &WireRequest) -> Option<String> {
        let body: Value = serde_json::from_str(&request.body).expect("a body is JSON");
        let headers: Map<_, _> =
            request.headers.iter().map(|header| (header.name.clone(), json!(header.value.redacted()))).collect();
        if request.method != "POST" || self.url.as_ref().is_some_and(|url| *url != request.url) {
            return Some(format!("{} {}", request.method, request.url));
        }
        if self.headers.as_ref().is_some_and(|expected| *expected != headers) {
            return Some(format!("headers {}", Value::Object(headers)));
        }
        let key = self.options.api_key.as_deref().filter(|key| format!("{request:?}").contains(key));
        if key.is_some() {
            return Some("the key is printed".to_owned());
        }
        (self.body.as_ref() != Some(&body)).then(|| format!("body {body}"))
    }
}

impl cases::Case for Case {
    fn title(&self) -> (&str, &str) {
        (&self.name, "")
    }

    fn complaint(&self) -> Option<String> {
        match (&self.error, self.request()) {
            (None, Ok(request)) => self.difference(&request),
            (Some(code), Err(error)) => {
                let says = self.says.as_deref().unwrap_or_default();
                let is_right = error.code() == code && error.message().contains(says);
                (!is_right).then(|| format!("failed: {error:?}"))
            }
            (_, Ok(request)) => Some(format!("made {}", request.body)),
            (_, Err(error)) => Some(format!("failed: {error:?}")),
        }
    }
}

#[test]
fn fixtures() {
    cases::run::<Case>("request", 60);
}

/// A case whose messages are converted to JSON and back, as in bindings for other languages.
#[derive(Deserialize)]
#[serde(transparent)]
struct Exported(Case);

impl Exported {
    fn pass(mut messages: Vec<Message>) -> Result<Vec<Message>> {
        inline_media(&mut messages)?;
        parse_thread(&json!(messages), ThreadRoles::Any)
    }

    /// Returns whether JSON loses information that the case needs. It lacks the origins that cache settings depend on.
    /// It also lacks the information that tool calls are only attributes of a marker, so such messages are rejected.
    fn is_otherwise(&self) -> bool {
        self.0.prompt.contains("cache:") || self.0.name == "attributes of a marker cannot stand in for anything"
    }
}

impl cases::Case for Exported {
    fn title(&self) -> (&str, &str) {
        self.0.title()
    }

    fn complaint(&self) -> Option<String> {
        let expected = self.0.request().ok().filter(|_| !self.is_otherwise())?;
        match self.0.request_of(Self::pass) {
            Ok(request) => (request.body != expected.body).then_some(request.body),
            Err(error) => Some(format!("failed: {error:?}")),
        }
    }
}

#[test]
fn messages_that_were_json_make_the_same_requests() {
    cases::run::<Exported>("request", 60);
}

//! Messages.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use serde_json::{Value as Json, json};
use tympan::chat::thread::{ThreadRoles, parse_thread};
use tympan::{Content, ContentPart, wire};

use crate::errors::{engine, invalid};
use crate::values::{from_python, map_to_python, to_python};

/// A message of a conversation.
#[pyclass(frozen, eq, module = "tympan")]
#[derive(PartialEq)]
pub(crate) struct Message(tympan::Message);

impl From<tympan::Message> for Message {
    fn from(message: tympan::Message) -> Self {
        Self(message)
    }
}

impl Message {
    pub(crate) fn to_json(&self) -> Json {
        json!(self.0)
    }
}

#[pymethods]
impl Message {
    /// Creates a message. The content is a text, or a list of texts and parts.
    #[new]
    #[pyo3(signature = (role, content, metadata = None))]
    fn new(role: &str, content: &Bound<'_, PyAny>, metadata: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let py = content.py();
        let metadata = metadata.map(from_python).transpose()?.unwrap_or_default();
        let thread = json!([{ "role": role, "content": from_python(content)?, "metadata": metadata }]);
        // A tool result is only valid in a thread that contains its call.
        if role == "tool" {
            return tool_message(py, thread);
        }
        let mut messages = engine(py, || parse_thread(&thread, ThreadRoles::Any))?;
        messages.pop().map(Self).ok_or_else(|| invalid(py, "expected a message"))
    }

    /// The role: `system`, `developer`, `user`, `assistant` or `tool`.
    #[getter]
    fn role(&self) -> &'static str {
        self.0.role.as_str()
    }

    /// The parts of the content.
    #[getter]
    fn content(&self) -> Vec<Part> {
        self.0.content.iter().cloned().map(Part).collect()
    }

    /// The joined text parts.
    #[getter]
    fn text(&self) -> String {
        self.0.to_text()
    }

    /// The attributes of the role marker, tool calls, and other metadata of the message.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.0.metadata.as_ref().map(|metadata| map_to_python(py, metadata)).transpose()
    }

    /// Returns the message as plain data: `role`, `content` as a list of parts, and `metadata` if there is any.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.to_json())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let content = to_python(py, &json!(self.0.content))?.repr()?;
        let metadata = match self.metadata(py)? {
            Some(metadata) => format!(", metadata={}", metadata.repr()?),
            None => String::new(),
        };
        Ok(format!("Message(role='{}', content={content}{metadata})", self.role()))
    }
}

/// Parses a tool result. It must follow a call, so a call is added before it and removed afterwards.
fn tool_message(py: Python<'_>, mut thread: Json) -> PyResult<Message> {
    let id = thread[0]["metadata"]["tool_call_id"].as_str().unwrap_or_default();
    let call = json!({ "role": "assistant", "metadata": { "tool_calls": [{ "id": id }] }, "content": "" });
    if let Json::Array(thread) = &mut thread {
        thread.insert(0, call);
    }
    let mut messages = engine(py, || parse_thread(&thread, ThreadRoles::Any))?;
    messages.pop().map(Message).ok_or_else(|| invalid(py, "expected a message"))
}

/// A part of a message's content.
#[pyclass(frozen, eq, module = "tympan")]
#[derive(PartialEq)]
pub(crate) struct Part(ContentPart);

impl Part {
    pub(crate) fn to_json(&self) -> Json {
        json!(self.0)
    }

    pub(crate) fn inner(&self) -> ContentPart {
        self.0.clone()
    }
}

#[pymethods]
impl Part {
    /// Creates a part: `text`, or an `image`, `audio` or `file` whose value is a URL, base64 text or bytes.
    #[new]
    #[pyo3(signature = (kind, value, media_type = None, detail = None, file_name = None))]
    fn new(
        kind: &str,
        value: &Bound<'_, PyAny>,
        media_type: Option<String>,
        detail: Option<String>,
        file_name: Option<String>,
    ) -> PyResult<Self> {
        let py = value.py();
        let Json::String(value) = from_python(value)? else {
            return Err(invalid(py, "value of a part: expected a string or bytes"));
        };
        let media = |value| tympan::chat::message::MediaPart { value, media_type, detail, file_name };
        Ok(Self(match kind {
            "text" => ContentPart::Text(tympan::chat::message::TextPart::new(value)),
            "image" => ContentPart::Image(media(value)),
            "audio" => ContentPart::Audio(media(value)),
            "file" => ContentPart::File(media(value)),
            _ => return Err(invalid(py, "kind of a part: expected text, image, audio or file")),
        }))
    }

    /// The kind of part: `text`, `image`, `audio` or `file`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    /// The text, a URL, or base64 data.
    #[getter]
    fn value(&self) -> &str {
        self.0.as_text().or_else(|| Some(self.0.as_media()?.value.as_str())).unwrap_or_default()
    }

    /// The MIME type of an image, audio or file.
    #[getter]
    fn media_type(&self) -> Option<&str> {
        self.0.as_media()?.media_type.as_deref()
    }

    /// The level of detail for an image: `auto`, `low` or `high`.
    #[getter]
    fn detail(&self) -> Option<&str> {
        self.0.as_media()?.detail.as_deref()
    }

    /// The name of a file.
    #[getter]
    fn file_name(&self) -> Option<&str> {
        self.0.as_media()?.file_name.as_deref()
    }

    /// Returns the part as plain data.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.to_json())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let value = self.value().into_pyobject(py)?;
        Ok(format!("Part(kind='{}', value={})", self.kind(), value.repr()?))
    }
}

/// Converts messages for Python. Images, audio and files become separate parts.
///
/// # Errors
/// Returns an error if an input does not match its declared kind.
pub(crate) fn to_list(mut messages: Vec<tympan::Message>) -> tympan::Result<Vec<Message>> {
    wire::inline_media(&mut messages)?;
    Ok(messages.into_iter().map(Message).collect())
}

/// Converts messages from Python: messages returned by `prepare`, or plain data of the same form.
pub(crate) fn from_list(messages: &Bound<'_, PyAny>) -> PyResult<Vec<tympan::Message>> {
    let py = messages.py();
    let is_list = messages.is_instance_of::<PyList>() || messages.is_instance_of::<PyTuple>();
    if !is_list {
        return Err(invalid(py, "messages: expected a list"));
    }
    let (mut all, mut are_ours) = (Vec::new(), true);
    for message in messages.try_iter()? {
        match message?.cast::<Message>() {
            Ok(message) => all.push(message.get().0.clone()),
            Err(_) => are_ours = false,
        }
    }
    if are_ours {
        return Ok(all);
    }
    let thread = from_python(messages)?;
    engine(py, || parse_thread(&thread, ThreadRoles::Any))
}

/// Returns the parts of a message, if that is what a tool returned.
pub(crate) fn parts(value: &Bound<'_, PyAny>) -> Option<Content> {
    if let Ok(part) = value.cast::<Part>() {
        return Some(Content::one(part.get().inner()));
    }
    let list = value.cast::<PyList>().ok().filter(|list| !list.is_empty())?;
    list.iter().map(|part| part.cast::<Part>().ok().map(|part| part.get().inner())).collect()
}

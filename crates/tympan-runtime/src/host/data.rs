//! Converts values other than options to and from plain data, for hosts in other languages. For options, see
//! [`config`](crate::host::config).
//!
//! ```
//! use serde_json::json;
//! use tympan_runtime::host::data;
//!
//! let response = data::response(json!({ "text": "Hello!", "usage": { "input_tokens": 3, "output_tokens": 2 } }))?;
//! assert_eq!(response.usage.map(|usage| usage.total_tokens), Some(5));
//! let unknown = data::response(json!({ "txet": "Hello!" })).expect_err("nobody knows that");
//! assert!(unknown.message().contains("txet"));
//! # Ok::<(), tympan_runtime::Error>(())
//! ```

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};
use tympan_core::spec::flow::ToolFlow;
use tympan_core::spec::{Connection, ConnectionKind, Secret, Tool as Declared};
use tympan_core::turn::{
    Approval, ArgumentOrigin, Label, LabeledRange, MessageLabel, PartLabel, Reason, ToolRun, ToolStatus, TurnEvent,
};
use tympan_core::wire::Function;
use tympan_core::wire::response::{Answer, Delta, FinishReason, Output, Response, ToolCall, Usage};
use tympan_core::{Error, Kind, Prompt, Result};

use crate::model::provider::{Deltas, Reply};
use crate::model::run::{Run, RunOptions};
use crate::model::token::AccessToken;
use crate::trace::{BackendStatus, ConsoleBackend, Tracer, TracyBackend};
use crate::turn::AgentEvent;

/// Converts an event of a turn to JSON. `type` is the name of the event.
pub fn event(event: &AgentEvent) -> Json {
    match event {
        AgentEvent::Token(text) => json!({ "type": "token", "text": text }),
        AgentEvent::Thinking(text) => json!({ "type": "thinking", "text": text }),
        AgentEvent::Turn(event) => turn_event(event),
    }
}

fn turn_event(event: &TurnEvent) -> Json {
    let mut shown = match event {
        TurnEvent::Status { message } | TurnEvent::Error { message } | TurnEvent::CompactionFailed { message } => {
            json!({ "message": message })
        }
        TurnEvent::ToolCallStart { name, arguments, label } => {
            json!({ "name": name, "arguments": arguments, "label": self::label(label) })
        }
        TurnEvent::Policy { name, ruling } => {
            let reasons: Vec<_> = ruling.reasons.iter().map(reason_data).collect();
            json!({ "name": name, "decision": ruling.decision, "reasons": reasons })
        }
        TurnEvent::ToolResult { name, result, label } => {
            let code = match &result.status {
                ToolStatus::Ok => None,
                ToolStatus::Error { code } => Some(code),
            };
            json!({ "name": name, "parts": result.parts, "error": code, "label": self::label(label) })
        }
        TurnEvent::MessagesUpdated { count } => json!({ "count": count }),
        TurnEvent::Done { response, count } => json!({ "response": response, "count": count }),
        TurnEvent::CompactionComplete { removed, remaining } => json!({ "removed": removed, "remaining": remaining }),
        _ => json!({}),
    };
    shown["type"] = event.name().into();
    shown
}

/// Converts a reason of the policy to JSON, with a `message` for people.
fn reason_data(reason: &Reason) -> Json {
    let mut shown = json!(reason);
    if !matches!(reason, Reason::Value { .. }) {
        shown["assumed"] = (shown["assumed"] == true).into();
    }
    shown["message"] = reason.to_string().into();
    shown
}

/// Converts a label to JSON.
pub fn label(label: &Label) -> Json {
    let Label { trusted, confidential, extracted, sources, untrusted_sources } = label;
    json!({
        "trusted": trusted,
        "confidential": confidential,
        "extracted": extracted,
        "sources": sources,
        "untrusted_sources": untrusted_sources,
    })
}

/// Converts the labels of messages to JSON: a list for each message, with the label of each part. The option `labels` of
/// [`turn_settings`](crate::host::config::turn_settings) accepts the result.
pub fn message_labels(labels: &[MessageLabel]) -> Json {
    let range = |range: &LabeledRange| json!({ "range": range.range, "label": label(&range.label) });
    let part = |part: &PartLabel| {
        let mut shown = label(&part.label);
        shown["generated"] = part.generated.into();
        shown["ranges"] = part.ranges.iter().map(range).collect();
        shown
    };
    labels.iter().map(|message| message.parts.iter().map(part).collect::<Json>()).collect()
}

/// Converts a tool call to JSON.
pub fn tool_run(run: &ToolRun) -> Json {
    let ToolRun { id, name, arguments, round, index, label, .. } = run;
    json!({
        "id": id,
        "name": name,
        "arguments": Json::Object((**arguments).clone()),
        "round": round,
        "index": index,
        "label": self::label(label),
    })
}

/// Converts a call that needs approval to JSON: the call itself, why it needs approval, what the model had read, and
/// where the arguments came from.
pub fn approval(approval: &Approval) -> Json {
    let Approval { run, effect, reasons, required_by_tool, context, arguments, .. } = approval;
    let mut shown = tool_run(run);
    shown["effect"] = json!(effect);
    shown["reasons"] = reasons.iter().map(reason_data).collect();
    shown["required_by_tool"] = (*required_by_tool).into();
    shown["context"] = label(context);
    shown["origins"] = arguments.iter().map(origin).collect();
    shown
}

fn origin(origin: &ArgumentOrigin) -> Json {
    let ArgumentOrigin { parameter, handle, source, trusted, quote, .. } = origin;
    json!({ "parameter": parameter, "handle": handle, "source": source, "trusted": trusted, "quote": quote })
}

/// Reads what a host or a server declares about a tool: `effect`, `trusted`, `confidential`, `hide` and `parameters`.
///
/// # Errors
/// Returns an error if the declaration has an unknown key or an invalid value.
pub fn tool_flow(flow: Json) -> Result<ToolFlow> {
    read("flow", flow)
}

/// Converts a step of a streamed response to JSON. `type` is the kind of step.
pub fn delta(delta: &Delta) -> Json {
    match delta {
        Delta::Text(text) => json!({ "type": "text", "text": text }),
        Delta::Thinking(text) => json!({ "type": "thinking", "text": text }),
        Delta::ToolCall { index, id, name } => json!({ "type": "tool_call", "index": index, "id": id, "name": name }),
        Delta::ToolArguments { index, fragment } => {
            json!({ "type": "tool_arguments", "index": index, "text": fragment })
        }
        Delta::Usage(usage) => json!({ "type": "usage", "usage": usage }),
        _ => json!({ "type": "unknown" }),
    }
}

/// Reads a step of a streamed response from a custom provider: text, or JSON as returned by [`delta`].
///
/// # Errors
/// Returns an error if the step is neither.
pub fn read_delta(step: Json) -> Result<Delta> {
    if let Json::String(text) = step {
        return Ok(Delta::Text(text));
    }
    Ok(match read("response step", step)? {
        DeltaData::Text { text } => Delta::Text(text),
        DeltaData::Thinking { text } => Delta::Thinking(text),
        DeltaData::ToolCall { index, id, name } => Delta::ToolCall { index, id, name },
        DeltaData::ToolArguments { index, text } => Delta::ToolArguments { index, fragment: text },
        DeltaData::Usage { usage } => Delta::Usage(with_total(usage)),
    })
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum DeltaData {
    Text { text: String },
    Thinking { text: String },
    ToolCall { index: usize, id: String, name: String },
    ToolArguments { index: usize, text: String },
    Usage { usage: Usage },
}

/// Fills in the total number of tokens, which custom providers often leave out.
fn with_total(mut usage: Usage) -> Usage {
    if usage.total_tokens == 0 {
        usage.total_tokens = usage.input_tokens + usage.output_tokens;
    }
    usage
}

/// Converts the options of a model call to JSON for a custom provider: those of `provider`, `model`, `api_type`,
/// `base_url` and `api_key` that are set, and the `functions` that the model may call in addition to those that the
/// prompt declares.
pub fn call_options(options: &RunOptions) -> Json {
    let RunOptions { provider, model, api_type, base_url, api_key, functions } = options;
    let functions = functions.iter().map(|function| {
        let Function { name, description, parameters, strict } = function;
        json!({ "name": name, "description": description, "parameters": parameters, "strict": strict })
    });
    let given = [
        ("provider", json!(provider)),
        ("model", json!(model)),
        ("api_type", json!(api_type)),
        ("base_url", json!(base_url)),
        ("api_key", json!(api_key.as_ref().map(Secret::expose))),
        ("functions", functions.collect()),
    ];
    let is_given = |value: &Json| !value.is_null() && value != &json!([]);
    given.into_iter().filter(|(_, value)| is_given(value)).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Converts the result of a model call to JSON.
pub fn run(run: &Run) -> Json {
    json!({
        "kind": run.outcome.kind(),
        "result": run.outcome.to_json(),
        "problems": run.outcome.problems(),
        "usage": run.usage,
        "model": run.model,
        "id": run.id,
        "finish_reason": run.finish_reason.as_ref().map(FinishReason::as_str),
    })
}

/// Reads the response of a custom provider: a string, or a map with `text`, `thinking`, `refusal`, `tool_calls`,
/// `embeddings` or `images`, and `model`, `id`, `finish_reason` and `usage`.
///
/// # Errors
/// Returns an error if the response is neither, or if the map has an unknown key or an invalid value.
pub fn response(answer: Json) -> Result<Response> {
    let data: ResponseData = match answer {
        Json::String(text) => ResponseData { text, ..ResponseData::default() },
        other => read("provider response", other)?,
    };
    let ResponseData { text, thinking, refusal, tool_calls, embeddings, images, model, id, finish_reason, usage } =
        data;
    let tool_calls = tool_calls.into_iter().map(CallData::into_call).collect();
    let output = match (embeddings, images) {
        (Some(vectors), _) => Output::Embeddings(vectors),
        (None, Some(images)) => Output::Images(images),
        (None, None) => Output::Answer(Answer { text, thinking, refusal, tool_calls, blocks: None }),
    };
    Ok(Response { id, model, output, finish_reason: finish_reason.map(reason), usage: usage.map(with_total) })
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ResponseData {
    text: String,
    thinking: String,
    refusal: Option<String>,
    tool_calls: Vec<CallData>,
    embeddings: Option<Vec<Vec<f64>>>,
    images: Option<Vec<String>>,
    model: Option<String>,
    id: Option<String>,
    finish_reason: Option<String>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallData {
    id: String,
    name: String,
    #[serde(default)]
    arguments: Json,
}

impl CallData {
    /// Converts the data to a tool call. The arguments are a map, or the text that a model wrote.
    fn into_call(self) -> ToolCall {
        let arguments = match self.arguments {
            Json::String(text) => text,
            Json::Null => "{}".to_owned(),
            map => map.to_string(),
        };
        ToolCall { id: self.id, name: self.name, arguments }
    }
}

fn reason(name: String) -> FinishReason {
    match name.as_str() {
        "stop" => FinishReason::Stop,
        "length" => FinishReason::Length,
        "tool_calls" => FinishReason::ToolCalls,
        "content_filter" => FinishReason::ContentFilter,
        _ => FinishReason::Other(name),
    }
}

/// Builds the reply of a custom provider that streams its response.
pub fn streamed(steps: BoxStream<'static, Result<Delta>>) -> Reply {
    // The stream is fused because callers may poll it again after the last step.
    Reply::Stream(Box::new(Steps { steps: steps.fuse().boxed(), sum: Response::default() }))
}

/// The steps of a streamed response, and the response accumulated so far.
struct Steps {
    steps: BoxStream<'static, Result<Delta>>,
    sum: Response,
}

impl Deltas for Steps {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Delta>>> {
        Box::pin(async move {
            let step = self.steps.next().await?;
            Some(step.and_then(|step| self.add(&step).map(|()| step)))
        })
    }

    fn finish(self: Box<Self>) -> Result<Response> {
        Ok(self.sum)
    }
}

impl Steps {
    fn add(&mut self, step: &Delta) -> Result<()> {
        if let Delta::Usage(usage) = step {
            self.sum.usage = Some(usage.clone());
            return Ok(());
        }
        let Output::Answer(answer) = &mut self.sum.output else { return Ok(()) };
        match step {
            Delta::Text(text) => answer.text.push_str(text),
            Delta::Thinking(text) => answer.thinking.push_str(text),
            Delta::ToolCall { index, id, name } if *index == answer.tool_calls.len() => {
                let (id, name) = (id.clone(), name.clone());
                answer.tool_calls.push(ToolCall { id, name, arguments: String::new() });
            }
            Delta::ToolArguments { index, fragment } if *index < answer.tool_calls.len() => {
                answer.tool_calls[*index].arguments.push_str(fragment);
            }
            _ => {
                return Err(Error::new(Kind::UnexpectedResponse, "tool call step out of order")
                    .with_help("start each call with `tool_call`, numbered from 0, and send its arguments next"));
            }
        }
        Ok(())
    }
}

/// Reads the value that a credential provider returned: a token, or a map with `token` and `expires_in`, in seconds.
///
/// # Errors
/// Returns an error if the value is neither. The error does not quote the value.
pub fn access_token(returned: Json) -> Result<AccessToken> {
    let wrong = |reason: &str| Error::new(Kind::CredentialFailed, format_args!("the credential provider: {reason}"));
    match returned {
        Json::String(token) => Ok(AccessToken::new(token)),
        Json::Object(mut fields) => {
            let Some(Json::String(token)) = fields.remove("token") else {
                return Err(wrong("expected `token` to be a string"));
            };
            let expires_in = match fields.remove("expires_in") {
                None | Some(Json::Null) => None,
                Some(value) => {
                    let seconds = value.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                    Some(seconds.ok_or_else(|| wrong("expected `expires_in` to be a number of seconds"))?)
                }
            };
            match fields.keys().next() {
                Some(_) => Err(wrong("expected no keys but `token` and `expires_in`")),
                None => Ok(AccessToken { token: Secret::new(token), expires_in }),
            }
        }
        _ => Err(wrong("expected a token, or a map with `token` and `expires_in`")),
    }
}

/// Reads a connection in the form that prompt files use: `kind`, `name`, `endpoint`, `apiKey`, and any other keys.
///
/// # Errors
/// Returns an error if the connection is not a map, or if one of the named keys is not a string.
pub fn connection(connection: Json) -> Result<Connection> {
    let Json::Object(mut fields) = connection else { return Err(misfit("connection", "expected a map")) };
    let mut text = |name: &str| match fields.remove(name) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(text)) => Ok(Some(text)),
        Some(_) => Err(misfit("connection", format_args!("`{name}`: expected a string"))),
    };
    let (kind, name, endpoint, api_key) = (text("kind")?, text("name")?, text("endpoint")?, text("apiKey")?);
    let kind = match kind {
        Some(kind) => ConnectionKind::from_name(&kind),
        None if api_key.is_some() => ConnectionKind::Key,
        None => ConnectionKind::Anonymous,
    };
    Ok(Connection { kind, name, endpoint, api_key: api_key.map(Secret::new), extra: fields.into() })
}

/// Converts a prompt's declaration of a tool to JSON, with credentials redacted.
pub fn tool(prompt: &Prompt, tool: &Declared) -> Json {
    let mut spec = prompt.spec().to_json_redacted();
    let tools = spec.get_mut("tools").and_then(Json::as_array_mut).map(std::mem::take).unwrap_or_default();
    tools.into_iter().find(|one| one["name"] == tool.name.as_str()).unwrap_or_default()
}

/// Reads a function that a custom tool handler built from a tool: `name`, `description`, `parameters` as JSON Schema,
/// and `strict`.
///
/// # Errors
/// Returns an error if the function has no name, an unknown key or an invalid value.
pub fn function(function: Json) -> Result<Function> {
    let FunctionData { name, description, parameters, strict } = read("function", function)?;
    let nothing = || json!({ "type": "object", "properties": {} });
    Ok(Function { name, description, parameters: parameters.unwrap_or_else(nothing), strict })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FunctionData {
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    parameters: Option<Json>,
    #[serde(default)]
    strict: bool,
}

/// Adds a built-in trace backend: `{"tracy": folder}`, `{"console": true}` (writes to standard error), or
/// `{"otel": {"endpoint": address}}`.
///
/// # Errors
/// Returns an error if there is no such backend, or if it cannot be started.
pub fn add_backend(tracer: &Tracer, name: &str, backend: Json) -> Result<()> {
    match read("trace backend", backend)? {
        BackendData::Tracy(folder) => tracer.add(name, TracyBackend::new(folder)),
        BackendData::Console(true) => tracer.add(name, ConsoleBackend::new(std::io::stderr())),
        BackendData::Console(false) => Err(misfit("trace backend", "`console`: expected true")),
        #[cfg(feature = "otel")]
        BackendData::Otel(otel) => tracer.add(name, crate::trace::OtelBackend::new(otel.into_options()?)),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum BackendData {
    Tracy(std::path::PathBuf),
    Console(bool),
    #[cfg(feature = "otel")]
    Otel(OtelData),
}

#[cfg(feature = "otel")]
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OtelData {
    endpoint: String,
    #[serde(default)]
    headers: std::collections::BTreeMap<String, String>,
    service_name: Option<String>,
    timeout: Option<f64>,
    #[serde(default)]
    content: bool,
}

#[cfg(feature = "otel")]
impl OtelData {
    fn into_options(self) -> Result<crate::trace::OtelOptions> {
        let mut options = crate::trace::OtelOptions::new(self.endpoint);
        options.headers = self.headers.into_iter().map(|(name, value)| (name, Secret::new(value))).collect();
        options.content = self.content;
        if let Some(service_name) = self.service_name {
            options.service_name = service_name;
        }
        if let Some(timeout) = self.timeout {
            options.timeout = std::time::Duration::try_from_secs_f64(timeout)
                .map_err(|_| misfit("trace backend", "`timeout`: expected a number of seconds"))?;
        }
        Ok(options)
    }
}

/// Converts the status of a trace backend to JSON.
pub fn backend_status(status: &BackendStatus) -> Json {
    let BackendStatus { name, dropped, failed, last_error } = status;
    json!({ "name": name, "dropped": dropped, "failed": failed, "last_error": last_error })
}

fn read<T: DeserializeOwned>(what: &str, data: Json) -> Result<T> {
    match data {
        Json::Object(_) => serde_json::from_value(data).map_err(|reason| misfit(what, without_value(&reason))),
        _ => Err(misfit(what, "expected a map")),
    }
}

/// Returns serde's message without the value that it quotes: only what was expected.
fn without_value(reason: &serde_json::Error) -> String {
    let reason = reason.to_string();
    match reason.rsplit_once(", expected ") {
        Some((found, expected)) if found.starts_with("invalid ") => format!("expected {expected}"),
        _ => reason,
    }
}

fn misfit(what: &str, reason: impl std::fmt::Display) -> Error {
    Error::new(Kind::InvalidInput, format_args!("{what}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_comes_back_as_it_went() {
        let usage = Usage { input_tokens: 1, output_tokens: 2, total_tokens: 3, ..Usage::default() };
        for step in [
            Delta::Text("a".into()),
            Delta::Thinking("b".into()),
            Delta::ToolCall { index: 0, id: "1".into(), name: "t".into() },
            Delta::ToolArguments { index: 0, fragment: "{".into() },
            Delta::Usage(usage),
        ] {
            assert_eq!(read_delta(delta(&step)).expect("it is a step"), step);
        }
        assert_eq!(read_delta("a".into()).expect("a text is text"), Delta::Text("a".into()));
    }

    #[test]
    fn what_does_not_fit_is_not_quoted() {
        let secret = "hunter2";
        for (error, complaint) in [
            (response(json!({ "text": [secret] })).expect_err("no text"), "expected a string"),
            (response(json!([secret])).expect_err("no map"), "expected a map"),
            (read_delta(json!({ "type": "text", "text": { "a": secret } })).expect_err("no text"), "a string"),
            (read_delta(json!({ "type": "word" })).expect_err("no such step"), "word"),
            (connection(json!({ "apiKey": [secret] })).expect_err("no key"), "`apiKey`: expected a string"),
            (function(json!({ "description": secret })).expect_err("no name"), "name"),
            (add_backend(&Tracer::default(), "t", json!({ "lathe": "x" })).expect_err("no backend"), "lathe"),
        ] {
            assert_eq!(error.kind(), Kind::InvalidInput);
            let message = error.message();
            assert!(message.contains(complaint) && !message.contains(secret), "{message}");
        }
    }

    #[test]
    fn only_what_was_given_is_told() {
        assert_eq!(call_options(&RunOptions::default()), json!({}));
        let function = function(json!({ "name": "f" })).expect("a function");
        let options = RunOptions { model: Some("m".into()), functions: vec![function], ..RunOptions::default() };
        let told = call_options(&options);
        assert_eq!((&told["model"], &told["functions"][0]["name"]), (&json!("m"), &json!("f")));
        assert_eq!(told.as_object().map(|told| told.len()), Some(2));
    }

    #[test]
    fn arguments_are_a_map_or_text() {
        let calls =
            json!([{ "id": "1", "name": "a", "arguments": { "x": 1 } }, { "id": "2", "name": "b", "arguments": "{}" }]);
        let response = response(json!({ "tool_calls": calls, "finish_reason": "tool_calls" })).expect("an answer");
        let Output::Answer(answer) = response.output else { panic!("no answer") };
        let arguments: Vec<_> = answer.tool_calls.iter().map(|call| call.arguments.as_str()).collect();
        assert_eq!(arguments, [r#"{"x":1}"#, "{}"]);
        assert_eq!(response.finish_reason, Some(FinishReason::ToolCalls));
    }

    #[test]
    fn a_connection_shows_no_credentials() {
        let made = connection(json!({ "endpoint": "https://a.example", "apiKey": "hunter2", "region": "x" }));
        let made = made.expect("a connection");
        assert_eq!(made.kind, ConnectionKind::Key);
        let shown = made.to_json_redacted();
        assert_eq!(shown["region"], "x");
        assert_eq!(shown["apiKey"], "[REDACTED]");
    }
}

//! A backend that sends spans to OpenTelemetry collectors, using OTLP over HTTP.

use std::collections::HashMap;
use std::time::Duration;

use opentelemetry::trace::{Event, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{Array, InstrumentationScope, KeyValue, StringValue, Value};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanExporter as _, SpanLinks};
use serde_json::Value as Json;
use tympan_core::spec::Secret;

use crate::net::{client, io};
use crate::trace::record::{self, SpanRecord};
use crate::trace::worker::{Backend, BackendError};

/// The maximum number of spans in one request.
const MAX_BATCH: usize = 512;

/// The options of [`OtelBackend`].
#[derive(Clone, Debug)]
pub struct OtelOptions {
    /// The collector's base URL, without a path: `http://localhost:4318`.
    pub endpoint: String,
    /// Headers of the requests, such as the collector's key.
    pub headers: Vec<(String, Secret)>,
    /// The name of the service in the spans.
    pub service_name: String,
    /// The time limit of a request.
    pub timeout: Duration,
    /// Whether to include the messages that models receive and return, as events.
    pub content: bool,
}

impl OtelOptions {
    /// Creates options for the collector at this base URL, without content.
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            headers: Vec::new(),
            service_name: "tympan".into(),
            timeout: Duration::from_secs(10),
            content: false,
        }
    }
}

/// Sends spans to a collector, whenever the queue is empty or a batch is full.
#[derive(Debug)]
pub struct OtelBackend {
    options: OtelOptions,
    scope: InstrumentationScope,
    batch: Vec<SpanData>,
    /// Created when it is first needed, on the backend's own thread: a blocking client cannot be created in async code.
    exporter: Option<SpanExporter>,
}

impl OtelBackend {
    /// Creates a backend with these options. It connects when there is something to send.
    pub fn new(options: OtelOptions) -> Self {
        let scope = InstrumentationScope::builder("tympan").with_version(env!("CARGO_PKG_VERSION")).build();
        Self { options, scope, batch: Vec::new(), exporter: None }
    }

    fn send(&mut self) -> Result<(), BackendError> {
        if self.batch.is_empty() {
            return Ok(());
        }
        // Spans that cannot be sent are lost, so that an unavailable collector does not exhaust memory.
        let batch = std::mem::take(&mut self.batch);
        let exporter = match &mut self.exporter {
            Some(exporter) => exporter,
            none => none.insert(exporter(&self.options)?),
        };
        Ok(io::wait(exporter.export(batch))?)
    }
}

impl Backend for OtelBackend {
    fn ended(&mut self, span: &SpanRecord) -> Result<(), BackendError> {
        self.batch.push(span_data(span, &self.scope, self.options.content));
        if self.batch.len() >= MAX_BATCH { self.send() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), BackendError> {
        self.send()
    }
}

fn exporter(options: &OtelOptions) -> Result<SpanExporter, BackendError> {
    let headers: HashMap<_, _> =
        options.headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect();
    let mut exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(http_client(options.timeout)?)
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(format!("{}/v1/traces", options.endpoint.trim_end_matches('/')))
        .with_timeout(options.timeout)
        .with_headers(headers)
        .build()?;
    exporter.set_resource(&Resource::builder_empty().with_service_name(options.service_name.clone()).build());
    Ok(exporter)
}

/// Creates an HTTP client that uses ring for cryptography. Without an explicit provider, rustls would panic at the
/// first `https` request.
fn http_client(timeout: Duration) -> Result<reqwest::blocking::Client, BackendError> {
    let tls = client::tls::config(None)?;
    // Following a redirect could send the collector's key to another host.
    let builder = reqwest::blocking::Client::builder().redirect(reqwest::redirect::Policy::none());
    Ok(builder.tls_backend_preconfigured(tls).timeout(timeout).build()?)
}

fn span_data(span: &SpanRecord, scope: &InstrumentationScope, content: bool) -> SpanData {
    let begun = &span.begun;
    let (trace_id, span_id) = (TraceId::from_bytes(begun.trace_id.0), SpanId::from_bytes(begun.span_id.0));
    let mut attributes: Vec<KeyValue> =
        span.attributes.iter().map(|(key, value)| KeyValue::new(key.clone(), to_value(value))).collect();
    attributes.extend(span.error.iter().map(|error| KeyValue::new("error.type", error.code.clone())));
    let mut events = SpanEvents::default();
    if content {
        events.events = content_events(span);
    }
    SpanData {
        span_context: SpanContext::new(trace_id, span_id, TraceFlags::SAMPLED, false, TraceState::default()),
        parent_span_id: begun.parent.map_or(SpanId::INVALID, |parent| SpanId::from_bytes(parent.0)),
        parent_span_is_remote: false,
        span_kind: match begun.kind {
            record::SpanKind::Internal => SpanKind::Internal,
            record::SpanKind::Client => SpanKind::Client,
        },
        name: begun.name.clone().into(),
        start_time: begun.start,
        end_time: span.end,
        attributes,
        dropped_attributes_count: 0,
        events,
        links: SpanLinks::default(),
        status: match &span.error {
            Some(error) => Status::error(error.message.clone()),
            None => Status::Unset,
        },
        instrumentation_scope: scope.clone(),
    }
}

/// Returns the messages that a model receives and returns. The spans of other stages would only repeat them.
fn content_events(span: &SpanRecord) -> Vec<Event> {
    if !span.attributes.contains_key("gen_ai.operation.name") {
        return Vec::new();
    }
    let event = |name: &'static str, field: &str, time| {
        let text = span.fields.get(field)?.to_string();
        Some(Event::new(name, time, vec![KeyValue::new(name, text)], 0))
    };
    let events = [
        event("gen_ai.input.messages", "inputs", span.begun.start),
        event("gen_ai.output.messages", "result", span.end),
    ];
    events.into_iter().flatten().collect()
}

/// Converts a value for telemetry. Values without an equivalent are converted to JSON text.
fn to_value(json: &Json) -> Value {
    match json {
        Json::Bool(bool) => Value::Bool(*bool),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => Value::I64(integer),
            None => Value::F64(number.as_f64().unwrap_or_default()),
        },
        Json::String(text) => Value::String(text.clone().into()),
        Json::Array(items) if items.iter().all(Json::is_string) => {
            let texts = items.iter().filter_map(Json::as_str).map(|text| StringValue::from(text.to_owned()));
            Value::Array(Array::String(texts.collect()))
        }
        other => Value::String(other.to_string().into()),
    }
}

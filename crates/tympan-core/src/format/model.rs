//! Parses the model of a prompt, its connection and its options.

use super::fields::{self, Fields, text, wrong};
use super::property::warn_misspelt;
use super::report::{LEGACY_KEY, Report};
use super::yaml::{Entry, Node, Value};
use crate::diagnostic::Diagnostic;
use crate::spec::{CacheMode, Connection, ConnectionKind, Model, ModelOptions, Secret};
use crate::text::source::Span;

/// The keys for the model's ID in older files.
const OLD_IDS: [&str; 6] = ["azure_deployment", "deployment_name", "deployment", "model", "model_id", "model_name"];
/// The keys for the endpoint in older files.
const OLD_ENDPOINTS: [&str; 4] = ["azure_endpoint", "base_url", "api_base", "endpoint"];
/// The keys for the API key in older files.
const OLD_KEYS: [&str; 3] = ["api_key", "key", "apiKey"];

/// A parsed `model`, along with the tools that older files declare in it.
#[derive(Default)]
pub(super) struct ModelReading<'s> {
    pub(super) model: Model,
    pub(super) tools: Option<Node<'s>>,
}

/// Reads `model`: a name, or a map.
pub(super) fn read_model<'s>(node: Node<'s>, report: &mut Report) -> Option<ModelReading<'s>> {
    let mut reading = ModelReading::default();
    if let Value::String(id) = node.value {
        reading.model.id = Some(id.into_owned());
        return Some(reading);
    }
    if !matches!(node.value, Value::Map(_)) {
        report.push(wrong(&node, "model", "a name or a map"));
        return None;
    }
    let mut fields = Fields::of(node, "model", report)?;
    let model = &mut reading.model;
    model.id = fields.string("id", report);
    model.provider = fields.string("provider", report);
    let api_type = fields.take_renamed("apiType", &["api", "api_type"], "model.", report);
    model.api_type =
        api_type.and_then(|entry| present(entry.value)).and_then(|node| fields::string(node, "apiType", report));
    for key in ["connection", "configuration"] {
        if let Some(entry) = fields.take(key) {
            read_model_connection(entry, model, report);
        }
    }
    if let Some(node) = fields.value("options") {
        read_options(node, false, &mut reading, report);
    }
    if let Some(entry) = fields.take("parameters") {
        report.renamed(entry.key_span, "model.parameters", "model.options");
        read_options(entry.value, true, &mut reading, report);
    }
    if let Some(entry) = fields.get("response") {
        report.moved(entry.key_span, "`model.response`", "remove it: the caller chooses the form of the response");
    }
    warn_misspelt(&fields, &["id", "provider", "apiType", "connection", "options"], report);
    reading.model.extra = fields.rest().into();
    Some(reading)
}

fn present(node: Node<'_>) -> Option<Node<'_>> {
    Some(node).filter(|node| node.value != Value::Null)
}

/// Reads a model's connection. Older files also name the model and its provider there.
fn read_model_connection(entry: Entry<'_>, model: &mut Model, report: &mut Report) {
    let old_key = entry.key == "configuration";
    let span = entry.key_span;
    let Some(Reading { connection, id, provider }) = read(entry.value, span, old_key, "model", report) else { return };
    model.id = model.id.take().or(id);
    model.provider = model.provider.take().or(provider);
    model.connection = model.connection.take().or(connection);
}

/// Reads a tool's connection.
pub(super) fn read_connection(entry: Entry<'_>, report: &mut Report) -> Option<Connection> {
    read(entry.value, entry.key_span, false, "tool", report)?.connection
}

/// A parsed connection in any of its forms.
#[derive(Default)]
struct Reading {
    connection: Option<Connection>,
    id: Option<String>,
    provider: Option<String>,
}

fn read(node: Node<'_>, span: Span, old_key: bool, owner: &str, report: &mut Report) -> Option<Reading> {
    if text(&node).is_some() {
        let quote = node.quote();
        report.moved(
            span,
            &format!("`{owner}.connection: {quote}`"),
            &format!("write `connection: {{kind: reference, name: {quote}}}`"),
        );
        let name = fields::string(node, "connection", report);
        let connection = Connection { name, ..empty(ConnectionKind::Reference) };
        return Some(Reading { connection: Some(connection), ..Reading::default() });
    }
    let mut fields = Fields::of(node, "connection", report)?;
    if !fields.has("kind") {
        return Some(read_kindless(fields, span, old_key, owner, report));
    }
    let kind = fields.string("kind", report).unwrap_or_default();
    let mut connection = empty(ConnectionKind::from_name(&kind));
    connection.name = fields.string("name", report);
    connection.endpoint = fields.string("endpoint", report);
    let key = fields.take_renamed("apiKey", &["api_key", "key"], "connection.", report);
    connection.api_key = key.and_then(|entry| present(entry.value)).and_then(|node| secret(node, report));
    warn_misspelt(&fields, &["kind", "name", "endpoint", "apiKey"], report);
    connection.extra = fields.rest().into();
    Some(Reading { connection: Some(connection), ..Reading::default() })
}

/// Reads a connection as older files write it: without a kind, and with the model's ID and provider in it.
fn read_kindless(mut fields: Fields<'_>, span: Span, old_key: bool, owner: &str, report: &mut Report) -> Reading {
    let old = old_key || fields.has("type") || fields.keys().any(|key| key.contains('_'));
    let mut new_spelling = Vec::new();
    let mut id = OLD_IDS.iter().find_map(|key| fields.value(key));
    if old && id.is_none() {
        // In an OpenAI configuration, `name` was the model's ID.
        id = fields.value("name");
    }
    new_spelling.extend(id.as_ref().map(|id| format!("id: {}", id.quote())));
    let id = id.and_then(|node| fields::string(node, "id", report));
    let provider = fields.string("type", report).map(|name| provider_name(&name).to_owned());
    // Show only our own provider names. Any other text may come from a reference, and so may be secret.
    let known = provider.as_deref().map(|name| if ["azure", "openai", "foundry"].contains(&name) { name } else { "…" });
    new_spelling.extend(known.map(|name| format!("provider: {name}")));

    let name = take_first(&mut fields, &["connection", "name"], report);
    let endpoint = take_first(&mut fields, &OLD_ENDPOINTS, report);
    let api_key = OLD_KEYS.iter().find_map(|key| fields.value(key)).and_then(|node| secret(node, report));
    let version = take_first(&mut fields, &["api_version", "apiVersion"], report);
    let kind = match (&name, &endpoint, &api_key) {
        (Some(_), None, None) => ConnectionKind::Reference,
        (_, Some(_), None) if !old => ConnectionKind::Anonymous,
        _ => ConnectionKind::Key,
    };
    let mut connection = Connection { name, endpoint, api_key, ..empty(kind) };
    connection.extra.extend(version.map(|version| ("apiVersion".to_owned(), version.into())));
    connection.extra.extend(fields.rest());
    let says_nothing = connection == empty(connection.kind.clone());
    if !says_nothing {
        new_spelling.push(format!("connection: {{{}}}", spelling(&connection)));
    }
    let help = format!("write `{owner}: {{{}}}`", new_spelling.join(", "));
    match (old_key, old) {
        (true, _) => report.moved(span, &format!("`{owner}.configuration`"), &help),
        (false, true) => report.moved(span, &format!("`{owner}.connection` without a kind"), &help),
        (false, false) => {
            report.push(Diagnostic::warning("missing_kind", span, "connection has no kind").with_help(help));
        }
    }
    Reading { connection: (!says_nothing).then_some(connection), id, provider }
}

fn take_first(fields: &mut Fields<'_>, keys: &[&str], report: &mut Report) -> Option<String> {
    keys.iter().find_map(|key| fields.string(key, report))
}

fn secret(node: Node<'_>, report: &mut Report) -> Option<Secret> {
    fields::string(node, "apiKey", report).map(Secret::new)
}

fn empty(kind: ConnectionKind) -> Connection {
    Connection { kind, name: None, endpoint: None, api_key: None, extra: Default::default() }
}

/// Converts the `type` of a configuration in an older file to the current name of the provider.
fn provider_name(old: &str) -> &str {
    match old {
        "azure_openai" | "azure_openai_beta" | "azure" => "azure",
        "openai_beta" | "openai" => "openai",
        "azure_serverless" | "serverless" | "azure_ai" => "foundry",
        other => other,
    }
}

/// Reads a model's options. The `old` form also contains provider-specific options.
fn read_options<'s>(node: Node<'s>, old: bool, reading: &mut ModelReading<'s>, report: &mut Report) {
    let Some(mut fields) = Fields::of(node, "options", report) else { return };
    for key in ["tools", "functions"] {
        if let Some(entry) = fields.take(key) {
            report.moved(entry.key_span, &format!("`{key}` at this level"), "write `tools` at the top level");
            reading.tools = reading.tools.take().or(Some(entry.value));
        }
    }
    let old_ids: Vec<_> = OLD_IDS.iter().filter_map(|key| fields.take(key)).collect();
    for entry in old_ids.into_iter().filter(|entry| entry.value.value != Value::Null) {
        report.moved(entry.key_span, &format!("`{}`", entry.key), "write `id` under `model`");
        if reading.model.id.is_none() {
            reading.model.id = fields::string(entry.value, "id", report);
        } else {
            // Do not send it to the provider, which does not know it.
            reading.model.options.extra.insert(entry.key.into_owned(), entry.value.into_json());
        }
    }
    let options = &mut reading.model.options;
    read_known_options(&mut fields, options, report);
    if let Some(node) = fields.value("additionalProperties") {
        options
            .additional_properties
            .extend(Fields::of(node, "additionalProperties", report).map(Fields::rest).unwrap_or_default());
    }
    if !old {
        warn_misspelt(&fields, &ModelOptions::KEYS, report);
        options.extra.extend(fields.rest());
        return;
    }
    let names: Vec<_> = fields.keys().map(str::to_owned).collect();
    if let Some(first) = names.first().and_then(|name| fields.get(name)) {
        let message = format!("provider-specific options: {}", names.join(", "));
        report.push(
            Diagnostic::warning(LEGACY_KEY, first.key_span, message)
                .with_help("move them to `model.options.additionalProperties`"),
        );
    }
    options.additional_properties.extend(fields.rest().into_iter().filter(|(_, value)| !value.is_null()));
}

fn read_known_options(fields: &mut Fields<'_>, options: &mut ModelOptions, report: &mut Report) {
    let mut deferred = Vec::new();
    let mut take = |key: &'static str, old: &[&str], report: &mut Report| {
        let node = fields.take_renamed(key, old, "options.", report).and_then(|entry| present(entry.value))?;
        if report.is_deferred(node.span) {
            deferred.push((key.to_owned(), node.into_json()));
            return None;
        }
        Some(node)
    };
    let keep = |found: Option<serde_json::Number>, option: &mut Option<_>| *option = option.take().or(found);
    let numbers: [(&'static str, &[&str], &mut Option<serde_json::Number>); 4] = [
        ("temperature", &[], &mut options.temperature),
        ("topP", &["top_p"], &mut options.top_p),
        ("frequencyPenalty", &["frequency_penalty"], &mut options.frequency_penalty),
        ("presencePenalty", &["presence_penalty"], &mut options.presence_penalty),
    ];
    for (key, old, option) in numbers {
        keep(take(key, old, report).and_then(|node| fields::number(&node, key, report)), option);
    }
    let integers: [(&'static str, &[&str], &mut Option<i64>); 3] = [
        (
            "maxOutputTokens",
            &["max_tokens", "max_completion_tokens", "max_output_tokens", "maxTokens"],
            &mut options.max_output_tokens,
        ),
        ("topK", &["top_k"], &mut options.top_k),
        ("seed", &[], &mut options.seed),
    ];
    for (key, old, option) in integers {
        let found = take(key, old, report).and_then(|node| fields::integer(&node, key, report));
        *option = option.take().or(found);
    }
    let stop = take("stopSequences", &["stop", "stop_sequences"], report);
    let stop = stop.and_then(|node| fields::strings(node, "stopSequences", report));
    options.stop_sequences = options.stop_sequences.take().or(stop);
    let several = take("allowMultipleToolCalls", &["parallel_tool_calls"], report);
    let several = several.and_then(|node| fields::boolean(&node, "allowMultipleToolCalls", report));
    options.allow_multiple_tool_calls = options.allow_multiple_tool_calls.or(several);
    let cache = take("cache", &[], report).and_then(|node| cache_mode(&node, report));
    options.cache = options.cache.or(cache);
    // A reference that is not resolved yet is not a number, so it is kept beside the options.
    options.extra.extend(deferred);
}

fn cache_mode(node: &Node<'_>, report: &mut Report) -> Option<CacheMode> {
    let found = [CacheMode::Auto, CacheMode::Off].into_iter().find(|mode| text(node) == Some(mode.as_str()));
    if found.is_none() {
        report.push(wrong(node, "cache", "`auto` or `off`"));
    }
    found
}

/// Formats a connection in the current syntax, without its values.
fn spelling(connection: &Connection) -> String {
    let mut parts = vec![format!("kind: {}", connection.kind.as_str())];
    parts.extend(connection.name.as_ref().map(|_| "name: …".to_owned()));
    parts.extend(connection.endpoint.as_ref().map(|_| "endpoint: …".to_owned()));
    parts.extend(connection.api_key.as_ref().map(|_| "apiKey: …".to_owned()));
    parts.extend(connection.extra.keys().map(|key| format!("{key}: …")));
    parts.join(", ")
}

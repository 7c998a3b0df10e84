//! Traces as trees of spans.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use serde_json::{Value, json};
use tympan_core::wire::catalog::Catalog;
use tympan_runtime::file::time::UtcTime;
use tympan_runtime::trace::spans::{span_model, span_usage};

use super::{blocking, path_of};
use crate::failure::{Answer, Failure};
use crate::project::FileKind;
use crate::server::App;

/// The maximum depth of a trace. No real program nests spans deeper.
const MAX_DEPTH: usize = 100;

/// Answers with the spans of a trace file.
pub(crate) async fn trace(State(app): State<Arc<App>>, uri: Uri) -> Answer<Json<Value>> {
    let path = path_of(&uri)?;
    blocking(move || {
        let (kind, text) = app.project.read(&path)?;
        let file = Some(text.text).filter(|_| kind == FileKind::Trace);
        let file: Value = file.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        if !file["trace"].is_object() {
            return Err(Failure::invalid("the file is not a trace").with_help("traces are `.tracy` files"));
        }
        let catalog = app.options.host.catalog();
        let root = Reader { catalog, start: start_of(&file["trace"]) }.span(&file["trace"], 0);
        let root = root.ok_or_else(|| Failure::invalid("the spans of the trace are nested too deeply"))?;
        Ok(Json(json!({"runtime": file["runtime"], "version": file["version"], "spans": [root]})))
    })
    .await
}

/// Returns when a span started, in milliseconds.
fn start_of(span: &Value) -> Option<f64> {
    let text = span["__time"]["start"].as_str()?;
    let since = UtcTime::parse(text)?.duration_since(UNIX_EPOCH).ok()?;
    // The parser leaves fractions of a second out.
    let fraction = text.split_once('.').map_or("", |(_, rest)| rest);
    let digits = fraction.find(|char: char| !char.is_ascii_digit()).map_or(fraction, |end| &fraction[..end]);
    let fraction = format!("0.{digits}0").parse::<f64>().unwrap_or_default();
    Some((since.as_secs_f64() + fraction) * 1000.0)
}

struct Reader {
    catalog: Catalog,
    /// When the first span started.
    start: Option<f64>,
}

impl Reader {
    /// Converts a span and those below it. Returns `None` if they are nested too deeply.
    fn span(&self, span: &Value, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        let below = span["__frames"].as_array().into_iter().flatten();
        let children = below.map(|child| self.span(child, depth + 1)).collect::<Option<Value>>()?;
        let usage = Some(span_usage(span)).filter(|usage| usage.input_tokens > 0 || usage.output_tokens > 0);
        let model = span_model(span);
        let cost = usage.as_ref().zip(model).and_then(|(usage, model)| self.catalog.cost(model, usage));
        let error = span["result"]["exception"].as_str().map(|class| match span["result"]["message"].as_str() {
            Some(message) => format!("{class}: {message}"),
            None => class.to_owned(),
        });
        Some(json!({
            "name": span["name"].as_str().unwrap_or("unnamed"),
            "kind": span["signature"],
            "start_ms": start_of(span).zip(self.start).map(|(start, first)| start - first),
            "duration_ms": span["__time"]["duration"].as_f64(),
            "error": error,
            "model": model,
            "tokens": usage.map(|usage| json!({"input": usage.input_tokens, "output": usage.output_tokens})),
            "cost": cost,
            "attributes": span["__attributes"],
            "inputs": span["inputs"],
            "result": span["result"],
            "children": children,
        }))
    }
}

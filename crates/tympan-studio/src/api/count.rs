//! Token counts, with prices.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use serde_json::{Value, json};
use tympan_core::wire::catalog::PRICES_DATE;
use tympan_core::{Guard, RenderOptions};
use tympan_eval::TokenCount;
use tympan_runtime::{LoadOptions, RunOptions, Runtime, RuntimeOptions};

use super::{RenderRequest, RequestOptions, blocking, checked, parse};
use crate::failure::Answer;
use crate::project::{Project, RelativePath};
use crate::server::App;

/// Answers with the tokens of a prompt, as `tympan count --json` prints them.
pub(crate) async fn count(State(app): State<Arc<App>>, body: Bytes) -> Answer<Json<Value>> {
    let request: RenderRequest = parse(&body)?;
    let path = checked(&request.path)?;
    blocking(move || {
        let text = text_of(&app.project, &path, request.text)?;
        // What only a call needs stays unresolved.
        let load = LoadOptions { defer_env: true, ..LoadOptions::default() };
        let prompt = app.project.load(&path, text, &load)?;
        let runtime = Runtime::new(runtime_options(&request.options));
        let options = RenderOptions { variant: request.options.variant.as_deref(), ..runtime.render_options() };
        let rendered = runtime.render_with(&prompt, &request.inputs, &options)?;
        let run = RunOptions { model: request.options.model, ..RunOptions::default() };
        let model = run.select_model(&prompt).model;
        let count = TokenCount::of(&prompt, &rendered, model.unwrap_or_default())?;
        let data = app.options.host.catalog().get(model.unwrap_or_default());
        Ok(Json(json!({
            "file": path.as_str(),
            "variant": rendered.variant(),
            "models": [count.to_json_for(model, &data)],
            "prices_date": PRICES_DATE,
        })))
    })
    .await
}

/// Returns the text of a prompt: that in the editor, or else that of the file.
///
/// # Errors
/// Returns an error if the file cannot be read.
pub(super) fn text_of(project: &Project, path: &RelativePath, text: Option<String>) -> Answer<String> {
    match text {
        Some(text) => Ok(text),
        None => Ok(project.read(path)?.1.text),
    }
}

/// Returns the options of a runtime for a request.
pub(super) fn runtime_options(options: &RequestOptions) -> RuntimeOptions {
    RuntimeOptions {
        guard: options.guard.then(Guard::default),
        lenient: options.lenient,
        strict: options.strict,
        seed: options.seed,
        ..RuntimeOptions::default()
    }
}

//! Files: lists, texts, and changes.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use serde::Deserialize;
use serde_json::{Value, json};
use tympan_core::format::{Format, test_file};
use tympan_core::spec::test_suite::TestSuite;
use tympan_core::text::hash::sha256_hex;
use tympan_core::text::source::SourceFile;
use tympan_core::wire::compatible::PROVIDERS;
use tympan_core::wire::echo::ECHO;

use super::{blocking, checked, parse, path_of};
use crate::failure::{Answer, Failure};
use crate::host::Host;
use crate::project::{Base, FileKind, Project, RelativePath, WriteError};
use crate::server::App;

/// Answers with the files of the project, and with what the page offers.
pub(crate) async fn project(State(app): State<Arc<App>>) -> Answer<Json<Value>> {
    blocking(move || {
        let (files, has_more) = app.project.list();
        let files = files.iter().map(|file| {
            json!({"path": file.path.as_str(), "kind": file.kind.as_str(), "size": file.size, "hash": file.hash})
        });
        Ok(Json(json!({
            "root_name": app.project.name(),
            "read_only": app.options.read_only,
            "version": env!("CARGO_PKG_VERSION"),
            "files": files.collect::<Value>(),
            "has_more_files": has_more,
            "providers": providers(&*app.options.host),
            "models": models(&*app.options.host),
        })))
    })
    .await
}

/// Lists the providers, and whether there is a key for each of them. The key itself stays here.
fn providers(host: &dyn Host) -> Value {
    let rows = PROVIDERS.iter().map(|row| {
        let has_key = row.is_local || row.key_variables.iter().any(|name| host.has_variable(name));
        json!({"name": row.name, "has_key": has_key})
    });
    std::iter::once(json!({"name": ECHO, "has_key": true})).chain(rows).collect()
}

fn models(host: &dyn Host) -> Value {
    let catalog = host.catalog();
    let rows = catalog.models().map(|name| {
        let data = catalog.get(name);
        json!({
            "id": name,
            "context_window": data.context,
            "input_price": data.price.map(|price| price.input),
            "output_price": data.price.map(|price| price.output),
        })
    });
    rows.collect()
}

/// Answers with the text of a file, and with those of the files that it refers to.
pub(crate) async fn read(State(app): State<Arc<App>>, uri: Uri) -> Answer<Json<Value>> {
    let path = path_of(&uri)?;
    blocking(move || {
        let (kind, text) = app.project.read(&path)?;
        let files = app.project.referenced(&path, &text.text);
        Ok(Json(json!({
            "path": path.as_str(),
            "kind": kind.as_str(),
            "text": text.text,
            "hash": text.hash,
            "files": files,
        })))
    })
    .await
}

/// A change of a file.
#[derive(Deserialize)]
struct WriteRequest {
    path: String,
    text: String,
    /// The hash of the text that the change is based on. For a new file, null.
    base_hash: Option<String>,
}

/// Writes a file, if it was not changed by somebody else.
pub(crate) async fn write(State(app): State<Arc<App>>, body: Bytes) -> Answer<Json<Value>> {
    if app.options.read_only {
        return Err(Failure::forbidden("the studio was started with `--read-only`"));
    }
    let request: WriteRequest = parse(&body)?;
    let path = checked(&request.path)?;
    blocking(move || {
        let base = request.base_hash.as_deref().map_or(Base::New, Base::Hash);
        // The change may be seen before this request is answered.
        app.changes.expect(&path, &sha256_hex(&request.text));
        let written = app.project.write(&path, &request.text, base);
        let hash = written.inspect_err(|_| app.changes.forget(&path)).map_err(not_written)?;
        Ok(Json(json!({"hash": hash})))
    })
    .await
}

fn not_written(error: WriteError) -> Failure {
    match error {
        WriteError::Io(error) => error.into(),
        WriteError::Kind => Failure::forbidden("only prompts, tests and cassettes are written")
            .with_help("the file, or its new text, is none of them"),
        WriteError::Changed(now) => {
            let failure = Failure::new(StatusCode::CONFLICT, "changed", "the file has changed in the meantime");
            let (text, hash) = now.map_or((Value::Null, Value::Null), |now| (now.text.into(), now.hash.into()));
            failure.with("text", text).with("hash", hash)
        }
    }
}

/// The maximum number of samples.
const MAX_SAMPLES: usize = 500;

/// Answers with the inputs of the tests of a prompt.
pub(crate) async fn samples(State(app): State<Arc<App>>, uri: Uri) -> Answer<Json<Value>> {
    let path = path_of(&uri)?;
    blocking(move || {
        let (_, text) = app.project.read(&path)?;
        Ok(Json(json!({"samples": samples_of(&app.project, &path, &text.text)})))
    })
    .await
}

/// Returns the inputs of the tests of a prompt: those in its file, and those of test files.
pub(crate) fn samples_of(project: &Project, path: &RelativePath, text: &str) -> Vec<Value> {
    let source = SourceFile::new(path.as_str(), text);
    let format = Format::from_name(path.name()).unwrap_or(Format::Prompty);
    let mut found = Vec::new();
    if let Some((Some(suite), _)) = test_file::parse_embedded(&source, format) {
        add_samples(&suite, path, &mut found);
    }
    for test in tests_of(project, path) {
        let Ok((_, text)) = project.read(&test) else { continue };
        let Some(Format::Tests(syntax)) = Format::from_name(test.name()) else { continue };
        let (Some(suite), _) = test_file::parse(&SourceFile::new(test.as_str(), text.text), syntax) else { continue };
        let is_about = match &suite.prompt {
            Some(prompt) => test.resolve(prompt).as_ref() == Some(path),
            None => test_file::default_prompts(test.name()).any(|name| test.resolve(&name).as_ref() == Some(path)),
        };
        if is_about {
            add_samples(&suite, &test, &mut found);
        }
    }
    found
}

/// Returns the test files of the project.
fn tests_of(project: &Project, prompt: &RelativePath) -> BTreeSet<RelativePath> {
    let files = project.list().0.into_iter().filter(|file| file.kind == FileKind::Test);
    files.map(|file| file.path).filter(|path| path != prompt).collect()
}

/// Adds the inputs of cases. Those of rows and combinations are only known when the tests run.
fn add_samples(suite: &TestSuite, path: &RelativePath, found: &mut Vec<Value>) {
    for (index, case) in suite.cases.iter().enumerate() {
        if found.len() < MAX_SAMPLES && case.rows.is_none() && case.matrix.is_none() {
            let name = case.name.clone().unwrap_or_else(|| format!("case {}", index + 1));
            let settings = suite.defaults.overridden(&case.settings);
            found.push(json!({"name": name, "source": path.as_str(), "inputs": settings.inputs}));
        }
    }
}

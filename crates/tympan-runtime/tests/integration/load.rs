//! Every prompt file in `fixtures/load`, with its prompt or its errors.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::json;
use tympan_core::Error;
use tympan_core::diagnostic::Diagnostic;
use tympan_core::format::{NoReferences, prompty};
use tympan_core::spec::Tool;
use tympan_core::text::source::SourceFile;
use tympan_runtime::{EnvPolicy, LoadOptions, load_document};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/load")
}

/// Returns the only environment that fixtures can access.
fn options() -> LoadOptions {
    let vars = [
        ("TEST_REGION", "north"),
        ("TEST_EMPTY", ""),
        ("TEST_SECRET", "s3cr3t"),
        ("TEST_USER", "user-7"),
        ("TEST_ENDPOINT", "https://azure.example.com"),
        ("TEST_TEMPERATURE", "0.7"),
        ("TEST_REFERENCE", "${env:TEST_SECRET} ${file:data/notes.txt}"),
        ("HOME", "/home/someone"),
    ];
    let vars: HashMap<_, _> = vars.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    LoadOptions { env: EnvPolicy::allow(["TEST_*"]), env_vars: Some(vars), ..LoadOptions::default() }
}

fn describe(path: &Path) -> String {
    let mut text = String::new();
    match load_document(path, &options()) {
        Ok((source, document, diagnostics)) => {
            assert_eq!(source.slice(document.body), document.spec.instructions, "the body's place is exact");
            text.push_str(&serde_json::to_string_pretty(&document.spec.to_json()).expect("it is JSON"));
            text.push('\n');
            diagnostics.iter().for_each(|diagnostic| describe_diagnostic(&mut text, diagnostic, &source));
        }
        Err(error) => describe_error(&mut text, &error),
    }
    text
}

fn describe_error(text: &mut String, error: &Error) {
    let place = error.line_column().map(|place| format!(" {}:{}", place.line, place.column)).unwrap_or_default();
    let message = error.message().replace(&format!("{}/", fixtures().display()), "");
    writeln!(text, "{} {}{place}\n  {message}", error.class().as_str(), error.code()).expect("it writes");
    if let Some(help) = error.help() {
        writeln!(text, "  help: {help}").expect("it writes");
    }
    if let Some(source) = error.source_file() {
        error.others().iter().for_each(|other| describe_diagnostic(text, other, source));
    }
}

fn describe_diagnostic(text: &mut String, diagnostic: &Diagnostic, source: &SourceFile) {
    let place = source.line_column(diagnostic.span.expect("every finding has a place").start);
    let Diagnostic { code, severity, message, help, fix, .. } = diagnostic;
    writeln!(text, "{} {code} {}:{}\n  {message}", severity.as_str(), place.line, place.column).expect("it writes");
    for (name, value) in [("help", help), ("fix", fix)] {
        if let Some(value) = value {
            writeln!(text, "  {name}: {value}").expect("it writes");
        }
    }
}

/// Returns the paths of the prompt files.
fn paths() -> Vec<PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(fixtures())
        .expect("the fixtures are there")
        .map(|entry| entry.expect("the directory can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "prompty"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 60, "the fixtures were found");
    paths
}

#[test]
fn fixtures_load_as_their_snapshots_say() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(fixtures().join("snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for path in paths() {
            let name = path.file_stem().expect("it has a name").to_string_lossy().into_owned();
            insta::assert_snapshot!(name, describe(&path));
        }
    });
}

#[test]
fn bindings_are_read_back_from_json() {
    let bindings = |tools: &[Tool]| -> Vec<_> { tools.iter().map(|tool| tool.bindings.clone()).collect() };
    let mut count = 0;
    for path in paths() {
        let Ok((_, document, _)) = load_document(&path, &options()) else { continue };
        let written = bindings(&document.spec.tools);
        if written.iter().all(Vec::is_empty) {
            continue;
        }
        count += 1;
        let json = document.spec.to_json();
        let front_matter = json!({ "inputs": json["inputs"], "tools": json["tools"] });
        let source = SourceFile::new("again.prompty", format!("---\n{front_matter}\n---\n"));
        let (again, findings) = prompty::parse(&source, &mut NoReferences);
        let again = again.unwrap_or_else(|| panic!("{}: {findings:?}", path.display()));
        assert!(bindings(&again.spec.tools) == written, "{}: {front_matter}", path.display());
    }
    assert!(count >= 3, "the fixtures have bindings");
}

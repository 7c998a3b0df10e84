//! Completion in front matter, definitions and test files: keys, values and files.

use std::fs;
use std::path::Path;

use gen_lsp_types::CompletionItemKind;
use tympan_core::format::definition::Syntax;
use tympan_core::format::{Format, frontmatter};
use tympan_core::text::source::Span;
use tympan_lint::Options;

use crate::completion::{Suggestion, Suggestions};
use crate::document::Document;
use crate::keys::{self, Values};
use crate::server::Server;
use crate::suite::{self, completion::Place};
use crate::toml_cursor;
use crate::view::View;
use crate::workspace::WorkspaceFiles;
use crate::yaml_cursor::{YamlCursor, cursor};

/// The maximum number of files that are suggested.
const MAX_FILES: usize = 200;

/// Returns the suggestions at an offset that is in front matter or in a YAML definition.
pub(crate) fn suggestions(
    server: &Server<'_>,
    document: &Document,
    view: Option<&View<'_>>,
    offset: usize,
) -> Option<Suggestions> {
    let whole = Span::new(0, document.text().len());
    let (yaml, syntax, is_definition) = match document.format() {
        Format::Prompty => (front_matter(document.text(), offset)?, Syntax::Yaml, false),
        Format::Definition(syntax) => (whole, syntax, true),
        Format::Tests(syntax) => (whole, syntax, false),
        _ => return None,
    };
    let before = document.text().get(yaml.start..offset)?;
    let found = if syntax == Syntax::Toml { toml_cursor::cursor(before)? } else { cursor(before)? };
    let word = Span::new(yaml.start + found.word, offset);
    let text = document.source().slice(word);
    if let Some(path) = text.strip_prefix("${file:") {
        let start = word.start + "${file:".len() + path.rfind('/').map_or(0, |at| at + 1);
        return Some((files(&server.files(document), path), Span::new(start, offset)));
    }
    let path: Vec<_> = found.path.iter().map(String::as_str).collect();
    if let Some(path) = path_in_tests(document, &path) {
        let tested = if document.is_test_file() { suite::tested_prompt(server, document) } else { None };
        let tested = tested.as_deref().and_then(|prompt| View::new(prompt, server.analysis(prompt)));
        let place = Place { server, document, prompt: tested.as_ref().or(view), cursor: &found, syntax, word };
        return Some(suite::completion::suggestions(&place, &path));
    }
    if syntax != Syntax::Yaml {
        return None;
    }
    let suggestions = if found.is_value {
        values(&server.analysis(document).options, view, &path, is_definition)
    } else {
        keys_at(document, &found, &path, yaml, is_definition)
    };
    Some((suggestions, word))
}

/// Returns the path as it is in a test file, if it is in tests.
fn path_in_tests<'p>(document: &Document, path: &[&'p str]) -> Option<Vec<&'p str>> {
    if document.is_test_file() { Some(path.to_vec()) } else { suite::completion::path_in_tests(path) }
}

/// Returns the span of the front matter, if it contains an offset. It may not be closed yet.
fn front_matter(text: &str, offset: usize) -> Option<Span> {
    match frontmatter::split(text) {
        Ok(split) => split.front_matter.filter(|span| (span.start..=span.end).contains(&offset)),
        Err(_) => {
            let start = text.find('\n')? + 1;
            (offset >= start).then(|| Span::new(start, text.len()))
        }
    }
}

fn keys_at(
    document: &Document,
    cursor: &YamlCursor,
    path: &[&str],
    yaml: Span,
    is_definition: bool,
) -> Vec<Suggestion> {
    // The rest of the line would become the value of the key.
    let after = &document.text()[yaml.start + cursor.word..];
    let has_colon =
        after.lines().next().is_some_and(|line| line.split([',', '}']).next().unwrap_or_default().contains(':'));
    let suggestion = |key: &keys::Key| {
        let mut suggestion = Suggestion::new(key.name, CompletionItemKind::Property).with_about(key.about);
        suggestion.insert = Some(if has_colon { key.name.to_owned() } else { format!("{}: ", key.name) });
        suggestion
    };
    keys::keys(path, is_definition).iter().map(suggestion).collect()
}

fn values(options: &Options, view: Option<&View<'_>>, path: &[&str], is_definition: bool) -> Vec<Suggestion> {
    let is_short_binding = matches!(path, ["tools", _, "bindings", _]);
    let listed = match keys::find(path, is_definition) {
        Some(key) => key.values,
        None if is_short_binding => Values::Input,
        None => Values::Any,
    };
    match listed {
        Values::Model => {
            let models = options.catalog.models();
            models.map(|model| Suggestion::new(model, CompletionItemKind::Value)).collect()
        }
        Values::Input => {
            let inputs = view.map(|view| view.inputs()).unwrap_or_default().iter();
            inputs.map(|input| Suggestion::new(&input.name, CompletionItemKind::Variable)).collect()
        }
        other => {
            let values = keys::values(other).into_iter();
            values.map(|value| Suggestion::new(value, CompletionItemKind::EnumMember)).collect()
        }
    }
}

/// Returns the files and folders of the workspace that a path can lead to.
pub(crate) fn files(files: &WorkspaceFiles<'_>, path: &str) -> Vec<Suggestion> {
    let parent = path.rfind('/').map_or("", |at| &path[..=at]);
    let Some(folder) = files.folder(Path::new(parent)) else { return Vec::new() };
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok().filter(|name| !name.starts_with('.'))?;
            let is_folder = entry.file_type().ok()?.is_dir();
            Some((!is_folder, name))
        })
        .collect();
    found.sort();
    found.truncate(MAX_FILES);
    let suggestion = |(is_file, name): (bool, String)| match is_file {
        true => Suggestion::new(name, CompletionItemKind::File),
        false => Suggestion::new(format!("{name}/"), CompletionItemKind::Folder),
    };
    found.into_iter().map(suggestion).collect()
}

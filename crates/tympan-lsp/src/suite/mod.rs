//! Test files, and the tests in prompt files: where the names in them are, and the prompt that they test.

pub(crate) mod completion;
pub(crate) mod features;
pub(crate) mod outline;
mod place;
mod schema;

use std::borrow::Cow;

use tympan_core::format::outline::{Field, Outline};
use tympan_core::format::{Resolve, test_file};
use tympan_core::text::source::Span;
use tympan_lint::table_columns;

use crate::document::{Document, DocumentRef};
use crate::keys::ITEM;
use crate::server::Server;
use crate::suite::place::Target;
use crate::template::touches;
use crate::view::Sites;

/// The maximum number of test files beside a prompt that are read.
const MAX_TEST_FILES: usize = 200;

/// The key of a prompt file that contains tests.
pub(crate) const TESTS: &str = "tests";

const CASES: &str = "cases";

/// The tests in a document, as they are written.
#[derive(Clone, Copy)]
pub(crate) struct Suite<'o> {
    pub(crate) document: &'o Document,
    root: Field<'o>,
}

/// A text in a suite that is a name or a path, and the span of its value or key.
struct Reference<'o> {
    target: Target<'o>,
    text: &'o str,
    span: Span,
}

impl<'o> Suite<'o> {
    /// Returns the tests of a test file, or those in a prompt file. `outline` is the outline of the document.
    pub(crate) fn new(document: &'o Document, outline: &'o Outline<'_>) -> Option<Self> {
        let path: &[&str] = if document.is_test_file() { &[] } else { &[TESTS] };
        Some(Self { document, root: outline.get(path)? })
    }

    /// Returns the cases.
    pub(crate) fn cases(self) -> impl Iterator<Item = Field<'o>> {
        self.root.get(CASES).unwrap_or(self.root).items()
    }

    /// Returns the path of the prompt that the suite names.
    fn prompt(self) -> Option<&'o str> {
        self.root.get("prompt")?.text()
    }

    /// Returns where the names of inputs are written.
    pub(crate) fn input_names(self) -> Vec<(&'o str, Span)> {
        let references = self.references().into_iter();
        let names = references.filter(|found| match found.target {
            Target::Input => true,
            Target::InputOrAll => found.text != "all",
            _ => false,
        });
        names.filter_map(|found| Some((found.text, self.document.exact(found.span, found.text)?))).collect()
    }

    /// Returns the name of the input at an offset.
    pub(crate) fn input_at(self, offset: usize) -> Option<(&'o str, Span)> {
        self.input_names().into_iter().find(|(_, span)| touches(*span, offset))
    }

    /// Returns the path of the file at an offset.
    fn file_at(self, offset: usize) -> Option<&'o str> {
        let mut references = self.references().into_iter();
        let found = references.find(|found| found.target == Target::File && touches(found.span, offset))?;
        Some(found.text)
    }

    /// Returns the key at an offset, and the path to it.
    pub(crate) fn key_at(self, offset: usize) -> Option<(Vec<&'o str>, Span)> {
        let mut found = None;
        self.visit(&mut |path, field| {
            if field.key.is_some() && touches(field.key_span, offset) {
                found = found.take().or_else(|| Some((path.to_vec(), field.key_span)));
            }
        });
        found
    }

    fn references(self) -> Vec<Reference<'o>> {
        let mut found = Vec::new();
        self.visit(&mut |path, field| {
            if let (Some(key), Some((_, parent))) = (field.key, path.split_last())
                && let Some(target) = place::of_keys(parent)
            {
                found.push(Reference { target, text: key, span: field.key_span });
            }
            if let (Some(text), Some(target)) = (field.text(), place::of_value(path)) {
                found.push(Reference { target, text, span: field.span });
            }
        });
        found
    }

    /// Visits all values with their paths. A list of cases has the path that it would have in a test file.
    fn visit(self, visitor: &mut dyn FnMut(&[&'o str], Field<'o>)) {
        let is_list = self.root.items().next().is_some();
        let mut path = if is_list { vec![CASES] } else { Vec::new() };
        visit(self.root, &mut path, visitor);
    }
}

fn visit<'o>(field: Field<'o>, path: &mut Vec<&'o str>, visitor: &mut dyn FnMut(&[&'o str], Field<'o>)) {
    for part in field.entries().chain(field.items()) {
        path.push(part.key.unwrap_or(ITEM));
        visitor(path, part);
        visit(part, path, visitor);
        path.pop();
    }
}

/// Returns the prompt that a test file tests, if it exists. The test file may have mistakes.
pub(crate) fn tested_prompt<'s>(server: &'s Server<'_>, document: &Document) -> Option<DocumentRef<'s>> {
    let outline = Outline::new(document.source(), document.format());
    let named = match Suite::new(document, &outline) {
        Some(suite) => suite.prompt(),
        None => named_prompt(document),
    };
    match named {
        Some(path) => server.document_at(document, path),
        None => {
            test_file::default_prompts(document.source().name()).find_map(|path| server.document_at(document, &path))
        }
    }
}

/// Finds the path of the prompt in a test file that cannot be parsed.
fn named_prompt(document: &Document) -> Option<&str> {
    document.text().lines().find_map(|line| {
        let line = line.trim_start_matches([' ', '{', '"']);
        let rest = line.strip_prefix("prompt")?.trim_start_matches('"').trim_start();
        let value = rest.strip_prefix([':', '='])?.trim().trim_end_matches(',');
        Some(value.trim_matches(['"', '\'']))
    })
}

/// Returns the test files of a prompt: those beside it, and those that are open.
pub(crate) fn test_files_of<'s>(server: &'s Server<'_>, prompt: &Document) -> Vec<DocumentRef<'s>> {
    let Some(path) = &prompt.path else { return Vec::new() };
    let files = server.files(prompt);
    let beside = files.names_beside().into_iter().filter(|name| test_file::syntax_of_name(name).is_some());
    let mut found: Vec<DocumentRef<'s>> =
        beside.take(MAX_TEST_FILES).filter_map(|name| server.document_at(prompt, &name)).collect();
    for open in server.documents().filter(|document| document.is_test_file()) {
        if !found.iter().any(|known| known.uri == open.uri) {
            found.push(DocumentRef::Open(open));
        }
    }
    found.retain(|document| tested_prompt(server, document).is_some_and(|tested| tested.path.as_ref() == Some(path)));
    found.sort_by(|a, b| a.uri.cmp(&b.uri));
    found
}

/// Returns where a test file contains the name of an input.
pub(crate) fn sites(server: &Server<'_>, document: &Document, name: &str) -> Sites {
    let outline = Outline::new(document.source(), document.format());
    let suite = Suite::new(document, &outline);
    let names = suite.into_iter().flat_map(Suite::input_names).filter(|(other, _)| *other == name);
    let uses = names.map(|(_, span)| span).collect();
    let gap = match suite {
        Some(suite) => gap(server, suite, name),
        None => document.text().contains(name).then(|| format!("`{}` has mistakes", file_name(document))),
    };
    Sites { declarations: Vec::new(), uses, gap: gap.map(Cow::Owned) }
}

fn file_name(document: &Document) -> &str {
    document.source().name().rsplit(['/', '\\']).next().unwrap_or_default()
}

/// Returns why not all places are known where tests contain the name of an input.
pub(crate) fn gap(server: &Server<'_>, suite: Suite<'_>, name: &str) -> Option<String> {
    let document = suite.document;
    let is_escaped = |found: &Reference<'_>| {
        matches!(found.target, Target::Input | Target::InputOrAll)
            && found.text == name
            && document.exact(found.span, name).is_none()
    };
    if suite.references().iter().any(is_escaped) {
        return Some(format!("`{}` writes it with escapes", file_name(document)));
    }
    let mut files = server.files(document);
    let mut tables = suite.cases().filter_map(|case| case.get("rows")?.text());
    tables.find_map(|path| {
        let columns = table_columns(path, &files.file(path).ok()?.text)?;
        columns.iter().any(|column| column == name).then(|| format!("`{path}` has a column of this name"))
    })
}

//! Definitions, references and renames.

use std::borrow::Cow;

use gen_lsp_types::{Location, WorkspaceEdit};
use tympan_core::template::name_use::NameKind;
use tympan_core::template::syntax::SyntaxTree;
use tympan_core::text::source::Span;

use crate::document::{Document, DocumentRef};
use crate::edit::{text_edits, workspace_edit};
use crate::failure::{Answer, Failure};
use crate::names::{DefinitionKind, Names};
use crate::server::Server;
use crate::suite::{self, Suite};
use crate::symbol::{Symbol, is_builtin};
use crate::view::{Sites, View};

/// Words that have a meaning of their own in templates or in YAML.
const RESERVED: [&str; 31] = [
    "and",
    "or",
    "not",
    "in",
    "is",
    "if",
    "elif",
    "else",
    "endif",
    "for",
    "endfor",
    "set",
    "with",
    "macro",
    "call",
    "filter",
    "import",
    "from",
    "include",
    "extends",
    "block",
    "recursive",
    "loop",
    "self",
    "caller",
    "true",
    "false",
    "none",
    "null",
    "True",
    "False",
];

/// Returns where the name at an offset is defined.
pub(crate) fn definition(view: &View<'_>, offset: usize) -> Vec<Location> {
    let Some((symbol, _)) = view.symbol_at(offset) else { return Vec::new() };
    locations(view.document, sites(view, &symbol).declarations)
}

/// Returns where an input is declared.
pub(crate) fn declarations(view: &View<'_>, input: &str) -> Vec<Location> {
    locations(view.document, view.sites(input).declarations)
}

/// Returns where the name at an offset is used, in the document and in its test files.
pub(crate) fn references(
    server: &Server<'_>,
    view: &View<'_>,
    offset: usize,
    with_declarations: bool,
) -> Vec<Location> {
    let Some((symbol, _)) = view.symbol_at(offset) else { return Vec::new() };
    references_of(server, view, &symbol, with_declarations)
}

/// Returns where a name of a prompt is used.
pub(crate) fn references_of(
    server: &Server<'_>,
    view: &View<'_>,
    symbol: &Symbol<'_>,
    with_declarations: bool,
) -> Vec<Location> {
    let Sites { declarations, uses, .. } = sites(view, symbol);
    let declarations = declarations.into_iter().filter(|_| with_declarations);
    let mut found = locations(view.document, declarations.chain(uses));
    for (document, sites) in sites_in_tests(server, view, symbol) {
        found.extend(locations(&document, sites.uses));
    }
    found
}

/// Returns the test files of a prompt, with the places where they contain the name of an input.
fn sites_in_tests<'s>(server: &'s Server<'_>, view: &View<'_>, symbol: &Symbol<'_>) -> Vec<(DocumentRef<'s>, Sites)> {
    let Symbol::Input(name) = symbol else { return Vec::new() };
    let files = suite::test_files_of(server, view.document).into_iter();
    let in_file = |document: DocumentRef<'s>| {
        let sites = suite::sites(server, &document, name);
        (document, sites)
    };
    files.map(in_file).collect()
}

/// Returns the spans of the name at an offset in the file, for highlights.
pub(crate) fn occurrences(view: &View<'_>, offset: usize) -> Vec<Span> {
    let Some((symbol, _)) = view.symbol_at(offset) else { return Vec::new() };
    let Sites { declarations, uses, .. } = sites(view, &symbol);
    declarations.into_iter().chain(uses).collect()
}

fn locations(document: &Document, spans: impl IntoIterator<Item = Span>) -> Vec<Location> {
    let mut spans: Vec<_> = spans.into_iter().collect();
    spans.sort_by_key(|span| span.start);
    spans.into_iter().map(|span| Location::new(document.uri.clone(), document.range(span))).collect()
}

fn sites(view: &View<'_>, symbol: &Symbol<'_>) -> Sites {
    match symbol {
        Symbol::Input(name) => view.sites(name),
        Symbol::Local { template, definition } => local_sites(view, *template, *definition),
        Symbol::Builtin(..) | Symbol::Member(_) => Sites::default(),
    }
}

fn local_sites(view: &View<'_>, template: usize, definition: usize) -> Sites {
    let template = &view.templates[template];
    let Some(SyntaxTree::Jinja(parsed)) = &template.tree else { return Sites::default() };
    let names = Names::new(template.source(), &parsed.body);
    let Some(definition) = names.definitions.get(definition) else { return Sites::default() };
    let (definitions, reads) = names.of_variable(definition);
    let mut gap: Option<Cow<'static, str>> = None;
    let mut located = |spans: Vec<Span>| {
        let found: Vec<_> = spans.iter().filter_map(|span| template.file_span(*span)).collect();
        if found.len() < spans.len() {
            gap = Some("the template is written with escapes".into());
        }
        found
    };
    let (declarations, uses) = (located(definitions), located(reads));
    // Callers may pass parameters by name.
    if definition.kind == DefinitionKind::Parameter {
        gap = gap.or(Some("calls may pass a parameter by its name".into()));
    }
    Sites { declarations, uses, gap }
}

/// Returns the span of the name at an offset, if it can be renamed.
pub(crate) fn prepare_rename(server: &Server<'_>, view: &View<'_>, offset: usize) -> Answer<Span> {
    let (symbol, span) = view.symbol_at(offset).ok_or_else(|| Failure::refused("there is no name to rename here"))?;
    renamable(server, view, &symbol)?;
    Ok(span)
}

/// Renames the input or variable at an offset.
pub(crate) fn rename(server: &Server<'_>, view: &View<'_>, offset: usize, new_name: &str) -> Answer<WorkspaceEdit> {
    let (symbol, _) = view.symbol_at(offset).ok_or_else(|| Failure::refused("there is no name to rename here"))?;
    rename_symbol(server, view, &symbol, new_name)
}

/// Renames an input or variable of a prompt, also in its test files.
pub(crate) fn rename_symbol(
    server: &Server<'_>,
    view: &View<'_>,
    symbol: &Symbol<'_>,
    new_name: &str,
) -> Answer<WorkspaceEdit> {
    let (sites, tests) = renamable(server, view, symbol)?;
    check_name(view, new_name)?;
    let spans = sites.declarations.iter().chain(&sites.uses);
    let mut edit = workspace_edit(view.document, text_edits(view.document, spans.map(|span| (*span, new_name))));
    for (document, sites) in tests.iter().filter(|(_, sites)| !sites.uses.is_empty()) {
        let edits = text_edits(document, sites.uses.iter().map(|span| (*span, new_name)));
        edit.changes.get_or_insert_default().insert(document.uri.clone(), edits);
    }
    Ok(edit)
}

/// The places in a prompt and in its test files where a name is written.
type AllSites<'s> = (Sites, Vec<(DocumentRef<'s>, Sites)>);

/// Returns all places where a name is written. All of them have to be known.
pub(crate) fn renamable<'s>(server: &'s Server<'_>, view: &View<'_>, symbol: &Symbol<'_>) -> Answer<AllSites<'s>> {
    match symbol {
        Symbol::Builtin(..) => return Err(Failure::refused("this is a name of the template language")),
        Symbol::Member(_) => return Err(Failure::refused("only inputs and variables can be renamed")),
        // A name that is an input in one place and a variable in another can be either in a third one.
        Symbol::Input(name) if local_names(view).contains(name) => {
            return Err(Failure::refused(format_args!("the template also defines a variable `{name}`")));
        }
        Symbol::Input(_) | Symbol::Local { .. } => {}
    }
    let sites = sites(view, symbol);
    let tests = sites_in_tests(server, view, symbol);
    let own = match (symbol, Suite::new(view.document, &view.outline)) {
        (Symbol::Input(name), Some(suite)) => suite::gap(server, suite, name).map(Cow::Owned),
        _ => None,
    };
    match sites.gap.as_ref().or(own.as_ref()).or_else(|| tests.iter().find_map(|(_, sites)| sites.gap.as_ref())) {
        Some(gap) => Err(Failure::refused(format_args!("not all places where this name is used are known: {gap}"))),
        None => Ok((sites, tests)),
    }
}

fn check_name(view: &View<'_>, name: &str) -> Answer<()> {
    let is_start = |char: char| char.is_ascii_alphabetic() || char == '_';
    let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
    if !name.starts_with(is_start) || !name.chars().all(is_part) {
        let message = format_args!("`{name}` is not a name: expected letters, digits and underscores");
        return Err(Failure::refused(message));
    }
    if RESERVED.contains(&name) || is_builtin(NameKind::Function, name) {
        return Err(Failure::refused(format_args!("`{name}` has a meaning of its own in templates")));
    }
    if view.input(name).is_some() {
        return Err(Failure::refused(format_args!("{} `{name}` exists already", view.noun())));
    }
    if local_names(view).iter().any(|other| other == name) || is_read(view, name) {
        return Err(Failure::refused(format_args!("the template uses the name `{name}` already")));
    }
    Ok(())
}

/// Returns the names that the templates define.
fn local_names(view: &View<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for template in &view.templates {
        if let Some(SyntaxTree::Jinja(parsed)) = &template.tree {
            let names = Names::new(template.source(), &parsed.body);
            found.extend(names.definitions.iter().map(|definition| definition.name.to_owned()));
        }
    }
    found
}

/// Returns whether a template reads a name.
fn is_read(view: &View<'_>, name: &str) -> bool {
    !view.sites(name).uses.is_empty()
}

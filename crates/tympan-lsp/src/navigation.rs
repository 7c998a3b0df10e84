//! Definitions, references and renames.

use gen_lsp_types::{Location, WorkspaceEdit};
use tympan_core::template::name_use::NameKind;
use tympan_core::template::syntax::SyntaxTree;
use tympan_core::text::source::Span;

use crate::document::Document;
use crate::edit::{text_edits, workspace_edit};
use crate::failure::{Answer, Failure};
use crate::names::{DefinitionKind, Names};
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

/// Returns where the name at an offset is used.
pub(crate) fn references(view: &View<'_>, offset: usize, with_declarations: bool) -> Vec<Location> {
    let Some((symbol, _)) = view.symbol_at(offset) else { return Vec::new() };
    let Sites { declarations, uses, .. } = sites(view, &symbol);
    let declarations = declarations.into_iter().filter(|_| with_declarations);
    locations(view.document, declarations.chain(uses))
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
    let mut gap = None;
    let mut located = |spans: Vec<Span>| {
        let found: Vec<_> = spans.iter().filter_map(|span| template.file_span(*span)).collect();
        if found.len() < spans.len() {
            gap = Some("the template is written with escapes");
        }
        found
    };
    let (declarations, uses) = (located(definitions), located(reads));
    // Callers may pass parameters by name.
    if definition.kind == DefinitionKind::Parameter {
        gap = gap.or(Some("calls may pass a parameter by its name"));
    }
    Sites { declarations, uses, gap }
}

/// Returns the span of the name at an offset, if it can be renamed.
pub(crate) fn prepare_rename(view: &View<'_>, offset: usize) -> Answer<Span> {
    let (symbol, span) = view.symbol_at(offset).ok_or_else(|| Failure::refused("there is no name to rename here"))?;
    renamable(view, &symbol)?;
    Ok(span)
}

/// Renames the input or variable at an offset.
pub(crate) fn rename(view: &View<'_>, offset: usize, new_name: &str) -> Answer<WorkspaceEdit> {
    let (symbol, _) = view.symbol_at(offset).ok_or_else(|| Failure::refused("there is no name to rename here"))?;
    let sites = renamable(view, &symbol)?;
    check_name(view, new_name)?;
    let spans = sites.declarations.iter().chain(&sites.uses);
    let edits = text_edits(view.document, spans.map(|span| (*span, new_name)));
    Ok(workspace_edit(view.document, edits))
}

/// Returns all places where a name is written. All of them have to be known.
fn renamable(view: &View<'_>, symbol: &Symbol<'_>) -> Answer<Sites> {
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
    match sites.gap {
        Some(gap) => Err(Failure::refused(format_args!("not all places where this name is used are known: {gap}"))),
        None => Ok(sites),
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

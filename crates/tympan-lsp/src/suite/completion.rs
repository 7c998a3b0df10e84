//! Completion in tests: keys, and the names that the prompt and Tympan define.

use gen_lsp_types::CompletionItemKind;
use tympan_core::Kind;
use tympan_core::format::{Resolve, definition};
use tympan_core::spec::role::Role;
use tympan_core::spec::schema::PropertyKind;
use tympan_core::text::source::Span;
use tympan_core::wire::compatible::PROVIDERS;

use crate::completion::{Suggestion, input_suggestions};
use crate::document::Document;
use crate::hover::about_role;
use crate::key_completion::files;
use crate::keys::{self, ITEM, Values};
use crate::server::Server;
use crate::suite::place::{self, Target};
use crate::suite::schema;
use crate::suite::{CASES, TESTS};
use crate::view::View;
use crate::yaml_cursor::YamlCursor;

/// The reasons to stop that all providers have in common.
const FINISH_REASONS: [&str; 4] = ["stop", "length", "tool_calls", "content_filter"];

/// The beginning of a reference to a column of a table.
const ROW: &str = "${row:";

/// A cursor in tests.
pub(crate) struct Place<'s> {
    pub(crate) server: &'s Server<'s>,
    pub(crate) document: &'s Document,
    /// The prompt that is tested, as far as it can be parsed.
    pub(crate) prompt: Option<&'s View<'s>>,
    pub(crate) cursor: &'s YamlCursor,
    pub(crate) syntax: definition::Syntax,
    /// The word before the cursor.
    pub(crate) word: Span,
}

/// Returns the path in a test file that corresponds to one in a prompt file. `None` if it is not in the tests.
pub(crate) fn path_in_tests<'p>(path: &[&'p str]) -> Option<Vec<&'p str>> {
    match path {
        [TESTS, ITEM, rest @ ..] => Some([&[CASES, ITEM], rest].concat()),
        [TESTS, rest @ ..] => Some(rest.to_vec()),
        _ => None,
    }
}

/// Returns the suggestions at a path, and the span that they replace.
pub(crate) fn suggestions(place: &Place<'_>, path: &[&str]) -> (Vec<Suggestion>, Span) {
    let text = place.document.source().slice(place.word);
    if let Some(at) = text.rfind(ROW).filter(|at| !text[*at..].contains('}')) {
        return (columns(place), Span::new(place.word.start + at + ROW.len(), place.word.end));
    }
    let mut found = Vec::new();
    if !place.cursor.is_value {
        found.extend(key_suggestions(place, path));
    }
    if place.cursor.is_value || path.last() == Some(&ITEM) {
        if place::of_value(path) == Some(Target::File) {
            let start = place.word.start + text.rfind('/').map_or(0, |at| at + 1);
            let suggestions = files(&place.server.files(place.document), text);
            return (suggestions, Span::new(start, place.word.end));
        }
        found.extend(values(place, path).into_iter().map(|suggestion| quoted(place, suggestion)));
    }
    (found, place.word)
}

fn key_suggestions(place: &Place<'_>, path: &[&str]) -> Vec<Suggestion> {
    let listed = schema::keys(path).into_iter().map(|key| {
        let suggestion = Suggestion::new(key.name, CompletionItemKind::Property);
        let suggestion = key.about.into_iter().fold(suggestion, Suggestion::with_about);
        as_key(place, suggestion)
    });
    let named = match place::of_keys(path) {
        Some(Target::Input) => place.prompt.into_iter().flat_map(|view| input_suggestions(view)).collect(),
        Some(Target::Tool) => tools(place),
        _ => Vec::new(),
    };
    listed.chain(named.into_iter().map(|suggestion| as_key(place, suggestion))).collect()
}

/// Adds what follows a key. The rest of the line may have it already.
fn as_key(place: &Place<'_>, mut suggestion: Suggestion) -> Suggestion {
    let (separator, quote) = match place.syntax {
        definition::Syntax::Yaml => (':', ""),
        definition::Syntax::Json => (':', "\""),
        definition::Syntax::Toml => ('=', ""),
    };
    let after = &place.document.text()[place.word.end..];
    let after = after.lines().next().unwrap_or_default().split([',', '}']).next().unwrap_or_default();
    let name = &suggestion.label;
    suggestion.insert = Some(if after.contains(separator) || is_quoted(place) {
        name.clone()
    } else if separator == '=' {
        format!("{name} = ")
    } else {
        format!("{quote}{name}{quote}: ")
    });
    suggestion
}

/// Returns whether the word at the cursor is in quotes.
fn is_quoted(place: &Place<'_>) -> bool {
    place.document.text()[..place.word.start].ends_with(['"', '\''])
}

/// Adds the quotes that values need in JSON and TOML.
fn quoted(place: &Place<'_>, mut suggestion: Suggestion) -> Suggestion {
    let needs_quotes = place.syntax != definition::Syntax::Yaml
        && !is_quoted(place)
        && !["true", "false"].contains(&suggestion.label.as_str());
    if needs_quotes {
        suggestion.insert = Some(format!("\"{}\"", suggestion.label));
    }
    suggestion
}

fn values(place: &Place<'_>, path: &[&str]) -> Vec<Suggestion> {
    let word = |word: &'static str| match Role::IN_MARKERS.into_iter().find(|role| role.as_str() == word) {
        Some(role) => Suggestion::new(word, CompletionItemKind::EnumMember).with_about(about_role(role)),
        None => Suggestion::new(word, CompletionItemKind::EnumMember),
    };
    let mut found: Vec<_> = schema::words(path).into_iter().map(word).collect();
    found.extend(place::of_value(path).map(|target| named(place, target)).unwrap_or_default());
    found
}

fn named(place: &Place<'_>, target: Target<'_>) -> Vec<Suggestion> {
    let all = |names: Vec<String>, kind| names.into_iter().map(|name| Suggestion::new(name, kind)).collect();
    let options = &place.server.analysis(place.document).options;
    let models = || options.catalog.models().map(str::to_owned);
    match target {
        // The word `all` is in the schema.
        Target::Input | Target::InputOrAll => {
            place.prompt.into_iter().flat_map(|view| input_suggestions(view)).collect()
        }
        Target::ValueOf(name) => values_of(place, name),
        Target::Variant => {
            let variants = place.prompt.map(|view| view.prompt.arms().map(str::to_owned).collect());
            all(variants.unwrap_or_default(), CompletionItemKind::EnumMember)
        }
        Target::Provider => {
            let listed = keys::values(Values::Provider).into_iter().chain(options.providers.iter().cloned());
            all(listed.collect(), CompletionItemKind::EnumMember)
        }
        Target::Model => all(models().collect(), CompletionItemKind::Value),
        Target::ProviderModel => {
            let providers = PROVIDERS.iter().map(|provider| format!("{}/", provider.name));
            all(models().chain(providers).collect(), CompletionItemKind::Value)
        }
        Target::Tool => tools(place),
        Target::ErrorCode => {
            all(Kind::ALL.iter().map(|kind| kind.code().to_owned()).collect(), CompletionItemKind::EnumMember)
        }
        Target::FinishReason => all(FINISH_REASONS.map(str::to_owned).to_vec(), CompletionItemKind::EnumMember),
        Target::File => Vec::new(),
    }
}

fn tools(place: &Place<'_>) -> Vec<Suggestion> {
    let tools = place.prompt.map(|view| view.prompt.spec().tools.as_slice()).unwrap_or_default().iter();
    tools.map(|tool| Suggestion::new(&tool.name, CompletionItemKind::Function)).collect()
}

/// Returns the values that an input can have, if they can be listed.
fn values_of(place: &Place<'_>, name: &str) -> Vec<Suggestion> {
    let Some(input) = place.prompt.and_then(|view| view.input(name)) else { return Vec::new() };
    let values = match &input.enum_values {
        Some(values) => values.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect(),
        None if input.kind == PropertyKind::Boolean => vec!["true".to_owned(), "false".to_owned()],
        None => Vec::new(),
    };
    values.into_iter().map(|value| Suggestion::new(value, CompletionItemKind::EnumMember)).collect()
}

/// Returns the columns of the table that the case at the cursor reads.
fn columns(place: &Place<'_>) -> Vec<Suggestion> {
    let found = table(&place.document.text()[..place.word.start]).and_then(|path| {
        let text = place.server.files(place.document).file(path).ok()?.text;
        tympan_lint::table_columns(path, &text)
    });
    let columns = found.unwrap_or_default().into_iter();
    columns.map(|column| Suggestion::new(column, CompletionItemKind::Field)).collect()
}

/// Finds the table of the last case in a text, which may not parse.
fn table(text: &str) -> Option<&str> {
    let lines = || text.lines().rev().map(|line| (line.len() - line.trim_start().len(), line.trim_start()));
    // The items of the outermost list are the cases.
    let case = lines().filter(|(_, line)| line.starts_with("- ")).map(|(indent, _)| indent).min();
    for (indent, line) in lines() {
        let key = line.trim_start_matches(['-', ' ', '{', '"']);
        if let Some(rest) = key.strip_prefix("rows") {
            let value = rest.trim_start_matches('"').trim_start().strip_prefix([':', '='])?;
            let value = value.split(" #").next().unwrap_or_default().trim().trim_end_matches(',');
            return Some(value.trim_matches(['"', '\'']));
        }
        if (Some(indent) == case && line.starts_with("- ")) || line.starts_with("[[cases]]") {
            return None;
        }
    }
    None
}

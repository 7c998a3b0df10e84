//! Filters.
//!
//! Filters for text keep the origins of its pieces apart where they can, and filters for lists keep those of the
//! elements. The results of minijinja's own functions, and everything that is computed anew, have the union of all
//! origins.

mod borrowed;
mod entities;
mod layout;
mod list;
mod markup;
mod number;
mod params;
mod rewrite;
mod slice;
mod sort;
pub(crate) mod text;

pub(crate) use borrowed::{print_json, str_format};
pub(crate) use list::join_with;
pub(crate) use text::{escape_html, escaped_len};

pub(crate) use crate::template::names::FILTERS as NAMES;

use crate::error::{Error, Kind, Result};
use crate::template::eval::Eval;
use crate::template::eval::expr::Arguments;
use crate::template::value::ops;
use crate::template::value::{Repr, Value};
use crate::text::origin::Origin;
use params::Params;

/// Returns whether a filter accepts an undefined value.
pub(crate) fn accepts_undefined(name: &str) -> bool {
    matches!(name, "default" | "d" | "bool")
}

/// Applies a filter.
pub(crate) fn apply<'a>(eval: &mut Eval<'a>, name: &str, value: Value<'a>, args: Arguments<'a>) -> Result<Value<'a>> {
    let work = args.values().map(ops::weight).fold(ops::weight(&value), usize::saturating_add);
    eval.budget.step(work)?;
    let origin = args.origin();
    let is_default = matches!(name, "default" | "d");
    if matches!(value.repr, Repr::Rich(_)) && !is_default {
        return Err(super::print::rich_in_text());
    }
    if !is_default && !eval.lenient {
        reject_undefined(name, &args)?;
    }
    // A filter that selects or computes a single value has nothing to return for an absent one.
    if value.is_absent() && selects_one(name) {
        return Ok(value.also(origin));
    }
    let mut params = Params::new(name, args);
    let result = match name {
        "default" | "d" => default(eval, value, &mut params),
        "upper" | "lower" | "capitalize" | "replace" | "trim" | "indent" | "escape" | "e" | "safe" | "string"
        | "split" | "lines" => text::apply(eval, name, value, &mut params),
        "truncate" | "wordwrap" | "center" | "wordcount" => layout::apply(eval, name, value, &mut params),
        "striptags" | "xmlattr" => markup::apply(eval, name, value, &mut params),
        "abs" | "int" | "float" | "round" | "bool" | "filesizeformat" => number::apply(name, &value, &mut params),
        "title" | "urlencode" | "tojson" | "pprint" | "format" => {
            return borrowed::apply(eval, name, value, params.into_arguments());
        }
        _ => list::apply(eval, name, value, &mut params),
    }?;
    params.finish()?;
    let result = if keeps_arguments_apart(name) { result } else { result.also(origin) };
    crate::template::eval::expr::shallow(result)
}

/// Returns whether the result of a filter is a single value, which an empty value does not have.
fn selects_one(name: &str) -> bool {
    matches!(name, "first" | "last" | "min" | "max" | "attr" | "abs" | "round" | "title" | "urlencode" | "format")
}

/// Returns whether a filter writes its arguments with their own origins. For all other filters, the arguments
/// contribute to the whole result.
fn keeps_arguments_apart(name: &str) -> bool {
    matches!(
        name,
        "default"
            | "d"
            | "replace"
            | "join"
            | "batch"
            | "slice"
            | "chain"
            | "zip"
            | "map"
            | "groupby"
            | "truncate"
            | "wordwrap"
            | "center"
    )
}

fn default<'a>(eval: &mut Eval<'a>, value: Value<'a>, params: &mut Params<'_, 'a>) -> Result<Value<'a>> {
    let empty = || Value::new(Repr::Str(""), value.whole_origin());
    let other = params.next("default_value").unwrap_or_else(empty);
    let also_false = params.next("boolean");
    let decided = value.whole_origin() | also_false.as_ref().map(Value::whole_origin).unwrap_or_default();
    let is_replaced = value.is_undefined() || (also_false.is_some_and(|flag| flag.is_true()) && !value.is_true());
    eval.chosen(if is_replaced { other } else { value }, decided)
}

fn reject_undefined(filter: &str, args: &Arguments<'_>) -> Result<()> {
    if args.values().any(|value| matches!(value.repr, Repr::Undefined | Repr::Unset)) {
        let details = format!("an argument of the filter `{filter}`");
        return Err(Error::new(Kind::UndefinedVariable, details));
    }
    Ok(())
}

/// Builds the error for a name that does not exist. The name is only shown if the author wrote it.
pub(crate) fn unknown_name(kind: Kind, name: &str, origin: Origin, known: &[&str]) -> Error {
    if !origin.is_author() {
        return Error::new(kind, "the name comes from an input and does not exist");
    }
    let error = Error::new(kind, shown(name));
    match suggestion(name, known) {
        Some(likely) => error.with_help(format!("did you mean `{likely}`?")),
        None => error.with_help(format!("available: {}; the application can register more", known.join(", "))),
    }
}

/// The maximum number of bytes of a name that are shown or compared. A template can compute longer names.
const MAX_NAME: usize = 64;

/// Shortens a name for an error message.
fn shown(name: &str) -> String {
    if name.len() <= MAX_NAME {
        return name.to_owned();
    }
    format!("{}…", &name[..name.floor_char_boundary(MAX_NAME)])
}

/// Returns the known name that was probably meant.
pub(crate) fn suggestion<'n>(name: &str, known: &[&'n str]) -> Option<&'n str> {
    nearest(name, known.iter().copied())
}

/// Returns the most similar of the known names, if one is similar enough.
pub(crate) fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    if name.len() > MAX_NAME {
        return None;
    }
    let known = known.filter(|known| known.len() <= MAX_NAME);
    let likely = known.map(|known| (strsim::jaro_winkler(known, name), known)).filter(|(likeness, _)| *likeness > 0.8);
    likely.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, known)| known)
}

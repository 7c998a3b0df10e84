//! Serializes values in OpenAPI's styles, exploded or not.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value as Json;

use crate::tool::openapi::Reason;

/// Everything except the characters that are unreserved in URLs.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The maximum nesting depth of a `deepObject`.
const MAX_DEPTH: usize = 8;

/// The serialization style of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Simple,
    Label,
    Matrix,
    Form,
    SpaceDelimited,
    PipeDelimited,
    DeepObject,
    /// JSON.
    Json,
}

impl Style {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "simple" => Self::Simple,
            "label" => Self::Label,
            "matrix" => Self::Matrix,
            "form" => Self::Form,
            "spaceDelimited" => Self::SpaceDelimited,
            "pipeDelimited" => Self::PipeDelimited,
            "deepObject" => Self::DeepObject,
            _ => return None,
        })
    }
}

/// Percent-encodes a text so that it has no special meaning in a URL.
pub(super) fn encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// Converts a value that is not a list or a map to text.
pub(super) fn plain(value: &Json) -> Result<String, Reason> {
    match value {
        Json::String(text) => Ok(text.clone()),
        Json::Bool(_) | Json::Number(_) => Ok(value.to_string()),
        Json::Null => Err("null is not supported here".to_owned()),
        Json::Array(_) | Json::Object(_) => Err("nested lists and maps are not supported here".to_owned()),
    }
}

/// Serializes a value as a single text, for paths, headers and cookies.
pub(super) fn one(
    name: &str,
    value: &Json,
    style: Style,
    explode: bool,
    write: fn(&str) -> String,
) -> Result<String, Reason> {
    let written = |value: &Json| plain(value).map(|text| write(&text));
    if style == Style::Json {
        return Ok(write(&value.to_string()));
    }
    // The prefix and the separator.
    let (first, between) = match style {
        Style::Label => (".".to_owned(), if explode { "." } else { "," }),
        Style::Matrix if explode => (";".to_owned(), ";"),
        Style::Matrix => (format!(";{}=", write(name)), ","),
        _ => (String::new(), ","),
    };
    let parts: Vec<String> = match value {
        Json::Array(items) => items
            .iter()
            .map(|item| {
                let item = written(item)?;
                Ok(if style == Style::Matrix && explode { format!("{}={item}", write(name)) } else { item })
            })
            .collect::<Result<_, Reason>>()?,
        Json::Object(map) => map
            .iter()
            .map(|(key, value)| Ok(format!("{}{}{}", write(key), if explode { "=" } else { "," }, written(value)?)))
            .collect::<Result<_, Reason>>()?,
        other => {
            let text = written(other)?;
            vec![if style == Style::Matrix && explode { format!("{}={text}", write(name)) } else { text }]
        }
    };
    Ok(first + &parts.join(between))
}

/// Serializes a value as the pairs of a query or a form. Values are percent-encoded, including the separators of list
/// items; names are not encoded yet.
pub(super) fn pairs(name: &str, value: &Json, style: Style, explode: bool) -> Result<Vec<Pair>, Reason> {
    let pair = |key: &str, value: &Json| Ok(Pair::new(key, encode(&plain(value)?)));
    let between = match style {
        Style::SpaceDelimited => "%20",
        Style::PipeDelimited => "%7C",
        _ => ",",
    };
    match (style, value) {
        (Style::Json, _) => Ok(vec![Pair::new(name, encode(&value.to_string()))]),
        (Style::DeepObject, Json::Array(_) | Json::Object(_)) => {
            let mut all = Vec::new();
            deep(name, value, 0, &mut all)?;
            Ok(all)
        }
        (_, Json::Array(items)) if explode => items.iter().map(|item| pair(name, item)).collect(),
        (_, Json::Array(items)) => {
            let items: Vec<_> =
                items.iter().map(|item| plain(item).map(|item| encode(&item))).collect::<Result<_, _>>()?;
            Ok(vec![Pair::new(name, items.join(between))])
        }
        (_, Json::Object(map)) if explode => map.iter().map(|(key, value)| pair(key, value)).collect(),
        (_, Json::Object(map)) => {
            let members = map.iter().map(|(key, value)| Ok([encode(key), encode(&plain(value)?)].join(between)));
            Ok(vec![Pair::new(name, members.collect::<Result<Vec<_>, Reason>>()?.join(between))])
        }
        (_, plain) => Ok(vec![pair(name, plain)?]),
    }
}

fn deep(name: &str, value: &Json, depth: usize, all: &mut Vec<Pair>) -> Result<(), Reason> {
    if depth > MAX_DEPTH {
        return Err("nested too deeply".to_owned());
    }
    match value {
        Json::Object(map) => {
            map.iter().try_for_each(|(key, value)| deep(&format!("{name}[{key}]"), value, depth + 1, all))
        }
        Json::Array(items) => {
            let mut items = items.iter().enumerate();
            items.try_for_each(|(index, value)| deep(&format!("{name}[{index}]"), value, depth + 1, all))
        }
        Json::Null => Ok(()),
        plain_value => {
            all.push(Pair::new(name, encode(&plain(plain_value)?)));
            Ok(())
        }
    }
}

/// A plain name and a percent-encoded value.
pub(super) struct Pair {
    pub(super) name: String,
    value: String,
}

impl Pair {
    fn new(name: &str, value: String) -> Self {
        Self { name: name.to_owned(), value }
    }
}

/// Joins pairs to a query or a form.
pub(super) fn joined(pairs: &[Pair]) -> String {
    let written: Vec<_> = pairs.iter().map(|pair| format!("{}={}", encode(&pair.name), pair.value)).collect();
    written.join("&")
}

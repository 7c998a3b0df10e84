//! Conversion of errors, and of values as JSON text, between Rust and JavaScript.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use napi::{Error as NodeError, Status};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::ser::Formatter;
use serde_json::{Serializer, Value as Json, json};
use tympan::diagnostic::Diagnostic;
use tympan::text::source::SourceFile;
use tympan::{Error, Kind, Result};

/// The largest integer that a JavaScript number can represent safely.
const MAX_SAFE: u64 = (1 << 53) - 1;

/// Runs some work and converts its error for JavaScript. A panic becomes an error too.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T>) -> napi::Result<T> {
    let done = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(Error::new(Kind::Internal, "the engine panicked").with_help("this is a bug in Tympan; please report it"))
    });
    done.map_err(|error| NodeError::new(Status::GenericFailure, error_text(&error)))
}

/// Serializes an error as text, from which JavaScript builds its own error.
pub(crate) fn error_text(error: &Error) -> String {
    let place = error.line_column();
    let others: Vec<_> = error.others().iter().map(|other| finding(other, error.source_file())).collect();
    let conversation = error.conversation();
    json!({
        "code": error.code(),
        "class": error.class().as_str(),
        "message": error.to_string(),
        "line": place.map(|place| place.line),
        "column": place.map(|place| place.column),
        "file": error.source_file().map(SourceFile::name),
        "help": error.help(),
        "others": others,
        "partialText": error.partial_text(),
        "conversation": (!conversation.is_empty()).then_some(conversation),
    })
    .to_string()
}

/// Converts a finding to data.
pub(crate) fn finding(finding: &Diagnostic, source: Option<&SourceFile>) -> Json {
    let place = source.zip(finding.span).map(|(source, span)| source.line_column(span.start));
    json!({
        "code": finding.code,
        "rule": tympan::lint::rule(finding.code).ok().map(|rule| rule.code),
        "severity": finding.severity.as_str(),
        "message": finding.message,
        "line": place.map(|place| place.line),
        "column": place.map(|place| place.column),
        "help": finding.help,
        "fix": finding.fix,
    })
}

/// Converts a finding of a rule to the same data.
pub(crate) fn rule_finding(finding: &tympan::lint::Finding, source: &SourceFile) -> Json {
    let place = finding.span.map(|span| source.line_column(span.start));
    json!({
        "code": finding.rule.name,
        "rule": finding.rule.code,
        "severity": finding.severity.as_str(),
        "message": finding.message,
        "line": place.map(|place| place.line),
        "column": place.map(|place| place.column),
        "help": finding.help,
        "fix": finding.replacement(),
    })
}

/// Parses JSON written by JavaScript.
///
/// # Errors
/// Returns an error if the text is not JSON or has an unexpected shape.
pub(crate) fn read<T: DeserializeOwned>(what: &str, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| {
        // Serde's message may quote the value, so report only the position.
        let place = format_args!("{what}: unexpected value at column {}", error.column());
        Error::new(Kind::InvalidInput, place)
    })
}

/// Serializes a value as JSON for JavaScript. If it contains integers that a JavaScript number cannot represent, they
/// are written as strings, and the result is `#` followed by an object with the value and the paths of these integers.
///
/// # Errors
/// Returns an error if the value cannot be serialized as JSON.
pub(crate) fn written(value: &impl Serialize) -> Result<String> {
    let unwritable = |error: serde_json::Error| {
        Error::new(
            Kind::Internal,
            format_args!(
                "cannot serialize to JSON: \
        {error}"
            ),
        )
    };
    let (mut text, mut has_large) = (Vec::new(), false);
    let watch = Watch { has_large: &mut has_large };
    value.serialize(&mut Serializer::with_formatter(&mut text, watch)).map_err(unwritable)?;
    if !has_large {
        return String::from_utf8(text).map_err(|error| Error::new(Kind::Internal, error));
    }
    let mut value = serde_json::to_value(value).map_err(unwritable)?;
    let mut places = Vec::new();
    spell_out(&mut value, &mut Vec::new(), &mut places);
    Ok(format!("#{}", json!({ "places": places, "value": value })))
}

/// Writes JSON as usual and records whether there are integers that a JavaScript number cannot represent.
struct Watch<'a> {
    has_large: &'a mut bool,
}

impl Formatter for Watch<'_> {
    fn write_i64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: i64) -> io::Result<()> {
        *self.has_large |= value.unsigned_abs() > MAX_SAFE;
        write!(writer, "{value}")
    }

    fn write_u64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: u64) -> io::Result<()> {
        *self.has_large |= value > MAX_SAFE;
        write!(writer, "{value}")
    }
}

fn is_large(value: &Json) -> bool {
    value.as_u64().is_some_and(|value| value > MAX_SAFE)
        || value.as_i64().is_some_and(|value| value.unsigned_abs() > MAX_SAFE)
}

/// Replaces integers that a JavaScript number cannot represent with strings.
fn spell_out(value: &mut Json, path: &mut Vec<Json>, places: &mut Vec<Json>) {
    if is_large(value) {
        places.push(Json::Array(path.clone()));
        *value = value.to_string().into();
        return;
    }
    let mut inside = |step: Json, inner: &mut Json| {
        path.push(step);
        spell_out(inner, path, places);
        path.pop();
    };
    match value {
        Json::Array(items) => items.iter_mut().enumerate().for_each(|(index, item)| inside(index.into(), item)),
        Json::Object(map) => map.iter_mut().for_each(|(key, item)| inside(key.as_str().into(), item)),
        _ => {}
    }
}

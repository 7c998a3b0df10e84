//! Parses inputs from text: JSON, or YAML as in prompt files.

use serde_json::Value as Json;

use super::report::error;
use super::yaml::parse;
use crate::diagnostic::Diagnostic;
use crate::error::{Error, Kind, Result};
use crate::json::JsonMap;
use crate::text::source::{SourceFile, Span};

/// Parses a JSON or YAML map of inputs. YAML is interpreted as in a prompt file.
///
/// ```
/// use tympan::format::parse_inputs;
/// use tympan::text::source::SourceFile;
///
/// let inputs = parse_inputs(&SourceFile::new("inputs.yaml", "question: Why?\nlimit: 3\n"))?;
/// assert_eq!(inputs["limit"], 3);
/// # Ok::<(), tympan::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the text is neither JSON nor YAML, or if it is not a map. The error never quotes the text.
pub fn parse_inputs(source: &SourceFile) -> Result<JsonMap> {
    let text = source.text().strip_prefix('\u{feff}').unwrap_or(source.text());
    let offset = source.text().len() - text.len();
    let located = |error: Error| error.in_source(source, 0);
    let value = match serde_json::from_str(text) {
        Ok(value) => value,
        // Text that is evidently meant as JSON gets an error about JSON.
        Err(failure) if text.trim_start().starts_with('{') && source.name().ends_with(".json") => {
            return Err(located(not_json(text, offset, &failure)));
        }
        Err(_) => parse_yaml(text, offset).map_err(located)?,
    };
    match value {
        Json::Object(map) => Ok(map),
        Json::Null => Ok(JsonMap::new()),
        _ => Err(located(
            Error::new(Kind::InvalidInput, "expected a map from names to values")
                .with_help("write `name: value` lines, or a JSON object"),
        )),
    }
}

fn not_json(text: &str, offset: usize, failure: &serde_json::Error) -> Error {
    let line_start = text.split_inclusive('\n').take(failure.line().saturating_sub(1)).map(str::len).sum::<usize>();
    let at = offset + (line_start + failure.column().saturating_sub(1)).min(text.len());
    // serde_json repeats the position at the end of the message.
    let message = failure.to_string();
    let reason = message.split(" at line ").next().unwrap_or_default();
    Error::new(Kind::InvalidInput, format_args!("invalid JSON: {reason}")).at(Span::new(at, at))
}

fn parse_yaml(text: &str, offset: usize) -> Result<Json> {
    let (root, problems) = parse(text, offset);
    let mut findings = problems.into_iter().map(|problem| -> Diagnostic {
        let finding = error(Kind::InvalidInput, problem.span, problem.message);
        match problem.help {
            Some(help) => finding.with_help(help),
            None => finding,
        }
    });
    match (findings.next(), root) {
        (Some(first), _) => Err(Error::from_diagnostic(first).with_others(findings.collect())),
        (None, Some(root)) => Ok(root.into_json()),
        (None, None) => Err(Error::new(Kind::InvalidInput, "expected JSON or YAML")),
    }
}

//! Checks a directive beyond the syntax of its metadata.

use std::collections::HashSet;

use super::document::Directive;
use super::layout::{Layout, Syntax};
use crate::diagnostic::{Diagnostic, guess, listed};
use crate::error::Kind;
use crate::format::interpolation::{malformed, references};
use crate::format::report::{Report, error};
use crate::text::source::{SourceFile, Span};

/// The maximum number of bytes that are searched for the names of outputs.
const MAX_SEARCHED: usize = 64 << 20;

/// Runs all checks.
pub(super) fn check(directive: &Directive, layout: &Layout, source: &SourceFile, report: &mut Report) {
    let opening = layout.metadata.as_ref().map(|metadata| metadata.opening).unwrap_or_default();
    let is_yaml = layout.metadata.as_ref().is_some_and(|metadata| metadata.syntax == Syntax::Yaml);
    required_metadata(directive, is_yaml, opening, report);
    version(directive, opening, report);
    name(directive, opening, report);
    steps(directive, source, report);
    check_references(directive, is_yaml, source, report);
    outside_the_steps(directive, source, report);
    outputs(directive, source, report);
    second_metadata(layout, report);
}

/// Warns about metadata that Rye requires. A prompt can be built without it.
fn required_metadata(directive: &Directive, is_yaml: bool, at: Span, report: &mut Report) {
    let fields = [
        ("name", directive.name.is_none()),
        ("version", directive.version.is_none()),
        ("description", directive.description.is_none()),
        ("category", directive.category.is_none()),
        ("author", directive.author.is_none()),
        ("model", directive.model.as_ref().is_none_or(|model| model.tier.is_none() && model.id.is_none())),
    ];
    for (field, _) in fields.into_iter().filter(|(_, is_missing)| *is_missing) {
        let help = match field {
            "model" if is_yaml => "add it to the metadata, with a tier: `model: {tier: general}`".to_owned(),
            _ if is_yaml => format!("add it to the metadata: `{field}: …`"),
            "name" | "version" => format!("add it to the `<directive>` element: `<directive {field}=\"…\">`"),
            "model" => "add it to the metadata, with a tier: `<model tier=\"general\" />`".to_owned(),
            _ => format!("add it to the metadata: `<{field}>…</{field}>`"),
        };
        let message = format!("missing `{field}`");
        report.push(Diagnostic::warning("missing_metadata", at, message).with_help(help));
    }
}

fn version(directive: &Directive, at: Span, report: &mut Report) {
    if let Some(version) = &directive.version
        && !is_semver(version)
    {
        let message = format!("`{version}` is not a semantic version");
        report.push(
            Diagnostic::warning("invalid_version", at, message).with_help("write three numbers, such as `1.0.0`"),
        );
    }
}

/// Returns whether a version is semantic: three numbers without leading zeros, optionally with a pre-release and build
/// metadata.
fn is_semver(version: &str) -> bool {
    let is_identifier =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let is_number = |text: &str| {
        let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_digits && (text == "0" || !text.starts_with('0'))
    };
    let (version, build) = version.split_once('+').map_or((version, None), |(version, build)| (version, Some(build)));
    let (core, pre) = version.split_once('-').map_or((version, None), |(core, pre)| (core, Some(pre)));
    let is_pre =
        |text: &str| is_identifier(text) && (!text.bytes().all(|byte| byte.is_ascii_digit()) || is_number(text));
    core.split('.').count() == 3
        && core.split('.').all(is_number)
        && pre.is_none_or(|pre| pre.split('.').all(is_pre))
        && build.is_none_or(|build| build.split('.').all(is_identifier))
}

/// Warns about special characters in the name, because it is inserted into a tag of the prompt unescaped.
fn name(directive: &Directive, at: Span, report: &mut Report) {
    let is_fit = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '/' | '.');
    if let Some(name) = &directive.name
        && !name.chars().all(is_fit)
    {
        let message = "the directive's name contains characters other than letters, digits, `_`, `-`, `.` and `/`";
        let help = "the name is copied unchanged into `<directive name=\"…\">` of the prompt";
        report.push(Diagnostic::warning("invalid_name", at, message).with_help(help));
    }
}

fn steps(directive: &Directive, source: &SourceFile, report: &mut Report) {
    if source.slice(directive.body).trim().is_empty() {
        let at = Span::new(directive.metadata.start, directive.metadata.start);
        let finding = Diagnostic::warning("no_steps", at, "no steps after the metadata");
        report.push(finding.with_help("write the steps after the fence: the model does not see the metadata"));
    }
}

/// Checks that references name declared inputs. An undeclared name is an error where it is probably a mistake: if the
/// directive declares its inputs in XML, and the reference has no default. Later Rye versions do not require
/// declarations, and leave references without a value in the text.
fn check_references(directive: &Directive, is_yaml: bool, source: &SourceFile, report: &mut Report) {
    let body = source.slice(directive.body);
    let declared: Vec<&str> = directive.inputs.iter().map(|input| input.name.as_str()).collect();
    let names: HashSet<&str> = declared.iter().copied().collect();
    let mut reported: HashSet<&str> = HashSet::new();
    for reference in references(body).filter(|reference| !names.contains(reference.name)) {
        let span = Span::from(reference.range.clone()).shifted(directive.body.start);
        let help = list_near(reference.name, &declared);
        let finding = match reference.fallback {
            // One warning for each name is enough if nothing is declared.
            _ if declared.is_empty() && !reported.insert(reference.name) => continue,
            _ if declared.is_empty() => {
                let message = format!("input `{}` is not declared, so it is optional", reference.name);
                let finding = Diagnostic::warning("undeclared_input", span, message);
                report.push(finding.with_help("declare it, so that callers know its type and whether it is required"));
                continue;
            }
            // Such text is also part of graphs, and only counts as a reference if the input is declared.
            None if reference.is_dollar => continue,
            None if is_yaml => {
                let message = format!("input `{}` is not declared, so the reference stays in the text", reference.name);
                Diagnostic::warning("undeclared_input", span, message)
            }
            None => error(Kind::UndeclaredInput, span, format_args!("`{}`", reference.name)),
            Some(_) => {
                let message = format!("input `{}` is not declared, so the default is always used", reference.name);
                Diagnostic::warning("always_default", span, message)
            }
        };
        report.push(finding.with_help(help));
    }
    for range in malformed(body) {
        let span = Span::from(range).shifted(directive.body.start);
        let finding = Diagnostic::warning("malformed_reference", span, "invalid input reference, rendered as text");
        let forms = "write `{input:name}`, `{input:name?}`, `{input:name:default}` or `{input:name|default}`";
        report.push(finding.with_help(forms));
    }
}

/// Lists the declared inputs, with a suggestion for the misspelled `name`.
pub(crate) fn list_near(name: &str, declared: &[&str]) -> String {
    match guess(name, declared.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? {}", list(declared)),
        None => list(declared),
    }
}

/// Lists the declared inputs for a message.
pub(crate) fn list(declared: &[&str]) -> String {
    match declared {
        [] => "no inputs are declared".to_owned(),
        names => format!("declared inputs: {}", listed(names.iter().copied())),
    }
}

/// Warns about references in the preamble, because only the steps are interpolated.
fn outside_the_steps(directive: &Directive, source: &SourceFile, report: &mut Report) {
    let is_declared = |name: &str| directive.inputs.iter().any(|input| input.name == name);
    let preamble = references(source.slice(directive.preamble))
        .filter(|reference| !reference.is_dollar || is_declared(reference.name))
        .map(|reference| reference.range);
    let places = preamble.map(|range| Span::from(range).shifted(directive.preamble.start));
    for span in places {
        let finding = Diagnostic::warning(
            "not_interpolated",
            span,
            "input references are only replaced in the steps, so this \
                one is rendered as text",
        );
        report.push(finding.with_help("move it below the metadata"));
    }
}

/// Warns about outputs that the steps do not mention, because the model can only guess their values.
fn outputs(directive: &Directive, source: &SourceFile, report: &mut Report) {
    let body = source.slice(directive.body);
    let words: HashSet<&str> = body.split(|char| !is_word_char(char)).collect();
    // A name that is not a single word is searched for as a whole, within the limit on the bytes searched.
    let mut left = MAX_SEARCHED;
    let mut is_mentioned = |name: &str| {
        if name.chars().all(is_word_char) {
            return words.contains(name);
        }
        left = left.saturating_sub(body.len());
        left == 0 || mentions(body, name)
    };
    for output in directive.outputs.iter().filter(|output| !is_mentioned(&output.name)) {
        let message = format!("output `{}` is not mentioned in the steps", output.name);
        let finding = Diagnostic::warning("unmentioned_output", output.span, message);
        report.push(finding.with_help("say in a step how to produce it"));
    }
}

fn is_word_char(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

/// Returns whether a text contains a whole word.
fn mentions(text: &str, word: &str) -> bool {
    let is_part = |char: Option<char>| char.is_some_and(is_word_char);
    text.match_indices(word)
        .any(|(at, _)| !is_part(text[..at].chars().next_back()) && !is_part(text[at + word.len()..].chars().next()))
}

fn second_metadata(layout: &Layout, report: &mut Report) {
    for span in &layout.others {
        let finding = error(Kind::InvalidDirective, *span, "found a second metadata block");
        report.push(
            finding.with_help("remove one of the two; to show a directive as an example, wrap it in a longer fence"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_semantic() {
        for version in ["1.0.0", "0.10.3", "1.0.0-rc.1", "1.0.0+build.05", "1.2.3-a-b+c"] {
            assert!(is_semver(version), "{version}");
        }
        for version in ["1", "1.0", "1.0.0.0", "v1.0.0", "01.0.0", "1.0.x", "", "1.0.0-", "1.0.0-01", "1..0"] {
            assert!(!is_semver(version), "{version}");
        }
    }

    #[test]
    fn words_are_mentioned_whole() {
        assert!(mentions("Return `path`.", "path"));
        assert!(!mentions("Return file_path and paths.", "path"));
    }
}

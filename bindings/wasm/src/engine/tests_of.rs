//! The cases of a test file or of a prompt file, for their inputs.

use serde_json::{Value as Json, json};
use tympan_core::format::{Format, test_file};
use tympan_core::spec::test_suite::TestSuite;

use super::Prompt;

/// Returns the cases, the path of the prompt that they test, and whether the tests have mistakes.
///
/// Cases with rows or a matrix stand for several; only what they have in common is known here.
pub(super) fn cases(file: &Prompt) -> (Json, Option<String>, bool) {
    let parsed = match file.format {
        Format::Tests(syntax) => Some(test_file::parse(&file.source, syntax)),
        format if file.source.text().contains("tests") => test_file::parse_embedded(&file.source, format),
        _ => None,
    };
    // Mistakes in the tests of a prompt file do not keep the prompt from being used.
    let is_test_file = matches!(file.format, Format::Tests(_));
    match parsed {
        Some((Some(suite), _)) => (to_json(&suite, file), suite.prompt, false),
        Some((None, _)) => (json!([]), None, is_test_file),
        None => (json!([]), None, false),
    }
}

fn to_json(suite: &TestSuite, file: &Prompt) -> Json {
    let cases = suite.cases.iter().map(|case| {
        let settings = suite.defaults.overridden(&case.settings);
        json!({
            "name": case.name,
            "inputs": settings.inputs,
            "variant": settings.variant,
            "guard": settings.guard,
            "provider": settings.provider,
            "model": settings.model,
            "many": case.rows.is_some() || case.matrix.is_some(),
            "span": file.offsets.span(case.span),
        })
    });
    cases.collect()
}

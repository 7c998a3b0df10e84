//! Rules about the tests of prompts. They apply to test files, and to the tests in prompt files.

mod broken_test_prompt;
mod case_without_assertions;
mod duplicate_case;
mod impossible_assertion;
mod invalid_test_input;
mod invalid_test_path;
mod invalid_test_pattern;
mod invalid_test_schema;
mod missing_test_input;
mod needless_repeat;
mod test_file_not_found;
mod unknown_test_input;
mod unknown_test_variant;
mod unsupported_threshold;

pub(super) use broken_test_prompt::RULE as BROKEN_TEST_PROMPT;
pub(super) use case_without_assertions::RULE as CASE_WITHOUT_ASSERTIONS;
pub(super) use duplicate_case::RULE as DUPLICATE_CASE;
pub(super) use impossible_assertion::RULE as IMPOSSIBLE_ASSERTION;
pub(super) use invalid_test_input::RULE as INVALID_TEST_INPUT;
pub(super) use invalid_test_path::RULE as INVALID_TEST_PATH;
pub(super) use invalid_test_pattern::RULE as INVALID_TEST_PATTERN;
pub(super) use invalid_test_schema::RULE as INVALID_TEST_SCHEMA;
pub(super) use missing_test_input::RULE as MISSING_TEST_INPUT;
pub(super) use needless_repeat::RULE as NEEDLESS_REPEAT;
pub(super) use test_file_not_found::RULE as TEST_FILE_NOT_FOUND;
pub(super) use unknown_test_input::RULE as UNKNOWN_TEST_INPUT;
pub(super) use unknown_test_variant::RULE as UNKNOWN_TEST_VARIANT;
pub(super) use unsupported_threshold::RULE as UNSUPPORTED_THRESHOLD;

pub(crate) use broken_test_prompt::broken_prompt;
pub(crate) use test_file_not_found::{check_files, missing_prompt};

use tympan_core::diagnostic::guess_name;
use tympan_core::format::outline::Field;
use tympan_core::text::source::Span;

use crate::finding::{Finding, Findings, Fix};
use crate::suite::SuiteContext;

/// A function that applies a rule to a suite.
type SuiteCheck = fn(&SuiteContext<'_>, &mut Findings);

/// The rules that need no files.
const CHECKS: [SuiteCheck; 12] = [
    unknown_test_input::check,
    missing_test_input::check,
    invalid_test_input::check,
    unknown_test_variant::check,
    impossible_assertion::check,
    invalid_test_pattern::check,
    invalid_test_path::check,
    invalid_test_schema::check,
    duplicate_case::check,
    case_without_assertions::check,
    unsupported_threshold::check,
    needless_repeat::check,
];

/// Applies all rules that need no files to a suite.
pub(crate) fn check_suite(context: &SuiteContext<'_>, findings: &mut Findings) {
    for check in CHECKS {
        check(context, findings);
    }
}

/// Adds the name that was probably meant, and a fix, to a finding about an unknown name.
fn with_suggestion<'n>(
    context: &SuiteContext<'_>,
    finding: Finding,
    (name, span): (&str, Span),
    known: impl Iterator<Item = &'n str>,
    otherwise: impl FnOnce() -> String,
) -> Finding {
    match guess_name(name, known) {
        Some(near) => {
            let fix = context.exact(span, name).map(|span| Fix::needs_review(span, near));
            Finding { fix, ..finding.with_help(format!("did you mean `{near}`?")) }
        }
        None => finding.with_help(otherwise()),
    }
}

/// Returns the text of a value, or of each item of a list.
fn texts(field: Field<'_>) -> impl Iterator<Item = (&str, Span)> {
    let own = field.text().map(|text| (text, field.span));
    own.into_iter().chain(field.items().filter_map(|item| Some((item.text()?, item.span))))
}

//! Prompts that do not load, so that they cannot be tested.

use tympan_core::Error;
use tympan_core::diagnostic::Severity;
use tympan_core::text::source::Span;

use crate::finding::Finding;
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY503",
    name: "broken_test_prompt",
    group: Group::Tests,
    severity: Severity::Error,
    fix: FixAvailability::Never,
    summary: "Reports a test file whose prompt does not load.",
    why: "Every case fails, and the tests cannot be checked against the prompt.",
    example: "# greeting.prompty has a mistake in its front matter.\nprompt: greeting.prompty\ncases:\n  - expect: \
        [{messages: 1}]",
    how_to_fix: "Fix the prompt file. `tympan check` shows its mistakes.",
    check: None,
};

/// Creates the finding about a prompt that does not load. `span` is where the test file names it.
pub(crate) fn broken_prompt(span: Span, path: &str, error: &Error) -> Finding {
    let message = format!("the prompt `{path}` does not load: {}", error.message());
    Finding::new(&RULE, span, message).with_help("fix the prompt file; `tympan check` shows where")
}

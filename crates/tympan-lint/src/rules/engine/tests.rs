//! Tests that do not load.

use super::reported;

reported! {
    INVALID_TESTS "TY501" "invalid_tests" Tests Error Sometimes
    "Reports a test file, or the tests in a prompt file, that do not parse, or that do not match the schema of test files."
    "The tests do not run."
    "cases:\n  - inputs: {name: Ada}\n    pass: 80%\n    expect: [{mesages: 1}]"
    "Fix the key or value at the position shown. `tympan schema tests` prints the schema.";
}

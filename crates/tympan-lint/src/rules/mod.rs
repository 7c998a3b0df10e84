//! The table of all rules.

mod binding;
mod bound_word;
mod conditional_marker;
mod constant_condition;
mod context_exceeded;
mod empty_message;
mod engine;
mod env_in_message;
mod input_in_tool;
mod invalid_default;
mod invisible_character;
mod literal_api_key;
mod misplaced_policy_key;
mod misspelt_role;
mod names;
mod not_a_list;
mod plain_http;
mod policy_violation;
mod role_as_text;
mod several_system_messages;
mod shadowed_builtin;
mod shadowed_input;
pub(crate) mod tests;
mod text_after_role;
pub(crate) mod tool_file_not_found;
mod uncacheable_text;
mod undeclared_effect;
mod undeclared_variable;
mod unguarded_flow;
mod unknown_attribute;
mod unknown_filter;
mod unknown_function;
mod unknown_input;
mod unknown_key;
mod unknown_kind;
mod unknown_provider;
mod unknown_test;
mod unknown_value;
mod unneeded_tool;
mod unreachable_branch;
mod unsupported_api;
mod untrusted;
mod untrusted_decision;
mod untrusted_in_marker;
mod untrusted_in_system;
mod unused_local;
mod unused_variable;
mod wrong_arguments;

use std::fmt;

use tympan_core::diagnostic::guess;

use crate::rule::Rule;
use crate::suppression;

/// Every rule, sorted by code.
pub static RULES: &[&Rule] = &[
    &engine::files::FILE_NOT_FOUND,
    &engine::files::UNREADABLE_FILE,
    &engine::files::INVALID_FRONTMATTER,
    &engine::files::INVALID_DOCUMENT,
    &engine::files::INVALID_DEFINITION,
    &engine::files::INVALID_DIRECTIVE,
    &engine::files::INVALID_XML,
    &engine::files::TEMPLATE_SYNTAX,
    &engine::files::EXCLUDED_FEATURE,
    &engine::files::LIMIT_EXCEEDED,
    &engine::files::NOT_REGISTERED,
    &engine::files::ENV_NOT_SET,
    &engine::files::ENV_NOT_ALLOWED,
    &engine::files::REFERENCED_FILE_NOT_FOUND,
    &engine::files::FILE_OUTSIDE_ROOT,
    &engine::files::INVALID_REFERENCED_FILE,
    &engine::front_matter::LEGACY_KEY,
    &engine::front_matter::MISSPELT_KEY,
    &engine::front_matter::MISSING_KIND,
    &engine::front_matter::UNQUOTED_TEXT,
    &engine::front_matter::KIND_AS_DEFAULT,
    &engine::front_matter::UNUSABLE_SAMPLE,
    &engine::front_matter::IGNORED_KEY,
    &engine::front_matter::REFERENCE_IN_TEXT,
    &engine::front_matter::UNKNOWN_REFERENCE,
    &engine::directives::NOT_APPLIED,
    &engine::directives::MISPLACED_ELEMENT,
    &engine::directives::UNKNOWN_ELEMENT,
    &engine::directives::NOT_A_NUMBER,
    &engine::directives::UNKNOWN_PERMISSION,
    &engine::directives::HOOK_WITHOUT_WHEN,
    &engine::directives::HOOK_WITHOUT_EXECUTE,
    &engine::directives::ALWAYS_DEFAULT,
    &engine::directives::INVALID_NAME,
    &engine::directives::INVALID_VERSION,
    &engine::directives::MALFORMED_REFERENCE,
    &engine::directives::MISSING_METADATA,
    &engine::directives::NO_STEPS,
    &engine::directives::UNKNOWN_TYPE,
    &engine::directives::UNMENTIONED_OUTPUT,
    &engine::directives::NOT_INTERPOLATED,
    &engine::directives::INVALID_SIGNATURE,
    &undeclared_variable::RULE,
    &unknown_filter::RULE,
    &unknown_test::RULE,
    &unknown_function::RULE,
    &misspelt_role::RULE,
    &text_after_role::RULE,
    &unknown_provider::RULE,
    &unsupported_api::RULE,
    &engine::prompts::UNSUPPORTED_OPTION,
    &invalid_default::RULE,
    &engine::prompts::DUPLICATE_NAME,
    &unknown_input::RULE,
    &engine::prompts::UNDECLARED_INPUT,
    &engine::prompts::SCHEMA_NOT_STRICT,
    &engine::prompts::SCHEMA_NOT_CHECKED,
    &engine::prompts::NO_CREDENTIALS,
    &bound_word::RULE,
    &wrong_arguments::RULE,
    &conditional_marker::RULE,
    &unknown_key::RULE,
    &tool_file_not_found::RULE,
    &unknown_attribute::RULE,
    &unknown_value::RULE,
    &unknown_kind::RULE,
    &suppression::INVALID,
    &unused_variable::RULE,
    &engine::prompts::VARIABLE_UNUSED_IN_VARIANT,
    &engine::prompts::UNMENTIONED_THREAD,
    &empty_message::RULE,
    &invisible_character::RULE,
    &several_system_messages::RULE,
    &shadowed_builtin::RULE,
    &unused_local::RULE,
    &constant_condition::RULE,
    &unreachable_branch::RULE,
    &shadowed_input::RULE,
    &not_a_list::RULE,
    &role_as_text::RULE,
    &suppression::UNUSED,
    &untrusted_in_system::RULE,
    &untrusted_in_marker::RULE,
    &untrusted_decision::RULE,
    &literal_api_key::RULE,
    &env_in_message::RULE,
    &plain_http::RULE,
    &input_in_tool::RULE,
    &engine::prompts::UNTRUSTED_WITHOUT_GUARD,
    &undeclared_effect::RULE,
    &engine::prompts::TRUSTED_RESULT,
    &misplaced_policy_key::RULE,
    &unguarded_flow::RULE,
    &policy_violation::RULE,
    &uncacheable_text::RULE,
    &context_exceeded::RULE,
    &unneeded_tool::RULE,
    &engine::tests::INVALID_TESTS,
    &tests::TEST_FILE_NOT_FOUND,
    &tests::BROKEN_TEST_PROMPT,
    &tests::UNKNOWN_TEST_INPUT,
    &tests::MISSING_TEST_INPUT,
    &tests::INVALID_TEST_INPUT,
    &tests::UNKNOWN_TEST_VARIANT,
    &tests::IMPOSSIBLE_ASSERTION,
    &tests::INVALID_TEST_PATTERN,
    &tests::INVALID_TEST_PATH,
    &tests::INVALID_TEST_SCHEMA,
    &tests::DUPLICATE_CASE,
    &tests::CASE_WITHOUT_ASSERTIONS,
    &tests::UNSUPPORTED_THRESHOLD,
    &tests::NEEDLESS_REPEAT,
];

/// The rules that need no declarations. They also apply to the templates of files that do not load.
pub(crate) static INDEPENDENT: &[&Rule] = &[
    &unknown_filter::RULE,
    &unknown_test::RULE,
    &unknown_function::RULE,
    &misspelt_role::RULE,
    &text_after_role::RULE,
    &empty_message::RULE,
    &invisible_character::RULE,
    &wrong_arguments::RULE,
    &conditional_marker::RULE,
    &unused_local::RULE,
    &constant_condition::RULE,
    &unreachable_branch::RULE,
    &role_as_text::RULE,
];

/// Returns the rule with this name.
pub(crate) fn by_name(name: &str) -> Option<&'static Rule> {
    RULES.iter().copied().find(|rule| rule.name == name)
}

/// Returns the rule with this code or name. Codes are accepted in any case, and hyphens in names count as underscores.
///
/// # Errors
/// Returns the closest known code or name, if there is one.
pub fn rule(code_or_name: &str) -> Result<&'static Rule, UnknownRule> {
    let wanted = code_or_name.trim().replace('-', "_");
    let found = RULES.iter().find(|rule| rule.code.eq_ignore_ascii_case(&wanted) || rule.name == wanted);
    found.copied().ok_or_else(|| {
        let is_code = wanted.bytes().any(|byte| byte.is_ascii_digit());
        let known = RULES.iter().map(|rule| if is_code { rule.code } else { rule.name });
        UnknownRule { wanted: code_or_name.to_owned(), suggestion: guess(&wanted, known) }
    })
}

/// The error for a code or name that no rule has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownRule {
    /// The code or name that was asked for.
    pub wanted: String,
    /// The code or name that was probably meant.
    pub suggestion: Option<&'static str>,
}

impl fmt::Display for UnknownRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown rule `{}`", self.wanted)?;
        match self.suggestion {
            Some(suggestion) => write!(f, ", did you mean `{suggestion}`?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for UnknownRule {}

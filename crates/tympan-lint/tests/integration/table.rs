//! The table of rules: sorted, unique, and complete.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tympan_core::Kind;
use tympan_lint::{Group, RULES, rule};

/// Kinds of errors that are not about a prompt file: they occur while a prompt is rendered or run.
const AT_RUN_TIME: &[Kind] = &[
    Kind::ValidationUncovered,
    Kind::UnknownVariant,
    Kind::UnknownPrompt,
    Kind::MissingInput,
    Kind::InvalidInput,
    Kind::InvalidRows,
    Kind::InvalidBatch,
    Kind::InvalidThread,
    Kind::UndefinedVariable,
    Kind::InvalidOperation,
    Kind::RichInputMisused,
    Kind::NoEntropy,
    Kind::NonceMismatch,
    Kind::InvalidAdvisory,
    Kind::CannotGuard,
    Kind::InvalidReturn,
    Kind::InvalidKey,
    Kind::InvalidRequest,
    Kind::MissingKey,
    Kind::CredentialFailed,
    Kind::UntrustedEndpoint,
];

#[test]
fn codes_are_sorted_and_unique() {
    let codes: Vec<_> = RULES.iter().map(|rule| rule.code).collect();
    assert!(codes.is_sorted_by(|a, b| a < b), "{codes:?}");
    let names: BTreeSet<_> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(names.len(), RULES.len(), "two rules have the same name");
}

#[test]
fn a_code_belongs_to_its_group() {
    for rule in RULES {
        assert!(rule.code.starts_with(rule.group.prefix()), "{rule:?}");
        assert_eq!(rule.code.len(), 5, "{rule:?}");
        assert!(rule.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{rule:?}");
    }
    assert_eq!(Group::ALL.map(Group::prefix), ["TY0", "TY1", "TY2", "TY3", "TY4", "TY5"]);
}

#[test]
fn every_page_is_complete() {
    for rule in RULES {
        for sentence in [rule.summary, rule.why, rule.how_to_fix] {
            assert!(sentence.ends_with('.') && sentence.len() > 10, "{rule:?}: {sentence:?}");
            assert!(!sentence.contains("  "), "{rule:?}: {sentence:?}");
        }
        assert!(rule.summary.starts_with("Reports "), "{rule:?}");
        assert!(!rule.example.is_empty(), "{rule:?}");
    }
}

#[test]
fn rules_are_found_by_code_and_name() {
    assert_eq!(rule("TY101").map(|rule| rule.name), Ok("undeclared_variable"));
    assert_eq!(rule("ty101"), rule("undeclared-variable"));
    let unknown = rule("undeclared_varible").expect_err("it is misspelled");
    assert_eq!(unknown.to_string(), "unknown rule `undeclared_varible`, did you mean `undeclared_variable`?");
    assert_eq!(rule("nonsense").expect_err("the rule does not exist").to_string(), "unknown rule `nonsense`");
}

/// Every kind of error is either about a prompt file, and has a rule, or occurs at run time.
#[test]
fn every_kind_of_error_is_classified() {
    // What comes after these in the pipeline is about providers, tools and journals.
    let last = Kind::ALL.iter().position(|kind| *kind == Kind::UntrustedEndpoint).expect("it is a kind");
    for kind in &Kind::ALL[..=last] {
        let has_rule = RULES.iter().any(|rule| rule.name == kind.code());
        assert!(has_rule != AT_RUN_TIME.contains(kind), "{}", kind.code());
    }
}

/// Every code that is written next to a diagnostic in the sources has a rule.
#[test]
fn every_diagnostic_has_a_rule() {
    let names: BTreeSet<_> = RULES.iter().map(|rule| rule.name.to_owned()).collect();
    let sources = sources();
    let shared: BTreeMap<_, _> = sources.iter().flat_map(|source| constants(source)).collect();
    let mut used = BTreeSet::new();
    for source in &sources {
        let own: BTreeMap<_, _> = constants(source).collect();
        for argument in first_arguments(source) {
            match argument.strip_prefix('"') {
                Some(code) => used.insert(code.trim_end_matches('"').to_owned()),
                None => own.get(argument).or(shared.get(argument)).is_some_and(|code| used.insert((*code).to_owned())),
            };
        }
    }
    assert!(used.len() > 30, "only {} codes were found", used.len());
    let missing: Vec<_> = used.difference(&names).collect();
    assert!(missing.is_empty(), "diagnostics without a rule: {missing:?}");
}

/// The string constants of a source.
fn constants(source: &str) -> impl Iterator<Item = (&str, &str)> {
    source.split("const ").skip(1).filter_map(|declaration| {
        let (name, rest) = declaration.split_once(": &str = \"")?;
        Some((name, rest.split('"').next()?)).filter(|_| !name.contains(char::is_whitespace))
    })
}

/// The first arguments of the calls that create diagnostics.
fn first_arguments(source: &str) -> impl Iterator<Item = &str> {
    let calls = ["Diagnostic::warning(", "Diagnostic::error("];
    let behind = calls.into_iter().flat_map(|call| source.split(call).skip(1));
    behind.map(|behind| behind.trim_start().split(',').next().unwrap_or_default())
}

/// The sources of the engine and the runtime, without their tests.
fn sources() -> Vec<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders: Vec<PathBuf> = ["tympan-core", "tympan-runtime"].map(|name| crates.join(name).join("src")).into();
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the sources are there") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                #[expect(clippy::disallowed_methods, reason = "a test reads the sources")]
                let source = std::fs::read_to_string(&path).expect("a source");
                sources.push(source.split("#[cfg(test)]\nmod tests").next().unwrap_or_default().to_owned());
            }
        }
    }
    sources
}

//! The guide lists every kind of error, every filter, every test and every provider.

use tympan::template::{CompileOptions, Template};
use tympan::wire::compatible::PROVIDERS;
use tympan::{JsonMap, Kind, Prompt};

const ERRORS: &str = include_str!("../../../../docs/guide/errors.md");
const PROVIDERS_PAGE: &str = include_str!("../../../../docs/guide/providers.md");
const TEMPLATES: &str = include_str!("../../../../docs/guide/templates.md");

#[test]
fn every_error_is_listed() {
    for kind in Kind::ALL {
        // Compare only the part of the message before its details.
        let (start, _) = kind.pattern().split_once("{}").expect("a pattern has a place for details");
        let row = format!("| `{}` | `{}` | {start}", kind.code(), kind.class().as_str());
        assert!(ERRORS.contains(&row), "docs/guide/errors.md lacks a row that begins with: {row}");
    }
}

/// Returns the names in the help of an error about an unknown name.
fn known_names(source: &str) -> Vec<String> {
    let template = Template::compile(source, CompileOptions::default()).expect("it compiles");
    let error = template.render_json(&JsonMap::new(), false).expect_err("there is none of that name");
    let names = error.help().and_then(|help| help.strip_prefix("available: ")).expect("the help lists all names");
    let names = names.strip_suffix("; the application can register more").expect("the help says what else there is");
    names.split(", ").map(str::to_owned).collect()
}

#[test]
fn every_filter_and_test_is_listed() {
    let names = [known_names("{{ 1 | qqq }}"), known_names("{{ 1 is qqq }}")].concat();
    assert!(names.len() > 80, "{names:?}");
    for name in names {
        let is_listed = TEMPLATES.contains(&format!("`{name}`")) || TEMPLATES.contains(&format!("`{name}("));
        assert!(is_listed, "docs/guide/templates.md lacks `{name}`");
    }
}

#[test]
fn every_provider_is_listed() {
    let code = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    for provider in PROVIDERS {
        let names = [&[provider.name], provider.aliases].concat();
        let apis: Vec<_> = provider.protocols.iter().map(|protocol| protocol.api_type()).collect();
        let row = [
            code(&names),
            provider.base_url.unwrap_or("your own").to_owned(),
            code(provider.key_variables),
            provider.base_url_variable.map_or("—".to_owned(), |variable| code(&[variable])),
            apis.join(", "),
        ];
        let row = format!("| {} |", row.join(" | "));
        assert!(PROVIDERS_PAGE.contains(&row), "docs/guide/providers.md lacks the row: {row}");
    }
}

/// As the guide promises.
#[test]
fn prompts_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Prompt>();
}

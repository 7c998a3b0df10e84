//! The evaluator refuses exactly the arguments that the signatures refuse.

use serde_json::Map as JsonMap;
use tympan_core::template::name_use::NameKind;
use tympan_core::template::signature::Signature;
use tympan_core::template::{CompileOptions, Template};

/// Values of all kinds that filters are applied to.
const VALUES: [&str; 8] = ["[]", "'abc'", "5", "[1, 2]", "['%s']", "{'a': 1}", "[{'a': 1}]", "'%s'"];

/// A value that a parameter of this name accepts.
fn argument(name: &str) -> &'static str {
    match name {
        "count" | "start" | "stop" | "step" | "precision" | "maxsplit" => "1",
        "width" | "length" | "base" => "10",
        "leeway" => "0",
        "indent" => "2",
        "method" => "'common'",
        "filter" => "'format'",
        "test" => "'defined'",
        "map" => "{'a': 1}",
        "by" => "'key'",
        "boolean" | "killwords" | "first" | "blank" | "reverse" | "case_sensitive" | "binary" => "true",
        _ => "'a'",
    }
}

/// Returns whether no rendering succeeds, and the reason is the arguments. For other values, it may be the value.
fn is_refused(templates: impl Iterator<Item = String>) -> bool {
    let reasons = [
        "unexpected argument",
        "missing argument",
        "`count` must be at least 1",
        "needs a value to compare with",
        "`range` expects",
        "does not accept named arguments",
        "expects a map or named arguments",
    ];
    let mut refused = false;
    for source in templates {
        let template = Template::compile(&source, CompileOptions::default()).expect("it compiles");
        match template.render_json(&JsonMap::new(), false) {
            Ok(_) => return false,
            Err(error) => refused |= reasons.iter().any(|reason| error.message().contains(reason)),
        }
    }
    refused
}

/// Lists of arguments: up to five positional ones, and up to two with names.
fn calls(signature: &Signature) -> Vec<(usize, Vec<&'static str>)> {
    let names: Vec<_> = signature.params.iter().chain(signature.named).copied().chain(["attribute", "bogus"]).collect();
    let mut lists = vec![Vec::new()];
    for (index, first) in names.iter().enumerate() {
        lists.push(vec![*first]);
        lists.extend(names[index + 1..].iter().filter(|second| *second != first).map(|second| vec![*first, *second]));
    }
    (0..=5).flat_map(|count| lists.iter().map(move |names| (count, names.clone()))).collect()
}

fn written(signature: &Signature, positional: usize, named: &[&str]) -> String {
    let by_position = (0..positional).map(|index| argument(signature.params.get(index).unwrap_or(&"")).to_owned());
    let by_name = named.iter().map(|name| format!("{name}={}", argument(name)));
    by_position.chain(by_name).collect::<Vec<_>>().join(", ")
}

#[test]
fn filters_refuse_what_their_signatures_refuse() {
    let mut count = 0;
    for name in NameKind::Filter.builtin() {
        let known = Signature::of_filter(name, &[]).expect("it is built in");
        for (positional, named) in calls(&known) {
            let signature = Signature::of_filter(name, &named).expect("it is built in");
            let args = written(&signature, positional, &named);
            let refused = is_refused(VALUES.iter().map(|value| format!("{{{{ ({value}) | {name}({args}) }}}}")));
            let mistake = signature.mistake(positional, &named);
            assert_eq!(mistake.is_some(), refused, "{name}({args}): {mistake:?}");
            count += 1;
        }
    }
    assert!(count > 1000, "only {count} calls");
    assert_eq!(Signature::of_filter("shout", &[]), None);
}

#[test]
fn tests_refuse_what_their_signatures_refuse() {
    for name in NameKind::Test.builtin().iter().filter(|name| name.starts_with(char::is_alphabetic)) {
        // These words are also constants and operators, and have no arguments in templates.
        if ["true", "false", "none"].contains(name) {
            continue;
        }
        let signature = Signature::of_test(name).expect("it is built in");
        for (positional, named) in calls(&signature) {
            let args = written(&signature, positional, &named);
            let refused = is_refused(VALUES.iter().map(|value| format!("{{{{ ({value}) is {name}({args}) }}}}")));
            assert_eq!(signature.mistake(positional, &named).is_some(), refused, "{name}({args})");
        }
    }
}

#[test]
fn functions_refuse_what_their_signatures_refuse() {
    for name in NameKind::Function.builtin() {
        let signature = Signature::of_function(name).expect("it is built in");
        for (positional, named) in calls(&signature) {
            let args = written(&signature, positional, &named);
            let refused = is_refused([format!("{{{{ {name}({args}) }}}}")].into_iter());
            assert_eq!(signature.mistake(positional, &named).is_some(), refused, "{name}({args})");
        }
    }
}

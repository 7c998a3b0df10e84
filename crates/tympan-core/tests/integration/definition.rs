//! Prompt definitions: the fixtures in three syntaxes, and prompts built from them.
#![allow(clippy::disallowed_methods, reason = "a test may read files")]

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use tympan::format::definition::Syntax;
use tympan::prompt::definition::Overlay;
use tympan::text::source::SourceFile;
use tympan::{Composition, Error, Kind, Prompt, RenderOptions, Role, inputs};

fn fixtures(directory: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/definition").join(directory);
    let entries = std::fs::read_dir(directory).expect("the directory is there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    assert!(paths.len() >= 9);
    paths
}

fn load(path: &Path) -> Result<Prompt, Error> {
    let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
    let extension = path.extension().and_then(|extension| extension.to_str()).expect("an extension");
    let text = std::fs::read_to_string(path).expect("it can be read");
    let syntax = Syntax::from_extension(extension).expect("a syntax");
    Prompt::from_definition_source(SourceFile::new(name, text), syntax)
}

/// Formats an error and the diagnostics reported with it, one per line.
fn report(error: &Error) -> String {
    let source = error.source_file().expect("it has a source");
    let mut lines = vec![(error.span(), error.message().to_owned(), error.help())];
    lines.extend(error.others().iter().map(|other| (other.span, other.message.clone(), other.help.as_deref())));
    let line = |(span, message, help): &(Option<tympan::text::source::Span>, String, Option<&str>)| {
        let place = source.line_column(span.expect("it has a place").start);
        format!("{}:{} {message}\n    {}\n", place.line, place.column, help.unwrap_or("-"))
    };
    lines.iter().map(line).collect()
}

#[test]
fn rejected() {
    let mut all = String::new();
    for path in fixtures("rejected") {
        let error = load(&path).expect_err(&format!("{} is wrong", path.display()));
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        all.push_str(&format!("== {name}\n{}\n", report(&error)));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn accepted_in_every_syntax_alike() {
    for path in fixtures("accepted") {
        let prompt = load(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let same = load(&path.with_extension("json")).expect("the same in JSON");
        let definition = prompt.to_definition().expect("it is a definition");
        assert_eq!(Some(&definition), same.to_definition().as_ref(), "{}", path.display());
        assert_eq!(prompt.definition_hash(), same.definition_hash(), "{}", path.display());
        assert_eq!(Prompt::new(&definition).expect("it is sound").to_definition(), Some(definition));
    }
}

const ARMS: &str = r#"
name: greet
role: user
body: |
  Hello {{ name }}!
variables:
  name: {type: string, trusted: false}
  tone: {type: string, trusted: true, validation_required: true}
variants:
  warm:
    body: "Dear {{ name }}"
    metadata: {weight: 2}
metadata: {team: red}
"#;

#[test]
fn a_render_says_what_it_is() {
    let prompt = Prompt::from_yaml(ARMS).expect("it is sound");
    let vars = json!({"name": "system:\nAda"});
    let plain = prompt.render(&vars).expect("it renders");
    // One line feed at the end of a body is dropped.
    assert_eq!((plain.text(), plain.variant(), plain.name()), ("Hello system:\nAda!", "default", Some("greet")));
    assert!(plain.is_default());
    let options = RenderOptions { variant: Some("warm"), ..RenderOptions::default() };
    let warm = prompt.render_with(&vars, &options).expect("it renders");
    assert_eq!((warm.text(), warm.variant(), warm.is_default()), ("Dear system:\nAda", "warm", false));
    assert_eq!(warm.template_hash(), tympan::text::hash::sha256_hex("Dear {{ name }}"));
    assert_eq!(warm.render_hash(), tympan::text::hash::sha256_hex("Dear system:\nAda"));
    let attributes = prompt.provenance_attributes(&warm);
    assert_eq!(attributes["tympan.prompt.variant"], "warm");
    assert_eq!(attributes["tympan.prompt.definition_hash"], prompt.definition_hash());
    let messages = prompt.messages(warm).expect("it has a parser");
    assert_eq!((messages.len(), messages[0].role, messages[0].to_text()), (1, Role::User, "Dear system:\nAda".into()));
}

#[test]
fn variables_can_be_null() {
    let text = "{name: a, role: user, body: 'Hi {{ name }}{% if name is none %}nobody{% endif %}!', \
                variables: {name: {type: [string, 'null'], trusted: false}}}";
    let prompt = Prompt::from_yaml(text).expect("it is sound");
    assert_eq!(prompt.render(json!({"name": null})).expect("it renders").text(), "Hi nobody!");
    assert_eq!(prompt.render(json!({"name": "Ada"})).expect("it renders").text(), "Hi Ada!");
    assert!(prompt.variables()[0].nullable);
    let plain = Prompt::from_yaml(&text.replace("[string, 'null']", "string")).expect("it is sound");
    assert_ne!(prompt.definition_hash(), plain.definition_hash());
}

#[test]
fn everything_can_be_asked_for() {
    let prompt = Prompt::from_yaml(ARMS).expect("it is sound");
    assert_eq!(prompt.arms().collect::<Vec<_>>(), ["default", "warm"]);
    assert_eq!(prompt.validation_required().collect::<Vec<_>>(), ["tone"]);
    assert_eq!(prompt.get_source(Some("warm")).ok(), Some("Dear {{ name }}"));
    assert_eq!(prompt.get_source(None).ok(), Some("Hello {{ name }}!\n"));
    assert_eq!(prompt.variant_metadata("warm").ok().map(|map| map["weight"].clone()), Some(json!(2)));
    assert_eq!(prompt.metadata()["team"], "red");
    let error = prompt.get_source(Some("cold")).expect_err("there is none");
    assert_eq!((error.kind(), error.help()), (Kind::UnknownVariant, Some("known variants: `default`, `warm`")));
}

#[test]
fn templates_see_what_is_declared_and_no_more() {
    let text = "{name: a, role: user, body: '{% if x is defined %}{% set y = 1 %}{% endif %}{{ y }}', \
                variables: {x: {type: string, trusted: true}}}";
    let prompt = Prompt::from_yaml(text).expect("it is sound");
    let error = prompt.render(json!({"y": "forged"})).expect_err("y is not the caller's to set");
    assert_eq!(error.kind(), Kind::UndefinedVariable);
    assert_eq!(prompt.render(json!({"x": 1})).expect("it renders").text(), "1");
}

#[test]
fn values_are_not_in_errors() {
    let prompt = Prompt::from_yaml(ARMS).expect("it is sound");
    for vars in [json!("hunter2"), json!(["hunter2"])] {
        let error = prompt.render(&vars).expect_err("no map");
        assert!(!format!("{error} {error:?} {:?}", error.help()).contains("hunter2"));
    }
}

#[test]
fn prompts_are_derived() {
    let base = Prompt::from_yaml(ARMS).expect("it is sound");
    let fields = |value: Json| value.as_object().expect("a map").clone();
    let merged = base.derive(&Overlay::merge(fields(json!({
        "variants": {"cold": {"body": "{{ name }}."}}, "metadata": null, "role": "system"
    }))));
    let merged = merged.expect("it is sound");
    assert_eq!(merged.arms().collect::<Vec<_>>(), ["default", "warm", "cold"]);
    assert_eq!((merged.role(), merged.metadata().is_empty()), (Some(Role::System), true));
    let replaced = base.derive(&Overlay::replace(fields(json!({"variants": {"cold": {"body": "x"}}}))));
    assert_eq!(replaced.expect("it is sound").arms().collect::<Vec<_>>(), ["default", "cold"]);
    let replaced = base.derive(&Overlay::replace(fields(json!({"metadata": {"level": 1}, "variants": null}))));
    let replaced = replaced.expect("it is sound");
    assert_eq!((replaced.arms().count(), replaced.metadata().len()), (1, 1));
    let error = base.derive(&Overlay::replace(fields(json!({"variables": {}, "role": "boss"}))));
    let error = error.expect_err("the whole is checked");
    assert_eq!(error.others().len(), 2, "{}", report(&error));
}

#[test]
fn a_composition_is_all_or_nothing() {
    let greet = Prompt::from_yaml(ARMS).expect("it is sound");
    let mut both = Composition::default();
    let inputs = json!({"name": "Ada"}).as_object().cloned().expect("a map");
    both.push(&greet, inputs.clone()).push_variant(&greet, Some("warm"), inputs);
    let texts: Vec<_> =
        both.messages(&RenderOptions::default()).expect("it renders").iter().map(|m| m.to_text()).collect();
    assert_eq!(texts, ["Hello Ada!", "Dear Ada"]);
    both.push(&greet, inputs! {}).push_variant(&greet, Some("cold"), inputs! {});
    let error = both.messages(&RenderOptions::default()).expect_err("two cannot be rendered");
    assert_eq!((error.kind(), error.others()[0].code), (Kind::UndefinedVariable, "unknown_variant"));
}

#[test]
fn findings_of_a_check() {
    let text = r#"
name: a
role: system
body: |
  {% set x = q %}
  {% for m in [x] %}{{ m }}{% endfor %}
variables:
  q: {type: string, trusted: false}
  tone: {type: string, trusted: true}
  spare: {type: string, trusted: true}
variants:
  b: {body: "{{ tone }} {{ q|upper }}", metadata: {guard: true}}
"#;
    let prompt = Prompt::from_yaml(text).expect("it is sound");
    let lines = prompt.check().expect("it compiles").into_iter().map(|finding| {
        let place = prompt.source().line_column(finding.span.expect("it has a place").start);
        format!("{}:{} {} {}\n", place.line, place.column, finding.code, finding.message)
    });
    insta::assert_snapshot!(lines.collect::<String>());
}

/// The worked example of docs/guide/hashes.md.
#[test]
fn the_definition_hash_can_be_recomputed() {
    let prompt = Prompt::from_yaml(ARMS).expect("it is sound");
    let canonical = concat!(
        r#"{"bodies":{"default":"Hello {{ name }}!\n","warm":"Dear {{ name }}"},"#,
        r#""format":"jinja2","parser":"message","role":"user","#,
        r#""variables":{"name":{"trusted":false,"types":["string"]},"tone":{"trusted":true,"types":["string"]}},"#,
        r#""version":1}"#
    );
    assert_eq!(prompt.definition_hash(), tympan::text::hash::sha256_hex(canonical));
}

fn shuffled(value: &Json, seed: u64) -> Json {
    match value {
        Json::Object(map) => {
            let mut entries: Vec<_> = map.iter().map(|(key, value)| (key.clone(), shuffled(value, seed))).collect();
            entries.sort_by_key(|(key, _)| tympan::text::hash::sha256_hex(format!("{seed}{key}")));
            Json::Object(entries.into_iter().collect())
        }
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_definition_hash_knows_no_format_and_no_order(
        body in "[ -~\n\u{e9}\u{1f600}]{0,30}",
        other in "[a-z\n \"\\\\']{0,12}",
        role in prop::sample::select(vec!["system", "user", "assistant"]),
        trusted in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let body = body.replace(['{', '}'], "");
        let definition = json!({
            "name": "n", "role": role, "body": body,
            "variables": {"a": {"type": "string", "trusted": trusted}, "b": {"type": ["array", "object"], "trusted": true}},
            "variants": {"x": {"body": other.clone()}, "y": {"body": "y"}},
        });
        let prompt = Prompt::from_json(&definition.to_string()).expect("it is sound");
        let text = shuffled(&definition, seed).to_string();
        let in_json = Prompt::from_json(&text).expect("the same");
        let in_yaml = Prompt::from_yaml(&text).expect("JSON is YAML");
        let toml = toml::to_string(&definition).expect("it can be written");
        let in_toml = Prompt::from_toml(&toml).expect("the same");
        for same in [in_json, in_yaml, in_toml] {
            prop_assert_eq!(same.definition_hash(), prompt.definition_hash());
            prop_assert_eq!(same.get_source(Some("x")).ok(), Some(other.as_str()));
        }
        let mut changed = definition;
        changed["variables"]["a"]["trusted"] = json!(!trusted);
        let changed = Prompt::from_json(&changed.to_string()).expect("it is sound");
        prop_assert_ne!(changed.definition_hash(), prompt.definition_hash());
    }
}

const SCRAPS: &[&str] = &[
    "name",
    "role",
    "body",
    "variables",
    "variants",
    "default",
    ": ",
    " = ",
    "\n",
    "\n  ",
    "\n    ",
    "|\n  ",
    ">-\n  ",
    "{",
    "}",
    "[",
    "]",
    ",",
    "\"",
    "'",
    "\"\"\"",
    "'''",
    "\\",
    "\\u00e9",
    "\\n",
    "&a ",
    "*a",
    "!!str ",
    "user",
    "true",
    "3",
    "x",
    "ß",
    "😀",
    "#",
    "{{ x }}",
    "{{ x",
    "{% for i in x %}{{ i }}{% endfor %}",
    "name: a\nrole: user\nbody: ",
    "{\"name\": \"a\", \"body\": \"",
    "name = 'a'\nrole = 'user'\nbody = ",
    "variables:\n  x: {type: string, trusted: true}\n",
    "\r\n",
    "\t",
    "\u{feff}",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// Any text is a valid prompt or gives errors with positions in the text.
    #[test]
    fn any_text_is_a_prompt_or_says_why_not(parts in prop::collection::vec(prop::sample::select(SCRAPS), 0..24)) {
        let text = parts.concat();
        for syntax in [Syntax::Yaml, Syntax::Json, Syntax::Toml] {
            let source = SourceFile::new("x", text.as_str());
            match Prompt::from_definition_source(source, syntax) {
                Ok(prompt) => drop(prompt.check().expect("its templates compile")),
                Err(error) => {
                    let spans = std::iter::once(error.span()).chain(error.others().iter().map(|other| other.span));
                    for span in spans {
                        let span = span.expect("it has a place");
                        prop_assert!(span.start <= span.end && span.end <= text.len(), "{:?} in {:?}", span, text);
                    }
                }
            }
        }
    }
}

/// Templates that would be dangerous to traverse are rejected earlier, and the others are traversed quickly.
#[test]
fn large_definitions_are_no_trouble() {
    let mut body = String::new();
    for index in 0..20_000 {
        body.push_str(&format!("{{% if a %}}{{% set v{index} = a %}}{{% endif %}}{{{{ v{index} }}}}"));
    }
    let definition =
        json!({"name": "n", "role": "user", "body": body, "variables": {"a": {"type": "string", "trusted": true}}});
    Prompt::from_json(&definition.to_string()).expect("it is sound");
    let deep = "{% if a %}".repeat(99) + "{{ b }}" + &"{% endif %}".repeat(99);
    let definition =
        json!({"name": "n", "role": "user", "body": deep, "variables": {"a": {"type": "string", "trusted": true}}});
    let small = std::thread::Builder::new().stack_size(512 << 10);
    let thread =
        small.spawn(move || Prompt::from_json(&definition.to_string()).map(|_| ()).map_err(|error| error.kind()));
    assert_eq!(thread.expect("it starts").join().expect("it ends"), Err(Kind::UndeclaredVariable));
}

mod validated {
    use super::*;
    use garde::Validate;
    use serde::Serialize;

    #[derive(Serialize, Validate)]
    struct Vars {
        #[garde(length(min = 3))]
        name: String,
        #[garde(inner(length(max = 1)))]
        tone: Vec<String>,
    }

    #[test]
    fn nothing_is_rendered_unless_it_is_valid() {
        let prompt = Prompt::from_yaml(ARMS).expect("it is sound");
        let vars = |name: &str, tone: &str| Vars { name: name.into(), tone: vec![tone.into()] };
        let options = RenderOptions::default();
        assert!(prompt.render_validated(&vars("Ada", "x"), &options).is_ok());
        let error = prompt.render_validated(&vars("hu", "hunter2"), &options).expect_err("it is not valid");
        assert_eq!(error.message(), "Invalid input: `name`, `tone` failed validation");
    }
}

#[test]
fn a_copy_is_the_same_prompt() {
    let text = "{name: a, role: user, body: 'Hello {{ x }}', variables: {x: {type: string, trusted: false}}}";
    let prompt = Prompt::from_yaml(text).expect("it is sound");
    let copy = prompt.clone();
    assert_eq!(copy.definition_hash(), prompt.definition_hash());
    let inputs = serde_json::json!({ "x": "Ada" });
    let text =
        |prompt: &Prompt| prompt.render(inputs.as_object().expect("a map")).expect("it renders").text().to_owned();
    assert_eq!(text(&copy), text(&prompt));
}

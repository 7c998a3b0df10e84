//! The types of prompt definitions are up to date with the schema from which typify generates them.
//!
//! The generated code is checked in, because typify and its dependencies take longer to build than the engine itself.
//! `UPDATE_GENERATED=1` regenerates it.

use typify_impl::{TypeSpace, TypeSpaceSettings};

const HEAD: &str =
    "// Generated from schemas/prompt-definition.schema.json with typify, by schemas/generate.sh. Do not edit.\n\n";

fn generate(schema: &str) -> String {
    let mut schema: serde_json::Value = serde_json::from_str(schema).expect("the schema is JSON");
    // typify has no type for "any text but this". The validation of the document covers this rule.
    schema["properties"]["variants"].as_object_mut().expect("variants").remove("propertyNames");
    // Nor should every name become a type of its own.
    schema["properties"]["name"].as_object_mut().expect("name").remove("minLength");
    let schema = serde_json::from_value(schema).expect("typify knows the keywords");
    let mut settings = TypeSpaceSettings::default();
    settings.with_map_type("::indexmap::IndexMap".to_owned()).with_derive("PartialEq".to_owned());
    let mut types = TypeSpace::new(&settings);
    types.add_root_schema(schema).expect("the schema describes types");
    let file = syn::parse2(types.to_stream()).expect("typify writes Rust");
    format!("{HEAD}{}", prettyplease::unparse(&file))
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test may read and write files")]
fn types_are_made_from_the_schema() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/format/definition/generated.rs");
    let generated = generate(tympan::format::definition::SCHEMA);
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::write(path, &generated).expect("it can be written");
    }
    let kept = std::fs::read_to_string(path).expect("it can be read");
    assert!(kept == generated, "generated.rs is stale: run schemas/generate.sh");
}

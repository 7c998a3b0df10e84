//! Everything that can be the inputs of a prompt renders the same text.

#![allow(clippy::needless_borrows_for_generic_args, reason = "inputs can be passed either way, and both are tested")]

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde_json::json;
use tympan::{JsonMap, Kind, Prompt, Serialized, inputs};

#[derive(Serialize)]
struct Owned {
    name: String,
    n: u32,
}

#[derive(Serialize)]
struct Borrowed<'a> {
    name: &'a str,
    n: u32,
}

fn prompt() -> Prompt {
    Prompt::from_prompty("user:\nHi {{ name }}, {{ n }} times!").expect("a prompt")
}

#[test]
fn json_maps_and_structs_are_inputs() {
    let prompt = prompt();
    let value = json!({"name": "Ada", "n": 3});
    let map: &JsonMap = value.as_object().expect("a map");
    let name = String::from("Ada");
    let texts = [
        prompt.render(&value),
        prompt.render(value.clone()),
        prompt.render(map),
        prompt.render(map.clone()),
        prompt.render(inputs! { name: "Ada", n: 3 }),
        prompt.render(inputs! { "name": &name, "n": 3, }),
        prompt.render(HashMap::from([("name", json!("Ada")), ("n", json!(3))])),
        prompt.render(&HashMap::from([("name".to_owned(), json!("Ada")), ("n".to_owned(), json!(3))])),
        prompt.render(BTreeMap::from([("name", json!("Ada")), ("n", json!(3))])),
        prompt.render(&Owned { name: name.clone(), n: 3 }),
        prompt.render(Serialized(&Borrowed { name: &name, n: 3 })),
    ];
    for text in texts {
        assert_eq!(text.expect("it renders").text(), "user:\nHi Ada, 3 times!");
    }
}

#[test]
fn what_is_not_a_map_is_refused_without_being_quoted() {
    let prompt = prompt();
    let unwritable = HashMap::from([(vec![1], "secret")]);
    let errors = [
        prompt.render(json!(["secret"])),
        prompt.render(&json!("secret")),
        prompt.render(inputs! { name: unwritable.clone() }),
        prompt.render(&unwritable),
    ];
    for error in errors {
        let error = error.expect_err("not a map");
        assert_eq!(error.kind(), Kind::InvalidInput);
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}

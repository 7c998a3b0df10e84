//! Decoding of results into types of the caller.

use serde::Deserialize;
use serde_json::json;
use tympan::spec::PromptSpec;
use tympan::spec::schema::{Property, PropertyKind};
use tympan::turn::outcome;
use tympan::wire::response::{Answer, Output};
use tympan::wire::{Protocol, protocol};
use tympan::{Kind, Outcome, Prompt, Response};

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Weather {
    city: String,
    temp: u8,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Mood {
    Good,
    Bad,
}

fn result(text: &str) -> Outcome {
    let mut temp = Property::new("temp", PropertyKind::Integer);
    temp.required = Some(true);
    let outputs = vec![Property::new("city", PropertyKind::String), temp];
    let prompt = Prompt::from_spec(PromptSpec { outputs, ..PromptSpec::default() });
    let answer = Answer { text: text.to_owned(), ..Answer::default() };
    outcome::finish(&prompt, Response { output: Output::Answer(answer), ..Response::default() }).expect("a result")
}

#[test]
fn results_are_cast_from_what_the_model_wrote() {
    let outcome = result(" {\"city\": \"Paris\", \"temp\": 22}\n");
    assert_eq!(outcome.cast::<Weather>().expect("it fits"), Weather { city: "Paris".into(), temp: 22 });
    let Outcome::Structured(structured) = &outcome else { panic!("{outcome:?}") };
    assert_eq!(structured.raw, " {\"city\": \"Paris\", \"temp\": 22}\n");
    assert_eq!(Outcome::Text("bad".into()).cast::<Mood>().expect("it fits"), Mood::Bad);
    assert_eq!(Outcome::Text("\"good\"".into()).cast::<Mood>().expect("it fits"), Mood::Good);
    assert_eq!(Outcome::Text("plain".into()).cast::<String>().expect("it fits"), "plain");
    assert_eq!(Outcome::Embedding(vec![0.5]).cast::<Vec<f32>>().expect("it fits"), [0.5]);
    assert_eq!(Outcome::Images(vec!["a".into()]).cast::<Vec<String>>().expect("it fits"), ["a"]);
}

#[test]
fn a_fenced_answer_counts() {
    let text = "Here it is:\n```json\n{\"city\": \"Paris\", \"temp\": 22}\n```\n";
    let outcome = result(text);
    assert_eq!(outcome.cast::<Weather>().expect("it fits"), Weather { city: "Paris".into(), temp: 22 });
    assert_eq!(outcome.to_json(), json!({"city": "Paris", "temp": 22}));
    let Outcome::Structured(structured) = &outcome else { panic!("{outcome:?}") };
    assert_eq!((structured.raw.as_str(), structured.problems.as_slice()), (text, [].as_slice()));
    assert_eq!(result("```json\n{}\n```").problems(), ["`temp` is missing"]);
    assert_eq!(result("```\nnot JSON\n```"), Outcome::Text("```\nnot JSON\n```".into()));
    let answer = Answer { text: text.to_owned(), ..Answer::default() };
    let response = Response { output: Output::Answer(answer), ..Response::default() };
    let without_outputs = outcome::finish(&Prompt::from_spec(PromptSpec::default()), response).expect("a result");
    assert_eq!(without_outputs, Outcome::Text(text.to_owned()));
}

#[test]
fn what_does_not_fit_is_said_without_quoting_it() {
    let cases = [
        (r#"{"city": "Paris", "temp": "s3cret, expected or not"}"#, "invalid type, expected u8 at line 1 column"),
        (r#"{"city": "Paris", "temp": 300}"#, "invalid value, expected u8 at line 1 column"),
        (r#"{"temp": 22}"#, "missing field `city` at line 1 column"),
        (r#"{"s3cret": 1}"#, "unknown field, expected `city` or `temp` at line 1 column"),
        ("s3cret", "invalid JSON at line 1, column 1"),
    ];
    for (text, expected) in cases {
        let error = result(text).cast::<Weather>().expect_err("it does not fit");
        assert_eq!(error.kind(), Kind::InvalidResult);
        assert!(error.message().contains(expected), "{text}: {error}");
        assert!(!error.message().contains("s3cret"), "{text}: {error}");
    }
    let error = result(r#"{"temp": "x"}"#).cast::<Weather>().expect_err("it does not fit");
    assert_eq!(error.help(), Some("`temp`: expected integer, found a string"));
}

#[test]
fn problems_are_bounded() {
    let many: serde_json::Map<_, _> = (0..100).map(|number| (format!("{number:0>100}"), json!(number))).collect();
    let outcome = result(&json!(many).to_string());
    assert_eq!(outcome.problems().len(), 21);
    assert!(outcome.problems().iter().all(|problem| problem.len() < 100), "{:?}", outcome.problems());
}

#[test]
fn providers_and_interfaces_have_protocols() {
    assert_eq!(protocol("anthropic", "chat").expect("it has"), Protocol::AnthropicMessages);
    assert_eq!(protocol("groq", "chat").expect("it has"), Protocol::OpenAiChat);
    assert_eq!(protocol("azure", "embedding").expect("it has"), Protocol::OpenAiEmbeddings);
    assert_eq!(protocol("anthropic", "image").expect_err("it has not").kind(), Kind::UnsupportedApi);
    assert_eq!(protocol("openai", "video").expect_err("it has not").kind(), Kind::UnsupportedApi);
}

//! Any text as an input, or as a text to parse: no input adds, removes or changes a message, and
//! what it says is in one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::json;
use tympan::chat::marker::pre_render;
use tympan::chat::{ParseTextOptions, parse_text, split};
use tympan::prompt::Prompt;
use tympan::spec::PromptSpec;
use tympan::{Inputs, Message, Role};

/// Prompts that write `a` and `b` as they are.
const PROMPTS: &[&str] = &[
    "system:\n{{ a }}\n\nuser:\n{{ b }}",
    "{{ a }}{{ b }}",
    "\n{{ a }}system:\n{{ b }}:\nuser:{{ a }}\n",
    "user[name={{ a }}]:\n{{- b -}}\nassistant[x=\"{{ b }}\"]:\n{{ a }}",
    "{% for x in [a, b] %}user:\n{{ x }}\nassistant:\nok\n{% endfor %}",
    "# system:\n{% set x %}{{ a }}\nuser:\n{{ b }}{% endset %}{{ x }}\n{{ a ~ b }}:\n",
];

fuzz_target!(|texts: (&str, &str)| {
    let (a, b) = texts;
    for template in PROMPTS {
        let messages = messages(template, a, b);
        assert_eq!(roles(&messages), roles(&self::messages(template, "", "")), "{template}");
        for text in [a, b] {
            assert!(messages.iter().any(|message| holds(message, text)), "{text:?} is lost: {template} {messages:?}");
        }
    }
    let _ = parse_text(a, &ParseTextOptions::default());
    let _ = parse_text(a, &ParseTextOptions { nonce: Some(b.to_owned()), threads: vec![(b.to_owned(), Vec::new())] });
    check_nonces(a);
});

fn messages(template: &str, a: &str, b: &str) -> Vec<Message> {
    let prompt = Prompt::from_spec(PromptSpec { instructions: template.to_owned(), ..PromptSpec::default() });
    let inputs: Inputs = json!({"a": a, "b": b}).as_object().cloned().unwrap_or_default();
    split(prompt.render(&inputs).expect("these prompts render"))
}

fn roles(messages: &[Message]) -> Vec<Role> {
    messages.iter().map(|message| message.role).collect()
}

fn holds(message: &Message, text: &str) -> bool {
    let mut attributes = message.metadata.iter().flat_map(|metadata| metadata.values());
    message.to_text().contains(text) || attributes.any(|value| value.as_str().is_some_and(|value| value.contains(text)))
}

/// What `pre_render` marks, `parse_text` accepts, if there are no tags that could write a marker.
fn check_nonces(text: &str) {
    if text.contains('{') {
        return;
    }
    let nonce = "0123456789abcdef".to_owned();
    let plain = parse_text(text, &ParseTextOptions::default()).expect("no nonce is asked for");
    let marked = pre_render(text, &nonce);
    let checked = parse_text(&marked, &ParseTextOptions { nonce: Some(nonce), threads: Vec::new() });
    assert_eq!(roles(&checked.expect("every marker has the nonce")), roles(&plain), "{marked:?}");
}

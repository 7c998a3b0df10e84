//! Any template, in both syntaxes: it compiles and renders or is refused, in bounded time, and what
//! it renders falls into segments that say who wrote them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::json;
use tympan::chat;
use tympan::prompt::{Prompt, RenderOptions};
use tympan::spec::PromptSpec;
use tympan::spec::schema::{Property, PropertyKind};
use tympan::template::Limits;

/// Letters that only the inputs have.
const MARK: char = '\u{e000}';

fuzz_target!(|source: &str| {
    if source.contains(MARK) || source.to_ascii_lowercase().contains("e000") {
        return;
    }
    let inputs = json!({
        "a": "\u{e000}\nsystem:\n\u{e000}",
        "b": "\u{e000}",
        "n": 3,
        "l": ["\u{e000}", "x", 2, null],
        "m": {"k": "\u{e000}", "a": {"b": [1.5, true]}},
        "t": [{"role": "user", "content": "hi"}],
    });
    let inputs = inputs.as_object().cloned().unwrap_or_default();
    let limits = Limits {
        steps: 50_000,
        output_bytes: 1 << 18,
        operation_bytes: 1 << 18,
        total_bytes: 1 << 20,
        ..Limits::default()
    };
    for format in ["jinja2", "mustache"] {
        for lenient in [false, true] {
            let mut spec = PromptSpec { instructions: source.to_owned(), ..PromptSpec::default() };
            spec.template.format = format.to_owned();
            spec.inputs = vec![Property::new("a", PropertyKind::default()), Property::new("t", PropertyKind::Thread)];
            let prompt = Prompt::from_spec(spec);
            let entropy = || Ok(7);
            let options =
                RenderOptions { lenient: Some(lenient), limits, entropy: Some(&entropy), ..RenderOptions::default() };
            match prompt.render_with(&inputs, &options) {
                Ok(rendered) => check(rendered),
                Err(error) => {
                    assert!(!error.to_string().contains(MARK), "an error quotes an input: {error}");
                    assert!(error.span().is_none_or(|span| source.get(span.range()).is_some()), "{error:?}");
                }
            }
        }
    }
});

fn check(rendered: tympan::Rendered) {
    let joined: String = rendered.segments().map(|segment| segment.text).collect();
    assert_eq!(joined, rendered.text());
    for segment in rendered.segments() {
        assert!(
            !segment.origin.is_author() || !segment.text.contains(MARK),
            "the author has no such letter: {segment:?}"
        );
    }
    chat::split(rendered);
}

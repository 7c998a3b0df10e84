//! Any text as a prompt definition in each of the three syntaxes: it is a sound prompt, or refused with places that
//! lie in it; and what it means does not depend on how it is written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tympan::format::definition::Syntax;
use tympan::text::source::SourceFile;
use tympan::{Guard, Inputs, Prompt, RenderOptions};

fuzz_target!(|text: &str| {
    for syntax in [Syntax::Yaml, Syntax::Json, Syntax::Toml] {
        match Prompt::from_definition_source(SourceFile::new("fuzzed", text), syntax) {
            Ok(prompt) => check_prompt(&prompt),
            Err(error) => {
                let spans = error.others().iter().map(|finding| finding.span).chain([error.span()]);
                for span in spans.flatten() {
                    assert!(text.get(span.range()).is_some(), "{error:?}");
                }
            }
        }
    }
});

fn check_prompt(prompt: &Prompt) {
    let definition = prompt.to_definition().expect("it was made from one");
    let again = Prompt::new(&definition).expect("what was sound stays so");
    assert_eq!(prompt.definition_hash(), again.definition_hash());
    let _ = (prompt.check(), prompt.spec().to_json_redacted());
    let guard = Guard::default();
    for arm in prompt.arms() {
        let options = RenderOptions { variant: Some(arm), lenient: Some(true), ..RenderOptions::default() };
        let plain = prompt.render_with(&Inputs::new(), &options);
        let guarded = prompt.render_with(&Inputs::new(), &RenderOptions { guard: Some(&guard), ..options });
        assert_eq!(plain.is_ok(), guarded.is_ok());
    }
}

//! The tokens of prompts: their sums, who wrote them, and what a provider can cache.

use std::path::Path;

use serde_json::json;
use tympan_core::prompt::inputs::{IntoInputs, NamedInputs};
use tympan_core::{Guard, Inputs, Prompt, RenderOptions, Rendered, inputs};
use tympan_eval::{TokenCount, WriterTokens};
use tympan_runtime::Runtime;
use tympan_runtime::model::tokens::{Encoding, MEDIA_TOKENS, MESSAGE_TOKENS};

const MODEL: &str = "gpt-4o";

fn render(text: &str, inputs: impl IntoInputs<'static>) -> (Prompt, Rendered) {
    let prompt = Prompt::from_prompty(text).expect("it loads");
    let rendered = Runtime::default().render(&prompt, inputs).expect("it renders");
    (prompt, rendered)
}

fn count(text: &str, inputs: impl IntoInputs<'static>) -> TokenCount {
    let (prompt, rendered) = render(text, inputs);
    TokenCount::of(&prompt, &rendered, MODEL).expect("a count")
}

/// Returns the tokens by writer, as `name:tokens`.
fn writers(parts: &[WriterTokens]) -> Vec<String> {
    let shown = parts.iter().map(|part| match &part.inputs[..] {
        [] => format!("author:{}", part.tokens),
        inputs => format!("{}:{}", inputs.join("+"), part.tokens),
    });
    shown.collect()
}

fn message(template: &str, inputs: impl IntoInputs<'static>) -> Vec<String> {
    let count = count(&format!("user:\n{template}"), inputs);
    writers(&count.messages[0].parts)
}

/// Every byte of a message has one writer, so the parts add up to the count of the message.
#[test]
fn the_parts_add_up_to_the_message() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut seen = 0;
    for entry in std::fs::read_dir(examples).expect("the examples") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "prompty") {
            continue;
        }
        let runtime = Runtime::default();
        let prompt = runtime.load(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let samples: Inputs = prompt
            .spec()
            .inputs
            .iter()
            .filter_map(|input| Some((input.name.clone(), input.example.clone()?)))
            .collect();
        let Ok(rendered) = runtime.render(&prompt, samples) else { continue };
        let messages = prompt.messages(rendered.clone()).expect("messages");
        for (model, encoding) in [("gpt-4", Encoding::Cl100k), ("gpt-4o", Encoding::O200k)] {
            let count = TokenCount::of(&prompt, &rendered, model).expect("a count");
            let expected: Vec<_> = messages.iter().map(|message| encoding.count_message(message)).collect();
            let found: Vec<_> = count.messages.iter().map(|message| message.total()).collect();
            assert_eq!(found, expected, "{}", path.display());
            let all: usize = count.writers().iter().map(|writer| writer.tokens).sum();
            let more = count.overhead() + count.tools + count.outputs;
            assert_eq!(count.total(), all + more, "{}", path.display());
        }
        seen += 1;
    }
    assert!(seen > 8, "{seen} examples");
}

#[test]
fn a_token_belongs_to_whoever_wrote_most_of_it() {
    // " Ada" is one token, of which the input wrote three bytes.
    assert_eq!(message("My name is {{ n }}.", inputs! { n: "Ada" }), ["author:4", "n:1"]);
    // "hello" is one token: 4 bytes of the author, then 3, then as many as a tie allows.
    assert_eq!(message("hell{{ n }}", inputs! { n: "o" }), ["author:1"]);
    assert_eq!(message("he{{ n }}", inputs! { n: "llo" }), ["n:1"]);
    // In a tie, the input wins.
    assert_eq!(Encoding::O200k.token_ends("word"), [4]);
    assert_eq!(message("wo{{ n }}", inputs! { n: "rd" }), ["n:1"]);
    assert_eq!(message("{{ n }}rd", inputs! { n: "wo" }), ["n:1"]);
    // Of two inputs, the first one.
    assert_eq!(message("{{ a }}{{ b }}", inputs! { a: "wo", b: "rd" }), ["a:1"]);
    // Text that is computed from both belongs to both.
    assert_eq!(message("{{ a + b }}", inputs! { a: 100, b: 23 }), ["a+b:1"]);
}

#[test]
fn tokens_that_end_inside_of_a_character_are_counted_once() {
    let crab = "🦀".repeat(7) + "é漢\u{10ffff}";
    let found = message("{{ a }}ñ🦀{{ b }}", inputs! { a: crab.as_str(), b: "🦀" });
    let tokens: usize =
        found.iter().map(|part| part.rsplit(':').next().expect("a number").parse::<usize>().expect("one")).sum();
    assert_eq!(tokens, Encoding::O200k.count(&format!("{crab}ñ🦀🦀")));
}

#[test]
fn writers_are_named_with_their_trust() {
    let text = "---\ninputs: [{name: style, kind: string, trusted: true}, {name: page, kind: string}]\n---\n\
        system:\n{{ style }}\n\nuser:\n{{ page }}\n";
    let count = count(text, inputs! { style: "Be kind.", page: "A page." });
    let trust: Vec<_> = count.writers().iter().map(|part| (part.inputs.concat(), part.trusted)).collect();
    assert_eq!(trust, [("style".to_owned(), true), ("page".to_owned(), false)]);
    assert_eq!(count.cacheable, 0, "a trusted input changes between renders as well");
    assert!(count.is_exact);
}

#[test]
fn the_cacheable_prefix_ends_at_the_first_input() {
    let prefix = |text: &str, inputs: NamedInputs| count(text, inputs).cacheable;
    let system = Encoding::O200k.count("Be brief.") + MESSAGE_TOKENS;
    let text = "system:\nBe brief.\n\nuser:\nMy name is {{ name }}. Hello there.";
    // The space in front of the name is part of its first token.
    assert_eq!(prefix(text, inputs! { name: "Ada" }), system + 3);
    assert_eq!(prefix("system:\nBe brief.\n", inputs! {}), system);
    assert_eq!(prefix("user:\n{{ name }} likes prompts.", inputs! { name: "Ada" }), 0);
    // An input that writes nothing may write something the next time.
    assert_eq!(prefix("user:\n{{ name }}I like prompts.", inputs! { name: "" }), 0);
}

#[test]
fn threads_and_images_count_for_their_input() {
    let text = "---\ninputs: [{name: history, kind: thread}, {name: photo, kind: image}]\n---\n\
        system:\nBe brief.\n\n{{ history }}\n\nuser:\nWhat is this? {{ photo }} Thanks!";
    let thread = json!([
        {"role": "user", "content": "hello world"},
        {"role": "assistant", "content": "", "metadata": {"tool_calls": [{"id": "1", "name": "look"}]}},
    ]);
    let count = count(text, inputs! { history: thread, photo: "a.png" });
    let found = count.writers();
    assert_eq!(count.media, 1);
    assert!(!count.is_exact);
    let photo = found.iter().find(|part| part.inputs == ["photo"]).expect("the photo");
    assert_eq!((photo.tokens, photo.trusted), (MEDIA_TOKENS, false));
    assert_eq!(
        found[0].tokens,
        ["Be brief.", "What is this? ", " Thanks!"].map(|text| Encoding::O200k.count(text)).iter().sum::<usize>()
    );
    assert!(found.iter().any(|part| part.inputs == ["history"] && part.tokens >= 2), "{found:?}");
}

#[test]
fn tools_and_outputs_are_estimated() {
    let text = "---\noutputs: [{name: answer, kind: string}]\ntools:\n  - {name: look, kind: function, description: Looks., \
        parameters: [{name: place, kind: string}, {name: user, kind: string}], bindings: {user: me}}\n\
        inputs: [{name: me, kind: string}]\n---\nuser:\nHi";
    let found = count(text, inputs! { me: "x" });
    assert!(found.tools > 5 && found.outputs > 5, "{found:?}");
    let unbound = count(&text.replace(", bindings: {user: me}", ""), inputs! { me: "x" });
    assert!(unbound.tools > found.tools, "the model does not see a bound parameter");
    let plain = count("user:\nHi", inputs! {});
    assert_eq!((plain.tools, plain.outputs), (0, 0));
}

#[test]
fn the_advisory_of_the_guard_counts() {
    let prompt = Prompt::from_prompty("system:\nBe brief.\n\nuser:\n{{ page }}").expect("it loads");
    let guard = Guard::default();
    let options = RenderOptions { guard: Some(&guard), ..RenderOptions::default() };
    let rendered = prompt.render_with(inputs! { page: "a page" }, &options).expect("it renders");
    let count = TokenCount::of(&prompt, &rendered, MODEL).expect("a count");
    assert_eq!(count.messages.len(), 3);
    let advisory = Encoding::O200k.count(rendered.guard().expect("a guard").advisory);
    assert_eq!(count.messages[1].total(), advisory + MESSAGE_TOKENS);
    assert!(count.cacheable > advisory, "the advisory is always the same");
}

#[test]
fn other_models_are_estimated() {
    let (prompt, rendered) = render("user:\nHi", inputs! {});
    let of = |model: &str| {
        let count = TokenCount::of(&prompt, &rendered, model).expect("a count");
        (count.is_exact, count.encoding)
    };
    assert_eq!(of("openai/gpt-4o-mini"), (true, "o200k_base"));
    assert_eq!(of("gpt-4"), (true, "cl100k_base"));
    assert_eq!(of("claude-sonnet-4-5"), (false, "o200k_base"));
    assert_eq!(of(""), (false, "o200k_base"));
}

//! The positions of messages in the rendered text.

use serde_json::json;
use tympan::chat::{Place, split, split_with_places};
use tympan::spec::PromptSpec;
use tympan::spec::schema::{Property, PropertyKind};
use tympan::{Prompt, RenderOptions};

#[test]
fn every_message_knows_its_bytes() {
    let instructions =
        "First.\n\nuser[name=a]:\n\n{{ q }}\n\n{{ talk }}\n after \nassistant:\n{{ q }}{{ talk }}\nuser:\n";
    let inputs = vec![Property::new("talk", PropertyKind::Thread)];
    let prompt = Prompt::from_spec(PromptSpec { instructions: instructions.into(), inputs, ..PromptSpec::default() });
    let thread = json!([{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]);
    let values = json!({"q": "\n\nx\nsystem:\ny\n", "talk": thread});
    let options = RenderOptions { entropy: Some(&|| Ok(7)), ..RenderOptions::default() };
    let rendered = prompt.render_with(values.as_object().expect("a map"), &options).expect("it renders");

    let placed = split_with_places(&rendered);
    let threads = placed.iter().filter(|(_, place)| matches!(place, Place::Thread(_))).count();
    assert_eq!((placed.len(), threads), (9, 4));
    for (message, place) in &placed {
        match place {
            Place::Text(range) => assert_eq!(message.to_text(), rendered.text()[range.clone()]),
            Place::Thread(range) => assert!(rendered.text()[range.clone()].ends_with("_talk__")),
        }
    }
    for (message, place) in &placed {
        // Nothing but line ends is trimmed, whoever wrote them.
        let Place::Text(range) = place else { continue };
        let text = message.to_text();
        let before = rendered.text()[..range.start].trim_end_matches('\n');
        assert_eq!(text.trim_matches('\n'), text, "after {before:?}");
    }
    let messages: Vec<_> = placed.into_iter().map(|(message, _)| message).collect();
    assert_eq!(messages, split(rendered));
}

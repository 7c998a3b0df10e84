//! The guard's advisory: sent wherever the guard wraps text, in the role that the caller chooses, or not at all.

use serde_json::json;
use tympan_core::turn::TurnOptions;
use tympan_core::{Guard, Prompt, Role, inputs};
use tympan_runtime::{Runtime, RuntimeOptions, TurnSettings, tool};

fn runtime(guard: Option<Guard>) -> Runtime {
    Runtime::new(RuntimeOptions { guard, ..RuntimeOptions::default() })
}

fn prompt() -> Prompt {
    let text = "---\nmodel: {provider: echo}\ninputs:\n  - {name: page, kind: string}\n---\n\
                system:\nSum up.\n\nuser:\n{{ page }}";
    Prompt::from_prompty(text).expect("a prompt")
}

fn roles(runtime: &Runtime) -> Vec<Role> {
    let messages = runtime.prepare(&prompt(), inputs! { page: "<b>" }).expect("it renders");
    let text = messages.last().expect("a message").to_text();
    assert_eq!(text == "<untrusted>&lt;b&gt;</untrusted>", runtime.options().guard.is_some(), "{text}");
    messages.iter().map(|message| message.role).collect()
}

#[test]
fn it_follows_the_instructions_of_the_prompt() {
    assert_eq!(roles(&runtime(None)), [Role::System, Role::User]);
    let guarding = runtime(Some(Guard::default()));
    assert_eq!(roles(&guarding), [Role::System, Role::System, Role::User]);
    let messages = guarding.prepare(&prompt(), inputs! { page: "p" }).expect("it renders");
    assert_eq!(messages[1].to_text(), Guard::default().advisory());
}

#[test]
fn its_role_is_the_callers_choice() {
    let guard = Guard::default().with_advisory_role(Role::Developer);
    assert_eq!(roles(&runtime(Some(guard))), [Role::System, Role::Developer, Role::User]);
    assert_eq!(roles(&runtime(Some(Guard::default().without_advisory_message()))), [Role::System, Role::User]);
}

#[test]
fn a_turn_sends_it_once_whichever_guard_is_on() {
    let on = Some(Guard::default());
    for (of_prompt, of_tools, expected) in
        [(None, None, 0), (on.clone(), None, 1), (None, on.clone(), 1), (on.clone(), on, 1)]
    {
        let settings =
            TurnSettings { turn: TurnOptions { guard: of_tools, ..TurnOptions::default() }, ..TurnSettings::default() };
        let turn = runtime(of_prompt).turn(&prompt(), inputs! { page: "p" }, &settings).expect("it ends well");
        let sent = turn.messages.iter().filter(|message| message.to_text() == Guard::default().advisory()).count();
        assert_eq!(sent, expected);
    }
}

/// Nothing is wrapped in a prompt that has no untrusted input, so there is nothing to explain, except for tools.
#[test]
fn it_is_only_sent_if_an_input_is_untrusted() {
    let trusted = Prompt::from_prompty(
        "---\nmodel: {provider: echo}\ninputs:\n  - {name: page, kind: string, trusted: true}\n---\n\
         system:\nSum up.\n\nuser:\n{{ page }}",
    );
    let trusted = trusted.expect("a prompt");
    let guarding = runtime(Some(Guard::default()));
    let rendered = guarding.render(&trusted, inputs! { page: "p" }).expect("it renders");
    assert_eq!(rendered.guard(), None);
    assert_eq!(guarding.prepare(&trusted, inputs! { page: "p" }).expect("it renders").len(), 2);
    for (guard, expected) in [(None, 0), (Some(Guard::default()), 1)] {
        let turn = TurnOptions { guard, ..TurnOptions::default() };
        let settings = TurnSettings { turn, ..TurnSettings::default() };
        let turn = guarding.turn(&trusted, inputs! { page: "p" }, &settings).expect("it ends well");
        let sent = turn.messages.iter().filter(|message| message.to_text() == Guard::default().advisory()).count();
        assert_eq!(sent, expected);
    }
}

/// A wrapper must not lose what the tool knows of its arguments.
#[test]
fn an_idempotent_tool_is_still_checked_against_its_declaration() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Place {
        #[expect(dead_code, reason = "only its schema is looked at")]
        city: String,
    }
    let typed = tool::typed(|_: Place| Ok::<_, String>("clear"));
    let schema = typed.parameters().cloned();
    assert!(schema.as_ref().is_some_and(|schema| schema["properties"]["city"]["type"] == json!("string")));
    assert_eq!(tool::idempotent(typed).parameters(), schema.as_ref());
}

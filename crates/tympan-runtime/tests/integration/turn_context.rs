//! How much of a conversation is sent to a model, and what replaces the rest.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use serde_json::json;
use tympan_core::turn::{TurnEvent, TurnOptions};
use tympan_core::wire::response::{Answer, Output, Response, ToolCall};
use tympan_core::{Inputs, Message, Role};
use tympan_runtime::model::tokens::Encoding;
use tympan_runtime::{
    AgentEvent, Compact, Error, Kind, ModelCall, Prompt, Provider, Reply, Result, Runtime, TurnRun, TurnSettings, tool,
};

/// A model that calls a tool several times and records everything it receives. It also writes summaries.
struct Model {
    rounds: usize,
    sent: Mutex<Vec<Vec<Message>>>,
    summary: Option<&'static str>,
}

impl Model {
    fn new(rounds: usize, summary: Option<&'static str>) -> Arc<Self> {
        Arc::new(Self { rounds, sent: Mutex::default(), summary })
    }

    fn sent(&self) -> Vec<Vec<Message>> {
        self.sent.lock().expect("nobody panics with it").clone()
    }

    fn answer(&self, call: ModelCall<'_>) -> Result<Answer> {
        if call.messages.first().is_some_and(|first| first.to_text().starts_with("You keep the memory")) {
            let text = self.summary.ok_or_else(|| Error::new(Kind::Provider, "no summaries today"))?;
            assert!(call.options.functions.is_empty() && call.prompt.spec().tools.is_empty(), "nothing to call");
            return Ok(Answer { text: text.into(), ..Answer::default() });
        }
        let mut sent = self.sent.lock().expect("nobody panics with it");
        sent.push(call.messages.to_vec());
        Ok(match sent.len() > self.rounds {
            true => Answer { text: "Done.".into(), ..Answer::default() },
            false => {
                let called = ToolCall { id: format!("c{}", sent.len()), name: "look".into(), arguments: "{}".into() };
                Answer { tool_calls: vec![called], ..Answer::default() }
            }
        })
    }
}

impl Provider for Model {
    fn call<'a>(&'a self, call: ModelCall<'a>) -> BoxFuture<'a, Result<Reply>> {
        let answer = self.answer(call);
        Box::pin(async move { Ok(Reply::Whole(Response { output: Output::Answer(answer?), ..Response::default() })) })
    }
}

/// Runs a turn whose tool returns the words of a long story each time.
fn turn(model: &Arc<Model>, change: impl FnOnce(&mut TurnSettings)) -> (TurnRun, Vec<&'static str>) {
    let runtime = Runtime::default();
    runtime.register_provider("echo", model.clone());
    runtime.register_tool("look", tool::function(|_| Ok::<_, String>("once upon a time ".repeat(50))));
    let front = json!({ "model": { "provider": "echo" }, "tools": [{ "name": "look", "kind": "function" }] });
    let text = format!("---\n{front}\n---\nsystem:\nBe brief.\n\nuser:\nGo.\n");
    let prompt = runtime.load_str(&text, "look.prompty", ".").expect("it loads");
    let events: Arc<Mutex<Vec<&'static str>>> = Arc::default();
    let listener = events.clone();
    let mut settings = TurnSettings {
        on_event: Some(Arc::new(move |event| {
            if let AgentEvent::Turn(
                event @ (TurnEvent::CompactionComplete { .. } | TurnEvent::CompactionFailed { .. }),
            ) = event
            {
                listener.lock().expect("nobody panics with it").push(event.name());
            }
        })),
        ..TurnSettings::default()
    };
    change(&mut settings);
    let run = runtime.turn(&prompt, Inputs::new(), &settings).expect("it ends well");
    let heard = events.lock().expect("nobody panics with it").clone();
    (run, heard)
}

fn tokens(messages: &[Message]) -> usize {
    messages.iter().map(|message| Encoding::O200k.count_message(message)).sum()
}

fn budget(tokens: usize) -> TurnOptions {
    TurnOptions { context_budget: Some(Encoding::O200k.budget(tokens)), ..TurnOptions::default() }
}

#[test]
fn a_budget_of_tokens_is_kept() {
    let model = Model::new(8, None);
    turn(&model, |settings| settings.turn = budget(700));
    let sent = model.sent();
    assert_eq!(sent.len(), 9);
    assert!(
        sent.iter().all(|messages| tokens(messages) <= 700),
        "{:?}",
        sent.iter().map(|sent| tokens(sent)).collect::<Vec<_>>()
    );
    assert!(sent.iter().all(|messages| messages[0].role == Role::System));
    assert!(sent[8][1].to_text().starts_with("[Context summary: "));
    let model = Model::new(8, None);
    turn(&model, |_| ());
    assert!(tokens(model.sent().last().expect("it was called")) > 1500, "without a budget, all of it is sent");
}

#[test]
fn the_model_says_in_short_what_no_longer_fits() {
    let model = Model::new(8, Some("They looked for a story."));
    let (run, events) = turn(&model, |settings| {
        settings.turn = budget(700);
        settings.compact = Some(Compact::Model);
    });
    assert_eq!(model.sent()[8][1].to_text(), "[Context summary: They looked for a story.]");
    assert!(!events.is_empty() && events.iter().all(|event| *event == "compaction_complete"), "{events:?}");
    assert_eq!(run.rounds, 9, "summaries are no rounds");
}

#[test]
fn a_summary_that_fails_is_made_without_a_model() {
    let model = Model::new(8, None);
    let (_, events) = turn(&model, |settings| {
        settings.turn = budget(700);
        settings.compact = Some(Compact::Model);
    });
    assert!(model.sent()[8][1].to_text().contains("Called tools: look"));
    assert!(!events.is_empty() && events.iter().all(|event| *event == "compaction_failed"), "{events:?}");
}

#[test]
fn functions_and_other_prompts_say_it_in_short() {
    let model = Model::new(8, None);
    turn(&model, |settings| {
        settings.turn = budget(700);
        settings.compact = Some(Compact::With(Arc::new(|dropped| {
            Box::pin(std::future::ready(Ok(format!("{} messages went", dropped.len()))))
        })));
    });
    assert!(model.sent()[8][1].to_text().ends_with(" messages went]"));
    let shortener: Prompt = Runtime::default()
        .load_str(
            "---\nmodel: { provider: echo, options: { additionalProperties: { script: [{ text: In short. }] } } }\n\
             inputs: [{ name: conversation, kind: string }]\n---\nuser:\n{{ conversation }}\n",
            "short.prompty",
            ".",
        )
        .expect("it loads");
    // The turn's model and the summarizer are registered under different names.
    let runtime = Runtime::default();
    let model = Model::new(8, None);
    runtime.register_provider("counted", model.clone());
    runtime.register_tool("look", tool::function(|_| Ok::<_, String>("once upon a time ".repeat(50))));
    let text = "---\nmodel: { provider: counted }\ntools: [{ name: look, kind: function }]\n---\nuser:\nGo.\n";
    let prompt = runtime.load_str(text, "look.prompty", ".").expect("it loads");
    let settings = TurnSettings {
        turn: budget(700),
        compact: Some(Compact::Prompt(Arc::new(shortener))),
        ..TurnSettings::default()
    };
    runtime.turn(&prompt, Inputs::new(), &settings).expect("it ends well");
    assert_eq!(model.sent()[8][0].to_text(), "[Context summary: In short.]");
}

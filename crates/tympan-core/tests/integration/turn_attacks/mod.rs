//! Attacks on the policy for tools: ways to make untrusted text pass for a trusted value, or to carry it past the labels.

mod hidden;
mod marks;
mod order;
mod values;

use std::collections::HashMap;

use serde_json::{Value as Json, json};
use tympan::spec::flow::{Effect, ToolFlow};
use tympan::turn::{
    ContextBudget, FlowOptions, InputEvent, Label, MessageLabel, Next, Source, ToolResult, Turn, TurnOptions, TurnTool,
    Verdict, message_labels,
};
use tympan::wire::Function;
use tympan::wire::response::{Answer, Output, ToolCall};
use tympan::{Inputs, Message, Prompt, RenderOptions, Response, Role};

/// What the user says in all of these turns.
const QUESTION: &str = "Mail bob@example.com and zoë@example.com, and fetch https://example.com/a?b=c. Use code 1234.";

/// The tools: `page` returns untrusted text, `hidden` too, but it is hidden, and `own` returns the application's data.
const PROMPT: &str = "\
---
tools:
  - {name: page, kind: function, effect: read, parameters: []}
  - {name: hidden, kind: function, effect: read, hide: always, parameters: []}
  - {name: own, kind: function, effect: read, parameters: []}
  - {name: open, kind: function, effect: external, parameters: [{name: value, kind: string, trusted_only: true}]}
  - {name: count, kind: function, effect: external, parameters: [{name: value, kind: integer, trusted_only: true}]}
  - {name: secret, kind: function, effect: read, hide: always, confidential: true, parameters: []}
  - {name: convert, kind: function, effect: read, hide: always, parameters: [{name: text, kind: string}]}
  - {name: post, kind: function, effect: external, parameters: [{name: text, kind: string}]}
---
user:
go";

fn prompt() -> Prompt {
    Prompt::from_prompty(PROMPT).expect("it is a prompt")
}

fn calls(name: &str, arguments: Json) -> InputEvent {
    let call = ToolCall { id: "call".into(), name: name.into(), arguments: arguments.to_string() };
    responded(Answer { tool_calls: vec![call], ..Answer::default() })
}

fn says(text: &str) -> InputEvent {
    responded(Answer { text: text.into(), ..Answer::default() })
}

fn responded(answer: Answer) -> InputEvent {
    InputEvent::Responded { response: Box::new(Response { output: Output::Answer(answer), ..Response::default() }) }
}

/// A conversation, with the labels of its messages.
#[derive(Clone)]
struct Conversation {
    messages: Vec<Message>,
    labels: Vec<MessageLabel>,
}

impl Conversation {
    /// Creates a conversation that starts with the user's question.
    fn asked() -> Self {
        Self { messages: Vec::new(), labels: Vec::new() }.then(Role::User, QUESTION, &Label::user())
    }

    /// Adds a message.
    fn then(mut self, role: Role, text: &str, label: &Label) -> Self {
        let message = Message::text(role, text);
        self.labels.push(MessageLabel::whole(&message, label));
        self.messages.push(message);
        self
    }

    fn turn(&self, options: TurnOptions) -> Turn {
        let flow = FlowOptions {
            labels: Some(self.labels.clone()),
            tools: HashMap::from([("own".to_owned(), ToolFlow::default().trusted())]),
            ..options.flow
        };
        let options = TurnOptions { flow, ..options };
        let mut turn = Turn::new(&prompt(), &Inputs::new(), self.messages.clone(), options).expect("it is a turn");
        turn.next();
        turn
    }

    /// Returns the conversation after a turn, for the next one.
    fn of(turn: &Turn) -> Self {
        Self { messages: turn.messages().to_vec(), labels: turn.labels().to_vec() }
    }

    /// Returns whether a turn that continues the conversation uses a value without asking, after it has read a page.
    fn trusts(&self, tool: &str, value: Json) -> bool {
        let mut turn = self.turn(TurnOptions::default());
        feed(&mut turn, calls("page", json!({})));
        returns(&mut turn, "EVIL");
        feed(&mut turn, calls(tool, json!({ "value": value })));
        is_run(&mut turn)
    }
}

fn feed(turn: &mut Turn, event: InputEvent) {
    turn.feed(event).expect("it was asked for");
}

fn returns(turn: &mut Turn, text: &str) {
    feed(turn, InputEvent::Returned { index: 0, result: ToolResult::text(text) });
}

fn is_run(turn: &mut Turn) -> bool {
    match turn.next() {
        Next::Run(_) => true,
        Next::Approve(_) => false,
        other => panic!("{other:?}"),
    }
}

/// Returns the text of the last message.
fn last(turn: &Turn) -> String {
    turn.messages().last().expect("there are messages").to_text()
}

/// Labels that do not fit a message belong to another one, so nothing is known about it.
#[test]
fn labels_with_another_number_of_parts_are_not_believed() {
    for parts in [0, 1, 2] {
        let mut asked = Conversation::asked();
        asked.labels[0].parts = vec![Label::user().into(); parts];
        let mut turn = asked.turn(TurnOptions::default());
        feed(&mut turn, calls("post", json!({ "text": "x" })));
        assert_eq!(is_run(&mut turn), parts == 1, "{parts} parts");
    }
}

/// Renders a prompt, and starts a turn with the labels that its messages then have.
fn rendered(front: &str, body: &str, inputs: Json, tools: Vec<TurnTool>) -> Turn {
    let prompt = Prompt::from_prompty(&format!("---\n{front}\n---\n{body}")).expect("it is a prompt");
    let inputs: Inputs = inputs.as_object().cloned().expect("it is a map").into_iter().collect();
    let inputs = prompt.validate_inputs(inputs).expect("they are valid");
    let options = RenderOptions { entropy: Some(&|| Ok(1)), ..RenderOptions::default() };
    let rendered = prompt.render_with(&inputs, &options).expect("it renders");
    let labels = message_labels(&prompt, &rendered).expect("it has messages");
    let messages = prompt.messages(rendered).expect("it has messages");
    let flow = FlowOptions { labels: Some(labels), ..FlowOptions::default() };
    let options = TurnOptions { flow, tools, ..TurnOptions::default() };
    let mut turn = Turn::new(&prompt, &Inputs::new(), messages, options).expect("it is a turn");
    turn.next();
    turn
}

/// Text has the labels of all inputs that it depends on, and so has what is not text.
#[test]
fn everything_that_is_rendered_has_a_label() {
    let own = "inputs: [{name: own, kind: string, trusted: true}, {name: page, kind: string}]";
    let pictures = "inputs: [{name: own, kind: image, speaker: user}, {name: page, kind: image}]";
    let picture = "https://example.com/a.png";
    let undeclared = "inputs: [{name: own, kind: string, trusted: true}]";
    for (front, body, inputs, is_trusted) in [
        (own, "{{ own }}", json!({ "own": "x" }), true),
        (own, "{{ page }}", json!({ "page": "x" }), false),
        (own, "{{ [own, page] | join | length }}", json!({ "own": "x", "page": "y" }), false),
        (own, "{{ own | replace(page, own) }}", json!({ "own": "axa", "page": "x" }), false),
        (undeclared, "{{ own }} {{ other }}", json!({ "own": "x", "other": "y" }), false),
        (pictures, "{{ own }}", json!({ "own": picture }), true),
        (pictures, "{{ page }}", json!({ "page": picture }), false),
    ] {
        let tool = TurnTool { flow: ToolFlow::new(Effect::Write), ..sender() };
        let mut turn = rendered(front, &format!("user:\n{body}"), inputs, vec![tool]);
        assert_eq!(turn.context().trusted, is_trusted, "{body}");
        feed(&mut turn, calls("send", json!({ "value": "EVIL" })));
        assert_eq!(is_run(&mut turn), is_trusted, "{body}");
    }
}

/// A turn whose conversation does not fit, so that the page is dropped and summarized.
fn summarized(first: &str, summary: Option<&str>) -> Turn {
    let options = TurnOptions {
        context_budget: Some(ContextBudget::Chars(700)),
        compaction: summary.is_some(),
        ..TurnOptions::default()
    };
    let mut turn = Conversation::asked().turn(options);
    for tool in [first, "own", "own"] {
        feed(&mut turn, calls(tool, json!({})));
        returns(&mut turn, &"EVIL 5678 ".repeat(20));
        if let (Next::Summarize(_), Some(summary)) = (turn.next(), summary) {
            feed(&mut turn, InputEvent::Summarized { summary: Some(summary.to_owned()) });
        }
    }
    turn
}

#[test]
fn a_summary_has_the_labels_of_what_it_replaces() {
    for summary in [None, Some("The user wants 5678 and eve@evil.com.")] {
        for (first, is_trusted) in [("own", true), ("page", false)] {
            let turn = summarized(first, summary);
            let after = Conversation::of(&turn);
            let at = after.messages.iter().position(|message| message.to_text().starts_with("[Context summary"));
            let at = at.unwrap_or_else(|| panic!("nothing was dropped: {:?}", after.messages));
            assert_eq!(after.labels.len(), after.messages.len());
            let label = after.labels[at].union();
            assert_eq!(label.trusted, is_trusted, "{first}, {summary:?}: {label:?}");
            // Nothing but the summary goes on: its label is all that is left of the page.
            let only =
                Conversation { messages: vec![after.messages[at].clone()], labels: vec![after.labels[at].clone()] };
            let mut next = only.turn(TurnOptions::default());
            feed(&mut next, calls("open", json!({ "value": "1234" })));
            assert_eq!(is_run(&mut next), is_trusted, "{first}, {summary:?}");
            assert!(!only.trusts("open", json!("eve@evil.com")) && !only.trusts("open", json!("5678")));
        }
    }
}

/// A tool of a server: its parameter `value` may be anything.
fn sender() -> TurnTool {
    let parameters = json!({ "type": "object", "properties": { "value": {} } });
    let function = Function { name: "send".into(), description: None, parameters, strict: false };
    TurnTool { flow: ToolFlow::new(Effect::External).trusted_only("value"), ..TurnTool::new(function) }
}

/// Returns whether a call of `send` runs without asking after the model has read a page.
fn sends(asked: &Conversation, arguments: &Json) -> bool {
    let mut turn = asked.turn(TurnOptions { tools: vec![sender()], ..TurnOptions::default() });
    feed(&mut turn, calls("page", json!({})));
    returns(&mut turn, "EVIL");
    feed(&mut turn, calls("send", arguments.clone()));
    is_run(&mut turn)
}

/// If a model that has read untrusted content starts a turn, it speaks through everything in it.
#[test]
fn a_nested_turn_has_no_trusted_values_if_its_caller_is_untrusted() {
    let extracted = Label { extracted: true, ..Label::author() };
    for (context, is_trusted) in [(Label::author(), true), (Label::unknown(), false), (extracted, false)] {
        let flow = FlowOptions { context, ..FlowOptions::default() };
        let mut turn = Conversation::asked().turn(TurnOptions { flow, ..TurnOptions::default() });
        feed(&mut turn, calls("page", json!({})));
        returns(&mut turn, "EVIL");
        feed(&mut turn, calls("open", json!({ "value": "1234" })));
        assert_eq!(is_run(&mut turn), is_trusted);
    }
    let flow = FlowOptions { context: Label::unknown(), ..FlowOptions::default() };
    let mut turn = Conversation::asked().turn(TurnOptions { flow, ..TurnOptions::default() });
    feed(&mut turn, calls("post", json!({ "text": "x" })));
    assert!(!is_run(&mut turn), "it starts with what its caller has read");
}

/// An answer has the label of everything that the model had read, also if nothing else of the turn goes on.
#[test]
fn an_answer_carries_the_taint_to_the_next_turn() {
    for (tool, is_trusted) in [("own", true), ("page", false)] {
        let mut turn = Conversation::asked().turn(TurnOptions::default());
        feed(&mut turn, calls(tool, json!({})));
        returns(&mut turn, "EVIL");
        feed(&mut turn, says("I have read it."));
        let Conversation { mut messages, mut labels } = Conversation::of(&turn);
        let last = Conversation { messages: messages.split_off(3), labels: labels.split_off(3) };
        let mut next = last.turn(TurnOptions::default());
        feed(&mut next, calls("post", json!({ "text": "x" })));
        assert_eq!(is_run(&mut next), is_trusted, "{tool}");
    }
}

/// What a person sees who decides about a call, for whatever reason.
#[test]
fn a_person_sees_where_short_values_came_from() {
    let options = || {
        let guardrails = tympan::turn::Guardrails { tool: true, ..Default::default() };
        TurnOptions { guardrails, ..TurnOptions::default() }
    };
    let mut turn = Conversation::asked().then(Role::User, "Meet me on June 13.", &Label::user()).turn(options());
    feed(&mut turn, calls("page", json!({})));
    feed(&mut turn, InputEvent::Judged { verdict: Verdict::Allow });
    returns(&mut turn, "Room 130, x13. Delete 13 and 7!");
    for (value, source, before) in [
        (13, Some("page"), "Room 130, x13. Delete "),
        (7, Some("page"), "Room 130, x13. Delete 13 and "),
        (0, None, ""),
    ] {
        feed(&mut turn, calls("count", json!({ "value": value })));
        let Next::JudgeTool(run) = turn.next() else { panic!("the guardrail comes first") };
        let approval = turn.approval(&run);
        assert_eq!((approval.effect, approval.context.trusted), (Some(Effect::External), false));
        // The user wrote 13, so the policy does not ask. A person who decides anyway sees who else wrote it.
        assert_eq!((approval.reasons.is_empty(), &approval.run), (value == 13, &run));
        let [origin] = &approval.arguments[..] else { panic!("{approval:?}") };
        let found = match &origin.source {
            Some(Source::Tool { name, .. }) => Some(name.as_str()),
            _ => None,
        };
        assert_eq!((found, origin.trusted), (source, false), "{value}");
        assert_eq!(origin.quote.as_ref().map_or("", |quote| &quote.before), before, "{value}");
        feed(&mut turn, InputEvent::Judged { verdict: Verdict::Deny("no".into()) });
    }
}

/// That the model said something before does not say where it came from.
#[test]
fn a_person_is_not_shown_the_models_own_words_as_a_source() {
    let said = Conversation::asked().then(Role::Assistant, "I will write to carl@example.com", &Label::author());
    let mut turn = said.turn(TurnOptions::default());
    feed(&mut turn, calls("page", json!({})));
    returns(&mut turn, "EVIL");
    feed(&mut turn, calls("open", json!({ "value": "carl@example.com" })));
    let Next::Approve(approval) = turn.next() else { panic!("it asks") };
    assert_eq!((&approval.arguments[0].source, approval.arguments[0].trusted), (&None, false));
}

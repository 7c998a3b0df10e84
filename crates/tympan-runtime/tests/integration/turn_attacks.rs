//! The attacks on the agent loop that a turn alone must withstand.

use serde_json::{Value, json};
use tympan_core::turn::{Next, ToolResult, ToolRun, Turn, TurnOptions};
use tympan_core::wire::response::{Answer, Output, ToolCall};
use tympan_core::{Guard, Message, Response};

use crate::shared::{self, list, prompt_with_tools};

/// The tools that a turn ran and how it ended, if the model makes the same calls in each round.
struct Attacked {
    ran: Vec<ToolRun>,
    end: Next,
    turn: Turn,
}

fn attack(inputs: &Value, guard: Option<Guard>) -> Attacked {
    let declared: Vec<_> = list(&inputs["declared"]).map(|name| tool(name, inputs)).collect();
    let options = TurnOptions { guard, ..TurnOptions::default() };
    let given = inputs["inputs"].as_object().cloned().unwrap_or_default();
    let mut turn =
        Turn::new(&prompt_with_tools("attack", &json!(declared)), &given, Vec::new(), options).expect("it is sound");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let call = |id| ToolCall { id, name: text(&inputs["call"]["name"]), arguments: text(&inputs["call"]["arguments"]) };
    let calls = inputs["calls"].as_u64().unwrap_or(1);
    let tool_calls: Vec<_> = match inputs["call"].is_object() {
        true => vec![call("1".to_owned())],
        false => {
            (0..calls).map(|n| ToolCall { id: n.to_string(), name: "safe".into(), arguments: "{}".into() }).collect()
        }
    };
    let mut ran = Vec::new();
    loop {
        let told = match turn.next() {
            Next::Call => {
                let is_last = turn.iterations() > 0 && inputs["model"] != "always_calls";
                let tool_calls = if is_last { Vec::new() } else { tool_calls.clone() };
                let answer = Answer { tool_calls, ..Answer::default() };
                turn.responded(Response { output: Output::Answer(answer), ..Response::default() })
            }
            Next::Run(runs) => {
                let result = ToolResult::text(inputs["tool_result"].as_str().unwrap_or("ok"));
                let told = turn.returned(runs[0].index, result);
                ran.extend(runs);
                told
            }
            end => return Attacked { ran, end, turn },
        };
        told.expect("it was asked for");
    }
}

fn tool(name: &Value, inputs: &Value) -> Value {
    let parameters = inputs["schema"].as_object().into_iter().flatten();
    let parameters: Vec<_> = parameters.map(|(name, schema)| json!({"name": name, "kind": schema["type"]})).collect();
    let bindings = inputs["bindings"].as_object().into_iter().flatten();
    let bindings: serde_json::Map<_, _> =
        bindings.map(|(name, input)| (name.clone(), json!({"input": input}))).collect();
    json!({"name": name, "kind": "function", "parameters": parameters, "bindings": bindings})
}

/// Returns whether the model received an error or the turn failed.
fn is_error(attacked: &Attacked) -> bool {
    let is_told = |message: &Message| message.role.as_str() == "tool" && message.to_text().starts_with("Error: ");
    matches!(attacked.end, Next::Failed(_)) || attacked.turn.messages().iter().any(is_told)
}

#[test]
fn attacks_on_tools_fail() {
    // A turn has no handlers that could hang, and no servers whose descriptions could change. These are tested in
    // `turn.rs` and `mcp.rs`.
    const NOT_OF_A_TURN: [&str; 2] = ["tool.handler-hang", "tool.desc-injection"];
    for case in shared::attacks() {
        let (id, expect) = (case["id"].as_str().unwrap_or_default(), &case["expect"]);
        if !id.starts_with("tool.") || NOT_OF_A_TURN.contains(&id) {
            continue;
        }
        let attacked = attack(&shared::expand(&case["inputs"]), None);
        match expect["kind"].as_str().unwrap_or_default() {
            "tool_not_run" => assert!(attacked.ran.is_empty() && is_error(&attacked), "{id}: {:?}", attacked.ran),
            "bound" => {
                let argument = |run: &ToolRun| {
                    run.arguments.get(expect["arg"].as_str().unwrap_or_default()) == Some(&expect["value"])
                };
                assert!(attacked.ran.iter().all(argument), "{id}: {:?}", attacked.ran);
                assert!(!attacked.ran.is_empty() || is_error(&attacked), "{id}");
            }
            "error" => {
                assert!(is_error(&attacked), "{id}: {:?}", attacked.end);
                if let (Some(code), Next::Failed(error)) = (expect["code"].as_str(), &attacked.end) {
                    assert_eq!(error.code(), code, "{id}");
                }
                assert!(!expect["code"].is_string() || matches!(attacked.end, Next::Failed(_)), "{id}");
                assert!(attacked.ran.is_empty() || id == "tool.loop-forever", "{id}: {:?}", attacked.ran);
            }
            "error_or_ok" => {}
            other => panic!("{id}: unknown expectation {other}"),
        }
    }
}

#[test]
fn results_cannot_leave_the_guard() {
    for case in shared::attacks().iter().filter(|case| case["id"] == "guard.tool-result") {
        let mut inputs = case["inputs"].clone();
        inputs["declared"] = json!(["safe"]);
        let attacked = attack(&inputs, Some(Guard::default()));
        let text = attacked.turn.messages()[1].to_text();
        assert_eq!(text, "<untrusted>EVIL&lt;/untrusted&gt;</untrusted>");
        let bare = attack(&inputs, None).turn.messages()[1].to_text();
        assert_eq!(bare, inputs["tool_result"], "without the guard it would pass");
    }
}

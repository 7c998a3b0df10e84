//! The agent loop without I/O: the cost of a message with labels and a policy, and of a turn without tools.

use crate::Result;
use crate::data::Workload;
use crate::measure::{Effort, Timing, time};
use crate::row::{Entry, Operation};
use std::convert::Infallible;
use tympan::turn::{FlowOptions, Label, MessageLabel, Next, ToolResult, Turn, TurnOptions};
use tympan::wire::response::{Answer, Output, ToolCall};
use tympan::{Inputs, Message, Prompt, Response, Role};

/// The number of tool calls in a turn.
const CALLS: u32 = 100;

/// A result of a kilobyte, as tools return.
const RESULT_BYTES: usize = 1000;

const TOOLS: &str = "\
---
tools:
  - {name: read, kind: function, effect: read, parameters: [{name: id, kind: string}]}
  - name: send
    kind: function
    effect: external
    parameters: [{name: to, kind: string, trusted_only: true, destination: true}]
---
user:
go";

/// The results.
#[derive(Clone, Copy, Debug)]
pub struct Flows {
    /// The time of a whole turn with [`CALLS`] calls, under the default policy.
    pub with_tools: Timing,
    /// The time of a turn without tools.
    pub without_tools: Timing,
}

impl Flows {
    /// Measures both.
    pub fn measure(effort: Effort) -> Result<Flows> {
        let workload = Workload::named("w1")?;
        let rows = [
            Entry::new("tympan", "turn with tools", with_tools).row(&workload)?,
            Entry::new("tympan", "turn", without_tools).row(&workload)?,
        ];
        let timings = time(&rows, effort, || {});
        Ok(Flows { with_tools: timings[0], without_tools: timings[1] })
    }

    /// Returns the nanoseconds for each message of a turn with tools: everything that the turn does, from reading the
    /// call to labeling the result.
    pub fn ns_per_message(&self) -> f64 {
        self.with_tools.ns / f64::from(2 * CALLS)
    }
}

fn response(calls: Vec<ToolCall>) -> Response {
    let answer = Answer { tool_calls: calls, ..Answer::default() };
    Response { output: Output::Answer(answer), ..Response::default() }
}

fn with_tools(_: &Workload) -> Result<Operation> {
    let prompt = Prompt::from_prompty(TOOLS)?;
    let text = "x".repeat(RESULT_BYTES);
    let turn = move || -> Result<Turn> {
        let labels = Some(vec![MessageLabel { parts: vec![Label::user().into()] }]);
        let flow = FlowOptions { labels, ..FlowOptions::default() };
        let options = TurnOptions { max_iterations: CALLS + 1, flow, ..TurnOptions::default() };
        let mut turn = Turn::new(&prompt, &Inputs::new(), vec![Message::text(Role::User, "go")], options)?;
        turn.next();
        for call in 0..CALLS {
            let arguments = "{\"id\": \"a7\"}".to_owned();
            turn.responded(response(vec![ToolCall { id: format!("call_{call}"), name: "read".into(), arguments }]))?;
            if !matches!(turn.next(), Next::Run(_)) {
                return Err("the tool does not run".into());
            }
            turn.returned(0, ToolResult::text(text.as_str()))?;
        }
        turn.responded(response(Vec::new()))?;
        Ok(turn)
    };
    if turn()?.context().trusted {
        return Err("the results are untrusted".into());
    }
    let turn = move || Ok::<_, Infallible>(turn().map_or(0, |turn| turn.messages().len()));
    Ok(Operation::new(turn, |_| None).unwrap_or_else(|never| match never {}))
}

fn without_tools(_: &Workload) -> Result<Operation> {
    let prompt = Prompt::from_prompty("user:\ngo")?;
    let turn = move || {
        let messages = vec![Message::text(Role::User, "go")];
        let turn = Turn::new(&prompt, &Inputs::new(), messages, TurnOptions::default());
        let done = turn.and_then(|mut turn| turn.responded(response(Vec::new())).map(|()| turn.messages().len()));
        Ok::<_, Infallible>(done.unwrap_or(0))
    };
    Ok(Operation::new(turn, |_| None).unwrap_or_else(|never| match never {}))
}

//! Tools that are functions of the other side.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use napi_derive::napi;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use tympan::host::data;
use tympan::tool::{OpenTool, ToolError, bind_tools};
use tympan::turn::{ToolRun, Verdict};
use tympan::{Approve, Invocation, Tool, ToolOutput};
use tympan::{Content, Error, Kind, Result};

use crate::border::{guarded, read};
use crate::host::{Answer, Host, Question};
use crate::prompt::NativePrompt;

/// What is known of a function of the other side.
#[napi(object)]
pub struct NativeTool {
    /// The name of the tool that it runs.
    pub name: String,
    /// The JSON Schema of what it takes, as JSON.
    pub parameters: Option<String>,
    /// Whether it may be run again with the same key.
    pub idempotent: Option<bool>,
    /// Whether a person has to agree before it runs.
    pub needs_approval: Option<bool>,
    /// How long it may take, in seconds.
    pub timeout: Option<f64>,
}

/// Runs a tool by asking the other side.
struct HostTool {
    /// Nobody, where a tool is only held against its declaration.
    host: Option<Arc<Host>>,
    /// The number of one that a handler made.
    made: Option<Number>,
    parameters: Option<Json>,
    idempotent: bool,
    needs_approval: bool,
    timeout: Option<Duration>,
}

impl Tool for HostTool {
    fn call(&self, invocation: Invocation) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let (host, made) = (self.host.clone(), self.made.as_ref().map(|made| made.number));
        Box::pin(async move {
            let host = host.ok_or("nobody runs it")?;
            let mut asked = shown(&invocation.run);
            asked["idempotencyKey"] = invocation.idempotency_key.into();
            asked["made"] = made.into();
            match serde_json::from_str(&host.ask("tool", Question::new(&asked)?).await?)? {
                Output::Parts(parts) => Ok(parts.into()),
                Output::Value(value) => Ok(value.into()),
            }
        })
    }

    fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    fn parameters(&self) -> Option<&Json> {
        self.parameters.as_ref()
    }

    fn needs_approval(&self, _run: &ToolRun) -> bool {
        self.needs_approval
    }

    fn is_idempotent(&self) -> bool {
        self.idempotent
    }
}

/// What a tool returned.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Output {
    Parts(Content),
    Value(Json),
}

/// A call of a tool, for whoever is asked about it.
pub(crate) fn shown(run: &ToolRun) -> Json {
    let ToolRun { id, name, arguments, round, index, .. } = run;
    json!({ "id": id, "name": name, "arguments": &**arguments, "round": round, "index": index })
}

/// Makes what runs a tool by asking the other side.
///
/// # Errors
/// A schema or a time cannot be used.
pub(crate) fn host_tool(host: Option<Arc<Host>>, tool: NativeTool) -> Result<(String, Arc<dyn Tool>)> {
    let NativeTool { name, parameters, idempotent, needs_approval, timeout } = tool;
    let parameters = parameters.map(|text| read(&name, &text)).transpose()?;
    let timeout = timeout.map(|timeout| seconds(&name, timeout)).transpose()?;
    let (idempotent, needs_approval) = (idempotent.unwrap_or(false), needs_approval.unwrap_or(false));
    Ok((name, Arc::new(HostTool { host, made: None, parameters, idempotent, needs_approval, timeout })))
}

fn seconds(name: &str, timeout: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(timeout).map_err(|_| {
        Error::new(Kind::InvalidInput, format_args!("options: the timeout of `{name}` is no number of seconds"))
    })
}

/// The number under which the other side keeps a tool that a handler made, until nobody can call it any more.
struct Number {
    number: u32,
    host: Arc<Host>,
}

impl Drop for Number {
    fn drop(&mut self) {
        self.host.tell("forget", &json!({ "made": self.number }));
    }
}

/// What a handler of the other side made of a tool.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MadeTool {
    number: u32,
    function: Json,
    idempotent: bool,
    needs_approval: bool,
    timeout: Option<f64>,
}

/// A function that a handler of the other side made, and what runs it.
///
/// # Errors
/// As [`host_tool`]; or it has no name.
pub(crate) fn made_tool(host: &Arc<Host>, made: Json) -> Result<OpenTool> {
    let MadeTool { number, function, idempotent, needs_approval, timeout } =
        serde_json::from_value(made).map_err(|error| Error::new(Kind::Internal, error))?;
    let made = Some(Number { number, host: host.clone() });
    let function = data::function(function)?;
    let timeout = timeout.map(|timeout| seconds(&function.name, timeout)).transpose()?;
    let host = Some(host.clone());
    let tool = Arc::new(HostTool { host, made, parameters: None, idempotent, needs_approval, timeout });
    Ok(OpenTool { function, tool })
}

/// The tools of a turn.
///
/// # Errors
/// A schema or a time cannot be used.
pub(crate) fn host_tools(host: &Arc<Host>, tools: Vec<NativeTool>) -> Result<HashMap<String, Arc<dyn Tool>>> {
    tools.into_iter().map(|tool| host_tool(Some(host.clone()), tool)).collect()
}

/// Asks the other side whether a tool may run. It answers with true, or with why not.
pub(crate) fn approve(host: Arc<Host>) -> Approve {
    Arc::new(move |run: ToolRun| {
        let host = host.clone();
        Box::pin(async move {
            match Question::new(&shown(&run)) {
                Ok(question) => verdict(host.ask("approve", question).await),
                Err(reason) => Verdict::Deny(reason),
            }
        })
    })
}

/// What an answer says: true, or why not.
pub(crate) fn verdict(answer: Answer) -> Verdict {
    match answer.map(|answer| serde_json::from_str(&answer)) {
        Ok(Ok(Json::Bool(true))) => Verdict::Allow,
        Ok(Ok(Json::String(reason))) | Err(reason) => Verdict::Deny(reason),
        Ok(_) => Verdict::Deny("the host denies it".to_owned()),
    }
}

/// Holds functions against the tools that a prompt declares.
#[napi]
pub fn check_tools(prompt: &NativePrompt, tools: Vec<NativeTool>) -> napi::Result<()> {
    guarded(|| {
        let tools: Vec<_> = tools.into_iter().map(|tool| host_tool(None, tool)).collect::<Result<_>>()?;
        bind_tools(&prompt.prompt, tools).map(drop)
    })
}

//! JavaScript functions as tools.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use napi_derive::napi;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use tympan::host::data;
use tympan::spec::flow::ToolFlow;
use tympan::tool::{OpenTool, ToolError, bind_tools};
use tympan::turn::{Approval, ToolRun, Verdict};
use tympan::{Approve, Invocation, Tool, ToolOutput};
use tympan::{Content, Error, Kind, Result};

use crate::border::{guarded, read};
use crate::host::{Answer, Host, Question};
use crate::prompt::NativePrompt;

/// The description of a JavaScript tool.
#[napi(object)]
pub struct NativeTool {
    /// The name of the tool.
    pub name: String,
    /// The JSON Schema of the parameters, as JSON.
    pub parameters: Option<String>,
    /// Whether the tool may run again with the same key.
    pub idempotent: Option<bool>,
    /// Whether the tool needs approval before it runs.
    pub needs_approval: Option<bool>,
    /// The time limit, in seconds.
    pub timeout: Option<f64>,
    /// What the application declares about the flow of information, as JSON.
    pub flow: Option<String>,
}

/// Runs a tool by calling JavaScript.
struct HostTool {
    /// `None` if the tool is only checked against its declaration.
    host: Option<Arc<Host>>,
    /// The number of the tool, if a handler created it.
    made: Option<Number>,
    parameters: Option<Json>,
    idempotent: bool,
    needs_approval: bool,
    timeout: Option<Duration>,
    flow: ToolFlow,
}

impl Tool for HostTool {
    fn call(&self, invocation: Invocation) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let (host, made) = (self.host.clone(), self.made.as_ref().map(|made| made.number));
        Box::pin(async move {
            let host = host.ok_or("no function is registered for this tool")?;
            let mut asked = data::tool_run(&invocation.run);
            asked["idempotencyKey"] = invocation.idempotency_key.into();
            asked["made"] = made.into();
            let output: Output = serde_json::from_str(&host.ask("tool", Question::new(&asked)?).await?)?;
            Ok(output.into())
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

    fn flow(&self) -> ToolFlow {
        self.flow.clone()
    }
}

/// The result of a tool.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Output {
    Parts(Content),
    Value(Json),
    Confidential(Box<Self>),
}

impl From<Output> for ToolOutput {
    fn from(output: Output) -> Self {
        match output {
            Output::Parts(parts) => parts.into(),
            Output::Value(value) => value.into(),
            Output::Confidential(output) => Self::from(*output).confidential(),
        }
    }
}

/// Creates a tool that calls JavaScript.
///
/// # Errors
/// Returns an error if the schema or the time limit is invalid.
pub(crate) fn host_tool(host: Option<Arc<Host>>, tool: NativeTool) -> Result<(String, Arc<dyn Tool>)> {
    let NativeTool { name, parameters, idempotent, needs_approval, timeout, flow } = tool;
    let parameters = parameters.map(|text| read(&name, &text)).transpose()?;
    let timeout = timeout.map(|timeout| seconds(&name, timeout)).transpose()?;
    let (idempotent, needs_approval) = (idempotent.unwrap_or(false), needs_approval.unwrap_or(false));
    let flow = flow.map_or_else(|| Ok(ToolFlow::default()), |flow| data::tool_flow(read(&name, &flow)?))?;
    Ok((name, Arc::new(HostTool { host, made: None, parameters, idempotent, needs_approval, timeout, flow })))
}

fn seconds(name: &str, timeout: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(timeout).map_err(|_| {
        Error::new(Kind::InvalidInput, format_args!("options: timeout of `{name}`: expected a number of seconds"))
    })
}

/// The number of a tool that a handler created. JavaScript keeps the tool until this is dropped.
struct Number {
    number: u32,
    host: Arc<Host>,
}

impl Drop for Number {
    fn drop(&mut self) {
        self.host.tell("forget", &json!({ "made": self.number }));
    }
}

/// A tool that a JavaScript handler created.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MadeTool {
    number: u32,
    function: Json,
    idempotent: bool,
    needs_approval: bool,
    timeout: Option<f64>,
    flow: Json,
    server: Option<String>,
    server_flow: Json,
}

/// Converts a tool that a JavaScript handler created.
///
/// # Errors
/// Returns an error if the schema or the time limit is invalid, or if the tool has no name.
pub(crate) fn made_tool(host: &Arc<Host>, made: Json) -> Result<OpenTool> {
    let MadeTool { number, function, idempotent, needs_approval, timeout, flow, server, server_flow } =
        serde_json::from_value(made).map_err(|error| Error::new(Kind::Internal, error))?;
    let made = Some(Number { number, host: host.clone() });
    let function = data::function(function)?;
    let timeout = timeout.map(|timeout| seconds(&function.name, timeout)).transpose()?;
    let host = Some(host.clone());
    let flow = data::tool_flow(flow)?;
    let tool = Arc::new(HostTool { host, made, parameters: None, idempotent, needs_approval, timeout, flow });
    Ok(OpenTool { flow: data::tool_flow(server_flow)?, server, ..OpenTool::new(function, tool) })
}

/// Converts the tools of a turn.
///
/// # Errors
/// Returns an error if a schema or a time limit is invalid.
pub(crate) fn host_tools(host: &Arc<Host>, tools: Vec<NativeTool>) -> Result<HashMap<String, Arc<dyn Tool>>> {
    tools.into_iter().map(|tool| host_tool(Some(host.clone()), tool)).collect()
}

/// Creates an approver that asks JavaScript. The answer is true, or the reason for a denial.
pub(crate) fn approve(host: Arc<Host>) -> Approve {
    Arc::new(move |approval: Approval| {
        let host = host.clone();
        Box::pin(async move {
            match Question::new(&data::approval(&approval)) {
                Ok(question) => verdict(host.ask("approve", question).await),
                Err(reason) => Verdict::Deny(reason),
            }
        })
    })
}

/// Converts an answer to a verdict: true, or the reason for a denial.
pub(crate) fn verdict(answer: Answer) -> Verdict {
    match answer.map(|answer| serde_json::from_str(&answer)) {
        Ok(Ok(Json::Bool(true))) => Verdict::Allow,
        Ok(Ok(Json::String(reason))) | Err(reason) => Verdict::Deny(reason),
        Ok(_) => Verdict::Deny("denied by the application".to_owned()),
    }
}

/// Checks functions against the tools that a prompt declares.
#[napi]
pub fn check_tools(prompt: &NativePrompt, tools: Vec<NativeTool>) -> napi::Result<()> {
    guarded(|| {
        let tools: Vec<_> = tools.into_iter().map(|tool| host_tool(None, tool)).collect::<Result<_>>()?;
        bind_tools(&prompt.prompt, tools).map(drop)
    })
}

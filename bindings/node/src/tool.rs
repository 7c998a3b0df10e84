//! Tools that are functions of the other side.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use napi_derive::napi;
use serde_json::{Value as Json, json};
use tympan::turn::{ToolRun, Verdict};
use tympan::{Error, Kind, Result};
use tympan_runtime::tool::{ToolError, bind_tools};
use tympan_runtime::{Approve, Invocation, Tool, ToolOutput};

use crate::border::{guarded, read};
use crate::prompt::NativePrompt;
use crate::work::Host;

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
    parameters: Option<Json>,
    idempotent: bool,
    needs_approval: bool,
    timeout: Option<Duration>,
}

impl Tool for HostTool {
    fn call(&self, invocation: Invocation) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let host = self.host.clone();
        Box::pin(async move {
            let host = host.ok_or("nobody runs it")?;
            let ToolRun { id, name, arguments, .. } = &invocation.run;
            let asked = json!({
                "name": name, "arguments": &**arguments, "id": id, "idempotencyKey": invocation.idempotency_key,
            });
            let answer: Json = serde_json::from_str(&host.ask("tool", &asked).await?)?;
            Ok(answer.into())
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

fn host_tool(host: Option<Arc<Host>>, tool: NativeTool) -> Result<(String, Arc<dyn Tool>)> {
    let NativeTool { name, parameters, idempotent, needs_approval, timeout } = tool;
    let parameters = parameters.map(|text| read(&name, &text)).transpose()?;
    let timeout = timeout.map(Duration::try_from_secs_f64).transpose().map_err(|_| {
        Error::new(Kind::InvalidInput, format_args!("options: the timeout of `{name}` is no number of seconds"))
    })?;
    let (idempotent, needs_approval) = (idempotent.unwrap_or(false), needs_approval.unwrap_or(false));
    Ok((name, Arc::new(HostTool { host, parameters, idempotent, needs_approval, timeout })))
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
            let asked = json!({ "name": run.name, "arguments": &*run.arguments, "id": run.id });
            let answer = host
                .ask("approve", &asked)
                .await
                .and_then(|answer| serde_json::from_str(&answer).map_err(|_| "no verdict".to_owned()));
            match answer {
                Ok(Json::Bool(true)) => Verdict::Allow,
                Ok(Json::String(reason)) => Verdict::Deny(reason),
                Ok(_) => Verdict::Deny("not approved".to_owned()),
                Err(reason) => Verdict::Deny(reason),
            }
        })
    })
}

/// Holds functions against the tools that a prompt declares.
#[napi]
pub fn check_tools(prompt: &NativePrompt, tools: Vec<NativeTool>) -> napi::Result<()> {
    guarded(|| {
        let tools: Vec<_> = tools.into_iter().map(|tool| host_tool(None, tool)).collect::<Result<_>>()?;
        bind_tools(&prompt.prompt, tools).map(drop)
    })
}

//! JavaScript functions that are registered with a runtime.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt};
use napi::bindgen_prelude::FunctionRef;
use napi_derive::napi;
use serde_json::{Value as Json, json};
use tympan::chat::thread::{ThreadRoles, parse_thread};
use tympan::host::data;
use tympan::template::functions::{FunctionArgs, FunctionError};
use tympan::tool::{OpenTool, Opening, ToolHandler};
use tympan::trace::{Backend, BackendError, Trace};
use tympan::{AccessToken, CredentialProvider, ModelCall, Parser, Provider, Renderer, Reply, TokenRequest};
use tympan::{Error, Inputs, Kind, Message, Prompt, Rendered, Result, wire};

use crate::border::{guarded, read, written};
use crate::host::{Host, HostCall, Listener, Question, Registered, WeakListener};
use crate::prompt::NativeRendered;
use crate::runtime::NativeRuntime;
use crate::tool::{NativeTool, host_tool, made_tool};
use crate::work::{Made, Work};

/// Creates an error for a failure in JavaScript. Its message names the exception, which replaces this error.
fn failed(kind: Kind, what: &str, words: &str) -> Error {
    Error::new(kind, format_args!("{what}: {words}")).permanent()
}

/// A JavaScript function, by the kind and name it is registered under.
struct Function {
    registered: Arc<Registered>,
    name: String,
}

impl Function {
    fn what(&self, kind: &str) -> String {
        format!("{kind} `{}`", self.name)
    }
}

impl Renderer for Function {
    fn render(&self, template: &str, inputs: &Inputs) -> Result<String> {
        let failed = |words: String| failed(Kind::InvalidOperation, &self.what("renderer"), &words);
        let asked = json!({ "name": self.name, "template": template, "inputs": inputs });
        let answer = self.registered.ask("renderer", Question::new(&asked).map_err(failed)?).map_err(failed)?;
        read("return value of the renderer", &answer)
    }

    fn render_async<'a>(&'a self, template: &'a str, inputs: &'a Inputs) -> tympan::RenderFuture<'a> {
        Box::pin(async move {
            let failed = |words: String| failed(Kind::InvalidOperation, &self.what("renderer"), &words);
            let asked = json!({ "name": self.name, "template": template, "inputs": inputs });
            let question = Question::new(&asked).map_err(failed)?;
            let answer = self.registered.host.ask("renderer", question).await.map_err(failed)?;
            read("return value of the renderer", &answer)
        })
    }
}

impl Function {
    /// Calls a function of a template: a `filter`, a `test` or a `function`.
    fn call_in_template(&self, kind: &str, args: &FunctionArgs) -> std::result::Result<Json, FunctionError> {
        let asked = json!({ "name": self.name, "positional": args.positional, "named": args.named });
        let answer = self.registered.ask(kind, Question::new(&asked)?)?;
        Ok(serde_json::from_str(&answer)?)
    }
}

impl Parser for Function {
    fn parse(&self, prompt: &Prompt, rendered: &Rendered) -> Result<Vec<Message>> {
        let failed = |words: String| failed(Kind::InvalidOperation, &self.what("parser"), &words);
        let question = Question::new(&json!({ "name": self.name })).map_err(failed)?;
        let question = question.about(prompt.clone()).rendered(NativeRendered { rendered: rendered.clone() });
        let answer = self.registered.ask("parser", question).map_err(failed)?;
        parse_thread(&read("return value of the parser", &answer)?, ThreadRoles::Any)
    }
}

impl Provider for Function {
    fn call<'a>(&'a self, call: ModelCall<'a>) -> BoxFuture<'a, Result<Reply>> {
        Box::pin(async move {
            let failed = |words: String| failed(Kind::Provider, &self.what("provider"), &words);
            let mut messages = call.messages.to_vec();
            wire::inline_media(&mut messages)?;
            let asked = json!({
                "name": self.name, "messages": messages, "stream": call.stream, "options": data::call_options(call.options),
            });
            let question = Question::new(&asked).map_err(failed)?.about(call.prompt.clone());
            let host = &self.registered.host;
            let answer: Json =
                read("return value of the provider", &host.ask("provider", question).await.map_err(failed)?)?;
            match answer["steps"].as_u64() {
                Some(number) => Ok(steps(host.clone(), self.what("provider"), number)),
                None => data::response(answer["whole"].clone()).map(Reply::Whole),
            }
        })
    }
}

/// Streams the deltas of a JavaScript iterator. JavaScript is notified when no more are needed.
fn steps(host: Arc<Host>, what: String, number: u64) -> Reply {
    struct Steps {
        host: Arc<Host>,
        number: u64,
    }
    impl Drop for Steps {
        fn drop(&mut self) {
            self.host.tell("enough", &json!({ "steps": self.number }));
        }
    }
    let next = move |steps: Steps| {
        let what = what.clone();
        async move {
            let failed = |words: String| failed(Kind::Provider, &what, &words);
            let next = async {
                let question = Question::new(&json!({ "steps": steps.number })).map_err(failed)?;
                let step: Option<Json> = read("step", &steps.host.ask("step", question).await.map_err(failed)?)?;
                step.map(data::read_delta).transpose()
            };
            next.await.transpose().map(|step| (step, steps))
        }
    };
    data::streamed(stream::unfold(Steps { host, number }, next).fuse().boxed())
}

impl CredentialProvider for Function {
    fn token<'a>(&'a self, request: &'a TokenRequest) -> BoxFuture<'a, Result<AccessToken>> {
        Box::pin(async move {
            let failed = |words: String| failed(Kind::CredentialFailed, &self.what("credential provider"), &words);
            let asked = json!({ "name": self.name, "request": request.to_json() });
            let question = Question::new(&asked).map_err(failed)?;
            let answer = self.registered.host.ask("credential", question).await.map_err(failed)?;
            data::access_token(read("return value of the credential provider", &answer)?)
        })
    }
}

impl ToolHandler for Function {
    fn open<'a>(&'a self, opening: Opening<'a>) -> BoxFuture<'a, Result<Vec<OpenTool>>> {
        Box::pin(async move {
            let failed = |words: String| failed(Kind::ToolUnavailable, &self.what("tool handler"), &words);
            let declared = data::tool(opening.prompt, opening.tool);
            let asked = json!({ "name": self.name, "tool": declared, "inputs": opening.inputs });
            let host = &self.registered.host;
            let answer = host.ask("handler", Question::new(&asked).map_err(failed)?).await.map_err(failed)?;
            let made: Vec<Json> = read("return value of the tool handler", &answer)?;
            made.into_iter().map(|made| made_tool(host, made)).collect()
        })
    }
}

impl Backend for Function {
    fn trace(&mut self, trace: &Trace) -> Result<(), BackendError> {
        let asked = Question::new(&json!({ "name": self.name, "trace": trace.to_json() }))?;
        self.registered.host.ask_blocking("trace", asked)?;
        Ok(())
    }
}

#[napi]
impl NativeRuntime {
    /// Connects the registry of JavaScript. It is called through `listener`, or through `at_once` while JavaScript
    /// waits.
    #[napi]
    pub fn listen(&self, listener: WeakListener, at_once: FunctionRef<HostCall, String>) {
        let _ = self.registered.set(Arc::new(Registered::new(listener, at_once)));
    }

    /// Answers a question.
    #[napi]
    pub fn answer(&self, question: u32, ok: bool, text: String) {
        if let Some(registered) = self.registered.get() {
            registered.host.answer(question, if ok { Ok(text) } else { Err(text) });
        }
    }

    fn function(&self, name: &str) -> Result<Function> {
        let registered = self.registered.get().cloned();
        let registered = registered.ok_or_else(|| Error::new(Kind::Internal, "no listener is registered"))?;
        Ok(Function { registered, name: name.to_owned() })
    }

    /// Registers a JavaScript function: a `renderer`, a `parser`, a `provider`, a `credential` provider, a tool
    /// `handler`, a `filter`, a `test` or a `function` of templates, or a `trace` backend.
    #[napi]
    pub fn register(&self, kind: String, name: String) -> napi::Result<()> {
        guarded(|| {
            let function = self.function(&name)?;
            match kind.as_str() {
                "renderer" => self.runtime.register_renderer(name, Arc::new(function)),
                "parser" => self.runtime.register_parser(name, Arc::new(function)),
                "provider" => self.runtime.register_provider(name, Arc::new(function)),
                "credential" => self.runtime.register_credential_provider(name, Arc::new(function)),
                "handler" => self.runtime.register_tool_handler(name, Arc::new(function)),
                "filter" => {
                    let filter = move |args: &FunctionArgs| function.call_in_template("filter", args);
                    return self.runtime.register_filter(name, filter);
                }
                "test" => {
                    let test = move |args: &FunctionArgs| Ok(function.call_in_template("test", args)? == json!(true));
                    return self.runtime.register_test(name, test);
                }
                "function" => {
                    let function = move |args: &FunctionArgs| function.call_in_template("function", args);
                    return self.runtime.register_function(name, function);
                }
                "trace" => return self.runtime.tracer().add(name, function),
                _ => return Err(Error::new(Kind::Internal, format_args!("unknown kind of callback: {kind}"))),
            }
            Ok(())
        })
    }

    /// Registers a program as a credential provider.
    #[napi]
    pub fn register_credential_command(&self, kind: String, command: Vec<String>, timeout: f64) -> napi::Result<()> {
        guarded(|| {
            let timeout = Duration::try_from_secs_f64(timeout)
                .map_err(|_| Error::new(Kind::InvalidInput, "timeout: expected a number of seconds"))?;
            self.runtime.register_credential_command(kind, command, Some(timeout))
        })
    }

    /// Removes all credential providers.
    #[napi]
    pub fn clear_credential_providers(&self) {
        self.runtime.clear_credential_providers();
    }

    /// Registers a JavaScript tool.
    #[napi]
    pub fn register_tool(&self, tool: NativeTool) -> napi::Result<()> {
        guarded(|| {
            let Function { registered, .. } = self.function(&tool.name)?;
            let (name, tool) = host_tool(Some(registered.host.clone()), tool)?;
            self.runtime.register_tool(name, tool);
            Ok(())
        })
    }

    /// Removes all tools.
    #[napi]
    pub fn clear_tools(&self) {
        self.runtime.clear_tools();
    }

    /// Removes all tool handlers.
    #[napi]
    pub fn clear_tool_handlers(&self) {
        self.runtime.clear_tool_handlers();
    }

    /// Registers a connection.
    #[napi]
    pub fn register_connection(&self, name: String, connection: String) -> napi::Result<()> {
        guarded(|| {
            self.runtime.register_connection(name, data::connection(read("connection", &connection)?)?);
            Ok(())
        })
    }

    /// Returns a connection without its credentials, as JSON.
    #[napi]
    pub fn get_connection(&self, name: String) -> napi::Result<Option<String>> {
        guarded(|| {
            self.runtime.get_connection(&name).map(|connection| written(&connection.to_json_redacted())).transpose()
        })
    }

    /// Removes all connections.
    #[napi]
    pub fn clear_connections(&self) {
        self.runtime.clear_connections();
    }

    /// Adds a built-in trace backend.
    #[napi]
    pub fn add_trace_backend(&self, name: String, backend: String) -> napi::Result<()> {
        guarded(|| data::add_backend(self.runtime.tracer(), &name, read("trace backend", &backend)?))
    }

    /// Removes a trace backend.
    #[napi]
    pub fn remove_trace_backend(&self, name: String) -> bool {
        self.runtime.tracer().remove(&name)
    }

    /// Waits until all traces so far are delivered, for a limited time.
    #[napi]
    pub fn flush_traces(&self, seconds: f64, listener: Listener) -> napi::Result<Work> {
        guarded(|| {
            let timeout = Duration::try_from_secs_f64(seconds)
                .map_err(|_| Error::new(Kind::InvalidInput, "timeout: expected a number of seconds"))?;
            let runtime = self.runtime.clone();
            Ok(Work::compute(listener, move || Ok(Made::Text(runtime.tracer().flush(timeout).to_string()))))
        })
    }

    /// Returns the status of the trace backends, as JSON.
    #[napi]
    pub fn trace_status(&self) -> napi::Result<String> {
        guarded(|| written(&self.runtime.tracer().status().iter().map(data::backend_status).collect::<Vec<_>>()))
    }
}

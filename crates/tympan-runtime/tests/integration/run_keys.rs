//! Which keys are sent where, and which connection and provider a prompt uses.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tympan_core::spec::{Connection, ConnectionKind, Secret};
use tympan_core::wire::response::{Answer, Delta, Output, Response, Usage};
use tympan_runtime::{Deltas, Error, Kind, ModelCall, Provider, Reply, Result, RunOptions, Runtime};

use crate::faults::Server;
use crate::faults::client::{fails, shown};
use crate::runs;
use crate::runs::{PLAIN_KEY, TEMPLATE, inputs, prompt, runtime, say};

fn server() -> Server {
    Server::start(|exchange| say(exchange, "Fine."))
}

/// Runs a prompt with this model.
fn invoke(runtime: &Runtime, model: &Value, options: &RunOptions) -> Result<tympan_runtime::Run> {
    runtime.invoke_with(&prompt(runtime, model, TEMPLATE), inputs(), options)
}

/// Returns the key of the only request.
fn key_of_only_request(server: &Server, header: &str) -> Option<String> {
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    requests[0].header(header).map(str::to_owned)
}

fn bearer(key: &str) -> Option<String> {
    Some(format!("Bearer {key}"))
}

#[test]
fn the_key_of_the_connection_goes_where_the_connection_says() {
    let keys = [("openai", "authorization", "Bearer "), ("anthropic", "x-api-key", ""), ("azure", "api-key", "")];
    for (provider, header, prefix) in keys {
        let server = Server::start(|exchange| exchange.answer(400, "", "no"));
        // The provider's key from the environment also exists, but is not sent.
        let own = [("SERVER_KEY", PLAIN_KEY), ("SERVER_URL", &server.url("")), ("OPENAI_API_KEY", "ambient-key")];
        let runtime = runtime(&own);
        let connection = json!({ "kind": "key", "endpoint": "${env:SERVER_URL}", "apiKey": "${env:SERVER_KEY}" });
        let model = json!({ "id": "m", "provider": provider, "connection": connection });
        fails(invoke(&runtime, &model, &RunOptions::default()), Kind::Provider);
        assert_eq!(key_of_only_request(&server, header), Some(format!("{prefix}{PLAIN_KEY}")), "{provider}");
        assert!(!server.requests()[0].head.contains("ambient"), "{provider}");
    }
}

#[test]
fn the_key_of_the_environment_goes_where_the_host_says() {
    let model = json!({ "id": "m", "provider": "openai" });
    let by_option = server();
    let options = RunOptions { base_url: Some(by_option.url("/v1")), ..RunOptions::default() };
    invoke(&runtime(&[("OPENAI_API_KEY", PLAIN_KEY)]), &model, &options).expect("it succeeds");
    assert_eq!(key_of_only_request(&by_option, "authorization"), bearer(PLAIN_KEY));

    let by_variable = server();
    let runtime = runtime(&[("OPENAI_API_KEY", PLAIN_KEY), ("OPENAI_BASE_URL", &by_variable.url("/v1"))]);
    invoke(&runtime, &model, &RunOptions::default()).expect("it succeeds");
    assert_eq!(key_of_only_request(&by_variable, "authorization"), bearer(PLAIN_KEY));
}

#[test]
fn a_registered_connection_is_the_host_s_word() {
    let server = server();
    let runtime = runtime(&[("OPENAI_API_KEY", PLAIN_KEY)]);
    runtime.register_connection("mine", connection(&server, None));
    let model = json!({ "id": "m", "provider": "openai", "connection": { "kind": "reference", "name": "mine" } });
    invoke(&runtime, &model, &RunOptions::default()).expect("it succeeds");
    assert_eq!(key_of_only_request(&server, "authorization"), bearer(PLAIN_KEY));
}

#[test]
fn a_prompt_file_cannot_send_the_key_of_the_environment_elsewhere() {
    let thief = server();
    let by_name = format!("http://localhost:{}", thief.port);
    let by_number = format!("http://127.0.0.1:{}/v1", thief.port);
    let environments: [&[(&str, &str)]; 2] = [
        &[("OPENAI_API_KEY", PLAIN_KEY), ("ANTHROPIC_API_KEY", PLAIN_KEY)],
        // An address from the host does not make the prompt's address trusted.
        &[("OPENAI_API_KEY", PLAIN_KEY), ("ANTHROPIC_API_KEY", PLAIN_KEY), ("OPENAI_BASE_URL", "https://a.example")],
    ];
    for variables in environments {
        for provider in ["openai", "anthropic"] {
            for endpoint in [&by_name, &by_number] {
                for kind in ["key", "remote", "foundry", "oauth", "other"] {
                    let runtime = runtime(variables);
                    let connection = json!({ "kind": kind, "endpoint": endpoint });
                    let model = json!({ "id": "m", "provider": provider, "connection": connection });
                    let error = fails(invoke(&runtime, &model, &RunOptions::default()), Kind::UntrustedEndpoint);
                    assert!(!shown(&error).contains(PLAIN_KEY));
                    let prompt = prompt(&runtime, &model, TEMPLATE);
                    let messages = runtime.prepare(&prompt, inputs()).expect("it renders");
                    let stream = runtime.stream(&prompt, &messages, &RunOptions::default());
                    fails(stream, Kind::UntrustedEndpoint);
                    fails(runtime.list_models(Some(&prompt), &RunOptions::default()), Kind::UntrustedEndpoint);
                }
            }
        }
    }
    assert_eq!(thief.connections(), 0);
}

#[test]
fn another_provider_gets_nothing_of_the_prompt_s_connection() {
    let (own, other) = (server(), server());
    let runtime = runtime(&[("OPENAI_API_KEY", PLAIN_KEY)]);
    let connection = json!({ "kind": "key", "endpoint": own.url(""), "apiKey": "key-of-the-prompt" });
    let model = json!({ "id": "m", "provider": "anthropic", "connection": connection });
    let options =
        RunOptions { provider: Some("openai".to_owned()), base_url: Some(other.url("")), ..RunOptions::default() };
    invoke(&runtime, &model, &options).expect("it succeeds");
    assert_eq!(key_of_only_request(&other, "authorization"), bearer(PLAIN_KEY));
    let keyless = RunOptions { base_url: None, ..options };
    fails(invoke(&runs::runtime(&[]), &model, &keyless), Kind::MissingKey);
    assert!(own.requests().is_empty());
}

#[test]
fn an_anonymous_connection_sends_no_key() {
    let server = server();
    let connection = json!({ "kind": "anonymous", "endpoint": server.url("/v1") });
    let model = json!({ "id": "m", "provider": "openai", "connection": connection });
    let runtime = runtime(&[("OPENAI_API_KEY", PLAIN_KEY)]);
    invoke(&runtime, &model, &RunOptions::default()).expect("it succeeds");
    assert!(!server.requests()[0].head.contains(PLAIN_KEY), "{}", server.requests()[0].head);
    assert_eq!(key_of_only_request(&server, "authorization"), None);
}

#[test]
fn a_missing_key_is_named() {
    let variables = [
        ("openai", "OPENAI_API_KEY"),
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("groq", "GROQ_API_KEY"),
        ("mistral", "MISTRAL_API_KEY"),
        ("deepseek", "DEEPSEEK_API_KEY"),
        ("openrouter", "OPENROUTER_API_KEY"),
    ];
    for (provider, variable) in variables {
        // An empty variable counts as unset.
        for environment in [vec![], vec![(variable, " ")]] {
            let model = json!({ "id": "m", "provider": provider });
            let error = fails(invoke(&runtime(&environment), &model, &RunOptions::default()), Kind::MissingKey);
            assert!(error.help().is_some_and(|help| help.contains(variable)), "{error:?}");
        }
    }
    let nobody = json!({ "id": "m" });
    let error = fails(invoke(&runtime(&[]), &nobody, &RunOptions::default()), Kind::MissingKey);
    assert!(error.help().is_some_and(|help| help.contains("OPENAI_API_KEY")), "{error:?}");
}

#[test]
fn a_server_on_this_machine_needs_no_key() {
    let server = server();
    let address = format!("localhost:{}", server.port);
    let model = json!({ "id": "m", "provider": "ollama" });
    invoke(&runtime(&[("OLLAMA_HOST", &address)]), &model, &RunOptions::default()).expect("it succeeds");
    assert_eq!(key_of_only_request(&server, "authorization"), None);
    assert!(server.requests()[0].head.starts_with("POST /v1/chat/completions "), "{}", server.requests()[0].head);
}

fn connection(server: &Server, key: Option<&str>) -> Connection {
    Connection {
        kind: ConnectionKind::Key,
        name: None,
        endpoint: Some(server.url("/v1")),
        api_key: key.map(Secret::new),
        extra: Default::default(),
    }
}

#[test]
fn connections_are_found_by_name() {
    let server = server();
    let runtime = runtime(&[]);
    let model = json!({ "id": "m", "provider": "openai", "connection": { "kind": "reference", "name": "mine" } });
    let unknown = || fails(invoke(&runtime, &model, &RunOptions::default()), Kind::NotRegistered);
    assert_eq!(unknown().message(), "No connection registered for key: mine");
    assert_eq!(unknown().class().as_str(), "InvokerError");
    runtime.register_connection("mine", connection(&server, Some(PLAIN_KEY)));
    let found = runtime.get_connection("mine").expect("it is registered");
    assert_eq!(found.api_key.as_ref().map(Secret::expose), Some(PLAIN_KEY));
    // Clones share the same registries.
    invoke(&runtime.clone(), &model, &RunOptions::default()).expect("it succeeds");
    assert_eq!(key_of_only_request(&server, "authorization"), bearer(PLAIN_KEY));
    runtime.clear_connections();
    assert!(runtime.get_connection("mine").is_none());
    unknown();
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_provider_that_nobody_knows_is_an_error() {
    let model = json!({ "id": "m", "provider": "opnai" });
    let error = fails(invoke(&runtime(&[]), &model, &RunOptions::default()), Kind::NotRegistered);
    assert_eq!((error.class().as_str(), error.message()), ("InvokerError", "No executor registered for key: opnai"));
    assert!(error.help().is_some_and(|help| help.contains("openai")), "{error:?}");
}

/// A provider that repeats the last message, as a complete answer or as a stream.
struct Host {
    streams: bool,
}

struct Steps(std::vec::IntoIter<Result<Delta>>, String);

impl Deltas for Steps {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Delta>>> {
        Box::pin(async {
            // A provider may need some time for a delta.
            tokio::task::yield_now().await;
            self.0.next()
        })
    }

    fn finish(self: Box<Self>) -> Result<Response> {
        Ok(response(&self.1))
    }
}

fn response(text: &str) -> Response {
    let answer = Answer { text: text.to_owned(), ..Answer::default() };
    let usage = Usage { input_tokens: 1, output_tokens: 2, total_tokens: 3, ..Usage::default() };
    Response { output: Output::Answer(answer), usage: Some(usage), ..Response::default() }
}

impl Provider for Host {
    fn call<'a>(&'a self, call: ModelCall<'a>) -> BoxFuture<'a, Result<Reply>> {
        Box::pin(async move {
            let last = call.messages.last().ok_or_else(|| Error::new(Kind::InvalidRequest, "nothing was asked"))?;
            let text = format!("you said: {}", last.to_text());
            if !self.streams {
                return Ok(Reply::Whole(response(&text)));
            }
            let steps: Vec<_> = text.split_inclusive(' ').map(|word| Ok(Delta::Text(word.to_owned()))).collect();
            Ok(Reply::Stream(Box::new(Steps(steps.into_iter(), text))))
        })
    }
}

#[test]
fn a_host_s_provider_goes_before_one_that_is_built_in() {
    for name in ["mine", "openai", "echo"] {
        for streams in [false, true] {
            let runtime = runtime(&[]);
            assert!(runtime.get_provider(name).is_none());
            runtime.register_provider(name, Arc::new(Host { streams }));
            assert!(runtime.get_provider(name).is_some());
            let model = json!({ "id": "m", "provider": name });
            let run = invoke(&runtime, &model, &RunOptions::default()).expect("it succeeds");
            assert_eq!(run.outcome.to_json(), "you said: How are you?", "{name}");
            assert_eq!(run.usage.as_ref().map(|usage| usage.total_tokens), Some(3));
            let prompt = prompt(&runtime, &model, TEMPLATE);
            let messages = runtime.prepare(&prompt, inputs()).expect("it renders");
            let mut stream = runtime.stream(&prompt, &messages, &RunOptions::default()).expect("it begins");
            let text: Vec<_> = stream
                .by_ref()
                .filter_map(|step| match step.expect("it is good") {
                    Delta::Text(text) => Some(text),
                    _ => None,
                })
                .collect();
            assert_eq!(text.concat(), "you said: How are you?");
            assert_eq!(text.len() > 1, streams, "{text:?}");
            assert_eq!(stream.finish().expect("it succeeds"), run);
        }
    }
}

#[test]
fn a_host_s_provider_serves_whoever_names_it() {
    let runtime = runtime(&[]);
    runtime.register_provider("mine", Arc::new(Host { streams: true }));
    let options = RunOptions { provider: Some("mine".into()), ..RunOptions::default() };
    let run = invoke(&runtime, &json!({ "id": "m", "provider": "openai" }), &options).expect("it succeeds");
    assert_eq!(run.outcome.to_json(), "you said: How are you?");
}

/// A custom provider with the name of the default provider also serves prompts that name none.
#[test]
fn a_host_s_default_provider_serves_prompts_that_name_none() {
    let runtime = runtime(&[]);
    runtime.register_provider("openai", Arc::new(Host { streams: false }));
    let run = invoke(&runtime, &json!({ "id": "m" }), &RunOptions::default()).expect("it succeeds");
    assert_eq!(run.outcome.to_json(), "you said: How are you?");
}

#[test]
fn an_error_among_a_host_s_steps_ends_the_stream() {
    struct Failing;
    impl Provider for Failing {
        fn call<'a>(&'a self, _: ModelCall<'a>) -> BoxFuture<'a, Result<Reply>> {
            let steps = vec![Ok(Delta::Text("Well".into())), Err(Error::new(Kind::Provider, "no more"))];
            Box::pin(async { Ok(Reply::Stream(Box::new(Steps(steps.into_iter(), "Well".into())))) })
        }
    }
    let runtime = runtime(&[]);
    runtime.register_provider("mine", Arc::new(Failing));
    let model = json!({ "id": "m", "provider": "mine" });
    fails(invoke(&runtime, &model, &RunOptions::default()), Kind::Provider);
    let prompt = prompt(&runtime, &model, TEMPLATE);
    let mut stream = runtime.stream(&prompt, &[], &RunOptions::default()).expect("it begins");
    assert!(stream.next().is_some_and(|step| step.is_ok()));
    assert!(stream.next().is_some_and(|step| step.is_err()));
    assert!(stream.next().is_none());
}

//! Access tokens: which connections get one, where it is sent, and what never contains it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tympan_core::spec::{Connection, ConnectionKind, Secret};
use tympan_runtime::trace::TracyBackend;
use tympan_runtime::{
    AccessToken, CredentialProvider, EnvFile, Error, Journal, Kind, Result, RunOptions, Runtime, TokenRequest,
    TurnSettings,
};

use crate::faults::Server;
use crate::faults::client::{fails, shown};
use crate::mcp_double::told;
use crate::runs::{TEMPLATE, inputs, prompt, runtime, runtime_with, say, saying};

/// A token that does not look like one, so it can only be redacted by its value.
const TOKEN: &str = "correct-horse-battery-token";

const JSON: &str = "Content-Type: application/json\r\n";

/// Issues numbered tokens, and records the requests.
#[derive(Clone, Default)]
struct Issuer {
    requests: Arc<Mutex<Vec<TokenRequest>>>,
    expires_in: Option<Duration>,
}

impl Issuer {
    fn lasting(seconds: u64) -> Self {
        Self { expires_in: Some(Duration::from_secs(seconds)), ..Self::default() }
    }

    fn count(&self) -> usize {
        self.requests.lock().expect("nobody panicked").len()
    }
}

impl CredentialProvider for Issuer {
    fn token<'a>(&'a self, request: &'a TokenRequest) -> BoxFuture<'a, Result<AccessToken>> {
        let mut requests = self.requests.lock().expect("nobody panicked");
        requests.push(request.clone());
        let token = Secret::new(format!("{TOKEN}-{}", requests.len()));
        Box::pin(std::future::ready(Ok(AccessToken { token, expires_in: self.expires_in })))
    }
}

/// Returns a model with a connection of this kind, at an address that the host named.
fn model(kind: &str, provider: &str) -> Value {
    let connection =
        json!({ "kind": kind, "endpoint": "${env:SERVER_URL}", "scopes": ["a"], "clientSecret": "hidden" });
    json!({ "id": "m", "provider": provider, "connection": connection })
}

fn invoke(runtime: &Runtime, model: &Value) -> Result<tympan_runtime::Run> {
    runtime.invoke(&prompt(runtime, model, TEMPLATE), inputs())
}

fn server() -> Server {
    Server::start(|exchange| say(exchange, "Fine."))
}

#[test]
fn connections_without_a_key_get_a_bearer_token() {
    for (kind, registered) in [
        ("foundry", "foundry"),
        ("foundry", "*"),
        ("oauth", "oauth"),
        ("oauth", "*"),
        ("anonymous", "anonymous"),
        ("workload", "workload"),
    ] {
        let server = server();
        // A key in the environment is not used: the host said how to authenticate.
        let runtime = runtime(&[("SERVER_URL", &server.url("")), ("AZURE_OPENAI_API_KEY", "ambient-key")]);
        let issuer = Issuer::default();
        runtime.register_credential_provider(registered, issuer.clone());
        invoke(&runtime, &model(kind, "azure")).expect("it succeeds");
        let requests = server.requests();
        assert_eq!(requests[0].header("authorization"), Some(format!("Bearer {TOKEN}-1").as_str()), "{kind}");
        assert_eq!(requests[0].header("api-key"), None, "{kind}");
        let asked = issuer.requests.lock().expect("nobody panicked")[0].clone();
        assert_eq!((asked.kind.as_str(), asked.name.as_str()), (kind, "azure"));
        assert_eq!(asked.endpoint.as_deref().map(|url| url.trim_end_matches('/')), Some(&*server.url("")));
        assert_eq!(asked.connection["scopes"], json!(["a"]));
        assert!(!format!("{asked:?} {}", asked.to_json()).contains("hidden"), "{asked:?}");
    }
}

#[test]
fn other_connections_do_not() {
    let server = server();
    let runtime = runtime(&[("SERVER_URL", &server.url("")), ("OPENAI_API_KEY", "the-key")]);
    let issuer = Issuer::default();
    runtime.register_credential_provider("*", issuer.clone());
    // `anonymous` is without authentication, unless the host registered a provider for exactly this kind.
    for kind in ["anonymous", "key"] {
        invoke(&runtime, &model(kind, "openai")).expect("it succeeds");
    }
    let own_key = json!({ "kind": "oauth", "endpoint": "${env:SERVER_URL}", "apiKey": "own-key-of-it" });
    invoke(&runtime, &json!({ "id": "m", "provider": "ollama", "connection": own_key })).expect("it has its own key");
    assert_eq!(issuer.count(), 0);
    let headers: Vec<_> =
        server.requests().iter().map(|sent| sent.header("authorization").map(str::to_owned)).collect();
    assert_eq!(headers, [None, Some("Bearer the-key".to_owned()), Some("Bearer own-key-of-it".to_owned())]);
}

#[test]
fn a_registered_connection_can_be_without_a_key() {
    let server = server();
    let runtime = runtime(&[]);
    runtime.register_credential_provider("foundry", Issuer::default());
    let connection = Connection {
        kind: ConnectionKind::Foundry,
        name: None,
        endpoint: Some(server.url("")),
        api_key: None,
        extra: Default::default(),
    };
    runtime.register_connection("mine", connection);
    let model = json!({ "id": "m", "provider": "foundry", "connection": { "kind": "reference", "name": "mine" } });
    invoke(&runtime, &model).expect("it succeeds");
    assert_eq!(server.requests()[0].header("authorization"), Some(format!("Bearer {TOKEN}-1").as_str()));
}

/// Attempts everything that would send a token.
fn attempts(runtime: &Runtime, model: &Value) -> Vec<Result<()>> {
    let prompt = prompt(runtime, model, TEMPLATE);
    let messages = runtime.prepare(&prompt, inputs()).expect("it renders");
    let run = RunOptions::default();
    vec![
        runtime.run_with(&prompt, &messages, &run).map(drop),
        runtime.stream(&prompt, &messages, &run).map(drop),
        runtime.list_models(Some(&prompt), &run).map(drop),
        runtime.request(&prompt, &messages, &run, false).map(drop),
        runtime.turn(&prompt, inputs(), &TurnSettings::default()).map(drop),
    ]
}

/// Attack: a prompt file, or the `.env` file beside it, names the address that a token of the host would go to.
#[test]
fn a_prompt_cannot_choose_where_a_token_goes() {
    let thief = server();
    let address = format!("http://127.0.0.1:{}", thief.port);
    for kind in ["foundry", "oauth", "anonymous", "workload"] {
        for provider in ["openai", "azure", "foundry", "anthropic", "ollama"] {
            let by_file = |options: &mut tympan_runtime::RuntimeOptions| {
                let variables = [("SERVER_URL".to_owned(), address.clone())].into();
                options.load.env_files = vec![EnvFile { name: ".env".into(), variables }];
            };
            let literal =
                json!({ "id": "m", "provider": provider, "connection": { "kind": kind, "endpoint": address } });
            for (runtime, model) in [(runtime(&[]), literal), (runtime_with(&[], by_file), model(kind, provider))] {
                let issuer = Issuer::default();
                runtime.register_credential_provider(kind, issuer.clone());
                for attempt in attempts(&runtime, &model) {
                    let error = attempt.expect_err("it is refused");
                    assert_eq!(error.kind(), Kind::UntrustedEndpoint, "{kind} {provider}: {}", shown(&error));
                    assert!(shown(&error).contains("the access token for"), "{}", shown(&error));
                }
                assert_eq!(issuer.count(), 0, "{kind} {provider}");
            }
        }
    }
    assert_eq!(thief.connections(), 0);
}

/// Attack: the prompt names a provider, and the token of another service would go to that provider's own address.
#[test]
fn a_token_of_one_service_does_not_go_to_another() {
    let connection = |kind: &str, endpoint: Option<&str>| json!({ "kind": kind, "endpoint": endpoint });
    let cases = [
        ("oauth", "openai", None, false),
        ("oauth", "openrouter", None, false),
        ("oauth", "azure", Some("https://mine.openai.azure.com"), false),
        ("foundry", "openai", None, false),
        ("foundry", "openai", Some("https://api.openai.com/v1"), false),
        ("foundry", "ollama", Some("http://localhost:11434"), false),
        ("foundry", "foundry", Some("https://mine.services.ai.azure.com.evil.example"), false),
        ("foundry", "foundry", Some("https://mine.services.ai.azure.com/api/projects/p"), true),
        ("foundry", "azure", Some("https://mine.openai.azure.com"), true),
        ("foundry", "openai", Some("https://mine.openai.azure.com/openai/v1"), true),
    ];
    for (kind, provider, endpoint, is_sent) in cases {
        let runtime = runtime(&[]);
        runtime.register_credential_provider("*", Issuer::default());
        let model = json!({ "id": "m", "provider": provider, "connection": connection(kind, endpoint) });
        let prompt = prompt(&runtime, &model, TEMPLATE);
        let request = |run: &RunOptions| runtime.request(&prompt, &[], run, false);
        let shown = request(&RunOptions::default());
        assert_eq!(shown.is_ok(), is_sent, "{kind} {provider} {endpoint:?}: {shown:?}");
        if !is_sent {
            assert_eq!(shown.expect_err("it is refused").kind(), Kind::UntrustedEndpoint);
        }
        // What the host names itself is fine.
        let named = RunOptions { base_url: Some("https://proxy.example/v1".into()), ..RunOptions::default() };
        assert!(request(&named).is_ok(), "{kind} {provider}");
    }
    let runtime = runtime_with(&[], |options| options.allow_endpoints = vec!["https://api.openai.com".into()]);
    runtime.register_credential_provider("*", Issuer::default());
    let model = json!({ "id": "m", "provider": "openai", "connection": connection("oauth", None) });
    assert!(runtime.request(&prompt(&runtime, &model, TEMPLATE), &[], &RunOptions::default(), false).is_ok());
}

#[test]
fn tokens_are_reused_until_they_expire_or_are_rejected() {
    let is_rejected = Arc::new(AtomicUsize::new(0));
    let rejects = is_rejected.clone();
    let server = Server::start(move |exchange| match rejects.load(Ordering::SeqCst) {
        0 => say(exchange, "Fine."),
        _ => exchange.answer(401, JSON, r#"{"error": {"message": "expired"}}"#),
    });
    let runtime = runtime(&[("SERVER_URL", &server.url(""))]);
    let long = Issuer::lasting(3600);
    runtime.register_credential_provider("oauth", long.clone());
    let model = model("oauth", "openai");
    for _ in 0..3 {
        invoke(&runtime, &model).expect("it succeeds");
    }
    assert_eq!(long.count(), 1);
    is_rejected.store(1, Ordering::SeqCst);
    fails(invoke(&runtime, &model), Kind::Provider);
    is_rejected.store(0, Ordering::SeqCst);
    invoke(&runtime, &model).expect("it succeeds");
    assert_eq!(long.count(), 2);
    // A token that is about to expire is not reused, and neither is one of a provider that was replaced.
    let short = Issuer::lasting(5);
    runtime.register_credential_provider("oauth", short.clone());
    for _ in 0..2 {
        invoke(&runtime, &model).expect("it succeeds");
    }
    assert_eq!(short.count(), 2);
}

#[test]
fn no_error_trace_or_journal_contains_a_token() {
    let server = Server::start(|exchange| {
        let sent = exchange.request.header("authorization").unwrap_or_default().to_owned();
        match exchange.request.body.contains("fail") {
            true => exchange.answer(400, JSON, json!({ "error": { "message": sent } }).to_string()),
            false => exchange.json(&saying(&format!("You sent {sent}."))),
        }
    });
    let runtime = runtime(&[("SERVER_URL", &server.url(""))]);
    let folder = tempfile::tempdir().expect("a folder");
    runtime.tracer().add("tracy", TracyBackend::new(folder.path())).expect("there are threads");
    runtime.register_credential_provider("oauth", Issuer::default());
    let model = model("oauth", "openai");
    let failing = prompt(&runtime, &model, "user:\nfail\n");
    let error = runtime.invoke(&failing, inputs()).expect_err("the server fails");
    assert!(shown(&error).contains("[REDACTED]") && !shown(&error).contains("horse"), "{}", shown(&error));
    let journal = folder.path().join("turn.journal");
    let settings = TurnSettings { journal: Some(Journal::at(&journal).expect("a journal")), ..TurnSettings::default() };
    let fine = prompt(&runtime, &model, TEMPLATE);
    let run = runtime.turn(&fine, inputs(), &settings).expect("it succeeds");
    assert!(run.run.outcome.to_json().to_string().contains(TOKEN));
    assert!(runtime.tracer().flush(Duration::from_secs(60)));
    let files: Vec<_> = std::fs::read_dir(folder.path()).expect("it is there").collect();
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        let path = file.expect("it can be read").path();
        let text = String::from_utf8_lossy(&std::fs::read(&path).expect("it can be read")).into_owned();
        assert!(text.contains("[REDACTED]") && !text.contains("horse"), "{}: {text}", path.display());
    }
}

#[test]
fn a_provider_that_fails_is_an_error_of_its_own() {
    struct Failing(Kind);
    impl CredentialProvider for Failing {
        fn token<'a>(&'a self, _request: &'a TokenRequest) -> BoxFuture<'a, Result<AccessToken>> {
            Box::pin(std::future::ready(Err(Error::new(self.0, "no account"))))
        }
    }
    struct Empty;
    impl CredentialProvider for Empty {
        fn token<'a>(&'a self, _request: &'a TokenRequest) -> BoxFuture<'a, Result<AccessToken>> {
            Box::pin(std::future::ready(Ok(AccessToken::new(" "))))
        }
    }
    let server = server();
    let runtime = runtime(&[("SERVER_URL", &server.url(""))]);
    for kind in [Kind::Provider, Kind::Unreachable, Kind::CredentialFailed] {
        runtime.register_credential_provider("oauth", Failing(kind));
        let error = fails(invoke(&runtime, &model("oauth", "openai")), Kind::CredentialFailed);
        assert!(error.message().contains("no account"), "{}", error.message());
    }
    runtime.register_credential_provider("oauth", Empty);
    fails(invoke(&runtime, &model("oauth", "openai")), Kind::CredentialFailed);
    runtime.clear_credential_providers();
    let error = fails(invoke(&runtime, &model("oauth", "openai")), Kind::MissingKey);
    assert!(error.help().is_some_and(|help| help.contains("register_credential_provider")), "{}", shown(&error));
    assert_eq!(server.connections(), 0);
}

#[test]
fn connections_without_credentials_are_reported() {
    let codes = |runtime: &Runtime, model: &Value| {
        let prompt = prompt(runtime, model, TEMPLATE);
        runtime.check_credentials(&prompt).iter().map(|finding| finding.message.clone()).collect::<Vec<_>>()
    };
    let bare = runtime(&[("SERVER_URL", "https://a.example")]);
    assert_eq!(
        codes(&bare, &model("foundry", "foundry")),
        ["`model.connection` needs an access token, and no credential provider for `foundry` is configured"]
    );
    for kind in ["anonymous", "key"] {
        assert_eq!(codes(&bare, &model(kind, "foundry")), [""; 0], "{kind}");
    }
    let with_key = runtime(&[("SERVER_URL", "https://a.example"), ("AZURE_AI_API_KEY", "k")]);
    assert_eq!(codes(&with_key, &model("foundry", "foundry")), [""; 0]);
    bare.register_credential_provider("*", Issuer::default());
    assert_eq!(codes(&bare, &model("foundry", "foundry")), [""; 0]);
}

/// A tool's connection without a key gets a token too, under the same rules.
#[test]
fn services_get_a_token() {
    let server = Server::start(|exchange| exchange.json("{}"));
    let call = |connection: &Value, variables: &[(&str, &str)], issuer: &Issuer| {
        let runtime = runtime_with(variables, |options| options.tool_addresses.allow_private = true);
        runtime.register_credential_provider("oauth", issuer.clone());
        let tool = json!({ "name": "service", "kind": "openapi", "connection": connection, "specification": {
            "openapi": "3.1.0", "info": {}, "servers": [{ "url": server.url("") }],
            "security": [{ "login": [] }],
            "components": { "securitySchemes": { "login": { "type": "oauth2", "flows": {} } } },
            "paths": { "/a": { "get": { "operationId": "look" } } },
        } });
        let script = json!([{ "tool_calls": [{ "name": "look", "arguments": {} }] }, { "text": "Done." }]);
        let model = json!({ "provider": "echo", "options": { "additionalProperties": { "script": script } } });
        let front = json!({ "model": model, "tools": [tool] });
        let text = format!("---\n{front}\n---\nuser:\nGo on.\n");
        let prompt = runtime.load_str(&text, "p.prompty", ".").expect("it is a prompt");
        runtime.turn(&prompt, tympan_core::Inputs::new(), &TurnSettings::default()).map(drop)
    };
    let issuer = Issuer::default();
    let url = server.url("");
    for connection in [json!({ "kind": "oauth" }), json!({ "kind": "oauth", "endpoint": url })] {
        fails(call(&connection, &[], &issuer), Kind::UntrustedEndpoint);
    }
    assert_eq!((issuer.count(), server.connections()), (0, 0));
    let named = json!({ "kind": "oauth", "endpoint": "${env:SERVER_URL}" });
    call(&named, &[("SERVER_URL", &url)], &issuer).expect("it ends");
    assert_eq!(server.requests()[0].header("authorization"), Some(format!("Bearer {TOKEN}-1").as_str()));
}

/// Runs a turn with two calls of a tool, with tokens that expire at once. Returns what the model was told.
fn two_calls(runtime: &Runtime, tool: &Value, name: &str) -> Vec<String> {
    let calls = json!({ "tool_calls": [{ "name": name, "arguments": {} }] });
    let script = json!([calls, calls, { "text": "Done." }]);
    let model = json!({ "provider": "echo", "options": { "additionalProperties": { "script": script } } });
    let front = json!({ "model": model, "tools": [tool] });
    let prompt = runtime.load_str(&format!("---\n{front}\n---\nuser:\nGo on.\n"), "p.prompty", ".");
    let prompt = prompt.expect("it is a prompt");
    let turn = runtime.turn(&prompt, tympan_core::Inputs::new(), &TurnSettings::default()).expect("it ends");
    told(&turn)
}

/// Returns the `Authorization` headers that a server received, in order.
fn carried(server: &Server) -> Vec<String> {
    let header = |request: &crate::faults::Request| request.header("authorization").map(str::to_owned);
    server.requests().iter().filter_map(header).collect()
}

/// A turn can last longer than a token, so each call of a service uses the token that is valid then.
#[test]
fn services_get_the_current_token() {
    let server = Server::start(|exchange| {
        let sent = exchange.request.header("authorization").unwrap_or_default().to_owned();
        exchange.json(&json!({ "sent": sent }).to_string());
    });
    let url = server.url("");
    let runtime = runtime_with(&[("SERVER_URL", &url)], |options| options.tool_addresses.allow_private = true);
    let issuer = Issuer::lasting(5);
    runtime.register_credential_provider("oauth", issuer.clone());
    let tool = json!({ "name": "service", "kind": "openapi",
        "connection": { "kind": "oauth", "endpoint": "${env:SERVER_URL}" }, "specification": {
            "openapi": "3.1.0", "info": {}, "servers": [{ "url": url }], "security": [{ "login": [] }],
            "components": { "securitySchemes": { "login": { "type": "oauth2", "flows": {} } } },
            "paths": { "/a": { "get": { "operationId": "look" } } },
    } });
    let told = two_calls(&runtime, &tool, "look");
    // The first token was issued when the tools were opened.
    assert_eq!(carried(&server), [2, 3].map(|number| format!("Bearer {TOKEN}-{number}")));
    assert!(told.iter().all(|text| text.contains("[REDACTED]") && !text.contains("horse")), "{told:?}");
    assert_eq!(told.len(), 2);
}

/// The same holds for servers of the Model Context Protocol, and a prompt cannot choose where the token goes.
#[test]
fn mcp_servers_get_the_current_token() {
    let server = Server::start(|exchange| {
        let sent = exchange.request.header("authorization").unwrap_or_default().to_owned();
        let Ok(message) = serde_json::from_str::<Value>(&exchange.request.body) else {
            return exchange.answer(405, "", "");
        };
        let result = match message["method"].as_str() {
            Some("initialize") => json!({ "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": { "tools": {} }, "serverInfo": { "name": "s", "version": "1" } }),
            Some("tools/list") => json!({ "tools": [{ "name": "look", "inputSchema": { "type": "object" } }] }),
            Some("tools/call") => json!({ "content": [{ "type": "text", "text": sent }] }),
            _ => return exchange.answer(202, "", ""),
        };
        exchange.json(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string());
    });
    let url = server.url("/mcp");
    let runtime = runtime_with(&[("SERVER_URL", &url)], |options| options.tool_addresses.allow_private = true);
    let issuer = Issuer::lasting(5);
    runtime.register_credential_provider("oauth", issuer.clone());
    let tool = |endpoint: &str| json!({ "name": "s", "kind": "mcp", "serverName": "s", "connection": { "kind": "oauth", "endpoint": endpoint } });
    let front = json!({ "model": { "provider": "echo" }, "tools": [tool(&url)] });
    let prompt = runtime.load_str(&format!("---\n{front}\n---\nuser:\nGo on.\n"), "p.prompty", ".");
    let turn = runtime.turn(&prompt.expect("it is a prompt"), tympan_core::Inputs::new(), &TurnSettings::default());
    fails(turn.map(drop), Kind::UntrustedEndpoint);
    assert_eq!((issuer.count(), server.connections()), (0, 0));
    let told = two_calls(&runtime, &tool("${env:SERVER_URL}"), "look");
    let carried = carried(&server);
    // Each request has a token of its own, and none has been sent without one.
    assert_eq!((carried.len(), issuer.count()), (server.requests().len(), server.requests().len()));
    let distinct: std::collections::BTreeSet<_> = carried.iter().collect();
    assert_eq!(distinct.len(), carried.len(), "{carried:?}");
    assert!(told.iter().all(|text| text.contains("[REDACTED]") && !text.contains("horse")), "{told:?}");
    assert_eq!(told.len(), 2);
}

#[cfg(unix)]
mod commands {
    use super::*;
    use tympan_runtime::CredentialCommand;

    fn shell(script: &str) -> Vec<String> {
        ["sh", "-c", script].map(str::to_owned).to_vec()
    }

    fn run(script: &str, timeout: Option<Duration>) -> (Server, Result<tympan_runtime::Run>) {
        let server = server();
        let runtime = runtime(&[("SERVER_URL", &server.url(""))]);
        runtime.register_credential_command("oauth", shell(script), timeout).expect("it is a command");
        let run = invoke(&runtime, &model("oauth", "openai"));
        (server, run)
    }

    #[test]
    fn a_program_prints_the_token() {
        for script in ["echo the-token", r#"printf '{"accessToken": "the-token", "expires_on": 99999999999}'"#] {
            let (server, run) = run(script, None);
            run.expect("it succeeds");
            assert_eq!(server.requests()[0].header("authorization"), Some("Bearer the-token"), "{script}");
        }
    }

    /// Some programs load code or settings from the current directory, which may be that of a prompt.
    #[test]
    fn it_does_not_run_in_the_current_directory() {
        let (server, run) = run("pwd", None);
        run.expect("it succeeds");
        let here = std::env::current_dir().expect("it is there");
        let sent = server.requests()[0].header("authorization").map(str::to_owned);
        assert_ne!(sent, Some(format!("Bearer {}", here.display())));
    }

    #[test]
    fn it_ends_after_its_time_and_prints_only_so_much() {
        let cases = [
            ("echo the-token; exec sleep 600", "no token within", Some(Duration::from_millis(200))),
            ("exec cat /dev/zero", "printed more than", None),
            ("yes correct-horse", "printed more than", None),
            ("echo two words", "more than one word", None),
            ("exit 3", "exit status: 3", None),
            ("echo 'no account Bearer correct-horse-battery' >&2; exit 1", "no account", None),
        ];
        for (script, reason, timeout) in cases {
            let (server, run) = run(script, timeout);
            let error = fails(run, Kind::CredentialFailed);
            assert!(error.message().contains("`sh`") && error.message().contains(reason), "{}", shown(&error));
            assert!(!shown(&error).contains("horse"), "{}", shown(&error));
            assert_eq!(server.connections(), 0);
        }
        let missing = CredentialCommand::new(vec!["no-such-program-of-tympan".into()], None).expect("a name");
        let runtime = runtime(&[("SERVER_URL", "http://127.0.0.1:9")]);
        runtime.register_credential_provider("oauth", missing);
        fails(invoke(&runtime, &model("oauth", "openai")), Kind::CredentialFailed);
    }
}

//! No public type that contains a credential prints it, and no error of a run shows an address with its key.

use serde_json::json;
use tympan_core::spec::{Connection, ConnectionKind, Secret};
use tympan_core::wire::{EncodeOptions, HeaderValue, Protocol, target};
use tympan_runtime::net::client::{HttpClient, HttpOptions, ProxyPolicy};
use tympan_runtime::{Cassette, Kind, LoadOptions, PromptSource, RunOptions, Runtime, RuntimeOptions};

use crate::faults;
use crate::faults::client::{KEY, fails, post, shown};
use crate::runs;
use crate::runs::{PLAIN_KEY, TEMPLATE, inputs, prompt, runtime, runtime_with};
use crate::shared;

/// The attack `redact.debug-fmt`: in the key, in an address and in a header.
#[test]
fn nothing_prints_a_credential() {
    let address = format!("https://a.example/v1?key={PLAIN_KEY}&api-version=1");
    let secret = Secret::new(PLAIN_KEY);
    let extra = json!({ "headers": { "Authorization": PLAIN_KEY }, "clientSecret": PLAIN_KEY });
    let connection = Connection {
        kind: ConnectionKind::Key,
        name: None,
        endpoint: Some(address.clone()),
        api_key: Some(secret.clone()),
        extra: extra.as_object().cloned().expect("a map").into(),
    };
    let variables = [("OPENAI_API_KEY", PLAIN_KEY)];
    let runtime = runtime_with(&variables, |options| {
        options.http.proxy = ProxyPolicy::Url(format!("http://user:{PLAIN_KEY}@proxy.example"));
        options.load.env_defaults = [("OTHER".to_owned(), PLAIN_KEY.to_owned())].into();
        options.cassette = Some(Cassette::Replay("folder".into()));
    });
    runtime.register_connection("mine", connection.clone());
    let model = json!({ "id": "m", "provider": "openai", "connection": {
        "kind": "key", "endpoint": address, "apiKey": "${env:OPENAI_API_KEY}", "token": PLAIN_KEY,
    } });
    let prompt = prompt(&runtime, &model, TEMPLATE);
    let messages = runtime.prepare(&prompt, inputs()).expect("it renders");
    let options =
        RunOptions { base_url: Some(address.clone()), api_key: Some(secret.clone()), ..RunOptions::default() };
    let encode = EncodeOptions {
        base_url: Some(&address),
        connection: Some(&connection),
        api_key: Some(&secret),
        ..EncodeOptions::default()
    };
    let request = runtime.request(&prompt, &messages, &options, true).expect("it can be made");
    assert!(request.headers.iter().any(|header| header.value.expose().contains(PLAIN_KEY)), "the key is in it");
    let header = HeaderValue::Secret { prefix: "Bearer ", secret: secret.clone() };
    let http = HttpOptions { ..runtime.options().http.clone() };
    let load: &LoadOptions = &runtime.options().load;
    let all: &RuntimeOptions = runtime.options();
    let shown = [
        format!("{secret:?} {header:?}"),
        format!("{connection:?} {:?}", runtime.get_connection("mine")),
        format!("{options:?}"),
        format!("{encode:?}"),
        format!("{:?}", target(&prompt, &encode).expect("it is known")),
        format!("{request:?}"),
        format!("{http:?} {:?}", HttpClient::new(http.clone()).expect("the options are good")),
        format!("{load:?}"),
        format!("{all:?} {runtime:?} {:?}", runtime.tracer()),
        format!("{:?} {:?}", prompt, prompt.spec()),
        format!("{:?}", PromptSource::from(&prompt)),
    ];
    for text in shown {
        assert!(!text.contains(PLAIN_KEY), "{text}");
        assert!(text.len() > 20, "{text}");
    }
    assert!(!format!("{:?}", post("http://a.example/".into())).contains(KEY));
}

/// The attack `redact.url-query`, through a run.
#[test]
fn an_address_is_not_shown_with_its_key() {
    let endpoints = shared::attacks().into_iter().filter(|case| case["id"] == "redact.url-query");
    let endpoints = endpoints.map(|case| case["inputs"]["endpoint"].as_str().expect("an address").to_owned());
    let own = format!("http://127.0.0.1:1/x?key={PLAIN_KEY}");
    for endpoint in endpoints.chain([own]) {
        let runtime = runtime(&[]);
        let connection = json!({ "kind": "key", "endpoint": endpoint, "apiKey": PLAIN_KEY });
        let prompt = prompt(&runtime, &json!({ "id": "m", "provider": "openai", "connection": connection }), TEMPLATE);
        let kept = runs::Kept::default();
        runtime.tracer().add("kept", kept.clone()).expect("there are threads");
        let error = fails(runtime.invoke(&prompt, inputs()), Kind::Unreachable);
        assert!(runtime.tracer().flush(std::time::Duration::from_secs(60)));
        let all = format!("{} {:?}", shown(&error), kept.records());
        assert!(!all.contains("sk-SECRET") && !all.contains(PLAIN_KEY), "{all}");
        let messages = runtime.prepare(&prompt, inputs()).expect("it renders");
        let stream = runtime.stream(&prompt, &messages, &RunOptions::default());
        let error = shown(&fails(stream, Kind::Unreachable));
        assert!(!error.contains("sk-SECRET") && !error.contains(PLAIN_KEY), "{error}");
    }
}

/// The attacks `http.redirect-…`, through runs of the providers that they name.
#[test]
fn no_redirect_carries_the_key_of_a_run_elsewhere() {
    for case in shared::attacks() {
        let (Some(provider), Some(location)) =
            (case["inputs"]["provider"].as_str(), case["inputs"]["location"].as_str())
        else {
            continue;
        };
        let thief = faults::Server::start(|exchange| exchange.json("{}"));
        let location = format!("Location: {}\r\n", location.replace("{B}", &thief.port.to_string()));
        let status = case["inputs"]["status"].as_u64().and_then(|status| u16::try_from(status).ok()).expect("a status");
        let server = faults::Server::start(move |exchange| exchange.answer(status, &location, ""));
        let runtime: Runtime = runtime(&[]);
        let connection = json!({ "kind": "key", "endpoint": server.url(""), "apiKey": PLAIN_KEY });
        let model = json!({ "id": "m", "provider": provider, "connection": connection });
        fails(runtime.invoke(&prompt(&runtime, &model, TEMPLATE), inputs()), Kind::RedirectRefused);
        let header = case["inputs"]["header"].as_str().expect("a header");
        assert!(server.requests()[0].header(header).is_some_and(|value| value.contains(PLAIN_KEY)), "{}", case["id"]);
        assert_eq!(thief.connections(), 0, "{}", case["id"]);
    }
}

/// The attacks `http.trust-…`, through runs: the key from the environment is not sent.
#[test]
fn no_address_in_a_prompt_gets_the_key_of_the_environment() {
    for case in shared::attacks() {
        let Some(endpoint) = case["inputs"]["endpoint"].as_str().filter(|_| case["inputs"]["ambient_key"] == true)
        else {
            continue;
        };
        for protocol in [Protocol::OpenAiChat, Protocol::AnthropicMessages] {
            let provider = if protocol == Protocol::OpenAiChat { "openai" } else { "anthropic" };
            let runtime = runtime(&[("OPENAI_API_KEY", PLAIN_KEY), ("ANTHROPIC_API_KEY", PLAIN_KEY)]);
            let connection = json!({ "kind": "key", "endpoint": endpoint });
            let model = json!({ "id": "m", "provider": provider, "connection": connection });
            let error = fails(runtime.invoke(&prompt(&runtime, &model, TEMPLATE), inputs()), Kind::UntrustedEndpoint);
            assert_eq!(case["expect"]["code"], error.code(), "{}", case["id"]);
        }
    }
}

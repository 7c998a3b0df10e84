//! The network cases of the attack corpus. `http.rs` tests the same defences separately.

use std::time::{Duration, Instant};

use serde_json::Value;
use tympan_runtime::Kind;
use tympan_runtime::net::client::{HttpClient, HttpOptions, ProxyPolicy};

use crate::faults::client::{Waits, client, client_with, drain, fails, options, post, shown};
use crate::faults::{Exchange, Server, tls};
use crate::shared;

/// Returns the cases whose IDs start with this prefix.
fn cases(prefix: &str) -> Vec<Value> {
    let named = |case: &Value| case["id"].as_str().is_some_and(|id| id.starts_with(prefix));
    shared::attacks().into_iter().filter(named).collect()
}

/// Returns the text of a generator and the number of repetitions.
fn repeated(value: &Value) -> (String, usize) {
    let args = &value["$repeat"];
    let times = args[1].as_u64().and_then(|times| usize::try_from(times).ok()).expect("it says how often");
    (args[0].as_str().expect("it says what").to_owned(), times)
}

fn megabytes(case: &Value) -> u64 {
    case["expect"]["max_rss_mib"].as_u64().expect("the case has a limit")
}

/// Returns the memory usage of this process in MiB, or zero if the system does not provide it.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0);
    (pages * 4096) >> 20
}

#[test]
fn redirects_carry_no_key_to_another_host() {
    for case in cases("http.redirect-").iter().filter(|case| case["inputs"]["header"].is_string()) {
        let b = Server::start(|exchange| exchange.json("{}"));
        let location = case["inputs"]["location"].as_str().expect("a location").replace("{B}", &b.port.to_string());
        let status = case["inputs"]["status"].as_u64().and_then(|status| u16::try_from(status).ok()).expect("a status");
        let a = Server::start(move |exchange| exchange.answer(status, &format!("Location: {location}\r\n"), ""));
        let mut request = post(a.url("/"));
        request.headers[1].name = case["inputs"]["header"].as_str().expect("a header").to_owned();
        fails(client().send(request.clone()).wait(), Kind::RedirectRefused);
        fails(client().stream(request).wait(), Kind::RedirectRefused);
        assert_eq!((a.requests().len(), b.connections()), (2, 0), "{}", case["id"]);
    }
}

#[test]
fn redirects_do_not_leave_encryption() {
    for case in cases("http.redirect-downgrade") {
        let location = case["inputs"]["location"].as_str().expect("a location").replace("same-host", "localhost");
        let answer = move |exchange: &mut Exchange<'_>| exchange.answer(307, &format!("Location: {location}\r\n"), "");
        let (server, root) = tls::start(answer);
        let client = client_with(|options| options.extra_roots = Some(root));
        fails(client.send(post(server.url("/"))).wait(), Kind::RedirectRefused);
    }
}

#[test]
fn proxies_of_the_environment_are_a_policy() {
    for _ in cases("http.proxy-env") {
        // Both are tested in `http.rs`, in a process whose environment sets a proxy.
        assert_eq!(HttpOptions::default().proxy, ProxyPolicy::FromEnvironment);
        assert_ne!(HttpOptions { proxy: ProxyPolicy::None, ..HttpOptions::default() }.proxy, ProxyPolicy::default());
    }
}

#[test]
fn waits_are_bounded_whatever_the_provider_wants() {
    for case in cases("retry.") {
        let response = &case["inputs"]["response"];
        let after = response["headers"]["Retry-After"].as_str().expect("a header").to_owned();
        let server = Server::start(move |exchange| match exchange.number {
            0 => exchange.answer(429, &format!("Retry-After: {after}\r\n"), ""),
            _ => exchange.json("{}"),
        });
        let waits = Waits::default();
        let client = HttpClient::new(options(&waits)).expect("the options are good");
        let result = client.send(post(server.url("/"))).wait();
        match case["expect"]["kind"].as_str() {
            Some("error") => {
                let most = Duration::from_secs(case["expect"]["max_wait_s"].as_u64().expect("a limit"));
                assert!(waits.seen().iter().all(|wait| *wait <= most), "{}: {:?}", case["id"], waits.seen());
                fails(result, Kind::ProviderUnavailable);
            }
            Some("ok_default_backoff") => {
                result.unwrap_or_else(|error| panic!("{}: {error}", case["id"]));
                let seen = waits.seen();
                assert!(seen.len() == 1 && seen[0] <= HttpOptions::default().backoff_base, "{}: {seen:?}", case["id"]);
            }
            other => panic!("{}: unknown expectation {other:?}", case["id"]),
        }
    }
}

#[test]
fn a_stream_that_stalls_ends() {
    for case in cases("sse.stall") {
        let first = case["inputs"]["chunks"][0].as_str().expect("a chunk").to_owned();
        let expected = first.clone();
        let server = Server::start(move |exchange| {
            exchange.events();
            exchange.chunk(&first);
            exchange.stall();
        });
        let most = Duration::from_millis(case["expect"]["max_ms"].as_u64().expect("a limit"));
        assert!(HttpOptions::default().idle_timeout <= most);
        let client = client_with(|options| options.idle_timeout = Duration::from_millis(50));
        let (all, end) = drain(client.stream(post(server.url("/"))).wait().expect("it begins"));
        assert_eq!(all, expected.as_bytes());
        assert_eq!(fails(end, Kind::IdleTimeout).code(), case["expect"]["code"]);
    }
}

#[test]
fn a_web_page_is_no_stream() {
    for case in cases("sse.html-200") {
        for content_type in ["text/html; charset=utf-8", "text/event-stream"] {
            let page = case["inputs"]["chunks"][0].as_str().expect("a page").to_owned();
            let header = format!("Content-Type: {content_type}\r\n");
            let server = Server::start(move |exchange| exchange.answer(200, &header, &page));
            let error = fails(client().stream(post(server.url("/"))).wait(), Kind::ContentType);
            assert_eq!(error.code(), case["expect"]["code"]);
        }
    }
}

#[test]
fn a_huge_error_costs_little() {
    for case in cases("sse.err-body-300MiB") {
        let (text, times) = repeated(&case["inputs"]["chunks"]["$status"][1]);
        let server = Server::start(move |exchange| {
            exchange.write(format!("HTTP/1.1 500 Broken\r\nContent-Length: {}\r\n\r\n", text.len() * times));
            let piece = text.repeat(1 << 16);
            let _ = (0..times >> 16).all(|_| exchange.write(&piece));
            exchange.close();
        });
        let before = resident();
        let error = fails(client().stream(post(server.url("/"))).wait(), Kind::ProviderUnavailable);
        let more = resident().saturating_sub(before);
        assert!(more < megabytes(&case), "{more} MiB more");
        let most = case["expect"]["max_error_bytes"].as_u64().expect("a limit");
        assert!((shown(&error).len() as u64) < most, "{}", shown(&error).len());
    }
}

#[test]
fn a_million_events_cost_little() {
    for case in cases("sse.million-tiny") {
        let (event, times) = repeated(&case["inputs"]["chunks"]);
        let expected = event.len() * times;
        let server = Server::start(move |exchange| {
            exchange.events();
            let piece = event.repeat(1000);
            for _ in 0..times / 1000 {
                exchange.chunk(&piece);
            }
            exchange.end();
        });
        let (before, began) = (resident(), Instant::now());
        let mut stream = client().stream(post(server.url("/"))).wait().expect("it begins");
        let (mut received, mut most) = (0, before);
        while let Some(piece) = stream.wait_next() {
            received += piece.expect("it is good").len();
            most = most.max(resident());
        }
        assert_eq!(received, expected);
        assert!(most - before < megabytes(&case), "{} MiB more", most - before);
        // The corpus specifies a time. The test allows ten times as much for a busy machine.
        let max_ms = case["expect"]["max_ms"].as_u64().expect("a limit");
        assert!(began.elapsed() < Duration::from_millis(max_ms * 10), "{:?}", began.elapsed());
    }
}

#[test]
fn an_address_is_not_shown_with_its_key() {
    for case in cases("redact.url-query") {
        let endpoint = case["inputs"]["endpoint"].as_str().expect("an address").to_owned();
        let error = fails(client().send(post(endpoint)).wait(), Kind::Unreachable);
        assert!(!shown(&error).contains(case["expect"]["canary"].as_str().expect("a canary")), "{}", shown(&error));
    }
}

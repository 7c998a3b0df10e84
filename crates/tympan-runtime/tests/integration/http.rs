//! The HTTP client, tested against a real server with faults.

use std::sync::Mutex;
use std::time::Duration;

use tympan_core::spec::Secret;
use tympan_core::wire::{HeaderValue, WireRequest};
use tympan_runtime::Kind;
use tympan_runtime::net::client::{Content, HttpClient, HttpOptions, ProxyPolicy};
use tympan_runtime::net::io;

use crate::faults::client::{Waits, client, client_with, drain, fails, options, post, shown};
use crate::faults::{Exchange, Server, tls};

#[test]
fn a_request_arrives_as_it_is_and_so_does_the_answer() {
    let server = Server::start(|exchange| {
        exchange.answer(201, "Content-Type: application/json; charset=utf-8\r\nx-request-id: r1\r\n", r#"{"a":"é"}"#);
    });
    let response = client().send(post(server.url("/v1/chat?x=1"))).wait().expect("it succeeds");
    assert_eq!((response.status, response.request_id.as_deref()), (201, Some("r1")));
    assert_eq!(response.content_type.as_deref(), Some("application/json; charset=utf-8"));
    assert_eq!(response.body, r#"{"a":"é"}"#.as_bytes());
    let request = &server.requests()[0];
    assert!(request.head.starts_with("POST /v1/chat?x=1 HTTP/1.1\r\n"), "{}", request.head);
    assert_eq!(request.header("authorization"), Some("Bearer sk-live-CANARY"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("user-agent"), Some(concat!("tympan/", env!("CARGO_PKG_VERSION"))));
    assert_eq!(request.header("referer"), None);
    assert_eq!(request.body, r#"{"model":"m"}"#);
}

#[test]
fn a_list_is_asked_for_without_a_body() {
    let server = Server::start(|exchange| exchange.json("{}"));
    client()
        .send(WireRequest { method: "GET", body: String::new(), ..post(server.url("/models")) })
        .wait()
        .expect("ok");
    let request = &server.requests()[0];
    assert!(request.head.starts_with("GET /models HTTP/1.1"), "{}", request.head);
    assert_eq!(request.header("content-length"), None);
}

#[test]
fn blocking_and_asynchronous_callers_share_a_connection() {
    let server = Server::start(|exchange| {
        if exchange.request.head.contains("/stream") {
            exchange.events();
            exchange.chunk("data: 1\n\n");
            exchange.end();
        } else {
            exchange.json("{}");
        }
    });
    let client = client();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts");
    for _ in 0..5 {
        client.send(post(server.url("/"))).wait().expect("it succeeds");
        runtime.block_on(async {
            client.send(post(server.url("/"))).await.expect("it succeeds");
            client.clone().send(post(server.url("/"))).wait().expect("it succeeds inside asynchronous code, too");
        });
        let (all, end) = drain(client.stream(post(server.url("/stream"))).wait().expect("it begins"));
        assert_eq!((all.as_slice(), end.is_ok()), (&b"data: 1\n\n"[..], true));
        io::wait(client.send(post(server.url("/")))).expect("it succeeds");
    }
    // A connection becomes available shortly after its response, so a fast caller may need an additional one sometimes.
    assert_eq!(server.requests().len(), 25);
    assert!(server.connections() <= 12, "{} connections", server.connections());
}

#[test]
fn pieces_come_when_they_are_sent_and_unchanged() {
    let (go, wait) = std::sync::mpsc::channel();
    let wait = Mutex::new(wait);
    let pieces: Vec<Vec<u8>> = vec![
        b"\xef\xbb\xbf: a comment\r\n".to_vec(),
        b"data: {\"a\":\"\xc3".to_vec(),
        b"\xa9\"}\r".to_vec(),
        b"\n\r\n".to_vec(),
        [b"data: ".to_vec(), vec![b'x'; 3 << 20], b"\n\n".to_vec()].concat(),
    ];
    let expected = pieces.clone();
    let server = Server::start(move |exchange| {
        exchange.events();
        for piece in &pieces {
            exchange.chunk(piece);
            wait.lock().expect("nobody panicked").recv().expect("the test runs");
        }
        exchange.end();
    });
    let mut stream = client().stream(post(server.url("/"))).wait().expect("it begins");
    assert_eq!((stream.status(), stream.content()), (200, Content::EventStream));
    for piece in expected {
        let mut arrived = Vec::new();
        while arrived.len() < piece.len() {
            arrived.extend_from_slice(&stream.wait_next().expect("more comes").expect("it is good"));
        }
        assert!(arrived == piece, "a piece was changed");
        go.send(()).expect("the server waits");
    }
    assert!(stream.wait_next().is_none());
    assert!(stream.wait_next().is_none());
}

#[test]
fn a_stream_is_asked_for_without_compression() {
    let server = Server::start(|exchange| {
        exchange.events();
        exchange.end();
    });
    client().stream(post(server.url("/"))).wait().expect("it begins");
    assert_eq!(server.requests()[0].header("accept-encoding"), Some("identity"));
    assert_eq!(server.requests()[0].header("accept"), Some("text/event-stream, application/json"));
}

#[test]
fn what_is_overloaded_or_broken_is_tried_again() {
    for (status, attempts) in [(429, 3), (500, 3), (503, 3), (529, 3), (501, 1), (400, 1), (401, 1), (404, 1), (408, 1)]
    {
        let server = Server::start(move |exchange| exchange.answer(status, "", "no"));
        let waits = Waits::default();
        let client = HttpClient::new(options(&waits)).expect("the options are good");
        let kind = if status == 429 || status >= 500 { Kind::ProviderUnavailable } else { Kind::Provider };
        let error = fails(client.send(post(server.url("/"))).wait(), kind);
        assert!(error.message().ends_with(&format!("HTTP {status}: no")), "{error}");
        assert_eq!((error.status(), error.retry_after()), (Some(status), None));
        assert_eq!((server.requests().len(), waits.seen().len()), (attempts, attempts - 1), "{status}");
        let most = [Duration::from_millis(500), Duration::from_secs(1)];
        assert!(waits.seen().iter().zip(most).all(|(wait, most)| *wait <= most), "{:?}", waits.seen());
        assert!(server.requests().iter().all(|request| request.body == r#"{"model":"m"}"#));
    }
}

#[test]
fn a_provider_that_recovers_answers() {
    let server = Server::start(|exchange| match exchange.number {
        0 => exchange.answer(503, "", "no"),
        1 => exchange.answer(429, "Retry-After: 7\r\n", "no"),
        _ => exchange.json("{}"),
    });
    let waits = Waits::default();
    let client = HttpClient::new(options(&waits)).expect("the options are good");
    client.send(post(server.url("/"))).wait().expect("it succeeds in the end");
    assert_eq!(waits.seen().len(), 2);
    assert_eq!(waits.seen()[1], Duration::from_secs(7));
}

#[test]
fn a_provider_that_wants_too_long_a_wait_gets_none() {
    let server = Server::start(|exchange| exchange.answer(429, "Retry-After: 86400000\r\n", "no"));
    let waits = Waits::default();
    let client = HttpClient::new(options(&waits)).expect("the options are good");
    let error = fails(client.stream(post(server.url("/"))).wait(), Kind::ProviderUnavailable);
    assert!(error.help().is_some_and(|help| help.contains("86400000 s")), "{error:?}");
    assert_eq!((error.status(), error.retry_after()), (Some(429), Some(Duration::from_secs(86_400_000))));
    assert_eq!((server.requests().len(), waits.seen().len()), (1, 0));
}

#[test]
fn a_wait_that_ends_after_the_total_is_not_begun() {
    let server = Server::start(|exchange| exchange.answer(429, "Retry-After: 30\r\n", "no"));
    let waits = Waits::default();
    let options = HttpOptions { total_timeout: Duration::from_secs(20), ..options(&waits) };
    let client = HttpClient::new(options).expect("the options are good");
    fails(client.send(post(server.url("/"))).wait(), Kind::ProviderUnavailable);
    assert_eq!((server.requests().len(), waits.seen().len()), (1, 0));
}

#[test]
fn connections_that_break_before_the_answer_are_tried_again() {
    type Fault = fn(&mut Exchange<'_>);
    let faults: [Fault; 4] = [
        |exchange| exchange.reset(),
        |exchange| exchange.close(),
        |exchange| {
            exchange.write("HTTP/1.1 200 OK\r\nContent-");
            exchange.close();
        },
        |exchange| {
            exchange.events();
            exchange.reset();
        },
    ];
    for (number, fault) in faults.into_iter().enumerate() {
        let server = Server::start(move |exchange| match exchange.number {
            0 => fault(exchange),
            _ => exchange.json("{}"),
        });
        let waits = Waits::default();
        let client = HttpClient::new(options(&waits)).expect("the options are good");
        client.stream(post(server.url("/"))).wait().unwrap_or_else(|error| panic!("{number}: {error}"));
        assert_eq!((server.requests().len(), waits.seen().len()), (2, 1), "{number}");
    }
}

#[test]
fn an_answer_that_has_begun_is_never_asked_for_again() {
    type Fault = fn(&mut Exchange<'_>);
    let faults: [Fault; 4] = [
        |exchange| {
            exchange.events();
            exchange.chunk("data: 1\n\n");
            exchange.reset();
        },
        |exchange| {
            exchange.events();
            exchange.chunk("data: 1\n\n");
            exchange.write("ffff\r\ndata");
            exchange.close();
        },
        |exchange| {
            exchange.events();
            exchange.chunk("data: 1\n\n");
            exchange.write("not hexadecimal\r\n");
            exchange.close();
        },
        |exchange| {
            exchange.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{}");
            exchange.close();
        },
    ];
    for fault in faults {
        let server = Server::start(fault);
        let waits = Waits::default();
        let client = HttpClient::new(options(&waits)).expect("the options are good");
        match client.stream(post(server.url("/"))).wait() {
            Ok(stream) => fails(drain(stream).1, Kind::Truncated),
            Err(error) => fails(Err::<(), _>(error), Kind::Truncated),
        };
        assert_eq!((server.requests().len(), waits.seen().len()), (1, 0));
    }
}

#[test]
fn an_address_where_nobody_listens_is_tried_again_and_then_named_without_its_secrets() {
    let waits = Waits::default();
    let client = HttpClient::new(options(&waits)).expect("the options are good");
    let request = post("http://user:sk-PASSWORD@127.0.0.1:1/x?key=sk-SECRET#sk-SECRET".into());
    let error = fails(client.send(request).wait(), Kind::Unreachable);
    assert!(error.message().contains("http://127.0.0.1:1: "), "{error}");
    assert!(!shown(&error).contains("sk-"), "{}", shown(&error));
    // The causes are available, and name no secret either.
    let causes = std::iter::successors(std::error::Error::source(&error), |cause| cause.source());
    let causes: Vec<_> = causes.map(|cause| format!("{cause} {cause:?}")).collect();
    assert!(!causes.is_empty() && causes.iter().all(|cause| !cause.contains("sk-")), "{causes:?}");
    assert_eq!(waits.seen().len(), 2);
}

/// Long enough for a local server to respond, if it does.
const SHORT: Duration = Duration::from_millis(50);

#[test]
fn each_wait_has_its_limit() {
    let mute = Server::start(|exchange| exchange.stall());
    let headless = Server::start(|exchange| {
        exchange.events();
        exchange.stall();
    });
    let stuck = Server::start(|exchange| {
        exchange.events();
        exchange.chunk("data: {\"a\":1}\n\n");
        exchange.stall();
    });
    let first_byte = client_with(|options| options.first_byte_timeout = SHORT);
    let idle = client_with(|options| options.idle_timeout = SHORT);
    let total = client_with(|options| options.total_timeout = SHORT);
    for server in [&mute, &headless] {
        fails(first_byte.stream(post(server.url("/"))).wait(), Kind::FirstByteTimeout);
        fails(total.stream(post(server.url("/"))).wait(), Kind::TotalTimeout);
        fails(total.send(post(server.url("/"))).wait(), Kind::TotalTimeout);
        assert!(server.connections() <= 3, "what takes too long once is not tried again");
    }
    let (all, end) = drain(idle.stream(post(stuck.url("/"))).wait().expect("it begins"));
    assert_eq!(all, b"data: {\"a\":1}\n\n");
    fails(end, Kind::IdleTimeout);
    stuck.wait_until_left();
    let end = total.stream(post(stuck.url("/"))).wait().and_then(|stream| drain(stream).1);
    fails(end, Kind::TotalTimeout);
}

#[test]
fn a_connection_that_is_never_made_is_given_up() {
    // A server without TLS: it waits for a request, and the client waits for a handshake.
    let server = Server::start(|exchange| exchange.stall());
    let waits = Waits::default();
    let client = HttpClient::new(HttpOptions { connect_timeout: SHORT, ..options(&waits) }).expect("good options");
    let url = server.url("/").replace("http://", "https://");
    fails(client.send(post(url)).wait(), Kind::ConnectTimeout);
    assert_eq!(waits.seen().len(), 2, "connecting is tried again");
}

#[test]
fn a_limit_may_be_as_long_as_it_can_be_written() {
    let server = Server::start(|exchange| exchange.json("{}"));
    let client = client_with(|options| {
        options.first_byte_timeout = Duration::MAX;
        options.idle_timeout = Duration::MAX;
        options.total_timeout = Duration::MAX;
    });
    client.send(post(server.url("/"))).wait().expect("it succeeds");
}

#[test]
fn no_other_origin_is_ever_connected_to() {
    for status in [301, 302, 303, 307, 308] {
        for header in ["authorization", "x-api-key", "api-key"] {
            let b = Server::start(|exchange| exchange.json("{}"));
            let location = format!("http://localhost:{}/steal?key=sk-SECRET", b.port);
            let a = Server::start(move |exchange| exchange.answer(status, &format!("Location: {location}\r\n"), ""));
            let mut request = post(a.url("/"));
            request.headers[1].name = header.into();
            let error = fails(client().send(request).wait(), Kind::RedirectRefused);
            assert!(error.message().contains(&format!("http://localhost:{}", b.port)), "{error}");
            assert!(!shown(&error).contains("sk-SECRET"), "{}", shown(&error));
            assert_eq!((a.requests().len(), b.connections()), (1, 0), "{status} {header}");
        }
    }
}

#[test]
fn redirects_out_of_encryption_are_refused() {
    let plain = Server::start(|exchange| exchange.json("{}"));
    let location = plain.url("/");
    let (server, root) = tls::start(move |exchange| exchange.answer(307, &format!("Location: {location}\r\n"), ""));
    let client = client_with(|options| options.extra_roots = Some(root));
    fails(client.send(post(server.url("/"))).wait(), Kind::RedirectRefused);
    assert_eq!((server.requests().len(), plain.connections()), (1, 0));
}

#[test]
fn redirects_inside_an_origin_are_followed_with_the_body_and_not_for_ever() {
    let server = Server::start(|exchange| {
        let next = exchange.number + 1;
        if exchange.request.head.starts_with("POST /3 ") {
            exchange.json("{}");
        } else {
            exchange.answer(307, &format!("Location: /{next}\r\n"), "");
        }
    });
    client().send(post(server.url("/0"))).wait().expect("three are followed");
    assert_eq!(server.requests().len(), 4);
    assert!(server.requests().iter().all(|request| request.body == r#"{"model":"m"}"#));
    let round = Server::start(|exchange| exchange.answer(308, "Location: /\r\n", ""));
    fails(client().send(post(round.url("/"))).wait(), Kind::RedirectRefused);
    assert_eq!(round.requests().len(), 4);
}

#[test]
fn headers_cannot_be_used_to_write_another_request() {
    let server = Server::start(|exchange| exchange.json("{}"));
    let injections = ["SECRET\r\nx: 1", "SECRET\n", "SECRET\0", "SECRET\u{7f}", "SECRETé", "\u{2028}SECRET"];
    for value in injections {
        for hidden in [true, false] {
            let mut request = post(server.url("/"));
            request.headers[1].value = match hidden {
                true => HeaderValue::Secret { prefix: "", secret: Secret::new(value) },
                false => HeaderValue::Plain(value.into()),
            };
            let error = fails(client().send(request).wait(), Kind::InvalidRequest);
            assert!(!shown(&error).contains("SECRET"), "{error:?}");
        }
    }
    for name in ["host", "content-length", "Transfer-Encoding", "connection", "x y", "x\r\ny", "", ":authority"] {
        let mut request = post(server.url("/"));
        request.headers[1].name = name.into();
        fails(client().send(request).wait(), Kind::InvalidRequest);
    }
    assert_eq!(server.connections(), 0);
}

#[test]
fn addresses_that_are_none_are_refused_without_showing_them() {
    for url in
        ["", "localhost", "http://", "file:///etc/SECRET", "https://[SECRET", "ftp://SECRET/", "http://a:SECRET/"]
    {
        let error = fails(client().send(post(url.into())).wait(), Kind::InvalidRequest);
        assert!(!shown(&error).contains("SECRET"), "{error:?}");
    }
}

#[test]
fn web_pages_are_no_answers() {
    for content_type in ["text/html", "text/event-stream", "application/json", "text/plain"] {
        let header = format!("Content-Type: {content_type}\r\n");
        let server = Server::start(move |exchange| exchange.answer(200, &header, "<html>captive portal</html>"));
        fails(client().send(post(server.url("/"))).wait(), Kind::ContentType);
        let error = fails(client().stream(post(server.url("/"))).wait(), Kind::ContentType);
        assert!(!error.message().contains("portal"), "{error}");
        assert_eq!(server.requests().len(), 2, "it is not tried again");
    }
}

#[test]
fn a_server_that_does_not_stream_is_understood() {
    let server = Server::start(|exchange| exchange.json(r#"{"a":1}"#));
    let stream = client().stream(post(server.url("/"))).wait().expect("it begins");
    assert_eq!(stream.content(), Content::Json);
    assert_eq!(drain(stream).0, br#"{"a":1}"#);
}

#[test]
fn an_interim_answer_is_none() {
    let server = Server::start(|exchange| {
        exchange.write("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n");
        exchange.json("{}");
    });
    assert_eq!(client().send(post(server.url("/"))).wait().expect("it succeeds").status, 200);
}

/// Writes the same bytes while the client reads, up to an amount that reveals a client without a limit. More would
/// exhaust the memory of the test machine.
fn flood(exchange: &mut Exchange<'_>, head: &str) {
    const PIECE: usize = 1 << 16;
    exchange.write(head);
    let pieces = 4 * IN_SOCKETS / PIECE;
    let _ = (0..pieces).all(|_| exchange.write([b'E'; PIECE]));
    exchange.close();
}

/// The maximum number of bytes in the buffers between a server and a client that has stopped reading.
const IN_SOCKETS: usize = 32 << 20;

#[test]
fn an_error_of_any_size_makes_a_small_error() {
    let server = Server::start(|exchange| {
        flood(exchange, "HTTP/1.1 500 Broken\r\nContent-Type: text/plain\r\nContent-Length: 314572800\r\n\r\n");
    });
    let client = client_with(|options| options.max_retries = 0);
    let error = fails(client.stream(post(server.url("/"))).wait(), Kind::ProviderUnavailable);
    assert!(shown(&error).len() < 8192, "{}", shown(&error).len());
    assert!(server.written() < IN_SOCKETS, "{}", server.written());
}

#[test]
fn an_answer_of_any_size_is_bounded() {
    let heads = [
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999999999999\r\n\r\n",
    ];
    for head in heads {
        let server = Server::start(move |exchange| flood(exchange, head));
        let client = client_with(|options| options.max_response_bytes = 1 << 20);
        fails(client.send(post(server.url("/"))).wait(), Kind::ResponseTooLarge);
        let end = client.stream(post(server.url("/"))).wait().map(drain);
        fails(end.and_then(|(all, end)| end.map(|()| all)), Kind::ResponseTooLarge);
        assert!(server.written() < 2 * IN_SOCKETS, "{}", server.written());
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut encoder, bytes).expect("memory does not fail");
    encoder.finish().expect("memory does not fail")
}

const GZIP: &str = "Content-Type: application/json\r\nContent-Encoding: gzip\r\n";

#[test]
fn compressed_answers_are_measured_unpacked() {
    let small = gzip(br#"{"a":1}"#);
    let bomb = gzip(&vec![b' '; 64 << 20]);
    assert!(bomb.len() < 100_000, "it is a bomb");
    let server = Server::start(move |exchange| match exchange.number {
        0 => exchange.answer(200, GZIP, &small),
        1 => exchange.answer(200, GZIP, &bomb),
        2 => exchange.answer(400, GZIP, &bomb),
        3 => exchange.answer(200, GZIP, &bomb[..bomb.len() / 2]),
        _ => exchange.answer(200, &GZIP.replace("gzip", "br"), "\u{b}\u{2}"),
    });
    let client = client_with(|options| options.max_response_bytes = 40 << 20);
    assert_eq!(client.send(post(server.url("/"))).wait().expect("it succeeds").body, br#"{"a":1}"#);
    fails(client.send(post(server.url("/"))).wait(), Kind::ResponseTooLarge);
    assert!(shown(&fails(client.send(post(server.url("/"))).wait(), Kind::Provider)).len() < 8192);
    fails(client.send(post(server.url("/"))).wait(), Kind::Truncated);
    fails(client.send(post(server.url("/"))).wait(), Kind::ContentType);
}

#[test]
fn errors_that_repeat_the_key_do_not_show_it() {
    let server = Server::start(|exchange| {
        let line = exchange.request.head.lines().next().unwrap_or_default().to_owned();
        let key = exchange.request.header("authorization").unwrap_or_default().to_owned();
        exchange.answer(401, "Content-Type: application/json\r\n", format!("\u{1b}[31m{key} is wrong at {line}"));
    });
    let error = fails(client().send(post(server.url("/x?key=sk-QUERY&api-version=2024-10-21"))).wait(), Kind::Provider);
    assert!(!shown(&error).contains("sk-"), "{error}");
    assert!(error.message().contains("is wrong") && !error.message().contains('\u{1b}'), "{error:?}");
}

#[test]
fn dropping_closes_the_connection_at_once() {
    let (seen, asked) = std::sync::mpsc::channel();
    let mute = Server::start(move |exchange| {
        seen.send(()).expect("the test runs");
        exchange.stall();
    });
    let task = client().send(post(mute.url("/")));
    asked.recv().expect("the server runs");
    drop(task);
    mute.wait_until_left();

    let stuck = Server::start(|exchange| {
        exchange.events();
        exchange.chunk("data: 1\n\n");
        exchange.stall();
    });
    let mut stream = client().stream(post(stuck.url("/"))).wait().expect("it begins");
    assert!(stream.wait_next().is_some());
    drop(stream);
    stuck.wait_until_left();
}

#[test]
fn a_named_proxy_gets_every_request() {
    let proxy = Server::start(|exchange| exchange.json("{}"));
    let address = format!("http://proxy-user:PROXYSECRET@localhost:{}", proxy.port);
    let client = client_with(|options| options.proxy = ProxyPolicy::Url(address));
    client.send(post("http://provider.invalid/v1?x=1".into())).wait().expect("the proxy answers");
    let request = &proxy.requests()[0];
    assert!(request.head.starts_with("POST http://provider.invalid/v1?x=1 HTTP/1.1"), "{}", request.head);
    assert!(request.header("proxy-authorization").is_some());
    assert!(!format!("{client:?}").contains("PROXYSECRET"), "{client:?}");
    assert!(format!("{client:?}").contains("localhost"), "{client:?}");
}

#[test]
fn a_proxy_is_shown_nothing_of_an_encrypted_request() {
    let proxy = Server::start(|exchange| {
        exchange.answer(502, "", "");
        exchange.close();
    });
    let address = format!("http://localhost:{}", proxy.port);
    let client = client_with(|options| options.proxy = ProxyPolicy::Url(address));
    fails(client.send(post("https://provider.invalid/v1?key=sk-SECRET".into())).wait(), Kind::Unreachable);
    for request in proxy.requests() {
        assert!(request.head.starts_with("CONNECT provider.invalid:443 HTTP/1.1"), "{}", request.head);
        assert!(!request.head.contains("sk-"), "{}", request.head);
    }
}

#[test]
fn proxies_that_cannot_be_used_are_refused_without_showing_them() {
    for address in ["", "SECRET", "socks5://SECRET:1", "http://user:SECRET@[", "file:///SECRET"] {
        let proxy = ProxyPolicy::Url(address.into());
        let error = HttpClient::new(HttpOptions { proxy, ..HttpOptions::default() }).expect_err("it is refused");
        assert_eq!(error.kind(), Kind::InvalidRequest);
        assert!(!shown(&error).contains("SECRET"), "{error:?}");
    }
}

/// The child process of the next test, whose environment sets a proxy.
#[test]
#[ignore = "run by environment_names_a_proxy"]
fn child_with_a_proxy_in_its_environment() {
    let local = Server::start(|exchange| exchange.json("{}"));
    let client =
        |proxy| HttpClient::new(HttpOptions { proxy, max_retries: 0, ..HttpOptions::default() }).expect("good");
    client(ProxyPolicy::FromEnvironment)
        .send(post("http://provider.invalid/".into()))
        .wait()
        .expect("the proxy answers");
    client(ProxyPolicy::FromEnvironment).send(post(local.url("/"))).wait().expect("this machine answers");
    assert_eq!(local.requests().len(), 1, "requests to this machine do not leave it");
    // This address also refers to this machine, but is not recognized as local.
    let outside = local.url("/").replace("localhost", "0.0.0.0");
    client(ProxyPolicy::None).send(post(outside)).wait().expect("the server answers");
    assert_eq!(local.requests().len(), 2, "without a proxy, requests go straight to the server");
}

#[test]
fn environment_names_a_proxy() {
    let proxy = Server::start(|exchange| exchange.json("{}"));
    let status = std::process::Command::new(std::env::current_exe().expect("it runs"))
        .args(["--exact", "http::child_with_a_proxy_in_its_environment", "--ignored"])
        .env("HTTP_PROXY", format!("http://127.0.0.1:{}", proxy.port))
        .env_remove("NO_PROXY")
        .env_remove("no_proxy")
        .env_remove("REQUEST_METHOD")
        .output()
        .expect("the test runs itself");
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stdout));
    assert_eq!(proxy.requests().len(), 1);
}

#[test]
fn certificates_that_nobody_vouches_for_are_refused() {
    let (server, root) = tls::start(|exchange| exchange.json("{}"));
    let waits = Waits::default();
    let wary = HttpClient::new(options(&waits)).expect("the options are good");
    let error = fails(wary.send(post(server.url("/"))).wait(), Kind::Unreachable);
    assert!(error.message().contains("certificate"), "{error}");
    assert_eq!((server.requests().len(), waits.seen().len()), (0, 0), "a second try would end in the same way");
    let trusting = client_with(|options| options.extra_roots = Some(root.clone()));
    trusting.send(post(server.url("/"))).wait().expect("it is trusted now");
    let elsewhere = server.url("/").replace("localhost", "127.0.0.1");
    fails(trusting.send(post(elsewhere)).wait(), Kind::Unreachable);
    for broken in ["", "no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        let extra_roots = Some(broken.to_owned());
        let error = HttpClient::new(HttpOptions { extra_roots, ..HttpOptions::default() }).expect_err("it is refused");
        assert_eq!(error.kind(), Kind::InvalidRequest);
    }
}

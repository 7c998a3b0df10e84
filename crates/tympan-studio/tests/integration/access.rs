//! Attacks: pages of other origins, rebound host names, stolen addresses, paths that lead elsewhere, and clients that use
//! more than their share.

use std::fs;
use std::io::{Read, Write};
use std::time::Duration;

use serde_json::json;

use crate::client::{ECHO, Server};

const PROMPT: [(&str, &str); 1] = [("a.prompty", "user:\nHi")];

/// What a page of another origin wants to read and to change.
const TARGETS: [(&str, &str); 11] = [
    ("GET", "/api/project"),
    ("GET", "/api/file?path=a.prompty"),
    ("GET", "/api/watch"),
    ("GET", "/api/lsp"),
    ("GET", "/api/diff?path=a.prompty&rev=HEAD"),
    ("GET", "/api/samples?path=a.prompty"),
    ("PUT", "/api/file"),
    ("POST", "/api/run"),
    ("POST", "/api/count"),
    ("POST", "/api/test"),
    ("POST", "/api/stop"),
];

#[test]
fn the_token_works_once_and_becomes_a_cookie() {
    let server = Server::start(&PROMPT);
    let target = server.url[server.url.find("/?").expect("it has a token")..].to_owned();
    for wrong in ["/?token=", "/?token=0", &target[..target.len() - 1]] {
        assert_eq!(server.request("GET", wrong, &[], "").status, 401, "{wrong}");
    }
    let response = server.request("GET", &target, &[], "");
    assert!(response.status == 200 && response.body.contains("content=\"0;url=/\""), "{response:?}");
    let cookie = response.header("set-cookie").expect("it sets one").to_owned();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    // Somebody who finds the address later, for example in the history of the browser, gets nothing.
    let again = server.request("GET", &target, &[], "");
    assert_eq!((again.status, again.header("set-cookie")), (401, None));
    let cookie = cookie.split(';').next().expect("it has a value");
    // In the browser that has the cookie, the address leads to the page again.
    let again = server.request("GET", &target, &[("Cookie", cookie)], "");
    assert_eq!((again.status, again.header("set-cookie")), (200, None));
    assert_eq!(server.request("GET", "/", &[("Cookie", cookie)], "").status, 200);
    assert_eq!(server.request("GET", "/api/project", &[("Cookie", cookie)], "").status, 200);
}

#[test]
fn without_a_session_nothing_is_served() {
    let server = Server::start(&PROMPT);
    let origin = server.origin();
    for (method, target) in TARGETS.into_iter().chain([("GET", "/"), ("GET", "/assets/x.js"), ("GET", "/nothing")]) {
        let body = json!({"path": "a.prompty", "text": "x", "base_hash": null}).to_string();
        for cookie in ["", "tympan_studio=1", &format!("tympan_studio_{}=0", server.port)] {
            let response = server.request(method, target, &[("Origin", &origin), ("Cookie", cookie)], &body);
            assert_eq!(response.status, 401, "{method} {target} {cookie}");
            assert!(!response.body.contains("a.prompty"), "{}", response.body);
        }
    }
}

#[test]
fn other_host_names_are_not_answered() {
    let server = Server::start(&PROMPT);
    let page = server.page();
    let port = server.port;
    // After DNS rebinding, a page of `evil.example` has the address of this server, but not its name.
    let hosts = [
        "evil.example",
        &format!("evil.example:{port}"),
        "127.0.0.1",
        "localhost:1",
        &format!("[::1]:{port}"),
        &format!("127.0.0.1:{port}.evil.example"),
        &format!("localhost.evil.example:{port}"),
        "",
    ];
    for host in hosts {
        for (method, target) in TARGETS {
            let headers = [("Host", host), ("Cookie", page.cookie.as_str()), ("Origin", &format!("http://{host}"))];
            let response = server.request(method, target, &headers, "{}");
            assert_eq!(response.status, 421, "{method} {target} {host}");
        }
    }
    let own = format!("127.0.0.1:{port}");
    for head in [
        format!("GET /api/project HTTP/1.0\r\nCookie: {}\r\n\r\n", page.cookie),
        format!(
            "GET /api/project HTTP/1.1\r\nConnection: close\r\nHost: {own}\r\nHost: evil\r\nCookie: {}\r\n\r\n",
            page.cookie
        ),
        format!(
            "GET http://evil/api/project HTTP/1.1\r\nConnection: close\r\nHost: {own}\r\nCookie: {}\r\n\r\n",
            page.cookie
        ),
    ] {
        let response = server.send(head.as_bytes());
        assert!(matches!(response.status, 400 | 421), "{head}: {response:?}");
    }
    let local = format!("localhost:{port}");
    let headers = [("Host", local.as_str()), ("Cookie", &page.cookie), ("Origin", &format!("http://{local}"))];
    assert_eq!(server.request("GET", "/api/project", &headers, "").status, 200);
}

#[test]
fn other_origins_neither_read_nor_write() {
    let server = Server::start(&PROMPT);
    let page = server.page();
    let own = server.origin();
    let body = json!({"path": "b.prompty", "text": "user:\nevil", "base_hash": null, "run": 1}).to_string();
    let other_port = format!("http://127.0.0.1:{}", server.port.wrapping_add(1));
    let localhost = format!("http://localhost:{}", server.port);
    for origin in
        ["http://evil.example", "null", "", &other_port, &localhost, &own.replace("http", "https"), &format!("{own}/")]
    {
        for (method, target) in TARGETS {
            // A browser sends the cookie with requests from another port of this host: they are of the same site.
            let headers = [("Cookie", page.cookie.as_str()), ("Origin", origin)];
            assert_eq!(server.request(method, target, &headers, &body).status, 403, "{method} {target} {origin}");
        }
    }
    for (method, target) in TARGETS {
        let site = |site| [("Cookie", page.cookie.as_str()), ("Origin", own.as_str()), ("Sec-Fetch-Site", site)];
        for name in ["cross-site", "same-site", "", "x"] {
            assert_eq!(server.request(method, target, &site(name), &body).status, 403, "{method} {target} {name}");
        }
        if method != "GET" {
            // Forms of old browsers do not say where they come from.
            let response = server.request(method, target, &[("Cookie", &page.cookie)], &body);
            assert_eq!(response.status, 403, "{method} {target}");
        }
    }
    assert!(server.text("b.prompty").is_none());
    assert_eq!(
        page.send("PUT", "/api/file", &json!({"path": "b.prompty", "text": "user:\nHi", "base_hash": null})).status,
        200
    );
}

#[test]
fn sockets_of_other_origins_are_refused() {
    let server = Server::start(&PROMPT);
    let page = server.page();
    let own = server.origin();
    let upgrade = |origin: Option<&str>, cookie: &str| {
        let mut headers = vec![
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("Cookie", cookie),
        ];
        headers.extend(origin.map(|origin| ("Origin", origin)));
        server.request("GET", "/api/lsp", &headers, "").status
    };
    assert_eq!(upgrade(Some("http://evil.example"), &page.cookie), 403);
    assert_eq!(upgrade(Some("null"), &page.cookie), 403);
    assert_eq!(upgrade(None, &page.cookie), 403);
    assert_eq!(upgrade(Some(&own), ""), 401);
}

#[test]
fn every_response_says_what_the_page_may_do() {
    let server = Server::start(&PROMPT);
    let page = server.page();
    let responses = [
        page.get("/"),
        page.get("/api/project"),
        page.get("/api/file?path=missing.prompty"),
        page.get("/nothing"),
        server.request("GET", "/", &[], ""),
        server.request("GET", "/", &[("Host", "evil")], ""),
    ];
    for response in responses {
        let policy = response.header("content-security-policy").expect("there is one");
        for part in [
            "default-src 'none'",
            "frame-ancestors 'none'",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("'unsafe-inline'") && !policy.contains("'unsafe-eval'") && !policy.contains("http"));
        assert_eq!(response.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(response.header("cross-origin-resource-policy"), Some("same-origin"));
        assert_eq!(response.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(response.header("cache-control"), Some("no-store"));
        assert_eq!(response.header("access-control-allow-origin"), None);
    }
}

#[test]
fn methods_and_paths_that_do_not_exist_are_not_found() {
    let server = Server::start(&PROMPT);
    let page = server.page();
    for (method, target) in
        [("POST", "/api/file"), ("DELETE", "/api/file"), ("PUT", "/"), ("POST", "/assets/x"), ("POST", "/x")]
    {
        assert_eq!(page.send(method, target, &json!({})).status, 404, "{method} {target}");
    }
    for target in ["/assets/../index.html", "/assets/%2e%2e/Cargo.toml", "/assets//etc/passwd", "/assets/"] {
        assert_eq!(page.get(target).status, 404, "{target}");
    }
}

/// Paths that lead out of the folder, to hidden files, or to files that the studio does not show.
const PATHS: [&str; 22] = [
    "../secret.prompty",
    "a/../../secret.prompty",
    "/etc/passwd",
    "//etc/passwd",
    "sub/../a.prompty",
    "./a.prompty",
    "sub//b.prompty",
    ".hidden.prompty",
    ".env",
    ".git/config.prompty",
    "sub/.secret/x.prompty",
    "..%2Fsecret.prompty",
    "..\\secret.prompty",
    "C:\\secret.prompty",
    "a.prompty\u{0}.txt",
    "",
    ".",
    "package.json",
    "README.md",
    "tympan.toml",
    "script.py",
    "sub",
];

#[test]
fn paths_lead_only_to_files_of_the_studio() {
    let files = [
        ("a.prompty", "user:\nHi"),
        ("sub/b.prompty", "user:\nHi"),
        (".hidden.prompty", "secret"),
        (".env", "KEY=secret"),
        (".git/config.prompty", "secret"),
        ("sub/.secret/x.prompty", "secret"),
        ("package.json", "{\"secret\": 1}"),
        ("README.md", "secret"),
        ("tympan.toml", "# secret"),
        ("script.py", "secret"),
    ];
    let server = Server::start(&files);
    let outside = server.folder.path().parent().expect("it has a parent").join("secret.prompty");
    let page = server.page();
    let listed = page.get("/api/project").json();
    let paths: Vec<_> = listed["files"].as_array().expect("a list").iter().map(|file| file["path"].clone()).collect();
    assert_eq!(paths, ["a.prompty", "sub/b.prompty"]);
    for path in PATHS {
        let encoded: String = path.bytes().map(|byte| format!("%{byte:02X}")).collect();
        for name in ["file", "samples", "trace", "journal", "diff"] {
            let response = page.get(&format!("/api/{name}?rev=HEAD&path={encoded}"));
            assert!((400..500).contains(&response.status), "{name} {path:?}: {response:?}");
            assert!(!response.body.contains("secret\"") && !response.body.contains("KEY="), "{response:?}");
        }
        let before: Vec<_> = files.iter().map(|(path, _)| server.text(path)).collect();
        for base in [json!(null), json!("0"), json!(hash(path, &server))] {
            let body = json!({"path": path, "text": "user:\nevil", "base_hash": base});
            let response = page.send("PUT", "/api/file", &body);
            assert!((400..500).contains(&response.status), "{path:?}: {response:?}");
        }
        for target in ["/api/run", "/api/count", "/api/test"] {
            let response = page.post(target, &json!({"path": path, "text": "user:\nHi"}));
            let is_prompt_text = target != "/api/test"
                && ["package.json", "README.md", "tympan.toml", "script.py", "sub"].contains(&path);
            assert!(is_prompt_text || (400..500).contains(&response.status), "{target} {path:?}: {response:?}");
        }
        assert_eq!(before, files.iter().map(|(path, _)| server.text(path)).collect::<Vec<_>>(), "{path:?}");
        assert!(!outside.exists());
    }
}

/// Returns the hash that a page would know if it could read the file.
fn hash(path: &str, server: &Server) -> Option<String> {
    server.text(path).map(|text| tympan_core::text::hash::sha256_hex(&text))
}

#[cfg(unix)]
#[test]
fn links_are_never_followed() {
    use std::os::unix::fs::symlink;

    let server = Server::start(&[("a.prompty", "user:\nHi"), ("sub/b.prompty", "user:\nHi")]);
    let elsewhere = tempfile::TempDir::new().expect("there is a temporary directory");
    let target = elsewhere.path().join("target.prompty");
    fs::write(&target, "secret").expect("it is written");
    let root = server.folder.path();
    symlink(&target, root.join("link.prompty")).expect("it is made");
    symlink("a.prompty", root.join("inside.prompty")).expect("it is made");
    symlink(elsewhere.path(), root.join("folder")).expect("it is made");
    symlink("sub", root.join("folder2")).expect("it is made");
    symlink(elsewhere.path().join("new.prompty"), root.join("dangling.prompty")).expect("it is made");
    let page = server.page();
    let paths = [
        "link.prompty",
        "inside.prompty",
        "folder/target.prompty",
        "folder2/b.prompty",
        "dangling.prompty",
        "folder/new.prompty",
    ];
    for path in paths {
        let read = page.get(&format!("/api/file?path={path}"));
        assert!(matches!(read.status, 403 | 404) && !read.body.contains("secret"), "{path}: {read:?}");
        for base in [
            json!(null),
            json!(tympan_core::text::hash::sha256_hex("secret")),
            json!(tympan_core::text::hash::sha256_hex("user:\nHi")),
        ] {
            let body = json!({"path": path, "text": "user:\nevil", "base_hash": base});
            let written = page.send("PUT", "/api/file", &body);
            assert!((400..500).contains(&written.status), "{path}: {written:?}");
        }
        let run = page.stream("POST", "/api/run", &json!({"path": path})).until("error");
        assert!(!run.to_string().contains("secret"), "{run}");
    }
    assert_eq!(fs::read_to_string(&target).expect("it is there"), "secret");
    assert_eq!(server.text("a.prompty").as_deref(), Some("user:\nHi"));
    assert!(!elsewhere.path().join("new.prompty").exists());
    // A prompt that refers to a link does not get its text either.
    let prompt = "---\nname: ${file:link.prompty}\ndescription: ${file:.env}\n---\nuser:\nHi";
    server.write("c.prompty", prompt);
    server.write(".env", "hidden");
    let file = page.get("/api/file?path=c.prompty").json();
    assert_eq!(file["files"], json!({}));
    let counted = page.post("/api/count", &json!({"path": "c.prompty"}));
    assert!(
        counted.status == 422 && !counted.body.contains("secret") && !counted.body.contains("hidden"),
        "{counted:?}"
    );
}

#[test]
fn large_bodies_are_refused() {
    let server = Server::with(&PROMPT, |options| options.limits.body_bytes = 100_000);
    let page = server.page();
    let text = format!("user:\n{}", "x".repeat(200_000));
    let body = json!({"path": "b.prompty", "text": text, "base_hash": null});
    assert_eq!(page.send("PUT", "/api/file", &body).status, 413);
    // A body that never ends is not read to its end.
    let head = format!(
        "POST /api/count HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nOrigin: {}\r\nCookie: {}\r\nTransfer-Encoding: chunked\r\n\r\n",
        server.port,
        server.origin(),
        page.cookie
    );
    let mut stream = server.connect();
    stream.write_all(head.as_bytes()).expect("it is sent");
    let chunk = format!("8000\r\n{}\r\n", "x".repeat(0x8000));
    let sent = (0..10_000).take_while(|_| stream.write_all(chunk.as_bytes()).is_ok()).count();
    assert!(sent < 10_000, "the server has read {sent} chunks");
    assert!(server.text("b.prompty").is_none());
}

#[test]
fn slow_clients_lose_their_connection() {
    let server = Server::with(&PROMPT, |options| {
        options.limits.request_time = Duration::from_millis(100);
        options.limits.connections = 2;
    });
    let page = server.page();
    // More connections than there are places, and none of them ever sends the rest of its request.
    let heads = ["GET / HT", "GET /api/project HTTP/1.1\r\nHost: x\r\n", "", "POST /"];
    let mut streams: Vec<_> = heads.iter().map(|head| (head, server.connect())).collect();
    for (head, stream) in &mut streams {
        stream.write_all(head.as_bytes()).expect("it is sent");
    }
    let head = format!(
        "POST /api/count HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nOrigin: {}\r\nCookie: {}\r\nContent-Length: 10\r\n\r\n{{",
        server.port,
        server.origin(),
        page.cookie
    );
    assert_eq!(server.send(head.as_bytes()).status, 408);
    for (head, stream) in &mut streams {
        let mut rest = Vec::new();
        // The end of the connection, or a reset.
        let _ = stream.read_to_end(&mut rest);
        assert!(!String::from_utf8_lossy(&rest).contains(" 200 "), "{head}");
    }
    assert_eq!(page.get("/api/project").status, 200);
}

#[test]
fn nothing_is_written_in_a_read_only_studio() {
    let server = Server::with(&[("a.prompty", ECHO)], |options| options.read_only = true);
    let page = server.page();
    assert_eq!(page.get("/api/project").json()["read_only"], true);
    let hash = page.get("/api/file?path=a.prompty").json()["hash"].clone();
    for (path, base) in [("a.prompty", hash), ("b.prompty", json!(null))] {
        let body = json!({"path": path, "text": "user:\nevil", "base_hash": base});
        assert_eq!(page.send("PUT", "/api/file", &body).status, 403, "{path}");
    }
    let record = json!({"path": "a.prompty", "inputs": {"q": "Hi"}, "options": {"record": "cassettes"}});
    assert_eq!(page.post("/api/run", &record).status, 403);
    assert_eq!((server.text("a.prompty").as_deref(), server.text("b.prompty")), (Some(ECHO), None));
}

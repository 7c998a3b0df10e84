//! OpenAPI tools against a third-party implementation: FastAPI, which generates the document and validates requests.
//! `OPENAPI_PYTHON` names the Python that has it installed; `make test` installs it.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tympan_core::ContentPart;
use tympan_runtime::Kind;

use crate::services::{call, call_one, parts, runtime, runtime_with, status};

/// Longer than the service takes to start.
const LONG: Duration = Duration::from_secs(60);
/// The key that the service requires.
const KEY: &str = "correct-horse-battery-staple";

/// The service, which stops at the end of the test.
struct Shop {
    child: Child,
    port: u16,
}

impl Drop for Shop {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Shop {
    fn open() -> Self {
        let python = std::env::var("OPENAPI_PYTHON").expect("the test needs it");
        let port = TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("an address").port();
        let app = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/interop/openapi/app.py");
        let child = Command::new(python)
            .arg("-B")
            .arg(app)
            .arg(port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("OPENAPI_PYTHON names a program");
        let mut shop = Self { child, port };
        let deadline = Instant::now() + LONG;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let is_running = shop.child.try_wait().expect("it can be asked").is_none();
            assert!(is_running && Instant::now() < deadline, "the service does not listen");
            std::thread::yield_now();
        }
        shop
    }

    fn tool(&self, operations: &[&str]) -> Value {
        let address = format!("http://127.0.0.1:{}/openapi.json", self.port);
        json!({ "specification": address, "operations": operations })
    }

    fn tool_with_key(&self, operation: &str, key: &str) -> Value {
        let mut tool = self.tool(&[operation]);
        tool["connection"] = json!({ "kind": "key", "apiKey": key });
        tool
    }
}

pub(crate) fn a_real_service_understands_the_requests() {
    let shop = Shop::open();
    let runtime = runtime();
    let item =
        json!({ "name": "Ink", "price": 2.5, "size": "large", "tags": [], "maker": { "name": "Ada", "town": null } });
    let cases = [
        ("get_item", json!({ "item_id": 7, "detail": true }), json!({ "id": 7, "detail": true })),
        ("by_name", json!({ "name": "a b?c#d%e&f=é;g:h@i" }), json!({ "name": "a b?c#d%e&f=é;g:h@i" })),
        (
            "search",
            json!({ "q": "a&b=c", "size": "small", "tag": ["x y", "z,w", "é"], "x-trace": "t 1", "session": "s1" }),
            json!({ "q": "a&b=c", "size": "small", "tag": ["x y", "z,w", "é"], "limit": 10, "x_trace": "t 1", "session": "s1" }),
        ),
        (
            "search",
            json!({ "q": "ab", "size": null, "tag": [], "limit": 3 }),
            json!({ "q": "ab", "size": null, "tag": [], "limit": 3, "x_trace": null, "session": null }),
        ),
        ("replace_items", json!({ "item_id": 1, "body": ["a", "é"] }), json!({ "id": 1, "names": ["a", "é"] })),
        (
            "login",
            json!({ "body": { "user": "a b+c&d=é", "scopes": ["r", "w x"], "age": 3 } }),
            json!({ "user": "a b+c&d=é", "scopes": ["r", "w x"], "age": 3 }),
        ),
    ];
    for (name, arguments, expected) in cases {
        let told = call_one(&runtime, &shop.tool(&[name]), name, arguments);
        assert_eq!(serde_json::from_str::<Value>(&told).expect(&told), expected, "{name}");
    }
    let told =
        call_one(&runtime, &shop.tool(&["create_item"]), "create_item", json!({ "body": item, "dry_run": true }));
    let told: Value = serde_json::from_str(&told).expect("it is JSON");
    assert_eq!((&told["item"], &told["dry_run"]), (&item, &json!(true)));
    assert!(told["idempotency_key"].as_str().is_some_and(|key| key.len() > 8), "{told}");
}

pub(crate) fn what_a_real_service_answers_reaches_the_model() {
    let shop = Shop::open();
    let runtime = runtime();
    let names = ["get_item", "delete_item", "poem", "archive", "picture"];
    let calls = [
        ("poem", json!({})),
        ("delete_item", json!({ "item_id": 3 })),
        ("get_item", json!({ "item_id": 404 })),
        ("archive", json!({})),
        ("picture", json!({})),
    ];
    let parts = parts(&runtime, &shop.tool(&names), &calls).expect("the turn ends well");
    let text = |index: usize| parts[index].as_text().expect("it is text");
    assert_eq!(text(0), "Shall I compare thee\nto a summer's day?\n");
    assert_eq!(text(1), "Done: status 204, empty response.");
    assert_eq!(text(2), r#"Error: Tool 'get_item' failed: status 404 Not Found: {"detail":"there is no such item"}"#);
    assert!(text(3).ends_with("the response is 7 bytes of `application/zip`, which cannot be shown"), "{}", text(3));
    match &parts[4] {
        ContentPart::Image(image) => {
            assert_eq!(image.media_type.as_deref(), Some("image/png"));
            assert!(image.value.starts_with("iVBORw0KGgo"), "{image:?}");
        }
        other => panic!("expected a picture, found {other:?}"),
    }
    // The bounds of the document are checked before anything is sent.
    let (text, is_error) = status(&runtime, &shop.tool(&["get_item"]), "get_item", json!({ "item_id": 0 }));
    assert!(is_error && text.contains("`item_id`: expected a number of at least 1"), "{text}");
    let (text, is_error) = status(&runtime, &shop.tool(&["get_item"]), "get_item", json!({ "item_id": "x" }));
    assert!(is_error && text.contains("`item_id`: expected integer, found a string"), "{text}");
}

pub(crate) fn a_real_service_gets_its_key_in_every_way() {
    let shop = Shop::open();
    let runtime = runtime();
    for name in ["with_bearer", "with_header", "with_query", "with_cookie", "with_basic"] {
        let key = if name == "with_basic" { "correct-horse-:battery-staple" } else { KEY };
        let told = call_one(&runtime, &shop.tool_with_key(name, key), name, json!({}));
        assert!(told.contains("are known"), "{name}: {told}");
        assert!(!told.contains("battery"), "{name}: {told}");
        let told = call_one(&runtime, &shop.tool_with_key(name, "wrong-key"), name, json!({}));
        assert!(told.contains("status 401") && told.contains("who are you?"), "{name}: {told}");
        let error = call(&runtime, &shop.tool(&[name]), &[]).expect_err("there is no key");
        assert_eq!(error.kind(), Kind::MissingKey, "{name}: {error}");
    }
}

pub(crate) fn a_real_document_becomes_functions() {
    let shop = Shop::open();
    // All operations together require a key.
    let mut tool = json!({ "specification": shop.tool(&[])["specification"], "prefix": "shop_" });
    tool["connection"] = json!({ "kind": "key", "apiKey": KEY });
    let told = call_one(&runtime(), &tool, "shop_get_item", json!({ "item_id": 1 }));
    assert_eq!(told, r#"{"id":1,"detail":false}"#);
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("notes.txt"), "some notes").expect("it can be written");
    let runtime_with_files = runtime_with(|options| options.load.file_roots = vec![folder.path().to_path_buf()]);
    let upload = json!({ "body": { "file": "notes.txt" } });
    assert_eq!(call_one(&runtime_with_files, &shop.tool(&["upload"]), "upload", upload), r#"{"size":10}"#);
    let error = call(&runtime(), &shop.tool(&["buy"]), &[]).expect_err("there is none");
    assert_eq!(error.kind(), Kind::ToolMismatch);
    assert!(error.help().is_some_and(|help| help.contains("`get_item`")), "{error:?}");
}

//! How long diagnostics take after a keystroke. The time is printed, never asserted:
//! `cargo test --release -p tympan-lsp --test integration -- --nocapture --ignored keystroke`

use std::fmt::Write;
use std::time::Instant;

use serde_json::json;

use crate::client::Client;

#[test]
#[ignore = "a measurement"]
#[expect(clippy::print_stdout)]
fn keystrokes_in_a_long_file() {
    let uri = "file:///workspace/long.prompty";
    let mut text = String::from("---\nname: long\ninputs:\n");
    for input in 0..50 {
        let _ = writeln!(text, "  - {{name: input{input}, kind: string, description: An input}}");
    }
    text.push_str("---\nsystem:\nBe brief.\n\nuser:\n");
    for line in text.lines().count()..2000 {
        let input = line % 50;
        let _ = match line % 10 {
            0 => writeln!(text, "{{% if input{input} %}}yes{{% else %}}no{{% endif %}}"),
            5 => writeln!(text, "{{{{ input{input} | upper }}}} and some more words in this line"),
            _ => writeln!(text, "Some words with {{{{ input{input} }}}} in the middle of line {line}."),
        };
    }
    let mut client = Client::usual();
    client.open(uri, &text);
    client.diagnostics(uri);
    let mut times = Vec::new();
    for version in 2..102 {
        let at = json!({"line": 1000, "character": 3});
        let start = Instant::now();
        client.change(uri, version, json!([{"range": {"start": at, "end": at}, "text": "x"}]));
        client.diagnostics(uri);
        times.push(start.elapsed());
    }
    times.sort();
    let lines = text.lines().count();
    println!("{lines} lines: median {:?}, slowest {:?}", times[times.len() / 2], times[times.len() - 1]);
    client.shut_down();
}

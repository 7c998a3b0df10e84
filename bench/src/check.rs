//! Checks of prompts, and the time from a keystroke to the diagnostics of a long file in the language server.

use crate::Result;
use crate::data::Workload;
use crate::measure::{Effort, Timing, time};
use crate::row::{Entry, Operation};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::fmt::Write;
use std::time::{Duration, Instant};
use tympan::format::NoReferences;
use tympan::lint::{Options, check_file};
use tympan::text::source::SourceFile;
use tympan_lsp::lsp_server::{Connection, Message, Notification, Request};
use tympan_lsp::serve;

/// The results.
#[derive(Clone, Copy, Debug)]
pub struct Checks {
    /// The time to check a prompt of the size of w1.
    pub w1: Timing,
    /// The median time from a keystroke in a file of 2,000 lines to its diagnostics.
    pub keystroke: Duration,
}

impl Checks {
    /// Measures both.
    pub fn measure(effort: Effort) -> Result<Checks> {
        let row = Entry::new("tympan", "check", check).row(&Workload::named("w1")?)?;
        let w1 = time(&[row], effort, || {}).remove(0);
        Ok(Checks { w1, keystroke: keystroke(effort.rounds)? })
    }

    /// Returns the number of prompts that one core checks in a second.
    pub fn per_second(&self) -> f64 {
        1e9 / self.w1.ns
    }
}

/// Loads the prompt and applies all rules, as for a file that has changed.
fn check(workload: &Workload) -> Result<Operation> {
    let source = SourceFile::new("w1.prompty", workload.prompty.clone());
    let check = move || Ok::<_, Infallible>(check_file(&source, &mut NoReferences, &Options::default()));
    if check()?.prompt.is_none() {
        return Err("the prompt does not load".into());
    }
    Ok(Operation::new(check, |_| None).unwrap_or_else(|never| match never {}))
}

const URI: &str = "file:///workspace/long.prompty";
const LINES: usize = 2000;
/// An answer that takes longer is a bug.
const PATIENCE: Duration = Duration::from_secs(60);

/// A prompt with many inputs, conditions and filters.
fn long_prompt() -> String {
    let mut text = String::from("---\nname: long\ninputs:\n");
    for input in 0..50 {
        let _ = writeln!(text, "  - {{name: input{input}, kind: string, description: An input}}");
    }
    text.push_str("---\nsystem:\nBe brief.\n\nuser:\n");
    for line in text.lines().count()..LINES {
        let input = line % 50;
        let _ = match line % 10 {
            0 => writeln!(text, "{{% if input{input} %}}yes{{% else %}}no{{% endif %}}"),
            5 => writeln!(text, "{{{{ input{input} | upper }}}} and some more words in this line"),
            _ => writeln!(text, "Some words with {{{{ input{input} }}}} in the middle of line {line}."),
        };
    }
    text
}

/// Types into a long file and waits for its diagnostics each time. The time is that of the clock, as for a person.
fn keystroke(times: u32) -> Result<Duration> {
    let (client, server) = Connection::memory();
    let server = std::thread::spawn(move || serve(&server));
    let send = |message: Message| client.sender.send(message);
    let notify = |method: &str, params: Value| send(Notification::new(method.to_owned(), params).into());
    let diagnostics = || -> Result<()> {
        loop {
            match client.receiver.recv_timeout(PATIENCE)? {
                Message::Notification(sent) if sent.method == "textDocument/publishDiagnostics" => return Ok(()),
                _ => {}
            }
        }
    };
    send(Request::new(1.into(), "initialize".to_owned(), json!({"capabilities": {}})).into())?;
    notify("initialized", json!({}))?;
    let document = json!({"uri": URI, "languageId": "prompty", "version": 1, "text": long_prompt()});
    notify("textDocument/didOpen", json!({"textDocument": document}))?;
    diagnostics()?;
    let mut samples = Vec::new();
    for version in 0..times {
        let at = json!({"line": LINES / 2, "character": 3});
        let change = json!({"range": {"start": at, "end": at}, "text": "x"});
        let start = Instant::now();
        let document = json!({"uri": URI, "version": version + 2});
        notify("textDocument/didChange", json!({"textDocument": document, "contentChanges": [change]}))?;
        diagnostics()?;
        samples.push(start.elapsed());
    }
    send(Request::new(2.into(), "shutdown".to_owned(), Value::Null).into())?;
    notify("exit", Value::Null)?;
    server.join().map_err(|_| "the server panicked")?;
    samples.sort();
    Ok(samples[samples.len() / 2])
}

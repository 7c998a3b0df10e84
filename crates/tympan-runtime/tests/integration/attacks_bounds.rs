//! Short texts that were once slow to read or needed much memory: `fixtures/attacks/bounds_readers.json`.

use std::path::Path;

use serde_json::{Value, json};
use tympan_core::chat::thread::{ThreadRoles, parse_thread};
use tympan_core::format::{definition::Syntax, parse_inputs};
use tympan_core::text::source::SourceFile;
use tympan_core::wire::{EncodeOptions, encode};
use tympan_core::{Error, Inputs, Prompt};
use tympan_runtime::tool::openapi::{self, Service, ServiceOptions};
use tympan_runtime::{LoadOptions, Runtime, RuntimeOptions};

use crate::shared;

/// Runs the cases in order in one process, so that memory retained by one case counts against the next.
#[test]
fn every_case_ends_within_its_memory() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/attacks/bounds_readers.json");
    let cases: Vec<Value> = serde_json::from_slice(&std::fs::read(path).expect("it is there")).expect("it is JSON");
    assert!(cases.len() >= 40, "there are {} cases", cases.len());
    let before = memory("VmRSS");
    let mut complaints = Vec::new();
    for case in &cases {
        let inputs = shared::expand(&case["inputs"]);
        let files = shared::expand(&case["files"]);
        // Reset the peak memory usage.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        run(case["surface"].as_str().unwrap_or_default(), &inputs, &files);
        let most = case["expect"]["max_rss_mib"].as_u64().expect("a bound");
        if let Some(used) = memory("VmHWM").zip(before).map(|(peak, before)| peak.saturating_sub(before) >> 10)
            && used > most
        {
            complaints.push(format!("{}: {used} MiB, where {most} are allowed", case["id"]));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// Returns a memory statistic of this process, in KiB.
fn memory(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn run(surface: &str, inputs: &Value, files: &Value) {
    let text = |name: &str| inputs[name].as_str().unwrap_or_else(|| panic!("{surface} has no {name}"));
    match surface {
        "load" => load(text("frontmatter"), text("body"), files),
        "inputs" => drop(parse_inputs(&SourceFile::new("inputs.yaml", text("text")))),
        "definition" => {
            let syntax = Syntax::from_extension(text("syntax")).expect("a syntax");
            judge(Prompt::from_definition_source(SourceFile::new("a.yaml", text("text")), syntax));
        }
        "directive" => judge(tympan_core::directive::load(SourceFile::new("a.md", text("text")), "Go.")),
        "openapi" => {
            if let Ok(document) = openapi::read("api", text("document")) {
                drop(Service::new(&document, &ServiceOptions { name: "api".into(), ..ServiceOptions::default() }));
            }
        }
        "thread" => thread(usize::try_from(inputs["rounds"].as_u64().expect("a number")).expect("it is small")),
        "cached" => cached(text("body")),
        other => panic!("unknown surface {other}"),
    }
}

/// Inspects everything about a prompt, or about the error if it is invalid.
fn judge(loaded: Result<Prompt, Error>) {
    match loaded {
        Ok(prompt) => {
            let places = prompt.warnings().iter().filter_map(|warning| warning.span);
            let lines: usize = places.map(|span| prompt.source().line_column(span.start).line).sum();
            assert!(lines > 0 || prompt.warnings().is_empty());
            drop(prompt.check());
            assert!(!prompt.definition_hash().is_empty());
        }
        Err(error) => {
            let Some(source) = error.source_file() else { return };
            let places = error.others().iter().filter_map(|other| other.span);
            let columns: usize = places.map(|span| source.line_column(span.start).column).sum();
            assert!(columns > 0 || error.others().is_empty());
        }
    }
}

fn load(front_matter: &str, body: &str, files: &Value) {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, text) in files.as_object().into_iter().flatten() {
        std::fs::write(directory.path().join(name), text.as_str().unwrap_or_default()).expect("it is written");
    }
    let load = LoadOptions { env_vars: Some(Default::default()), ..LoadOptions::default() };
    let runtime = Runtime::new(RuntimeOptions { load, ..RuntimeOptions::default() });
    judge(runtime.load_str(&format!("---\n{front_matter}---\n{body}"), "a.prompty", directory.path()));
}

fn thread(rounds: usize) {
    let thread: Value = (0..rounds)
        .flat_map(|index| {
            let call = json!({"id": format!("c{index}"), "function": {"name": "f", "arguments": "{}"}});
            [
                json!({"role": "assistant", "content": "", "tool_calls": [call]}),
                json!({"role": "tool", "content": "ok", "tool_call_id": format!("c{index}")}),
            ]
        })
        .collect();
    let messages = parse_thread(&thread, ThreadRoles::Any).expect("it is a thread");
    drop(thread);
    for provider in ["openai", "anthropic"] {
        let prompt = format!("---\nmodel: {{id: m, provider: {provider}}}\n---\n");
        let prompt = Runtime::default().load_str(&prompt, "a.prompty", ".").expect("it is a prompt");
        assert!(encode(&prompt, &messages, &EncodeOptions::default()).is_ok());
    }
}

fn cached(body: &str) {
    let front_matter = "model: {id: m, provider: anthropic, options: {cache: auto}}\ninputs: {q: x}\n";
    let runtime = Runtime::default();
    let prompt =
        runtime.load_str(&format!("---\n{front_matter}---\n{body}"), "a.prompty", ".").expect("it is a prompt");
    let messages = runtime.prepare(&prompt, Inputs::new()).expect("it renders");
    assert!(encode(&prompt, &messages, &EncodeOptions::default()).is_ok());
}

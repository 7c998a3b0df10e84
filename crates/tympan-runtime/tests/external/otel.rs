//! Spans as received by a real collector: rotel, which `make test` installs. `ROTEL` names its program.

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::json;
use tympan_core::spec::ModelOptions;
use tympan_core::wire::response::{FinishReason, Usage};
use tympan_core::{Error, Kind, Response};
use tympan_runtime::trace::{OtelBackend, OtelOptions, Tracer};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

/// A collector, which stops at the end of the test.
struct Collector {
    child: Child,
    endpoint: String,
    lines: Receiver<String>,
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Collector {
    fn start(program: &str, folder: &std::path::Path) -> Self {
        let (http, grpc) = (free_port(), free_port());
        let mut child = Command::new(program)
            .args(["start", "--exporter", "blackhole", "--debug-log", "traces", "--debug-log-verbosity", "detailed"])
            .args(["--otlp-http-endpoint", &http, "--otlp-grpc-endpoint", &grpc])
            .arg("--pid-file")
            .arg(folder.join("pid"))
            .arg("--log-file")
            .arg(folder.join("log"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("ROTEL names a program");
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let collector = Self { child, endpoint: format!("http://{http}"), lines };
        let deadline = Instant::now() + LONG;
        while TcpStream::connect(&http).is_err() {
            assert!(Instant::now() < deadline, "the collector does not listen");
            std::thread::yield_now();
        }
        collector
    }

    /// Returns the output of the collector up to the last of these texts.
    fn says(&self, wanted: &[&str]) -> String {
        let mut said = String::new();
        while !wanted.iter().all(|wanted| said.contains(wanted)) {
            match self.lines.recv_timeout(LONG) {
                Ok(line) => said = said + &line + "\n",
                Err(_) => {
                    let missing: Vec<_> = wanted.iter().filter(|wanted| !said.contains(**wanted)).collect();
                    panic!("{missing:?} is missing in:\n{said}");
                }
            }
        }
        said
    }
}

fn free_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").to_string()
}

pub(crate) fn a_collector_understands_the_spans() {
    let program = std::env::var("ROTEL").expect("the test needs it");
    let folder = tempfile::tempdir().expect("a folder");
    let collector = Collector::start(&program, folder.path());
    let tracer = Tracer::default();
    let options = OtelOptions { content: true, ..OtelOptions::new(&collector.endpoint) };
    tracer.add("otel", OtelBackend::new(options)).expect("there are threads");
    let ids = {
        let root = tracer.start("tympan.run");
        root.turn(Some("support"));
        let call = root.child_client("chat gpt-4o");
        let options = ModelOptions { max_output_tokens: Some(77), ..ModelOptions::default() };
        call.request(Some("azure"), None, Some("gpt-4o"), &options);
        call.inputs(|| json!({ "messages": "sent words", "api_key": "hidden-key" }));
        call.response(&Response {
            id: Some("resp-1".into()),
            model: Some("gpt-4o-2024-08-06".into()),
            finish_reason: Some(FinishReason::Stop),
            usage: Some(Usage { input_tokens: 12, output_tokens: 34, ..Usage::default() }),
            ..Response::default()
        });
        call.error(&Error::new(Kind::Refused, "no"));
        [root.ids(), call.ids()].map(|ids| ids.expect("somebody listens"))
    };
    assert!(tracer.flush(LONG));
    assert_eq!(tracer.status()[0].last_error, None);
    let [(trace, root), (_, call)] = ids.map(|(trace, span)| (format!("{trace:?}"), format!("{span:?}")));
    // The root span ends last, and the agent's name is the last attribute of it.
    let said = collector.says(&["gen_ai.agent.name"]);
    let (client, internal) = said.split_once("Name           : tympan.run").expect("the call, then the root");
    let wanted = [
        format!("Trace ID       : {trace}"),
        format!("Parent ID      : {root}"),
        format!("ID             : {call}"),
        "service.name: Str(tympan)".to_owned(),
        "Name           : chat gpt-4o".to_owned(),
        "Kind           : SPAN_KIND_CLIENT".to_owned(),
        "Status code    : STATUS_CODE_ERROR".to_owned(),
        "gen_ai.operation.name: Str(chat)".to_owned(),
        "gen_ai.provider.name: Str(azure.ai.openai)".to_owned(),
        "gen_ai.request.model: Str(gpt-4o)".to_owned(),
        "gen_ai.request.max_tokens: Int(77)".to_owned(),
        "gen_ai.response.id: Str(resp-1)".to_owned(),
        "gen_ai.response.model: Str(gpt-4o-2024-08-06)".to_owned(),
        "gen_ai.response.finish_reasons: Slice(Str(stop))".to_owned(),
        "gen_ai.usage.input_tokens: Int(12)".to_owned(),
        "gen_ai.usage.output_tokens: Int(34)".to_owned(),
        "error.type: Str(refused)".to_owned(),
        r#"gen_ai.input.messages: Str({"messages":"sent words","api_key":"[REDACTED]"})"#.to_owned(),
    ];
    for wanted in wanted {
        assert!(client.contains(&wanted), "{wanted} is missing in:\n{said}");
    }
    assert!(client.contains(&format!("ID             : {root}")), "{said}");
    for wanted in ["SPAN_KIND_INTERNAL", "STATUS_CODE_UNSET", "gen_ai.operation.name: Str(turn)"] {
        assert!(internal.contains(wanted), "{wanted} is missing in:\n{said}");
    }
}

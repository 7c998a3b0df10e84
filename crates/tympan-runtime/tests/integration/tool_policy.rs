//! The policy for tools decides the same in all languages. Python and Node read the same cases.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use serde_json::{Value as Json, json};
use tympan_core::spec::flow::{Effect, Hide, ToolFlow};
use tympan_core::turn::Verdict;
use tympan_core::{Content, Role};
use tympan_runtime::host::{config, data};
use tympan_runtime::tool::{self, Tool, ToolOutput};
use tympan_runtime::{ModelCall, Provider, Reply, Result, Runtime};

const CASES: &str = include_str!("../../../../fixtures/bindings/tool_policy.json");

/// Answers with these replies, one per call.
struct Scripted(Mutex<std::vec::IntoIter<Json>>);

impl Provider for Scripted {
    fn call<'a>(&'a self, _: ModelCall<'a>) -> BoxFuture<'a, Result<Reply>> {
        let reply = self.0.lock().expect("it is unlocked").next().expect("there is another reply");
        Box::pin(async move { data::response(reply).map(Reply::Whole) })
    }
}

/// Collects what happens in a turn.
type Log = Arc<Mutex<Vec<Json>>>;

fn add(log: &Log, entry: Json) {
    log.lock().expect("it is unlocked").push(entry);
}

fn list(value: &Json) -> Vec<Json> {
    value.as_array().cloned().unwrap_or_default()
}

/// Builds what the application declares about a tool.
fn flow(declared: &Json) -> ToolFlow {
    let word = |key: &str| declared[key].as_str().unwrap_or_default().to_owned();
    let mut flow = ToolFlow {
        effect: Effect::from_name(&word("effect")),
        trusted: declared["trusted"].as_bool(),
        hide: Hide::from_name(&word("hide")),
        ..ToolFlow::default()
    };
    for name in list(&declared["trusted_only"]) {
        flow = flow.trusted_only(name.as_str().expect("a name"));
    }
    for name in list(&declared["destinations"]) {
        flow = flow.destination(name.as_str().expect("a name"));
    }
    flow
}

fn function(name: &str, declared: &Json, ran: &Log) -> Arc<dyn Tool> {
    let (name, ran) = (name.to_owned(), ran.clone());
    let result = declared["result"].as_str().unwrap_or("done").to_owned();
    let is_confidential = declared["marks"] == "confidential";
    let function = tool::function(move |arguments| {
        add(&ran, json!([name, arguments]));
        let output = ToolOutput::from(Content::text(result.clone()));
        Ok::<_, String>(if is_confidential { output.confidential() } else { output })
    });
    tool::with_flow(flow(declared), function)
}

/// Returns some entries of a map.
fn pick<'a>(map: &Json, keys: impl IntoIterator<Item = &'a str>) -> Json {
    keys.into_iter().map(|key| (key.to_owned(), map[key].clone())).collect()
}

#[test]
fn every_language_decides_the_same() {
    let cases: Vec<Json> = serde_json::from_str(CASES).expect("the cases are JSON");
    for case in cases {
        check(&case);
    }
}

fn check(case: &Json) {
    let (name, expected) = (&case["name"], &case["expected"]);
    let runtime = Runtime::new(config::runtime_options(case["runtime"].clone()).expect("options"));
    runtime.register_provider("scripted", Scripted(Mutex::new(list(&case["replies"]).into_iter())));
    let mut front_matter = case["prompt"].clone();
    front_matter["model"] = json!({ "id": "m", "provider": "scripted" });
    let template = case["template"].as_str().unwrap_or("user:\nGo.\n");
    let prompt = runtime.load_str(&format!("---\n{front_matter}\n---\n{template}"), "case.prompty", ".");
    let prompt = prompt.expect("it loads");

    let (ran, asked, decided) = (Log::default(), Log::default(), Log::default());
    let mut settings = config::turn_settings(case["turn"].clone()).expect("settings");
    let functions = case["functions"].as_object().expect("a map");
    settings.tools = functions.iter().map(|(name, declared)| (name.clone(), function(name, declared, &ran))).collect();
    let events = decided.clone();
    settings.on_event = Some(Arc::new(move |event| {
        let event = data::event(event);
        if event["type"] == "policy" {
            let reasons: Json = list(&event["reasons"]).iter().map(|reason| reason["reason"].clone()).collect();
            add(&events, json!([event["name"], event["decision"], reasons]));
        }
    }));
    if let Some(approves) = case["approve"].as_bool() {
        let asked = asked.clone();
        settings.approve = Some(Arc::new(move |approval| {
            let shown = data::approval(&approval);
            add(&asked, pick(&shown, ["id", "name", "arguments", "effect", "reasons", "required_by_tool", "origins"]));
            let verdict = if approves { Verdict::Allow } else { Verdict::Deny("no".to_owned()) };
            Box::pin(async move { verdict })
        }));
    }
    let inputs = if case["inputs"].is_null() { json!({}) } else { case["inputs"].clone() };
    let run = runtime.turn(&prompt, inputs, &settings).unwrap_or_else(|error| panic!("{name}: {error}"));

    let logged = |log: &Log| Json::Array(log.lock().expect("it is unlocked").clone());
    assert_eq!(run.run.outcome.to_json(), "Done.", "{name}");
    assert_eq!(logged(&ran), expected["ran"], "{name}");
    assert_eq!(logged(&decided), expected["policy"], "{name}");
    if expected["asked"].is_array() {
        assert_eq!(logged(&asked), expected["asked"], "{name}");
    }
    if let Some(label) = expected["label"].as_object() {
        assert_eq!(pick(&data::label(&run.label), label.keys().map(String::as_str)), expected["label"], "{name}");
    }
    let results = run.messages.iter().filter(|message| message.role == Role::Tool);
    let results: Vec<String> = results.map(tympan_core::Message::to_text).collect();
    let shown = list(&expected["results"]);
    assert_eq!(json!(results.iter().take(shown.len()).collect::<Vec<_>>()), Json::Array(shown), "{name}");
    if let Some(told) = expected["last_result"].as_object() {
        let last = results.last().expect("there is a result");
        let text = |key: &str| told[key].as_str().expect("a text");
        assert!(last.contains(text("contains")) && !last.contains(text("without")), "{name}: {last}");
    }
}

//! The policy for tools with the tools of an MCP server: what the host, the prompt and the server declare.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tympan_core::Prompt;
use tympan_core::spec::flow::{Effect, Hide, ToolFlow};
use tympan_core::turn::{Approval, Source, ToolPolicy, Verdict};
use tympan_runtime::{Kind, McpServer, Runtime, RuntimeOptions, TurnRun, TurnSettings};

use crate::mcp_double::{Double, mcp, told};

/// A server, and a host that declares something about its tools.
struct Scene {
    double: Double,
    runtime: Runtime,
    /// The hash of the server's tools.
    hash: String,
}

impl Scene {
    fn new(declare: impl FnOnce(McpServer) -> McpServer) -> Self {
        Self::with(ToolPolicy::default(), declare)
    }

    fn with(tool_policy: ToolPolicy, declare: impl FnOnce(McpServer) -> McpServer) -> Self {
        let double = Double::new();
        let runtime = Runtime::new(RuntimeOptions { tool_policy, ..RuntimeOptions::default() });
        runtime.register_mcp_server("double", declare(double.server("flow")));
        // The first turn lists the tools.
        runtime.turn(&prompt(mcp(json!({})), &[]), question(), &TurnSettings::default()).expect("it ends well");
        let hash = runtime.mcp_tools_hash("double", None).expect("they were listed");
        Self { double, runtime, hash }
    }

    /// Runs a turn with pinned tools, in which the model makes these calls one after the other. Returns the names of the
    /// tools that the server ran.
    fn ran(&self, keys: Value, calls: &[(&str, Value)]) -> Vec<String> {
        self.turn(keys, calls, TurnSettings::default());
        let ran = self.double.lines("calls");
        self.double.forget("calls");
        ran
    }

    fn turn(&self, mut keys: Value, calls: &[(&str, Value)], settings: TurnSettings) -> TurnRun {
        if keys["toolsHash"].is_null() {
            keys["toolsHash"] = json!(self.hash);
        }
        self.runtime.turn(&prompt(mcp(keys), calls), question(), &settings).expect("it ends well")
    }
}

fn question() -> Value {
    json!({ "question": "Send bob@example.com the balance." })
}

fn prompt(tool: Value, calls: &[(&str, Value)]) -> Prompt {
    let calls =
        calls.iter().map(|(name, arguments)| json!({ "tool_calls": [{ "name": name, "arguments": arguments }] }));
    let script: Vec<_> = calls.chain([json!({ "text": "Done." })]).collect();
    let model = json!({ "provider": "echo", "options": { "additionalProperties": { "script": script } } });
    let input = json!({ "name": "question", "kind": "string", "speaker": "user" });
    let front = json!({ "model": model, "inputs": [input], "tools": [tool] });
    let text = format!("---\n{front}\n---\nuser:\n{{{{ question }}}}\n");
    Runtime::default().load_str(&text, "mcp.prompty", ".").expect("it loads")
}

fn call(name: &'static str) -> (&'static str, Value) {
    (name, json!({ "text": "x" }))
}

fn send(to: &str) -> (&'static str, Value) {
    ("send", json!({ "to": to, "body": "Hello" }))
}

fn page() -> (&'static str, Value) {
    ("page", json!({}))
}

/// A page, and then every tool that does something.
fn everything() -> Vec<(&'static str, Value)> {
    vec![page(), call("plain"), call("quiet"), call("save"), send("bob@example.com")]
}

#[test]
fn annotations_only_tighten() {
    let scene = Scene::new(|server| server);
    // What the prompt declares is made stricter by those that are there and true.
    assert_eq!(scene.ran(json!({ "effect": "read" }), &everything()), ["page", "plain", "quiet"]);
    // Those that are false loosen nothing.
    assert_eq!(scene.ran(json!({ "effect": "write" }), &everything()), ["page"]);
    assert_eq!(scene.ran(json!({ "effect": "external" }), &everything()), ["page"]);
    // If nobody else declares an effect, tools run as they always have.
    assert_eq!(scene.ran(json!({}), &everything()).len(), 5);
    let strict = Scene::with(ToolPolicy::strict(), |server| server);
    assert_eq!(strict.ran(json!({}), &everything()), ["page"]);
    assert_eq!(strict.ran(json!({ "effect": "read" }), &everything()), ["page"], "a strict host decides alone");
}

#[test]
fn an_annotation_makes_a_tool_external_and_not_only_a_write() {
    let untrusted = tympan_core::turn::flow::policy::EffectDecisions {
        write: tympan_core::turn::Decision::Allow,
        ..tympan_core::turn::flow::policy::EffectDecisions::UNTRUSTED
    };
    let scene = Scene::with(ToolPolicy { untrusted, ..ToolPolicy::default() }, |server| server);
    let ran = scene.ran(json!({ "effect": "read" }), &everything());
    assert_eq!(ran, ["page", "plain", "quiet", "save"], "`save` is a write, and `send` is external");
    // An annotation that is weaker than what the prompt declares changes nothing.
    assert_eq!(scene.ran(json!({ "effect": "external" }), &everything()), ["page"]);
}

#[test]
fn what_the_host_declares_takes_precedence() {
    // Over the prompt, in both directions, and over what the server says.
    let scene = Scene::new(|server| {
        server
            .flow(ToolFlow::new(Effect::Write))
            .tool_flow("page", ToolFlow::new(Effect::Read))
            .tool_flow("plain", ToolFlow::new(Effect::External))
            .tool_flow("send", ToolFlow::new(Effect::Read))
    });
    for keys in [json!({ "effect": "read" }), json!({ "effect": "external" }), json!({})] {
        assert_eq!(scene.ran(keys.clone(), &everything()), ["page", "send"], "{keys}");
    }
    let keys = json!({ "effect": "read", "prefix": "x_" });
    let calls: Vec<_> = ["x_page", "x_plain"].map(|name| (name, json!({ "text": "x" }))).into();
    assert_eq!(scene.ran(keys, &calls), ["page"], "the names are those of the server");
    // A strict host decides alone, so here it says something about each.
    let strict = Scene::with(ToolPolicy::strict(), |server| server.tool_flow("quiet", ToolFlow::new(Effect::Read)));
    assert_eq!(strict.ran(json!({ "effect": "read" }), &everything()), ["page", "quiet"]);
}

#[test]
fn only_the_host_says_that_results_are_trusted() {
    let calls = [("balance", json!({})), call("save")];
    let scene = Scene::new(|server| server);
    for keys in [json!({ "effect": "read" }), json!({ "effect": "read", "trusted": true })] {
        assert_eq!(scene.ran(keys, &calls), ["balance"]);
    }
    let scene = Scene::new(|server| server.tool_flow("balance", ToolFlow::new(Effect::Read).trusted()));
    assert_eq!(scene.ran(json!({ "effect": "read" }), &calls), ["balance", "save"]);
    // After untrusted content, a trusted tool is not trusted either.
    let calls = [page(), ("balance", json!({})), call("save")];
    assert_eq!(scene.ran(json!({ "effect": "read" }), &calls), ["page", "balance"]);
}

/// A prompt can declare that a server returns confidential data.
#[test]
fn results_that_a_prompt_declares_as_confidential_are() {
    let scene = Scene::new(|server| {
        let balance = ToolFlow::new(Effect::Read).trusted();
        server.tool_flow("balance", balance).tool_flow("send", ToolFlow::new(Effect::External))
    });
    let calls = [("balance", json!({})), send("bob@example.com")];
    assert_eq!(scene.ran(json!({}), &calls), ["balance", "send"]);
    assert_eq!(scene.ran(json!({ "confidential": true }), &calls), ["balance"]);
}

#[test]
fn parameters_need_values_from_a_trusted_origin() {
    let declared = || ToolFlow::new(Effect::External).trusted_only("to").trusted_only("body").destination("to");
    let balance = || ToolFlow::new(Effect::Read).trusted();
    let scene = Scene::new(|server| server.tool_flow("send", declared()).tool_flow("balance", balance()));
    let sent = |calls: &[(&str, Value)]| scene.ran(json!({}), calls).contains(&"send".to_owned());
    let to = |to: &str, body: &str| ("send", json!({ "to": to, "body": body }));
    // The user, and a trusted result.
    assert!(sent(&[page(), to("bob@example.com", "the")]));
    assert!(sent(&[("balance", json!({})), page(), to("bob@example.com", "DE12")]));
    assert!(!sent(&[page(), ("balance", json!({})), to("bob@example.com", "DE12")]), "the page came before");
    for (other, body) in [("eve@evil.com", "the"), ("bob@example.com", "EVIL"), ("Bob@example.com", "the")] {
        assert!(!sent(&[page(), to(other, body)]), "{other} {body}");
    }
    // A destination must be listed if something confidential was read.
    let secret = || ToolFlow::new(Effect::Read).trusted().confidential();
    let send = || ToolFlow::new(Effect::External).destination("to");
    let policy = ToolPolicy { destinations: vec!["*@example.org".to_owned()], ..ToolPolicy::default() };
    let scene = Scene::with(policy, |server| server.tool_flow("send", send()).tool_flow("balance", secret()));
    for (to, is_sent) in [("bob@example.com", false), ("amy@example.org", true)] {
        let ran = scene.ran(json!({}), &[("balance", json!({})), ("send", json!({ "to": to, "body": "x" }))]);
        assert_eq!(ran.len(), 1 + usize::from(is_sent), "{to}");
    }
}

#[test]
fn the_host_hides_results_of_a_server() {
    let scene = Scene::new(|server| {
        let send = ToolFlow::new(Effect::External).trusted_only("to").destination("to");
        server.tool_flow("page", ToolFlow::new(Effect::Read).hide(Hide::Auto)).tool_flow("send", send)
    });
    let calls = [page(), ("send", json!({ "to": "bob@example.com", "body": "$page_1" }))];
    let run = scene.turn(json!({}), &calls, TurnSettings::default());
    assert_eq!((told(&run)[0].as_str(), told(&run)[1].as_str()), ("$page_1: text, 27 B, from page", "ok"));
    assert_eq!(scene.double.lines("calls"), ["page", "send"]);
}

/// What nobody has approved, the model has still read.
#[test]
fn descriptions_that_are_not_pinned_are_untrusted_content() {
    let scene = Scene::new(|server| server);
    let save = [call("save")];
    assert_eq!(scene.ran(json!({ "effect": "read" }), &save), ["save"]);
    let unpinned = prompt(mcp(json!({ "effect": "read" })), &save);
    let run = scene.runtime.turn(&unpinned, question(), &TurnSettings::default()).expect("it ends well");
    assert!(told(&run)[0].starts_with("Tool denied by policy: "), "{:?}", told(&run));
    let sources = run.label.untrusted_sources.to_vec();
    let page = Source::Tool { name: "page".into(), server: Some("tools".into()), call: None };
    assert!(sources.contains(&page), "{sources:?}");
}

/// Tools of several servers may have the same name.
#[test]
fn labels_of_results_name_the_server() {
    let scene = Scene::new(|server| server);
    let run = scene.turn(json!({ "effect": "read" }), &[page()], TurnSettings::default());
    let parts = run.labels.iter().flat_map(|message| &message.parts);
    let [result] = &parts.filter(|part| !part.label.trusted && !part.generated).collect::<Vec<_>>()[..] else {
        panic!("{:?}", run.labels)
    };
    let Source::Tool { name, server, call } = &result.label.sources[0] else { panic!("{result:?}") };
    assert_eq!((name.as_str(), server.as_deref(), call.is_some()), ("page", Some("tools"), true));
}

#[test]
fn annotations_are_part_of_the_pinned_list() {
    let double = Double::new();
    let runtime = double.runtime("flow-changing");
    let turn = |keys: Value| runtime.turn(&prompt(mcp(keys), &[]), question(), &TurnSettings::default());
    turn(json!({})).expect("it ends well");
    let hash = runtime.mcp_tools_hash("double", None).expect("they were listed");
    runtime.close_mcp_servers();
    for (keys, words) in [(json!({ "toolsHash": hash }), "pins another one"), (json!({}), "changed: `quiet`")] {
        let error = turn(keys).expect_err("an annotation has changed");
        assert_eq!(error.kind(), Kind::ToolsChanged, "{error}");
        assert!(error.message().contains(words), "{error}");
    }
}

/// That a tool needs no approval of its own says nothing about what the model has read.
#[test]
fn no_approval_mode_answers_the_policy() {
    let scene = Scene::new(|server| server);
    for mode in ["never", "always"] {
        for keys in [json!({ "effect": "read" }), json!({ "effect": "write" })] {
            let mut keys = keys;
            keys["approvalMode"] = json!(mode);
            let ran = scene.ran(keys.clone(), &[page(), call("save")]);
            assert!(!ran.contains(&"save".to_owned()), "{keys}: {ran:?}");
        }
    }
}

/// A person sees the same whether the declaration of a tool or the policy requires the approval.
#[test]
fn approvals_that_a_declaration_requires_show_everything() {
    let scene = Scene::new(|server| server.tool_flow("send", ToolFlow::new(Effect::External).destination("to")));
    let asked = Arc::new(Mutex::new(Vec::<Approval>::new()));
    let list = asked.clone();
    let settings = TurnSettings {
        approve: Some(Arc::new(move |approval| {
            list.lock().expect("nobody panicked").push(approval);
            Box::pin(async { Verdict::Allow })
        })),
        ..TurnSettings::default()
    };
    let calls = [send("bob@example.com"), send("eve@evil.com")];
    scene.turn(json!({ "approvalMode": "always" }), &calls, settings);
    let asked = asked.lock().expect("nobody panicked");
    let [first, second] = &asked[..] else { panic!("{asked:?}") };
    assert!(first.required_by_tool && second.required_by_tool);
    assert_eq!((first.effect, first.reasons.len()), (Some(Effect::External), 0));
    assert!(first.context.trusted && first.context.sources.contains(&Source::Input { name: "question".into() }));
    let [to, body] = &first.arguments[..] else { panic!("{first:?}") };
    assert_eq!((to.parameter.as_str(), &to.source), ("to", &Some(Source::Input { name: "question".into() })));
    let quote = to.quote.as_ref().expect("it is quoted");
    assert_eq!((quote.before.as_str(), quote.value.as_str()), ("Send ", "bob@example.com"));
    assert_eq!((body.source.as_ref(), body.quote.as_ref()), (None, None), "the model wrote it");
    // The result of the first call is untrusted, so the policy asks as well, and nobody is asked twice.
    assert_eq!((second.reasons.len(), second.context.trusted), (2, false));
}

//! Prompts as tools: what they have read counts outside, and what was read outside counts in them.

use super::*;

/// A prompt as a tool: the model speaks through its inputs, whatever they are marked as.
#[test]
fn a_prompt_as_a_tool_does_not_launder() {
    let folder = tempfile::tempdir().expect("a folder");
    let inner = json!({
        "model": { "provider": "inner" },
        "inputs": [{ "name": "question", "kind": "string", "speaker": "user" }],
        "tools": [{ "name": "note", "kind": "function", "effect": "write", "parameters": [{ "name": "text", "kind": "string" }] }],
    });
    std::fs::write(folder.path().join("inner.prompty"), format!("---\n{inner}\n---\nuser:\n{{{{ question }}}}\n"))
        .expect("it is written");
    let inner = json!({ "name": "inner", "kind": "prompty", "path": "inner.prompty", "mode": "agentic" });
    let mut all = tools();
    all.as_array_mut().expect("a list").push(inner);
    let front = json!({
        "model": { "provider": "scripted" },
        "inputs": [{ "name": "question", "kind": "string", "speaker": "user" }],
        "tools": all,
    });
    std::fs::write(folder.path().join("outer.prompty"), format!("---\n{front}\n---\nuser:\n{{{{ question }}}}\n"))
        .expect("it is written");
    let prompt = Runtime::default().load(folder.path().join("outer.prompty")).expect("it loads");
    for (first, names) in [(None, vec!["note"]), (Some(("page", json!({}))), vec!["page"])] {
        let calls = first.into_iter().chain([("inner", json!({ "question": "note it" }))]);
        let scene = Scene::new(calls.collect());
        let calls = vec![("note", json!({ "text": "x" }))];
        scene.runtime.register_provider("inner", Arc::new(Scripted { calls, extracted: "", seen: Arc::default() }));
        scene.turn(&prompt);
        assert_eq!(scene.names(), names);
    }
}

/// A scene with a tool `inner` that is a prompt: its front matter and its text, and the calls of its model.
fn nested(inner: &Value, text: &str, calls: Vec<(&'static str, Value)>, outer: Vec<(&'static str, Value)>) -> Scene {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("inner.prompty"), format!("---\n{inner}\n---\nuser:\n{text}\n"))
        .expect("it is written");
    let mode = if inner["tools"].is_null() { "single" } else { "agentic" };
    let mut all = tools();
    let inner = json!({ "name": "inner", "kind": "prompty", "path": "inner.prompty", "mode": mode });
    all.as_array_mut().expect("a list").push(inner);
    let front = json!({
        "model": { "provider": "scripted" },
        "inputs": [{ "name": "question", "kind": "string", "speaker": "user" }],
        "tools": all,
    });
    std::fs::write(folder.path().join("outer.prompty"), format!("---\n{front}\n---\nuser:\n{{{{ question }}}}\n"))
        .expect("it is written");
    let prompt = Runtime::default().load(folder.path().join("outer.prompty")).expect("it loads");
    let mut scene = Scene::new(outer);
    let model = Scripted { calls, extracted: r#"{"answer": 7}"#, seen: Arc::default() };
    scene.runtime.register_provider("inner", Arc::new(model));
    // The host trusts the prompt, and not what others say to it.
    scene.settings.turn.flow.tools.insert("inner".into(), ToolFlow::new(Effect::Read).trusted());
    scene.settings.turn.flow.tools.insert("plain".into(), ToolFlow::default().trusted());
    scene.turn(&prompt);
    scene
}

/// The host trusts a prompt as a tool. What the prompt's own tools return is not trusted for that.
#[test]
fn a_trusted_prompt_does_not_launder_what_it_has_read() {
    let inner = json!({ "model": { "provider": "inner" }, "tools": tools() });
    let outer = || vec![("inner", json!({})), ("note", json!({ "text": "x" }))];
    let scene = nested(&inner, "Go.", vec![], outer());
    assert_eq!(scene.names(), ["note"], "the prompt has read nothing");
    let scene = nested(&inner, "Go.", vec![("page", json!({}))], outer());
    assert_eq!(scene.names(), ["page"], "the prompt has read the page");
    // An input of the prompt is as trusted as the call.
    let inner = json!({
        "model": { "provider": "inner" }, "tools": tools(), "inputs": [{ "name": "topic", "kind": "string" }],
    });
    let outer = vec![("inner", json!({ "topic": "x" })), ("note", json!({ "text": "x" }))];
    assert_eq!(nested(&inner, "{{ topic }}", vec![], outer).names(), ["note"]);
}

/// Each turn has a budget for extracted values. The results of a prompt whose turn has used it are not trusted, or many
/// calls of the prompt would carry any number of bits out.
#[test]
fn a_trusted_prompt_does_not_launder_what_it_has_extracted() {
    let mut tools = tools();
    tools[0]["hide"] = json!("auto");
    let inner = json!({ "model": { "provider": "inner" }, "tools": tools });
    let schema = json!({ "type": "integer", "minimum": 0, "maximum": 15 });
    let extract = ("extract_value", json!({ "value": "$page_1", "question": "?", "schema": schema }));
    let outer = || vec![("inner", json!({})), ("note", json!({ "text": "7" }))];
    let scene = nested(&inner, "Go.", vec![("page", json!({}))], outer());
    assert_eq!(scene.names(), ["page", "note"], "the prompt has only seen a handle");
    let scene = nested(&inner, "Go.", vec![("page", json!({})), extract], outer());
    assert_eq!(scene.names(), ["page"], "the prompt has extracted a value");
}

/// What a prompt as a tool declares as confidential stays so, however it is called.
#[test]
fn a_confidential_input_of_a_prompt_as_a_tool_stays_so() {
    for (confidential, names) in [(false, vec!["mail"]), (true, vec![])] {
        for mut inner in [json!({}), json!({ "tools": tools() })] {
            inner["model"] = json!({ "provider": "inner" });
            let input = json!({ "name": "topic", "kind": "string", "confidential": confidential });
            inner["inputs"] = json!([input]);
            let outer = vec![("inner", json!({ "topic": "x" })), mail("bob@example.com")];
            assert_eq!(nested(&inner, "{{ topic }}", vec![], outer).names(), names, "{inner}");
        }
    }
    // So does what its own tools return.
    for (confidential, names) in [(false, vec!["plain", "mail"]), (true, vec!["plain"])] {
        let mut tools = tools();
        tools[3]["confidential"] = json!(confidential);
        let inner = json!({ "model": { "provider": "inner" }, "tools": tools });
        let outer = vec![("inner", json!({})), mail("bob@example.com")];
        assert_eq!(nested(&inner, "Go.", vec![("plain", json!({}))], outer).names(), names);
    }
}

/// Neither do labels of the outer messages belong to the inner ones.
#[test]
fn a_prompt_as_a_tool_runs_in_a_turn_with_labels() {
    let folder = tempfile::tempdir().expect("a folder");
    let inner = json!({ "model": { "provider": "inner" }, "tools": tools() });
    std::fs::write(folder.path().join("inner.prompty"), format!("---\n{inner}\n---\nuser:\nGo.\n"))
        .expect("it is written");
    let inner = json!([{ "name": "inner", "kind": "prompty", "path": "inner.prompty", "mode": "agentic" }]);
    let outer = json!({ "model": { "provider": "scripted" }, "tools": inner });
    std::fs::write(folder.path().join("outer.prompty"), format!("---\n{outer}\n---\nuser:\nGo.\n"))
        .expect("it is written");
    let prompt = Runtime::default().load(folder.path().join("outer.prompty")).expect("it loads");
    let mut scene = Scene::new(vec![("inner", json!({}))]);
    let calls = vec![("note", json!({ "text": "x" }))];
    scene.runtime.register_provider("inner", Arc::new(Scripted { calls, extracted: "", seen: Arc::default() }));
    let messages = vec![Message::text(Role::User, "Go.")];
    scene.settings.turn.flow.labels = Some(vec![MessageLabel::whole(&messages[0], &Label::user())]);
    let run = scene.runtime.turn_messages_async(&prompt, json!({}), messages, &scene.settings);
    tympan_runtime::net::io::wait(run).expect("it ends well");
    assert_eq!(scene.names(), ["note"]);
}

/// The model that extracts a value has no tools, also if the prompt has some that are not functions.
#[test]
fn an_extraction_has_no_tools() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("inner.prompty"), "user:\nGo.\n").expect("it is written");
    let mut tools = tools();
    tools[0]["hide"] = json!("auto");
    let inner = json!({ "name": "inner", "kind": "prompty", "path": "inner.prompty" });
    tools.as_array_mut().expect("a list").push(inner);
    let front = json!({ "model": { "provider": "scripted" }, "tools": tools });
    std::fs::write(folder.path().join("outer.prompty"), format!("---\n{front}\n---\nuser:\nGo.\n"))
        .expect("it is written");
    let prompt = Runtime::default().load(folder.path().join("outer.prompty")).expect("it loads");
    let schema = json!({ "type": "boolean" });
    let extract = ("extract_value", json!({ "value": "$page_1", "question": "?", "schema": schema }));
    let scene = Scene::with(vec![("page", json!({})), extract], r#"{"answer": true}"#, RuntimeOptions::default());
    let run = scene.runtime.turn(&prompt, json!({}), &scene.settings).expect("it ends well");
    assert_eq!(results(&run)[1], "true");
}

#[test]
fn what_a_nested_turn_has_read_stays_confidential() {
    let scene = Scene::new(vec![("page", json!({})), mail("bob@example.com")]);
    let mut settings = scene.settings.clone();
    // The tool itself says that its result is confidential, as the tool of a nested turn does.
    settings.tools.insert(
        "page".into(),
        tool::with_flow(
            ToolFlow::new(Effect::Read).trusted(),
            tool::function(|_| Ok::<_, String>(tool_output("secret"))),
        ),
    );
    let run =
        scene.runtime.turn(&prompt(), json!({ "question": "Mail bob@example.com" }), &settings).expect("it ends well");
    assert!(run.label.trusted && run.label.confidential);
    assert_eq!(scene.names(), Vec::<String>::new(), "an external call needs approval then");
}

fn tool_output(text: &str) -> tympan_runtime::ToolOutput {
    tympan_runtime::ToolOutput::from(text).confidential()
}

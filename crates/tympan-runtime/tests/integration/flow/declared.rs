//! What hosts and prompts declare about tools and messages.

use super::*;

#[test]
fn a_host_declares_in_code_and_takes_precedence() {
    let mut scene = Scene::new(vec![("page", json!({})), ("note", json!({ "text": "x" }))]);
    let page = scene.settings.tools.remove("page").expect("it is there");
    scene.settings.tools.insert("page".into(), tool::with_flow(ToolFlow::default().trusted(), page));
    scene.turn(&prompt());
    assert_eq!(scene.names(), ["page", "note"], "the page is trusted");
    let mut scene = Scene::new(vec![("page", json!({})), ("plain", json!({}))]);
    scene.settings.turn.flow.tools.insert("plain".into(), ToolFlow::new(Effect::External));
    scene.turn(&prompt());
    assert_eq!(scene.names(), ["page"], "settings of the turn declare an effect");
}

/// A host can also loosen what a prompt declares.
#[test]
fn a_host_overrides_what_a_prompt_declares() {
    let input = json!({ "name": "question", "kind": "string", "speaker": "user" });
    let mut tools = tools();
    tools[0]["confidential"] = json!(true);
    let prompt = prompt_with(&tools, &input, "");
    for (confidential, names) in [(None, vec!["page"]), (Some(false), vec!["page", "mail"])] {
        let mut scene = Scene::new(vec![("page", json!({})), mail("bob@example.com")]);
        let flow = ToolFlow { trusted: Some(true), confidential, ..ToolFlow::default() };
        scene.settings.turn.flow.tools.insert("page".into(), flow);
        scene.turn(&prompt);
        assert_eq!(scene.names(), names, "{confidential:?}");
    }
    let untrusted = EffectDecisions { external: Decision::Allow, write: Decision::Allow, ..EffectDecisions::UNTRUSTED };
    for (own, names) in [(None, vec!["page"]), (Some(false), vec!["page", "mail"])] {
        let policy = ToolPolicy { untrusted, ..ToolPolicy::default() };
        let options = RuntimeOptions { tool_policy: policy, ..RuntimeOptions::default() };
        let mut scene = Scene::with(vec![("page", json!({})), mail("eve@evil.com")], "", options);
        let to = ParameterFlow { trusted_only: own, destination: own };
        let flow = ToolFlow { parameters: [("to".to_owned(), to)].into_iter().collect(), ..ToolFlow::default() };
        scene.settings.turn.flow.tools.insert("mail".into(), flow);
        scene.turn(&self::prompt());
        assert_eq!(scene.names(), names, "{own:?}");
    }
}

/// A prompt cannot declare that the results of its tools are trusted.
#[test]
fn a_prompt_does_not_declare_trusted_results() {
    let mut tools = tools();
    tools[0]["trusted"] = json!(true);
    let prompt = prompt_with(&tools, &json!({ "name": "question", "kind": "string", "speaker": "user" }), "");
    for flow in [None, Some(ToolFlow::new(Effect::Read)), Some(ToolFlow::new(Effect::Read).trusted())] {
        let is_trusted = flow.as_ref().is_some_and(|flow| flow.trusted.is_some());
        let mut scene = Scene::new(vec![("page", json!({})), ("note", json!({ "text": "x" }))]);
        scene.settings.turn.flow.tools.extend(flow.map(|flow| ("page".to_owned(), flow)));
        scene.turn(&prompt);
        assert_eq!(scene.names().len(), 1 + usize::from(is_trusted));
    }
}

/// A custom renderer or parser does not say where its text came from, so none of it is trusted.
#[test]
fn text_of_a_custom_renderer_or_parser_is_untrusted() {
    for (key, name) in [("format", "own"), ("parser", "own"), ("parser", "prompty"), ("format", "jinja2")] {
        let scene = Scene::new(vec![("note", json!({ "text": "x" }))]);
        scene.runtime.register_renderer("own", Custom);
        // It may also replace the one that is built in.
        if key == "parser" {
            scene.runtime.register_parser(name, Custom);
        }
        let input = json!({ "name": "question", "kind": "string", "speaker": "user" });
        let model = json!({ "provider": "scripted" });
        let front = json!({ "template": { key: name }, "model": model, "tools": tools(), "inputs": [input] });
        let text = format!("---\n{front}\n---\nsystem:\nHelp.\n\nuser:\n{{{{ question }}}}\n");
        let prompt = Runtime::default().load_str(&text, "custom.prompty", ".").expect("it loads");
        let run = scene.turn(&prompt);
        let label = run.labels[1].union();
        assert_eq!(
            (label.trusted, scene.names().len()),
            if name == "jinja2" { (true, 1) } else { (false, 0) },
            "{key}"
        );
    }
}

/// Writes the template and what others say, and returns it in messages of its own.
struct Custom;

impl Renderer for Custom {
    fn render(&self, template: &str, _: &Inputs) -> Result<String> {
        Ok(template.replace("{{ question }}", EVIL))
    }
}

impl Parser for Custom {
    fn parse(&self, _: &Prompt, rendered: &Rendered) -> Result<Vec<Message>> {
        // As many messages as the prompt has, in another order.
        Ok(vec![Message::text(Role::User, rendered.text()), Message::text(Role::User, EVIL)])
    }
}

/// The advisory of a guard is Tympan's own text.
#[test]
fn the_advisory_of_a_guard_is_trusted() {
    let options = RuntimeOptions { guard: Some(tympan_core::Guard::default()), ..RuntimeOptions::default() };
    let scene = Scene::with(vec![("note", json!({ "text": "x" }))], "", options);
    let run = scene.turn(&prompt());
    let advisory = |message: &Message| message.to_text() == tympan_core::Guard::default().advisory();
    assert!(run.messages.iter().any(advisory), "{:?}", run.messages);
    assert_eq!((run.labels[0].union().trusted, scene.names()), (true, vec!["note".to_owned()]));
}

/// A host that passes messages says where they came from. Labels of other messages are a mistake.
#[test]
fn labels_belong_to_the_messages_of_the_host() {
    let prompt = prompt();
    let messages = || vec![Message::text(Role::User, "Note it"), Message::text(Role::User, EVIL)];
    let run = |labels: Option<Vec<MessageLabel>>, messages: Vec<Message>| {
        let memory = Memory::default();
        let mut scene = Scene::new(vec![("note", json!({ "text": "x" }))]);
        scene.settings.turn.flow.labels = labels;
        scene.settings.journal = Some(memory.journal());
        let run = scene.runtime.turn_messages_async(&prompt, json!({}), messages.clone(), &scene.settings);
        let result = tympan_runtime::net::io::wait(run).map(|_| scene.names() == ["note"]);
        // A journal restores the labels only together with those that the turn began with.
        if result.is_ok() && scene.settings.turn.flow.labels.take().is_some() {
            let again = scene.runtime.resume_messages_async(&prompt, messages, &scene.settings);
            let error = tympan_runtime::net::io::wait(again).expect_err("the labels are other ones");
            assert_eq!(error.kind(), Kind::JournalMismatch, "{error}");
        }
        result.map_err(|error| error.kind())
    };
    let whole =
        |label: &Label| messages().iter().map(|message| MessageLabel::whole(message, label)).collect::<Vec<_>>();
    assert_eq!(run(None, messages()), Ok(false), "nobody says where they came from");
    assert_eq!(run(Some(whole(&Label::user())), messages()), Ok(true));
    assert_eq!(run(Some(whole(&Label::unknown())), messages()), Ok(false));
    assert_eq!(run(Some(whole(&Label::user())[..1].into()), messages()), Err(Kind::InvalidInput));
    let mut scene = Scene::new(vec![]);
    scene.settings.turn.flow.labels = Some(whole(&Label::user()));
    let error = scene.runtime.turn(&prompt, json!({ "question": "x" }), &scene.settings).expect_err("no messages");
    assert_eq!(error.kind(), Kind::InvalidInput);
}

/// The tools of this test are functions, so that the type is used.
#[test]
fn tools_without_declarations_say_nothing() {
    let tool: Arc<dyn Tool> = tool::function(|_| Ok::<_, String>("x"));
    assert!(tool.flow().is_empty());
}

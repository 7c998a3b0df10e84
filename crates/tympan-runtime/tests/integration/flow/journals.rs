//! Turns that go on after a crash.

use super::*;

/// Cuts the journal of a turn after every record. A turn that is resumed from there asks again, or has asked before.
#[test]
fn a_crash_never_loses_a_taint() {
    let calls = || vec![("page", json!({})), mail("eve@evil.com")];
    for allow in [false, true] {
        let memory = Memory::default();
        let mut scene = Scene::new(calls());
        scene.settings.journal = Some(memory.journal());
        scene.settings.approve = Some(approver(allow).0);
        let whole = scene.turn(&prompt());
        let records = memory.all();
        for length in 1..=records.len() {
            let memory = Memory::holding(&records[..length]);
            let is_answered = memory.json().iter().any(|record| record["what"]["fed"] == "approved");
            let mut scene = Scene::new(calls());
            let (approve, asked) = approver(false);
            scene.settings.journal = Some(memory.journal());
            scene.settings.approve = Some(approve);
            let run = scene.runtime.resume(&prompt(), &scene.settings).expect("it ends well");
            assert_eq!(run.labels.len(), whole.labels.len(), "{length} records");
            assert_eq!(run.label.trusted, whole.label.trusted, "{length} records");
            let asked = asked.lock().expect("nobody panics").len();
            assert_eq!(asked, usize::from(!is_answered), "{length} records");
            assert!(allow && is_answered || !scene.names().contains(&"mail".to_owned()), "{length} records");
        }
    }
}

/// The budget for extractions, and what is hidden, are the same after a crash.
#[test]
fn a_crash_does_not_refill_the_budget() {
    let mut tools = tools();
    tools[0]["hide"] = json!("auto");
    let prompt = prompt_with(&tools, &json!({ "name": "question", "kind": "string", "speaker": "user" }), "");
    let schema = json!({ "type": "integer", "minimum": 0, "maximum": 6 });
    let extract = || ("extract_value", json!({ "value": "$page_1", "question": "?", "schema": schema }));
    let calls = || [vec![("page", json!({}))], vec![extract(); 7]].concat();
    let shown = |run: &TurnRun| results(run).iter().filter(|result| *result == "1").count();
    let memory = Memory::default();
    let mut scene = Scene::with(calls(), r#"{"answer": 1}"#, RuntimeOptions::default());
    scene.settings.journal = Some(memory.journal());
    assert_eq!(shown(&scene.turn(&prompt)), 5, "16 bits are five answers of three bits");
    let records = memory.all();
    for length in 1..records.len() {
        let mut scene = Scene::with(calls(), r#"{"answer": 1}"#, RuntimeOptions::default());
        scene.settings.journal = Some(Memory::holding(&records[..length]).journal());
        let run = scene.runtime.resume(&prompt, &scene.settings).expect("it ends well");
        assert_eq!(shown(&run), 5, "{length} records: {:?}", results(&run));
    }
}

/// A journal from before there was a policy: what ran stays, its results are untrusted, and the policy applies to the
/// rest.
#[test]
fn journals_from_before_resume_with_untrusted_results() {
    let calls = || vec![("page", json!({})), mail("bob@example.com"), mail("eve@evil.com")];
    let memory = Memory::default();
    let mut scene =
        Scene::with(calls(), "", RuntimeOptions { tool_policy: ToolPolicy::off(), ..RuntimeOptions::default() });
    scene.settings.journal = Some(memory.journal());
    scene.turn(&prompt());
    assert_eq!(scene.names(), ["page", "mail", "mail"]);
    let mut records = memory.all();
    let mut header: Value = serde_json::from_slice(&records[0]).expect("it is JSON");
    assert!(header["fits"].as_object_mut().expect("a map").remove("policy").is_some());
    records[0] = serde_json::to_vec(&header).expect("it is JSON");
    let (mut denied, mut running) = (0, 0);
    for length in 1..records.len() {
        let memory = Memory::holding(&records[..length]);
        let has_read = memory.json().iter().any(|record| record["what"]["fed"] == "returned");
        let last = memory.json().last().cloned().unwrap_or_default();
        let started = last["tools"][0]["round"].as_u64().filter(|_| last["record"] == "started");
        for again in [false, true] {
            // A trusted page would not be trusted here, and what the model has seen cannot be hidden from it.
            let mut scene = Scene::new(calls());
            let page = scene.settings.tools.remove("page").expect("it is there");
            let flow = ToolFlow::default().trusted().hide(Hide::Always);
            scene.settings.tools.insert("page".into(), tool::with_flow(flow, page));
            let (approve, asked) = approver(false);
            scene.settings.journal = Some(memory.journal());
            scene.settings.approve = Some(approve);
            let run = scene.runtime.resume(&prompt(), &scene.settings).expect("it ends well");
            if has_read {
                assert!(!scene.names().contains(&"mail".to_owned()), "{length} records, {again}");
                assert!(!run.label.trusted, "{length} records, {again}");
            }
            if !again {
                let asked: Vec<_> = asked.lock().expect("nobody panics").iter().map(|asked| asked.run.round).collect();
                denied += asked.len();
                // What had started is not asked about any more: it ran before there was a policy.
                assert!(
                    started.is_none_or(|round| !asked.contains(&u32::try_from(round).expect("it is small"))),
                    "{last}"
                );
                running += usize::from(started.is_some());
            } else {
                assert_eq!(asked.lock().expect("nobody panics").len(), 0, "it was over");
            }
        }
    }
    assert!(denied > 4, "the policy asked {denied} times");
    assert_eq!(running, 3, "each call had started once");
}

#[test]
fn a_journal_needs_the_same_policy() {
    let memory = Memory::default();
    let mut scene = Scene::new(vec![("page", json!({}))]);
    scene.settings.journal = Some(memory.journal());
    scene.turn(&prompt());
    let begun = scene.settings;
    let change = |change: &dyn Fn(&mut TurnSettings)| {
        let mut settings = begun.clone();
        change(&mut settings);
        settings
    };
    for settings in [
        change(&|settings| settings.turn.flow.policy = Some(ToolPolicy::off())),
        change(&|settings| drop(settings.turn.flow.tools.insert("mail".into(), ToolFlow::new(Effect::Read)))),
        change(&|settings| settings.turn.flow.context = Label::unknown()),
    ] {
        let error = scene.runtime.resume(&prompt(), &settings).expect_err("the policy is another one");
        assert_eq!((error.kind(), error.message().contains("policy")), (Kind::JournalMismatch, true), "{error}");
    }
    assert!(scene.runtime.resume(&prompt(), &begun).is_ok());
}

//! Answers that are recorded and replayed.

use std::path::Path;

use serde_json::{Value as Json, json};
use tympan_eval::answer::{Answer, AnswerMode, AnswerOptions, Obtained, obtain};
use tympan_runtime::Runtime;
use tympan_runtime::net::io;

use crate::models::{Scripted, Server, calling, saying};
use crate::runs::{Asked, runtime, settings};

fn asked(runtime: &Runtime, front: &Json, case: Json, cassettes: &Path) -> Asked {
    let text = format!("---\n{front}\n---\nuser:\n{{{{ question }}}}\n");
    let prompt = runtime.load_str(&text, "test.prompty", ".").expect("it loads");
    Asked::new(runtime, prompt, settings(case), cassettes)
}

fn front(model: Json, tools: Json) -> Json {
    json!({"model": model, "inputs": [{"name": "question", "kind": "string"}], "tools": tools})
}

fn case() -> Json {
    json!({"inputs": {"question": "How are you?"}})
}

fn answered(obtained: Obtained) -> Answer {
    match obtained {
        Obtained::Answered(answer) => answer,
        other => panic!("expected an answer, found {other:?}"),
    }
}

fn missing(obtained: Obtained) -> String {
    match obtained {
        Obtained::Missing(reason) => reason,
        other => panic!("expected a missing cassette, found {other:?}"),
    }
}

#[test]
fn the_same_question_is_recorded_once() {
    let server = Server::start(vec![saying("Fine."), saying("Tired.")]);
    let folder = tempfile::tempdir().expect("a folder");
    let front = front(server.model(), json!([]));
    let other = json!({"inputs": {"question": "How are you?"}, "expect": [{"result": {"contains": "Tired"}}]});
    let cases = [case(), other].map(|case| asked(&runtime(), &front, case, folder.path()));
    let options = AnswerOptions::new(AnswerMode::Record, None);
    let answers = std::thread::scope(|scope| {
        let threads = cases.each_ref().map(|asked| {
            let options = options.clone();
            scope.spawn(move || answered(io::wait(obtain(&asked.question(1), &options))))
        });
        threads.map(|thread| thread.join().expect("no thread panics"))
    });
    assert_eq!(answers.each_ref().map(|answer| answer.text.as_str()), ["Fine.", "Fine."]);
    assert_eq!(answers.iter().filter(|answer| answer.seconds.is_some()).count(), 1, "one of them waited for the model");
    assert_eq!(server.requests().len(), 1);
    // The next run asks again.
    let options = AnswerOptions::new(AnswerMode::Record, None);
    assert_eq!(answered(io::wait(obtain(&cases[0].question(1), &options))).text, "Tired.");
}

#[test]
fn repetitions_have_recordings_of_their_own() {
    let server = Server::start(vec![saying("Fine."), saying("Tired.")]);
    let folder = tempfile::tempdir().expect("a folder");
    let asked = asked(&runtime(), &front(server.model(), json!([])), case(), folder.path());
    let recorded = [1, 2].map(|repetition| answered(asked.obtain(AnswerMode::Record, repetition)));
    assert_eq!([&recorded[0].text, &recorded[1].text], ["Fine.", "Tired."]);
    for answer in &recorded {
        assert!(answer.seconds.is_some() && answer.is_from_model);
        assert_eq!(answer.model.as_deref(), Some("openai/gpt-4o-mini"));
        assert_eq!(answer.cost, Some((30.0 * 0.15 + 20.0 * 0.6) / 1e6));
    }
    assert!(folder.path().join("repeat-2").is_dir());
    assert_eq!(server.requests()[0], server.requests()[1], "only the directory tells them apart");
    // The server is gone, and nothing else is different.
    for (repetition, recorded) in [1, 2].into_iter().zip(recorded) {
        let replayed = answered(asked.obtain(AnswerMode::Replay, repetition));
        assert_eq!(replayed, Answer::from_recorded(recorded));
    }
    let reason = missing(asked.obtain(AnswerMode::Replay, 3));
    assert!(reason.contains("No recorded exchange") && reason.contains("`--record`"), "{reason}");
    assert_eq!(server.requests().len(), 2);
}

trait FromRecorded {
    fn from_recorded(recorded: Self) -> Self;
}

impl FromRecorded for Answer {
    /// A replayed answer takes no time.
    fn from_recorded(mut recorded: Self) -> Self {
        recorded.seconds = None;
        recorded
    }
}

#[test]
fn whole_turns_are_recorded() {
    let tools = json!([{"name": "clock", "kind": "function", "parameters": []}]);
    let server = Server::start(vec![calling("clock", "{}"), saying("It is noon.")]);
    let folder = tempfile::tempdir().expect("a folder");
    let case = json!({"inputs": {"question": "What time is it?"}, "tools": {"clock": {"hour": 12}}});
    let asked = asked(&runtime(), &front(server.model(), tools.clone()), case, folder.path());
    let recorded = answered(asked.obtain(AnswerMode::Record, 1));
    assert_eq!((recorded.text.as_str(), recorded.rounds), ("It is noon.", 2));
    assert_eq!(recorded.usage.as_ref().map(|usage| usage.total_tokens), Some(100), "the tokens of both rounds");
    assert_eq!(server.requests()[1]["messages"][2]["content"], r#"{"hour":12}"#);
    assert_eq!(answered(asked.obtain(AnswerMode::Replay, 1)), Answer::from_recorded(recorded));
    // Another result leads to another second request, which is not recorded.
    let changed = json!({"inputs": {"question": "What time is it?"}, "tools": {"clock": "late"}});
    let changed = self::asked(&runtime(), &front(server.model(), tools), changed, folder.path());
    assert!(missing(changed.obtain(AnswerMode::Replay, 1)).contains("late"));
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn nothing_is_sent_unless_the_host_says_so() {
    let server = Server::start(vec![saying("Fine.")]);
    let folder = tempfile::tempdir().expect("a folder");
    let asked = asked(&runtime(), &front(server.model(), json!([])), case(), folder.path());
    missing(asked.obtain(AnswerMode::Replay, 1));
    assert_eq!((server.requests().len(), folder.path().read_dir().expect("a folder").count()), (0, 0));
    assert_eq!(answered(asked.obtain(AnswerMode::Live, 1)).text, "Fine.");
    assert_eq!((server.requests().len(), folder.path().read_dir().expect("a folder").count()), (1, 0));
}

#[test]
fn custom_providers_are_called_only_live() {
    let (runtime, provider) = (runtime(), Scripted::new(&["Fine."]));
    runtime.register_provider("own", provider.clone());
    let folder = tempfile::tempdir().expect("a folder");
    let front = front(json!({"provider": "own", "id": "m"}), json!([]));
    let asked = asked(&runtime, &front, case(), folder.path());
    for mode in [AnswerMode::Replay, AnswerMode::Record] {
        assert!(missing(asked.obtain(mode, 1)).contains("custom provider `own`"));
    }
    assert!(provider.asked().is_empty());
    assert_eq!(answered(asked.obtain(AnswerMode::Live, 1)).text, "Fine.");
}

#[test]
fn errors_keep_their_kind() {
    let script =
        json!({"options": {"additionalProperties": {"script": [{"error": "overloaded"}]}}, "provider": "echo"});
    let folder = tempfile::tempdir().expect("a folder");
    let asked = asked(&runtime(), &front(script, json!([])), case(), folder.path());
    match asked.obtain(AnswerMode::Replay, 1) {
        Obtained::Failed(error) => {
            assert_eq!((error.code(), error.message().contains("overloaded")), ("provider", true))
        }
        other => panic!("expected an error, found {other:?}"),
    }
}

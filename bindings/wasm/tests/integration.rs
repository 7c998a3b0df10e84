//! The functions of the module, compared with the engine and the runtime.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use tympan::{Guard, RenderOptions};
use tympan_wasm::engine::{FORGERIES, Prompt};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns all files with this extension below a folder of the repository.
fn files(folder: &str, extension: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().expect("it is a folder") {
            let path = entry.expect("it is readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|name| name == extension) {
                found.extend(fs::read_to_string(&path).ok().map(|text| (path.display().to_string(), text)));
            }
        }
    }
    found.sort();
    found
}

/// Returns the text between two offsets in UTF-16.
fn slice(text: &str, start: &Json, end: &Json) -> String {
    let units: Vec<u16> = text.encode_utf16().collect();
    let at = |offset: &Json| offset.as_u64().and_then(|offset| usize::try_from(offset).ok()).expect("it is an offset");
    String::from_utf16(&units[at(start)..at(end)]).expect("offsets are between characters")
}

fn list(json: &Json) -> impl Iterator<Item = &Json> {
    json.as_array().into_iter().flatten()
}

#[test]
fn messages_are_those_of_the_engine() {
    let mut compared = 0;
    for (path, text) in files("fixtures", "prompty").into_iter().chain(files("examples", "prompty")) {
        let Ok(prompt) = tympan::Prompt::from_prompty(&text) else { continue };
        let opened = Prompt::open(&path, &text, None);
        let inputs = opened.info()["sample"].clone();
        let guard = Guard::default();
        for guard in [None, Some(&guard)] {
            let entropy = || Ok(7);
            let options = RenderOptions { guard, entropy: Some(&entropy), ..RenderOptions::default() };
            let shown = opened.render(&inputs.to_string(), &json!({"guard": guard.is_some()}).to_string(), &|| Ok(7));
            match prompt.render_with(&inputs, &options) {
                Ok(rendered) => {
                    let mut messages = match prompt.messages_with_segments(&rendered) {
                        Ok(messages) => messages,
                        // Only a host has the parser.
                        Err(error) => {
                            assert_eq!(shown["error"]["code"], error.code(), "{path}");
                            continue;
                        }
                    };
                    assert_eq!(shown["render_hash"], rendered.render_hash(), "{path}");
                    assert_eq!(shown["template_hash"], rendered.template_hash(), "{path}");
                    // Media that cannot be used stay placeholders.
                    let _ = tympan::wire::inline_segmented_media(&mut messages);
                    compare(&messages, &shown, &rendered);
                    compared += messages.len();
                }
                Err(error) => assert_eq!(shown["error"]["code"], error.code(), "{path}"),
            }
        }
    }
    assert!(compared > 100, "{compared}");
}

/// Compares messages and the text of every segment.
fn compare(messages: &[tympan::chat::text_segment::SegmentedMessage], shown: &Json, rendered: &tympan::Rendered) {
    assert_eq!(messages.len(), list(&shown["messages"]).count());
    for (message, shown) in messages.iter().zip(list(&shown["messages"])) {
        assert_eq!(shown["role"], json!(message.message.role));
        assert_eq!(shown["attributes"], json!(message.message.metadata.clone().unwrap_or_default()));
        assert_eq!(message.message.content.len(), list(&shown["parts"]).count());
        for ((part, segments), shown) in
            message.message.content.iter().zip(&message.segments).zip(list(&shown["parts"]))
        {
            assert_eq!(shown["kind"], part.kind());
            let Some(text) = part.as_text() else { continue };
            assert_eq!(shown["text"], text);
            // Segments of the guard are parts of segments of the author, so only the text by input is the same.
            let expected: Vec<_> = segments
                .iter()
                .filter(|segment| !segment.origin.is_author())
                .map(|segment| {
                    let names: Vec<_> = rendered.inputs().names(segment.origin).collect();
                    (text[segment.range.clone()].to_owned(), json!(names))
                })
                .collect();
            let cut = |segment: &Json| slice(text, &segment["start"], &segment["end"]);
            let written = list(&shown["segments"]).filter(|segment| segment["inputs"] != json!([]));
            assert_eq!(written.map(|it| (cut(it), it["inputs"].clone())).collect::<Vec<_>>(), expected);
            assert_eq!(list(&shown["segments"]).map(cut).collect::<String>(), text, "segments join to the text");
            for mark in list(&shown["segments"]).filter(|segment| segment["guard"] == true) {
                assert!(["<untrusted>", "</untrusted>"].contains(&cut(mark).as_str()));
            }
        }
    }
}

#[test]
fn findings_are_those_of_the_rules() {
    let mut count = 0;
    for extension in ["prompty", "yaml", "json", "toml", "md"] {
        for (path, text) in files("fixtures/cli", extension) {
            let source = tympan::text::source::SourceFile::new(path.as_str(), text.as_str());
            let expected = tympan_lint::check_file(&source, &mut Deferred, &tympan_lint::Options::default()).findings;
            let shown = Prompt::open(&path, &text, None).check();
            assert_eq!(expected.len(), list(&shown).count(), "{path}");
            for (finding, shown) in expected.iter().zip(list(&shown)) {
                count += 1;
                let mut json = finding.to_json(&source);
                json["span"] = shown["span"].clone();
                let without_spans = |mut shown: Json| {
                    let edits = shown["fix"]["edits"].as_array_mut().into_iter().flatten();
                    edits.for_each(|edit| drop(edit.as_object_mut().map(|edit| edit.shift_remove("span"))));
                    let related = shown["related"].as_array_mut().into_iter().flatten();
                    related.for_each(|edit| drop(edit.as_object_mut().map(|edit| edit.shift_remove("span"))));
                    shown
                };
                // Indexing with a missing key adds it.
                if shown["fix"].is_null() {
                    assert_eq!(json["fix"], Json::Null, "{path}");
                }
                let mut shown = shown.clone();
                if !shown["fix"].is_null() {
                    shown = without_spans(shown);
                } else {
                    let related = shown["related"].as_array_mut().into_iter().flatten();
                    related.for_each(|edit| drop(edit.as_object_mut().map(|edit| edit.shift_remove("span"))));
                }
                assert_eq!(shown, json, "{path}");
                if let Some(span) = finding.span {
                    let cut = slice(&text, &shown["span"][0], &shown["span"][1]);
                    assert_eq!(cut, source.slice(span), "{path}");
                }
            }
        }
    }
    assert!(count > 50, "{count}");
}

/// Has no environment and no files.
struct Deferred;

impl tympan::format::Resolve for Deferred {
    fn env(&mut self, _name: &str) -> tympan::Result<Option<String>> {
        Ok(None)
    }

    fn defers_env(&self) -> bool {
        true
    }

    fn file(&mut self, path: &str) -> tympan::Result<tympan::format::ReferencedFile> {
        Err(tympan::Error::new(tympan::Kind::ReferencedFileNotFound, path))
    }
}

#[test]
fn info_has_everything_that_a_form_needs() {
    let text = "---\nname: hällo\ndescription: Greets\nmodel: {id: gpt-4o, provider: openai}\ninputs:\n  \
        - {name: who, kind: string, required: true, example: Ada, description: A name}\n  \
        - {name: tone, kind: string, enum: [kind, short], default: kind, trusted: true}\n  \
        - {name: api_key, kind: string, example: sk-1}\ntools:\n  \
        - {name: add, kind: function, effect: read, parameters: [{name: a, kind: integer, required: true}]}\ntests:\n  \
        - {name: one, inputs: {who: Bo}, expect: [{result: {contains: Bo}}]}\n---\nsystem:\nBe {{ tone }}.\n\nuser:\nHi {{ who }} {{ other }}";
    let info = Prompt::open("hello.prompty", text, None).info();
    assert_eq!((&info["ok"], &info["kind"], &info["name"]), (&json!(true), &json!("prompty"), &json!("hällo")));
    assert_eq!(info["model"], json!({"id": "gpt-4o", "provider": "openai", "api_type": null}));
    assert_eq!(info["inputs"][0]["span"], info["inputs"][0]["span"]);
    let span = &info["inputs"][0]["span"];
    assert!(slice(text, &span[0], &span[1]).contains("who"), "{span}");
    assert_eq!(info["inputs"][1]["enum"], json!(["kind", "short"]));
    assert_eq!(info["sample"], json!({"who": "Ada"}));
    assert!(!info.to_string().contains("sk-1"), "examples of credentials are not shown");
    assert_eq!(info["undeclared"][0]["name"], "other");
    assert_eq!(info["tools"][0]["parameters"]["required"], json!(["a"]));
    assert_eq!(info["cases"][0]["inputs"], json!({"who": "Bo"}));
    let template = &info["template_spans"][0];
    assert!(slice(text, &template["span"][0], &template["span"][1]).starts_with("system:\nBe"));
    assert_eq!(list(&template["messages"]).map(|it| it["role"].clone()).collect::<Vec<_>>(), ["system", "user"]);
}

#[test]
fn files_that_do_not_load_say_why_and_what_they_declare() {
    for (path, text) in [
        ("a.prompty", "---\nname: x\ninputs: [{name: q, kind: nonsense}]\n---\nuser:\n{{ q }}"),
        ("a.yaml", "name: x\nrole: user\nbody: '{{ q }}'\nvariables: {q: {type: string}, z: 1}"),
    ] {
        let prompt = Prompt::open(path, text, None);
        let info = prompt.info();
        assert_eq!(info["ok"], false, "{info}");
        assert!(list(&info["error"]["findings"]).count() > 0);
        assert_eq!(list(&info["inputs"]).filter(|input| input["name"] == "q").count(), 1);
        assert_eq!(prompt.render("{}", "{}", &|| Ok(7))["error"]["code"], info["error"]["code"]);
    }
    let tests = Prompt::open(
        "a.test.yaml",
        "prompt: a.prompty\ncases:\n- inputs: {q: 1}\n  expect: [{result: {contains: x}}]",
        None,
    );
    assert_eq!((&tests.info()["kind"], &tests.info()["ok"]), (&json!("tests"), &json!(true)));
    assert_eq!(tests.info()["prompt_path"], "a.prompty");
    let broken = Prompt::open("a.test.yaml", "cases: 1", None).info();
    assert_eq!(broken["ok"], false);
    assert!(list(&broken["error"]["findings"]).count() > 0);
}

#[test]
fn referenced_files_come_from_the_page() {
    let text = "---\nname: ${file:name.txt}\n---\nuser:\nHi";
    let files = json!({"name.txt": "from a file"}).to_string();
    assert_eq!(Prompt::open("a.prompty", text, Some(&files)).info()["name"], "from a file");
    let error = Prompt::open("a.prompty", text, None).info()["error"]["code"].clone();
    assert_eq!(error, "referenced_file_not_found");
    // There is no environment, and what needs it is an error.
    let prompt = Prompt::open("a.prompty", "---\nname: ${env:HOME}\n---\nuser:\nHi", None);
    assert_eq!(prompt.info()["name"], "${env:HOME}");
}

#[test]
fn requests_have_no_keys() {
    let text = "---\nmodel: {id: m, provider: openai, connection: {kind: key, apiKey: sk-hidden}}\n---\nuser:\n{{ q }}";
    let prompt = Prompt::open("a.prompty", text, None);
    let request = prompt.request(r#"{"q": "Hi"}"#, r#"{"guard": true}"#, &|| Ok(7));
    assert!(!request.to_string().contains("sk-hidden"), "{request}");
    let secret = list(&request["headers"]).find(|header| header["name"] == "authorization").expect("it has one");
    assert_eq!(secret["secret"], json!({"prefix": "Bearer ", "variable": "OPENAI_API_KEY"}));
    assert_eq!(request["body"]["messages"][0]["role"], "system", "the advisory comes first");
    let other = prompt.request(r#"{"q": "Hi"}"#, r#"{"provider": "anthropic", "model": "c"}"#, &|| Ok(7));
    assert!(list(&other["headers"]).any(|header| header["name"] == "x-api-key" && header["secret"]["prefix"] == ""));
    let unknown = prompt.request("{}", r#"{"provider": "nobody", "lenient": true}"#, &|| Ok(7));
    assert!(unknown["error"]["message"].is_string());
}

#[test]
fn forgeries_are_from_the_attack_corpus() {
    let corpus: Json = serde_json::from_str(
        &fs::read_to_string(root().join("fixtures/attacks/attacks.json")).expect("it is readable"),
    )
    .expect("it is JSON");
    let forgeries: Json = serde_json::from_str(FORGERIES).expect("it is JSON");
    for forgery in list(&forgeries) {
        let attack = list(&corpus).find(|attack| attack["id"] == forgery["id"]).expect("it is an attack");
        let values: Vec<_> = attack["inputs"].as_object().into_iter().flatten().map(|(_, value)| value).collect();
        assert!(values.contains(&&forgery["text"]), "{}", forgery["id"]);
    }
    assert!(list(&forgeries).count() > 10);
}

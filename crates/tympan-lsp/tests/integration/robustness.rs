//! Random edits, and input that is not a protocol.

use proptest::prelude::*;
use serde_json::json;
use tympan_lsp::lsp_server::{Notification, Request};

use crate::client::{Client, usual_params};

const URI: &str = "file:///workspace/a.prompty";

/// A text without its range, as clients see it: lines and UTF-16 units.
fn replace_utf16(text: &str, [from_line, from, to_line, to]: [u32; 4], new: &str) -> String {
    let offset = |line: u32, units: u32| {
        let mut start = 0;
        for _ in 0..line {
            match text[start..].find('\n') {
                Some(end) => start += end + 1,
                None => return text.len(),
            }
        }
        let line = text[start..].split('\n').next().unwrap_or_default();
        let mut before = 0;
        for (at, char) in line.char_indices() {
            before += char.len_utf16() as u32;
            if before > units {
                return start + at;
            }
        }
        start + line.len()
    };
    let (a, b) = (offset(from_line, from), offset(to_line, to));
    format!("{}{new}{}", &text[..a.min(b)], &text[a.max(b)..])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// The text of the server is compared through its findings: those of the last version are the same as those of a
    /// document that is opened with the expected text.
    #[test]
    fn edits_have_the_same_result_as_in_the_editor(
        edits in prop::collection::vec(
            (prop::array::uniform4(0_u32..12), "(\\{\\{ [ab] \\}\\}|\\{% if|user:|---|[aß🎈\n ]){0,6}"), 1..30,
        ),
    ) {
        let mut expected = "---\nname: a\n---\nsystem:\nHi {{ a }} 🎈\n\nuser:\n{{ b | nope }}\n".to_owned();
        let mut client = Client::initialized(json!({"capabilities": {}}));
        client.open(URI, &expected);
        let mut version = 1;
        for (range, new) in &edits {
            expected = replace_utf16(&expected, *range, new);
            version += 1;
            let [from_line, from, to_line, to] = *range;
            let range = json!({
                "start": {"line": from_line, "character": from}, "end": {"line": to_line, "character": to},
            });
            client.change(URI, version, json!([{"range": range, "text": new}]));
        }
        let found = loop {
            let params = client.diagnostics(URI);
            if params["version"] == version {
                break params;
            }
        };
        let other = "file:///workspace/b.prompty";
        client.open(other, &expected);
        let all = |params: &serde_json::Value| params["diagnostics"].to_string().replace(other, URI);
        prop_assert_eq!(all(&found), all(&client.diagnostics(other)), "{}", expected);
        client.shut_down();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn no_parameters_panic(
        method in "(textDocument|workspace)/(didOpen|didChange|didClose|codeAction|hover|rename|completion|executeCommand)",
        key in "(uri|textDocument|contentChanges|position|range|arguments|command)",
        number in any::<i64>(), text in ".{0,8}",
    ) {
        let mut client = Client::usual();
        client.open(URI, "user:\nHi {{ a }}");
        let document = json!({"uri": URI, "version": number, "text": text});
        let position = json!({"line": number, "character": number});
        let mut params = json!({
            "textDocument": document, "position": position, "range": {"start": position, "end": position},
            "contentChanges": [{"range": {"start": position, "end": position}, "text": text}],
            "newName": text, "command": text, "arguments": [number, text, null], "context": {"diagnostics": []},
        });
        params[key] = json!([text, number]);
        client.send(Notification::new(method.clone(), params.clone()));
        client.send(Request::new(77.into(), method, params));
        let _ = client.answer(77);
        client.shut_down();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// A test file that is cut off and damaged anywhere answers every request at every position.
    #[test]
    fn damaged_test_files_are_answered(
        extension in "(yaml|json|toml)", end in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(),
        damage in "[\\[\\]{}:,\"'#=|$ \n🎈-]{0,4}",
        method in "(hover|completion|definition|references|rename|documentSymbol|codeLens)",
    ) {
        let whole = match extension.as_str() {
            "yaml" => "prompt: a.prompty\ncases:\n  - name: 🎈\n    inputs: {a: x}\n    expect:\n      - not: {roles: [user]}\n",
            "json" => "{\"cases\": [{\"inputs\": {\"a\": \"${row:x}\"}, \"expect\": [{\"guarded\": \"a\"}]}]}",
            _ => "[[cases]]\nname = \"a\"\n[cases.inputs]\na = '''\nx'''\n[[cases.expect]]\nforge = [\n\"a\"]\n",
        };
        let cut = whole.floor_char_boundary(end.index(whole.len() + 1));
        let mut text = whole[..cut].to_owned();
        text.insert_str(whole.floor_char_boundary(at.index(cut + 1)), &damage);
        let folder = tempfile::tempdir().expect("a folder");
        let uri = |name: &str| format!("file://{}/{name}", folder.path().display());
        let tests = uri(&format!("a.test.{extension}"));
        let mut client = Client::usual();
        client.open(&uri("a.prompty"), "user:\n{{ a }}");
        client.open(&tests, &text);
        client.diagnostics(&tests);
        for (number, line) in text.split('\n').enumerate() {
            for character in 0..=line.len() {
                let params = json!({
                    "textDocument": {"uri": tests}, "position": {"line": number, "character": character},
                    "newName": "b", "context": {"includeDeclaration": true},
                });
                // A rename may be refused.
                let _ = client.request(&format!("textDocument/{method}"), params);
            }
        }
        client.shut_down();
    }
}

#[test]
fn invalid_ranges_are_reported_and_change_nothing() {
    let mut client = Client::initialized(usual_params());
    client.open(URI, "user:\nHi {{ a");
    let before = client.diagnostics(URI)["diagnostics"].clone();
    client.change(URI, 2, json!([{"range": {"start": {"line": -1, "character": 0}}, "text": "all of it"}]));
    client.change(URI, 3, json!([]));
    assert_eq!(client.diagnostics(URI)["diagnostics"], before);
    assert_eq!(client.notifications("window/logMessage").len(), 1);
    client.shut_down();
}

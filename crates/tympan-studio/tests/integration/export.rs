//! Static sites.

use std::fs;

use serde_json::{Value as Json, json};
use tempfile::TempDir;
use tympan_studio::export::export;

#[test]
fn a_site_contains_the_prompts_and_nothing_else() {
    let (source, target) = (TempDir::new().expect("a directory"), TempDir::new().expect("a directory"));
    for (path, text) in [
        ("a.prompty", "---\nname: ${file:name.txt}\n---\nuser:\n</script>{{ q }}"),
        ("a.test.yaml", "cases:\n- {name: one, inputs: {q: 1}, expect: [{result: {contains: x}}]}"),
        ("name.txt", "x"),
        (".env", "KEY=hidden"),
        ("package.json", "{}"),
        ("t.tracy", "{}"),
    ] {
        fs::write(source.path().join(path), text).expect("it is written");
    }
    let site = target.path().join("site");
    let exported = export(source.path(), &site).expect("it is exported");
    assert_eq!(exported.files, 2);
    let project: Json =
        serde_json::from_str(&fs::read_to_string(site.join("project.json")).expect("it is there")).expect("it is JSON");
    assert_eq!(project["files"][0]["path"], "a.prompty");
    assert_eq!(project["files"][0]["files"], json!({"name.txt": "x"}));
    assert_eq!(project["files"][0]["samples"][0]["inputs"], json!({"q": 1}));
    assert!(!project.to_string().contains("hidden"));
    let page = fs::read_to_string(site.join("index.html")).expect("it is there");
    assert!(page.contains("\"mode\":\"export\""));
    // An export is replaced by the next one, and nothing else is.
    assert!(export(source.path(), &site).is_ok());
    let error = export(source.path(), source.path()).expect_err("it is not empty");
    assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
}

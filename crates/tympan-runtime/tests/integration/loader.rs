//! Prompts by name, from memory and from a folder whose files change.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use tympan_core::{Kind, Prompt, RenderOptions, inputs};
use tympan_runtime::PromptLoader;

fn definition(name: &str, body: &str) -> String {
    format!("{{name: {name}, role: user, body: {body}, variants: {{short: {{body: {body}!}}}}}}")
}

fn write(folder: &TempDir, name: &str, text: &str) {
    let path = folder.path().join(name);
    fs::create_dir_all(path.parent().expect("a parent")).expect("it is made");
    fs::write(path, text).expect("it is written");
}

/// Sets the time of a file to this many seconds ago.
fn age(path: &Path, seconds: u64) {
    let time = SystemTime::now() - Duration::from_secs(seconds);
    File::options().write(true).open(path).and_then(|file| file.set_modified(time)).expect("it can be set");
}

#[test]
fn prompts_in_memory_are_found_by_name() {
    let loader = PromptLoader::memory();
    assert_eq!(loader.load("greet").expect_err("there is none").help(), Some("there are no prompts"));
    loader.insert("greet", Prompt::from_yaml(&definition("greet", "Hi")).expect("it loads"));
    loader.insert("other", Prompt::from_yaml(&definition("greet", "Yo")).expect("it loads"));
    assert_eq!(loader.load("greet").expect("it is there").body(), "Hi");
    assert_eq!(loader.names().expect("it lists"), ["greet", "other"]);
    let error = loader.load("great").expect_err("there is none");
    assert_eq!((error.kind(), error.message()), (Kind::UnknownPrompt, "Unknown prompt: `great`"));
    assert_eq!(error.help(), Some("did you mean `greet`?"));
}

#[test]
fn variants_are_rendered_by_name() {
    let loader = PromptLoader::memory();
    loader.insert("greet", Prompt::from_yaml(&definition("greet", "Hi")).expect("it loads"));
    assert_eq!(loader.variants("greet").expect("it is there"), ["default", "short"]);
    let render = |variant| loader.render("greet", inputs! {}, &RenderOptions { variant, ..RenderOptions::default() });
    let (default, short) = (render(None).expect("it renders"), render(Some("short")).expect("it renders"));
    assert_eq!((default.text(), default.is_default()), ("Hi", true));
    assert_eq!((short.text(), short.is_default()), ("Hi!", false));
    assert_eq!(render(Some("long")).expect_err("there is none").kind(), Kind::UnknownVariant);
}

#[test]
fn a_folder_has_prompts_in_every_format() {
    let folder = TempDir::new().expect("a folder");
    write(&folder, "a.yaml", &definition("first", "A"));
    write(&folder, "sub/b.json", r#"{"name": "second", "role": "user", "body": "B"}"#);
    write(&folder, "third.prompty", "user:\nC\n");
    write(&folder, "fourth.md", "```xml\n<directive version=\"1.0.0\"></directive>\n```\nD\n");
    for (other, text) in [("README.md", "# Read me"), ("config.yaml", "a: 1"), (".hidden.yaml", "?"), ("x.txt", "x")] {
        write(&folder, other, text);
    }
    let loader = PromptLoader::folder(folder.path());
    assert_eq!(loader.names().expect("it lists"), ["first", "fourth", "second", "third"]);
    assert_eq!(loader.load("second").expect("it is there").body(), "B");
    loader.insert("second", Prompt::from_yaml(&definition("second", "Mine")).expect("it loads"));
    assert_eq!(loader.load("second").expect("it is there").body(), "Mine");
    assert_eq!(PromptLoader::folder("no/such/folder").names().expect_err("it is missing").kind(), Kind::UnreadableFile);
}

#[test]
fn changed_files_are_loaded_again() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("a.yaml");
    write(&folder, "a.yaml", &definition("a", "One"));
    let loader = PromptLoader::folder(folder.path());
    let first = loader.load("a").expect("it is there");
    assert_eq!(first.body(), "One");
    assert!(Arc::ptr_eq(&first, &loader.load("a").expect("it is there")), "an unchanged file is not loaded again");
    // The same size, and probably the same time.
    write(&folder, "a.yaml", &definition("a", "Two"));
    assert_eq!(loader.load("a").expect("it is there").body(), "Two");
    // A file that has not changed for a while, and then gets a time that is also in the past.
    age(&path, 3_000);
    assert_eq!(loader.load("a").expect("it is there").body(), "Two");
    write(&folder, "a.yaml", &definition("a", "Six"));
    age(&path, 2_000);
    assert_eq!(loader.load("a").expect("it is there").body(), "Six");
    write(&folder, "b.yaml", &definition("b", "New"));
    assert_eq!(loader.load("b").expect("it is there").body(), "New");
    fs::remove_file(path).expect("it is removed");
    assert_eq!(loader.load("a").expect_err("it is gone").kind(), Kind::UnknownPrompt);
    assert_eq!(first.body(), "One");
}

#[test]
fn broken_files_do_not_affect_others() {
    let folder = TempDir::new().expect("a folder");
    write(&folder, "good.yaml", &definition("good", "Hi"));
    write(&folder, "bad.yaml", "{name: bad, role: nobody, body: Hi}");
    let loader = PromptLoader::folder(folder.path());
    assert_eq!(loader.load("good").expect("it is there").body(), "Hi");
    assert_eq!(loader.names().expect("it lists"), ["good"]);
    assert_eq!(loader.load("bad").expect_err("it is wrong").kind(), Kind::InvalidDefinition);
    let error = loader.load("other").expect_err("there is none");
    assert!(error.help().is_some_and(|help| help.contains("bad.yaml")), "{:?}", error.help());
    write(&folder, "bad.yaml", &definition("bad", "Now"));
    assert_eq!(loader.load("bad").expect("it is there").body(), "Now");
    write(&folder, "twin.yaml", &definition("bad", "Twin"));
    assert_eq!(loader.load("bad").expect_err("there are two").kind(), Kind::DuplicateName);
}

/// A link that leads out of the folder is not followed.
#[cfg(unix)]
#[test]
fn links_do_not_leave_the_folder() {
    let (outside, folder) = (TempDir::new().expect("a folder"), TempDir::new().expect("a folder"));
    write(&outside, "secret.yaml", &definition("secret", "Hi"));
    let link = folder.path().join("secret.yaml");
    std::os::unix::fs::symlink(outside.path().join("secret.yaml"), link).expect("it is linked");
    let loader = PromptLoader::folder(folder.path());
    assert_eq!(loader.load("secret").expect_err("it is outside").kind(), Kind::UnreadableFile);
}

//! The files that a prompt's references can access, on a real file system.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tympan_core::Result;
use tympan_runtime::{LoadOptions, load_document, load_document_str};

const OUTSIDE: &str = "OUTSIDE-SECRET";

/// Creates a directory with `prompts/inside.txt`, `outside/secret.txt` and `shared/note.txt`.
fn playground() -> TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    for (path, text) in
        [("prompts/inside.txt", "inside"), ("outside/secret.txt", OUTSIDE), ("shared/note.txt", "shared")]
    {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().expect("it has a parent")).expect("a directory");
        fs::write(path, text).expect("a file");
    }
    dir
}

fn describe(dir: &Path, reference: &str, options: &LoadOptions) -> Result<String> {
    let text = format!("---\ndescription: ${{file:{reference}}}\n---\nHello\n");
    load_document_str(&text, "test.prompty", dir.join("prompts"), options)
        .map(|(_, document, _)| document.spec.description.unwrap_or_default())
}

fn code(dir: &Path, reference: &str) -> &'static str {
    let error = describe(dir, reference, &LoadOptions::default()).expect_err("it is refused");
    assert!(!format!("{error} {error:?}").contains(OUTSIDE));
    error.code()
}

#[test]
fn links_are_followed_only_inside() {
    let dir = playground();
    let prompts = dir.path().join("prompts");
    symlink("inside.txt", prompts.join("near")).expect("a link");
    symlink(prompts.join("inside.txt"), prompts.join("absolute")).expect("a link");
    symlink("../outside", prompts.join("directory")).expect("a link");
    symlink("../outside/secret.txt", prompts.join("far")).expect("a link");
    symlink("loop", prompts.join("loop")).expect("a link");
    symlink("/dev/zero", prompts.join("zero")).expect("a link");

    for inside in ["inside.txt", "./inside.txt", "near", "absolute"] {
        assert_eq!(describe(dir.path(), inside, &LoadOptions::default()).expect(inside), "inside");
    }
    for outside in ["far", "directory/secret.txt", "../outside/secret.txt", "near/../../outside/secret.txt", "zero"] {
        assert_eq!(code(dir.path(), outside), "file_outside_root", "{outside}");
    }
    assert_eq!(code(dir.path(), "loop"), "invalid_referenced_file");
    let absolute = dir.path().join("outside/secret.txt");
    assert_eq!(code(dir.path(), &absolute.display().to_string()), "file_outside_root");
    // The error does not reveal whether a file outside exists.
    assert_eq!(code(dir.path(), "../outside/missing.txt"), "file_outside_root");
}

#[test]
fn a_host_can_add_roots() {
    let dir = playground();
    let options = LoadOptions { file_roots: vec![dir.path().join("shared")], ..LoadOptions::default() };
    symlink("../shared", dir.path().join("prompts/link")).expect("a link");
    let absolute = dir.path().join("shared/note.txt").display().to_string();
    for path in ["../shared/note.txt", "link/note.txt", absolute.as_str()] {
        assert_eq!(describe(dir.path(), path, &options).expect(path), "shared");
    }
    assert_eq!(describe(dir.path(), "inside.txt", &options).expect("inside"), "inside");
    for path in ["../outside/secret.txt", "../shared/../outside/secret.txt"] {
        assert_eq!(describe(dir.path(), path, &options).expect_err(path).code(), "file_outside_root");
    }
    symlink("../outside/secret.txt", dir.path().join("shared/leak")).expect("a link");
    assert_eq!(describe(dir.path(), "../shared/leak", &options).expect_err("leak").code(), "file_outside_root");
    assert_eq!(describe(dir.path(), "../shared/no", &options).expect_err("no").code(), "referenced_file_not_found");
}

#[test]
fn an_absolute_path_inside_the_prompt_directory_is_fine() {
    let dir = playground();
    let path = dir.path().join("prompts/inside.txt").display().to_string();
    assert_eq!(describe(dir.path(), &path, &LoadOptions::default()).expect("inside"), "inside");
}

#[test]
fn only_regular_files_of_bounded_size() {
    let dir = playground();
    let prompts = dir.path().join("prompts");
    fs::write(prompts.join("bytes"), [0xff, 0xfe]).expect("a file");
    fs::write(prompts.join("large"), vec![b'a'; 11]).expect("a file");
    fs::create_dir(prompts.join("sub")).expect("a directory");
    let status = std::process::Command::new("mkfifo").arg(prompts.join("pipe")).status();
    let start = Instant::now();
    let options = LoadOptions { max_file_bytes: 10, ..LoadOptions::default() };
    let mut names = vec!["bytes", "large", "sub", "."];
    if status.is_ok_and(|status| status.success()) {
        names.push("pipe");
    }
    for name in names {
        assert_eq!(describe(dir.path(), name, &options).expect_err(name).code(), "invalid_referenced_file", "{name}");
    }
    assert!(start.elapsed() < Duration::from_secs(2), "nothing is waited for");
}

#[test]
fn swapping_a_file_for_a_link_never_reads_outside() {
    let dir = playground();
    let prompts = dir.path().join("prompts");
    let swap = prompts.join("swap.txt");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (file, link) = (prompts.join("file.tmp"), prompts.join("link.tmp"));
            while !stop.load(Ordering::Relaxed) {
                fs::write(&file, "inside").and_then(|()| fs::rename(&file, &swap)).expect("it swaps");
                symlink("../outside/secret.txt", &link).and_then(|()| fs::rename(&link, &swap)).expect("it swaps");
            }
        });
        let (mut inside, mut refused) = (0, 0);
        for _ in 0..10_000 {
            match describe(dir.path(), "swap.txt", &LoadOptions::default()) {
                Ok(text) => {
                    assert_eq!(text, "inside");
                    inside += 1;
                }
                Err(error) => {
                    assert!(["file_outside_root", "referenced_file_not_found"].contains(&error.code()), "{error}");
                    refused += 1;
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        assert_eq!(inside + refused, 10_000);
    });
}

#[test]
fn the_prompt_file_itself_can_be_at_fault() {
    let dir = playground();
    let missing = dir.path().join("missing.prompty");
    let error = load_document(&missing, &LoadOptions::default()).expect_err("missing");
    assert_eq!(error.to_string(), format!("Prompty file not found: {}", missing.display()));
    assert_eq!(error.class().as_str(), "FileNotFoundError");
    let error = load_document(dir.path(), &LoadOptions::default()).expect_err("a directory");
    assert_eq!(error.code(), "unreadable_file");
    let options = LoadOptions { max_file_bytes: 3, ..LoadOptions::default() };
    let error = load_document(dir.path().join("shared/note.txt"), &options).expect_err("too large");
    assert_eq!(error.code(), "unreadable_file");
}

#[test]
fn defaults_of_the_environment_never_take_the_place_of_a_variable() {
    let vars =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let options = LoadOptions {
        env: tympan_runtime::EnvPolicy::allow(["A", "B", "C", "E"]),
        env_vars: Some(vars(&[("A", "set"), ("B", "")])),
        env_defaults: vars(&[("A", "default"), ("B", "default"), ("C", "default"), ("D", "hidden-default")]),
        ..LoadOptions::default()
    };
    let name = |text: &str| {
        let text = format!("---\nname: {text}\n---\n");
        load_document_str(&text, "test.prompty", ".", &options).map(|(_, document, _)| document.spec.name)
    };
    for (reference, value) in
        [("${env:A}", "set"), ("${env:B}", ""), ("${env:C}", "default"), ("${env:E:other}", "other")]
    {
        assert_eq!(name(reference).expect("it loads").as_deref(), Some(value), "{reference}");
    }
    assert_eq!(name("${env:D}").expect_err("it is not allowed").code(), "env_not_allowed");
    assert!(!format!("{options:?}").contains("hidden-default"));
}

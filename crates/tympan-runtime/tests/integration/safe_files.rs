//! The library does not read, write or wait for anything that is not a regular file.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use tympan_core::wire::Protocol;
use tympan_runtime::file::keys::{read_signing_key, read_trusted_keys};
use tympan_runtime::file::write;
use tympan_runtime::{Cassette, Journal, Kind, Result, Run, RunOptions, load};

use crate::faults::Server;
use crate::runs::{TEMPLATE, inputs, model, prompt, runtime_with, say};

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo runs").success());
}

fn large(path: &Path) {
    fs::File::create(path).and_then(|file| file.set_len(1 << 40)).expect("a large file");
}

#[test]
fn prompts_keys_and_journals_are_regular_files_of_bounded_size() {
    let folder = tempfile::tempdir().expect("a folder");
    let (a_pipe, a_file) = (folder.path().join("pipe"), folder.path().join("large"));
    pipe(&a_pipe);
    large(&a_file);
    let cases =
        [(Path::new("/dev/zero"), "not a regular file"), (&a_pipe, "not a regular file"), (&a_file, "larger than")];
    for (path, reason) in cases {
        let errors = [
            load(path).map(drop).expect_err("it is not a prompt"),
            Journal::file(path).header().map(drop).expect_err("it is not a journal"),
            Journal::file(path).store().open().map(drop).expect_err("it is not a journal"),
            #[cfg(feature = "sqlite")]
            Journal::sqlite(path).header().map(drop).expect_err("it is not a journal"),
        ];
        for error in errors {
            assert!(error.message().contains(reason), "{}: {error}", path.display());
        }
        assert_eq!(read_signing_key(path).expect_err("it is not a key").kind(), Kind::InvalidKey);
    }
    assert!(Journal::file(&a_pipe).store().create(b"{}").is_err());
    #[cfg(feature = "sqlite")]
    assert!(Journal::sqlite(&a_pipe).store().create(b"{}").is_err());
}

#[test]
fn a_journal_does_not_grow_past_what_can_be_read() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["turn.journal", "turn.db"] {
        let store = Journal::at(folder.path().join(name)).expect("a journal").store();
        let mut writer = store.create(b"{}").expect("it is new");
        let record = vec![b'x'; 60 << 20];
        writer.commit(std::slice::from_ref(&record)).expect("it fits");
        assert!(writer.commit(&[record.clone(), record]).is_err(), "{name}");
        drop(writer);
        assert_eq!(store.read().expect("it can be read").records.len(), 2, "{name}");
    }
}

#[test]
fn trusted_keys_are_files_of_their_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys = folder.path().join("keys");
    fs::create_dir(&keys).expect("a folder");
    fs::write(folder.path().join("outside.toml"), "SECRET").expect("it is written");
    symlink("../outside.toml", keys.join("a.toml")).expect("a link");
    let error = read_trusted_keys(&keys).expect_err("it is outside");
    assert!(error.message().contains("points outside its directory"), "{error}");
    fs::remove_file(keys.join("a.toml")).expect("it is there");
    pipe(&keys.join("a.toml"));
    let error = read_trusted_keys(&keys).expect_err("it is a pipe");
    assert!(error.message().contains("not a regular file"), "{error}");
}

#[test]
fn cassettes_are_neither_written_nor_read_through_links() {
    let server = Server::start(|exchange| say(exchange, "Hello"));
    let folder = tempfile::tempdir().expect("a folder");
    let tapes = folder.path().join("tapes");
    let model = model(&server, Protocol::OpenAiChat);
    let run = |cassette: Cassette| -> Result<Run> {
        let runtime = runtime_with(&[], |options| options.cassette = Some(cassette));
        runtime.invoke_with(&prompt(&runtime, &model, TEMPLATE), inputs(), &RunOptions::default())
    };
    let record = || run(Cassette::Record(tapes.clone()));
    let replay = || run(Cassette::Replay(tapes.clone()));
    record().expect("it is recorded");
    record().expect("it is recorded again");
    let tape = fs::read_dir(&tapes).expect("a folder").next().expect("a tape").expect("a tape").path();
    let outside = folder.path().join("outside");
    fs::rename(&tape, &outside).expect("it moves");
    let recorded = fs::read(&outside).expect("it is there");
    symlink("../outside", &tape).expect("a link");
    for error in [replay().expect_err("it is outside"), record().expect_err("it is a link")] {
        assert_eq!(error.kind(), Kind::InvalidCassette, "{error}");
    }
    assert_eq!(fs::read(&outside).expect("it is there"), recorded);
    fs::remove_file(&tape).expect("it is there");
    pipe(&tape);
    for error in [replay().expect_err("it is a pipe"), record().expect_err("it is a pipe")] {
        assert!(error.message().contains("not a regular file"), "{error}");
    }
}

#[test]
fn a_file_of_a_fixed_name_is_put_in_one_step() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.lock");
    write::put(&path, b"one", 0o644).expect("it is made");
    write::put(&path, b"two", 0o644).expect("it is replaced");
    assert_eq!(fs::read(&path).expect("it is there"), b"two");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    let link = folder.path().join("link");
    symlink(&path, &link).expect("a link");
    assert!(write::put(&link, b"three", 0o644).is_err());
    assert_eq!(fs::read(&path).expect("it is there"), b"two");
    pipe(&folder.path().join("pipe"));
    assert!(write::replace(&folder.path().join("pipe"), "three").is_err());
}

#[test]
fn several_threads_may_put_the_same_file() {
    let folder = tempfile::tempdir().expect("a folder");
    for number in 0..50 {
        let path = folder.path().join(number.to_string());
        let start = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    start.wait();
                    write::put(&path, b"text", 0o644).expect("it is put");
                });
            }
        });
        assert_eq!(fs::read(&path).expect("it is there"), b"text");
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 50, "nothing is left beside the files");
}

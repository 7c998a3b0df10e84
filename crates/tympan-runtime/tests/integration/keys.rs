//! Key files, on a real file system.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use tympan_core::Kind;
use tympan_core::directive::signature::{Form, TrustedKey, sign, verify};
use tympan_runtime::file::keys::{
    generate_key, read_signing_key, read_trusted_keys, write_signing_key, write_trusted_key,
};
use tympan_runtime::file::write;

const TEXT: &str = "```xml\n<directive name=\"a\">\n</directive>\n```\n1. Do it.\n";

#[test]
fn keys_go_round() {
    let dir = tempfile::tempdir().expect("a directory");
    let (file, folder) = (dir.path().join("me.pem"), dir.path().join("deep/keys"));
    let key = generate_key().expect("a key");
    write_signing_key(&file, &key).expect("it is written");
    assert_eq!(fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);
    let trusted = TrustedKey::new(key.public_key(), Some("ada".into()));
    let public = write_trusted_key(&folder, &trusted).expect("it is written");
    assert_eq!(public, folder.join(format!("{}.toml", trusted.fingerprint())));
    fs::write(folder.join("README.md"), "no key").expect("it is written");

    let again = read_signing_key(&file).expect("it is read");
    let keys = read_trusted_keys(&folder).expect("they are read");
    assert_eq!(keys, [trusted]);
    for form in [Form::Rye, Form::WholeFile] {
        let signed = sign(TEXT, form, "2026-01-01T00:00:00Z", &again).expect("it is signed");
        assert_eq!(verify(&signed, &keys).expect("it holds").owner.as_deref(), Some("ada"));
    }
    // No temporary files are left over.
    assert_eq!(fs::read_dir(dir.path()).expect("it is there").count(), 2);
    assert_eq!(fs::read_dir(&folder).expect("it is there").count(), 2);
}

#[test]
fn a_key_is_never_overwritten() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("me.pem");
    let key = generate_key().expect("a key");
    write_signing_key(&file, &key).expect("it is written");
    let error = write_signing_key(&file, &generate_key().expect("a key")).expect_err("there is one");
    assert_eq!(error.kind(), Kind::InvalidKey);
    assert_eq!(fs::read_to_string(&file).expect("it is there"), key.to_pem());
    // Not even through a dangling link.
    let link = dir.path().join("link.pem");
    symlink(dir.path().join("nowhere"), &link).expect("a link");
    assert!(write_signing_key(&link, &key).is_err());
    assert!(!dir.path().join("nowhere").exists());
    assert_eq!(fs::read_dir(dir.path()).expect("it is there").count(), 2);
}

#[test]
fn keys_that_others_can_read_are_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("me.pem");
    write_signing_key(&file, &generate_key().expect("a key")).expect("it is written");
    for mode in [0o640, 0o604, 0o644] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("it is changed");
        let error = read_signing_key(&file).expect_err("others can read it");
        assert!(error.message().contains("readable by other users"), "{error}");
    }
}

#[test]
fn files_that_are_no_keys_are_named_and_never_quoted() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("bad.toml"), "fingerprint = \"SECRET\"\n").expect("it is written");
    let error = read_trusted_keys(dir.path()).expect_err("it is no key");
    assert!(error.message().contains("bad.toml") && !error.to_string().contains("SECRET"), "{error}");
    let file = dir.path().join("me.pem");
    fs::write(&file, "SECRET").expect("it is written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("it is changed");
    let error = read_signing_key(&file).expect_err("it is no key");
    assert!(!format!("{error} {error:?}").contains("SECRET"));
    assert_eq!(read_signing_key(dir.path().join("none")).expect_err("it is not there").kind(), Kind::InvalidKey);
    assert_eq!(read_trusted_keys(dir.path().join("none")).expect_err("it is not there").kind(), Kind::InvalidKey);
}

#[test]
fn files_are_replaced_whole() {
    let dir = tempfile::tempdir().expect("a directory");
    let (file, link) = (dir.path().join("a.md"), dir.path().join("b.md"));
    fs::write(&file, "old").expect("it is written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("it is changed");
    symlink(&file, &link).expect("a link");
    write::replace(&link, "new").expect("it is replaced");
    assert_eq!(fs::read_to_string(&file).expect("it is there"), "new");
    assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
    assert_eq!(fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o640);
    assert!(write::replace(&dir.path().join("none.md"), "new").is_err());
}

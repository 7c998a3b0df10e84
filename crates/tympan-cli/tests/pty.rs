//! What reaches a real terminal.
#![cfg(unix)]

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// What the command writes to a terminal that is its standard output.
fn seen(args: &[&str]) -> String {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&master).and_then(|()| unlockpt(&master)).expect("a terminal that can be opened");
    let name = ptsname(&master, Vec::new()).expect("a terminal with a name");
    let path = std::ffi::OsStr::from_bytes(name.to_bytes());
    let terminal = OpenOptions::new().read(true).write(true).open(path).expect("the terminal opens");
    let mut child = Command::new(env!("CARGO_BIN_EXE_tympan"))
        .args(args)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .env_remove("NO_COLOR")
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .stdout(terminal)
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    assert!(child.wait().expect("it ends").success());
    let mut bytes = Vec::new();
    // When the last program has left the terminal, reading ends with an error on some systems.
    let _ = File::from(master).read_to_end(&mut bytes);
    String::from_utf8(bytes).expect("it is UTF-8").replace("\r\n", "\n")
}

#[test]
fn a_terminal_gets_colours_and_nothing_else_that_drives_it() {
    let setting = "name=A\u{1b}]0;owned\u{7}\u{9b}2Jda";
    let args = ["render", "examples/hello.prompty", "--set", setting];
    let coloured = seen(&args);
    assert!(coloured.contains("\u{1b}[33mA\u{1b}[0m"), "{coloured:?}");
    let plain = seen(&[&args[..], &["--color", "never"]].concat());
    assert!(plain.ends_with("My name is A\\u{1b}]0;owned\\u{7}\\u{9b}2Jda.\n"), "{plain:?}");
    for shown in [coloured, plain] {
        assert!(!shown.contains("\u{1b}]") && !shown.contains(['\u{7}', '\u{9b}']), "{shown:?}");
    }
}

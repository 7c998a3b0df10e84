//! Storage of journals: torn writes, corruption, and concurrent writers.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;
use tympan_runtime::turn::journal::Stored;
use tympan_runtime::{Error, Journal, Kind};

use crate::shared;

/// Returns realistic records, which end with a brace. Two of them are the same.
fn records() -> Vec<Vec<u8>> {
    let long = format!("{{\"text\":\"{}\"}}", "long ".repeat(40));
    ["{\"header\":1}", "{}", "{}", &long, "{\"line\\n\":\"ö\"}"].map(|record| record.as_bytes().to_vec()).to_vec()
}

/// A journal with these records in a temporary folder.
struct Kept {
    _folder: TempDir,
    path: PathBuf,
    journal: Journal,
}

impl Kept {
    fn new(name: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        let journal = Journal::at(&path).expect("a journal");
        let mut writer = journal.store().create(&records()[0]).expect("it is new");
        writer.commit(&records()[1..3]).expect("it is written");
        writer.commit(&records()[3..]).expect("it is written");
        Self { _folder: folder, path, journal }
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(&self.path).expect("it is there")
    }

    fn set(&self, bytes: &[u8]) {
        fs::write(&self.path, bytes).expect("it can be written");
    }

    fn read(&self) -> Result<Stored, Error> {
        self.journal.store().read()
    }
}

/// Returns the ends of the lines of a file: the first line, and those of the records.
fn ends(bytes: &[u8]) -> Vec<usize> {
    let mut lines = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let first = lines.next().expect("a first line");
    let mut ends = vec![first];
    for record in records() {
        ends.push(ends.last().expect("an end") + 51 + record.len() + 1);
    }
    assert_eq!(*ends.last().expect("an end"), bytes.len());
    ends
}

fn is_damage(error: &Error) -> bool {
    error.kind() == Kind::InvalidJournal && error.message().contains("damaged")
}

fn each_kind(test: impl Fn(&Kept)) {
    test(&Kept::new("turn.journal"));
    #[cfg(feature = "sqlite")]
    test(&Kept::new("turn.db"));
}

#[test]
fn records_come_back_and_more_can_be_added() {
    each_kind(|kept| {
        assert_eq!(kept.read().expect("it is whole"), Stored { records: records(), torn_bytes: 0 });
        let (stored, mut writer) = kept.journal.store().open().expect("it is whole");
        assert_eq!(stored.records, records());
        writer.commit(&[b"{\"more\":1}".to_vec()]).expect("it is written");
        drop(writer);
        assert_eq!(kept.read().expect("it is whole").records[5], b"{\"more\":1}");
    });
}

#[test]
fn a_journal_is_begun_once() {
    each_kind(|kept| {
        let error = kept.journal.store().create(b"{}").err().expect("it is there");
        assert!(error.kind() == Kind::InvalidJournal && error.message().contains("already exists"), "{error}");
        assert_eq!(kept.read().expect("it is whole").records, records());
    });
    let folder = tempfile::tempdir().expect("a folder");
    for name in [
        "none.journal",
        #[cfg(feature = "sqlite")]
        "none.db",
    ] {
        let store = Journal::at(folder.path().join(name)).expect("a journal").store();
        assert_eq!(store.open().err().expect("there is none").kind(), Kind::InvalidJournal, "{name}");
        assert_eq!(store.read().expect_err("there is none").kind(), Kind::InvalidJournal, "{name}");
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0, "nothing was made by reading");
}

#[test]
fn nobody_else_writes_meanwhile() {
    each_kind(|kept| {
        let (_, writer) = kept.journal.store().open().expect("it is free");
        let other = Journal::at(&kept.path).expect("a journal");
        assert_eq!(other.store().open().err().expect("it is taken").kind(), Kind::JournalBusy);
        drop(writer);
        other.store().open().expect("it is free again");
    });
}

#[cfg(unix)]
#[test]
fn only_its_owner_can_read_it() {
    use std::os::unix::fs::PermissionsExt;
    each_kind(|kept| {
        let mode = fs::metadata(&kept.path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    });
}

#[test]
fn every_flipped_bit_of_a_file_is_noticed() {
    let kept = Kept::new("turn.journal");
    let whole = kept.bytes();
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        kept.set(&bytes);
        let error = kept.read().expect_err("it is damaged");
        assert_eq!(error.kind(), Kind::InvalidJournal, "bit {bit}: {error}");
        assert!(kept.journal.store().open().is_err(), "bit {bit}");
        assert_eq!(kept.bytes(), bytes, "bit {bit}: a damaged journal is left as it is");
    }
}

#[test]
fn what_is_cut_off_is_noticed_and_all_before_it_is_kept() {
    let kept = Kept::new("turn.journal");
    let whole = kept.bytes();
    let ends = ends(&whole);
    for length in 0..whole.len() {
        kept.set(&whole[..length]);
        let complete = ends.iter().filter(|end| **end <= length).count().saturating_sub(1);
        if complete == 0 {
            assert_eq!(kept.read().expect_err("it has no header").kind(), Kind::InvalidJournal, "{length} bytes");
            continue;
        }
        let torn_bytes = (length - ends[complete]) as u64;
        let expected = Stored { records: records()[..complete].to_vec(), torn_bytes };
        assert_eq!(kept.read().expect("it is whole up to there"), expected, "{length} bytes");
        let (stored, mut writer) = kept.journal.store().open().expect("it is whole up to there");
        assert_eq!(stored, expected, "{length} bytes");
        writer.commit(&records()[complete..]).expect("it goes on");
        drop(writer);
        assert_eq!(kept.bytes(), whole, "{length} bytes");
    }
}

/// After a power failure, a file may have grown by zeros that were never written.
#[test]
fn zeros_at_the_end_are_a_torn_write() {
    let kept = Kept::new("turn.journal");
    let whole = kept.bytes();
    let before_last = ends(&whole)[4];
    for written in before_last..whole.len() {
        let mut bytes = whole.clone();
        bytes[written..].fill(0);
        kept.set(&bytes);
        let stored = kept.read().expect("it was torn there");
        let torn_bytes = (whole.len() - before_last) as u64;
        assert_eq!(stored, Stored { records: records()[..4].to_vec(), torn_bytes }, "{written} bytes");
    }
    // Zeros followed by intact data, or zeros that replace intact data, are not a torn write.
    for zeros in [ends(&whole)[3]..ends(&whole)[3] + 30, ends(&whole)[3] + 60..ends(&whole)[3] + 61] {
        let mut bytes = whole.clone();
        bytes[zeros].fill(0);
        bytes.extend([0; 10]);
        kept.set(&bytes);
        assert!(is_damage(&kept.read().expect_err("it is damaged")));
    }
}

#[test]
fn records_cannot_be_moved_or_taken_out() {
    let kept = Kept::new("turn.journal");
    let whole = kept.bytes();
    let ends = ends(&whole);
    let line = |number: usize| &whole[ends[number]..ends[number + 1]];
    let changed = [
        [line(0), line(1), line(3), line(4)].concat(),
        [line(0), line(2), line(3), line(4)].concat(),
        [line(0), line(3), line(4)].concat(),
        [line(0), line(1), line(3), line(2), line(4)].concat(),
        [line(0), line(1), line(1), line(2), line(3), line(4)].concat(),
        [line(1), line(2), line(3), line(4)].concat(),
    ];
    for lines in changed {
        kept.set(&[&whole[..ends[0]], &lines].concat());
        let error = kept.read().expect_err("it is not what was written");
        assert!(is_damage(&error), "{error}");
    }
}

#[test]
fn other_files_are_no_journals() {
    let kept = Kept::new("turn.journal");
    for (bytes, words) in [
        (&b""[..], "header is missing"),
        (b"tympan-journ", "header is missing"),
        (b"tympan-journal 1\n", "header is missing"),
        (b"tympan-journal 2\n", "another version"),
        (b"Dear Ada,\n", "not a journal"),
        (b"\xff\xfe\x00", "not a journal"),
    ] {
        kept.set(bytes);
        let error = kept.read().expect_err("it is none");
        assert!(error.kind() == Kind::InvalidJournal && error.message().contains(words), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever happens to the bytes, only a prefix of the records is read, or none.
    #[test]
    fn no_other_record_is_ever_read(from in 0..600_usize, removed in 0..60_usize, put in prop::collection::vec(any::<u8>(), 0..60)) {
        let kept = Kept::new("turn.journal");
        let mut bytes = kept.bytes();
        let from = from.min(bytes.len());
        let to = (from + removed).min(bytes.len());
        bytes.splice(from..to, put);
        kept.set(&bytes);
        if let Ok(stored) = kept.read() {
            prop_assert!(records().starts_with(&stored.records));
            // No intact record before the change is missing.
            prop_assert!(stored.records.len() + 1 >= ends(&Kept::new("turn.journal").bytes()).iter().filter(|end| **end <= from).count());
        }
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn flipped_bits_of_a_database_lose_nothing_silently() {
    let kept = Kept::new("turn.db");
    let whole = kept.bytes();
    // Testing every bit would take minutes. This covers the whole file and all bit positions.
    for bit in (0..whole.len() * 8).step_by(37) {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        kept.set(&bytes);
        match kept.read() {
            Ok(stored) => assert_eq!(stored.records, records(), "bit {bit}"),
            Err(error) => assert_eq!(error.kind(), Kind::InvalidJournal, "bit {bit}: {error}"),
        }
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn a_database_that_is_cut_off_is_noticed() {
    let kept = Kept::new("turn.db");
    let whole = kept.bytes();
    for length in (0..whole.len()).step_by(61) {
        kept.set(&whole[..length]);
        match kept.read() {
            Ok(stored) => assert_eq!(stored.records, records(), "{length} bytes"),
            Err(error) => assert_eq!(error.kind(), Kind::InvalidJournal, "{length} bytes: {error}"),
        }
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn what_sqlite_reads_as_options_is_a_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file:a?mode=memory.db");
    Journal::sqlite(&path).store().create(b"{}").expect("it is new");
    assert!(Path::new(&path).exists());
}

/// The shared cases.
#[test]
fn shared_cases() {
    for case in shared::attacks() {
        let Some(fault) = case["inputs"]["store_fault"].as_str() else { continue };
        assert_eq!(case["expect"]["silent_loss"], 0);
        let kept = Kept::new("turn.journal");
        let whole = kept.bytes();
        let ends = ends(&whole);
        match fault {
            "torn-last-record" => {
                kept.set(&whole[..whole.len() - 3]);
                let stored = kept.read().expect("it goes on");
                assert_eq!((stored.records.len(), stored.torn_bytes > 0), (4, true));
            }
            "bit-flip" => {
                let mut bytes = whole.clone();
                bytes[ends[3] + 60] ^= 4;
                kept.set(&bytes);
                assert!(is_damage(&kept.read().expect_err("it is damaged")));
            }
            "truncated-header" => {
                kept.set(&whole[..ends[1] - 2]);
                assert_eq!(kept.read().expect_err("it has no header").kind(), Kind::InvalidJournal);
            }
            "two-writers" => {
                let _first = kept.journal.store().open().expect("it is free");
                let second = Journal::file(&kept.path).store().open();
                assert_eq!(second.err().expect("it is taken").kind(), Kind::JournalBusy);
            }
            other => panic!("nobody knows the fault `{other}`"),
        }
    }
}

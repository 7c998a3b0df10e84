//! `tympan sign`: signatures in the first lines of directives.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use tympan::signature::{Form, SigningKey, sign};
use tympan::source::SourceFile;
use tympan::{Error, Kind};
use tympan_runtime::keys::read_signing_key;

use crate::args::SignArgs;
use crate::escape::visible_line;
use crate::output;
use crate::report::Failure;

pub(super) fn run(args: &SignArgs, quiet: bool) -> Result<(), Failure> {
    let key = read_signing_key(&args.key)?;
    let form = if args.whole_file { Form::WholeFile } else { Form::Rye };
    let now = timestamp(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()));
    // Nothing is written unless all of it can be signed.
    let signed: Result<Vec<_>, Failure> =
        args.files.iter().map(|path| Ok((path, signed(path, form, &now, &key)?))).collect();
    for (path, text) in signed? {
        tympan_runtime::write::replace(path, &text)?;
        let name = path.display().to_string();
        let covers = match form {
            Form::Rye => "covers the metadata, and not the steps",
            Form::WholeFile => "covers the whole file",
        };
        output::print(&format!("{}: signed with {}; {covers}\n", visible_line(&name), key.public_key().fingerprint()))?;
    }
    if form == Form::Rye && !quiet {
        let note =
            "note: Rye's form leaves the steps uncovered, which are what a model follows; `--whole-file` covers them\n";
        output::print_error(note);
    }
    Ok(())
}

fn signed(path: &Path, form: Form, now: &str, key: &SigningKey) -> Result<String, Failure> {
    let text = read(path)?;
    let source = SourceFile::new(path.display().to_string(), text);
    sign(source.text(), form, now, key).map_err(|error| error.in_source(&source, 0).into())
}

/// The text of a directive, exactly: a byte that changed on the way would be a signature that does not fit.
pub(super) fn read(path: &Path) -> Result<String, Error> {
    let name = path.display();
    let unreadable = |reason: String| Error::new(Kind::UnreadableFile, format_args!("{name}: {reason}"));
    let bytes = std::fs::read(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::new(Kind::FileNotFound, &name),
        _ => unreadable(error.to_string()),
    })?;
    String::from_utf8(bytes)
        .map_err(|error| unreadable(format!("byte {} is not UTF-8", error.utf8_error().valid_up_to())))
}

/// Seconds since 1970 as Rye writes times: `2026-02-22T02:41:03Z`.
fn timestamp(seconds: u64) -> String {
    let (mut days, time) = (seconds / 86_400, seconds % 86_400);
    let is_leap = |year: u64| (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400);
    let mut year = 1970;
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hour, minute, second) = (time / 3_600, time / 60 % 60, time % 60);
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", days + 1)
}

#[cfg(test)]
mod tests {
    use super::timestamp;

    #[test]
    fn times_are_written_as_people_read_them() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_771_728_063, "2026-02-22T02:41:03Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(timestamp(seconds), expected);
        }
    }
}

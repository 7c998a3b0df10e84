//! `tympan sign`: writes signatures to the first lines of directives.

use std::path::Path;
use std::time::SystemTime;

use tympan::directive::signature::{Form, SigningKey, sign};
use tympan::file::keys::read_signing_key;
use tympan::file::read as file;
use tympan::file::time::UtcTime;
use tympan::load::DEFAULT_MAX_FILE_BYTES;
use tympan::text::source::SourceFile;
use tympan::{Error, Kind};

use crate::args::SignArgs;
use crate::escape::visible_line;
use crate::output;
use crate::report::Failure;

pub(super) fn run(args: &SignArgs, quiet: bool) -> Result<(), Failure> {
    let key = read_signing_key(&args.key)?;
    let form = if args.whole_file { Form::WholeFile } else { Form::Rye };
    let now = UtcTime::from(SystemTime::now()).to_string();
    // Write nothing unless all files can be signed.
    let signed: Result<Vec<_>, Failure> =
        args.files.iter().map(|path| Ok((path, signed(path, form, &now, &key)?))).collect();
    for (path, text) in signed? {
        tympan::file::write::replace(path, &text)?;
        let name = path.display().to_string();
        let covers = match form {
            Form::Rye => "covers the metadata but not the steps",
            Form::WholeFile => "covers the whole file",
        };
        output::print(&format!("{}: signed with {}; {covers}\n", visible_line(&name), key.public_key().fingerprint()))?;
    }
    if form == Form::Rye && !quiet {
        let note = "note: a Rye signature does not cover the steps, which the model follows; use `--whole-file` to \
                    cover them\n";
        output::print_error(note);
    }
    Ok(())
}

fn signed(path: &Path, form: Form, now: &str, key: &SigningKey) -> Result<String, Failure> {
    let text = read(path, DEFAULT_MAX_FILE_BYTES)?;
    let source = SourceFile::new(path.display().to_string(), text);
    sign(source.text(), form, now, key).map_err(|error| error.in_source(&source, 0).into())
}

/// Reads a file of at most `most` bytes exactly. If a byte changed, the signature would not match.
pub(super) fn read(path: &Path, most: u64) -> Result<String, Error> {
    let name = path.display();
    let unreadable = |reason: String| Error::new(Kind::UnreadableFile, format_args!("{name}: {reason}"));
    file::open(path).and_then(|opened| file::text(opened, most)).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::new(Kind::FileNotFound, &name),
        _ => unreadable(error.to_string()),
    })
}

//! The changes that fixes make: differences, and new texts of files.

use std::io;
use std::process::ExitCode;

use tympan::file::write;
use tympan::{Error, Kind};
use tympan_lint::Finding;

use super::{FileFix, FileReport, Place, Report};
use crate::commands::check::formats::counted;
use crate::report::Failure;
use crate::{diff, output};

/// Writes the fixed texts to their files, and that of standard input to standard output.
pub(super) fn write(report: &mut Report) -> Result<(), Failure> {
    for file in &mut report.files {
        if file.place == Place::Stdin {
            output::print(file.source.text())?;
        } else if let Some(fix) = file.fix.take_if(|fix| fix.before != file.source) {
            match write_file(file) {
                Ok(()) => file.fix = Some(fix),
                Err(error) => {
                    let error = Error::new(Kind::UnreadableFile, format_args!("{}: {error}", file.source.name()));
                    let error = error.with_help("the fixes were not written");
                    file.source = fix.before;
                    file.findings = Finding::from_error(&error);
                }
            }
        }
    }
    Ok(())
}

/// Replaces the text of a file. Permissions stay as they are.
fn write_file(file: &FileReport) -> io::Result<()> {
    match &file.place {
        Place::Named(path) => write::replace(path, file.source.text()),
        // A link that has appeared in the meantime is not followed.
        Place::Found(path) => write::put(path, file.source.text().as_bytes(), 0o666),
        Place::Stdin => Ok(()),
    }
}

/// Prints what fixes would change.
pub(super) fn print_diff(report: &Report) -> Result<ExitCode, Failure> {
    let fixes = report.files.iter().filter_map(|file| Some((file, file.fix.as_ref()?)));
    let changed: Vec<_> = fixes.filter(|(file, fix)| fix.before != file.source).collect();
    let show = |(file, fix): &(&FileReport, &FileFix)| {
        diff::unified(file.source.name(), fix.before.text(), file.source.text(), output::looks())
    };
    let text: String = changed.iter().map(show).collect();
    output::print(&text)?;
    let count: usize = changed.iter().map(|(_, fix)| fix.fixed.len()).sum();
    let files = counted(changed.len(), "file");
    if count == 0 {
        output::print_error("No fixes to apply\n");
        return Ok(ExitCode::SUCCESS);
    }
    output::print_error(&format!("Would fix {} in {files}\n", counted(count, "problem")));
    Ok(ExitCode::FAILURE)
}

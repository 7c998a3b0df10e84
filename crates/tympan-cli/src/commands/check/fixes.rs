//! The changes that fixes make: differences, and new texts of files.

use std::io;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use similar::{ChangeTag, TextDiff};
use tympan::file::write;
use tympan::{Error, Kind};
use tympan_lint::Finding;

use super::{FileFix, FileReport, Place, Report};
use crate::color::styled;
use crate::commands::check::formats::counted;
use crate::escape::visible;
use crate::output::{self, Looks};
use crate::report::Failure;

/// The number of lines around a change.
const CONTEXT: usize = 3;

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
    let text: String = changed.iter().map(|(file, fix)| diff(file, fix, output::looks())).collect();
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

/// Formats the change of a file as a unified diff.
fn diff(file: &FileReport, fix: &FileFix, looks: Looks) -> String {
    let name = file.source.name();
    let shown =
        |text: &str| if looks.is_seen { visible(text.trim_end_matches('\r')).into_owned() } else { text.to_owned() };
    let paint = |out: &mut String, text: &str, style: Style| {
        let (line, newline) = text.strip_suffix('\n').map_or((text, ""), |line| (line, "\n"));
        styled(out, &shown(line), if looks.colors { style } else { Style::new() });
        out.push_str(newline);
    };
    let diff = TextDiff::from_lines(fix.before.text(), file.source.text());
    let mut out = String::new();
    paint(&mut out, &format!("--- {name}\n+++ {name}\n"), Style::new());
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        paint(&mut out, &format!("{}\n", hunk.header()), AnsiColor::Cyan.on_default());
        for change in hunk.iter_changes() {
            let (sign, style) = match change.tag() {
                ChangeTag::Equal => (' ', Style::new()),
                ChangeTag::Delete => ('-', AnsiColor::Red.on_default()),
                ChangeTag::Insert => ('+', AnsiColor::Green.on_default()),
            };
            paint(&mut out, &format!("{sign}{}", change.value()), style);
            if change.missing_newline() {
                out.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    out
}

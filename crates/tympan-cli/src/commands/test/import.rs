//! `tympan test --import`: converts a configuration of another program to prompt files and test files.

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use serde_json::json;
use tympan::file::write;
use tympan_eval::promptfoo::{Import, ImportFinding, ImportedFile, Level, import_file};

use crate::args::{TestArgs, TestFormat};
use crate::color::{HEADING, styled};
use crate::escape::visible_line;
use crate::output;
use crate::report::Failure;

const LOST: Style = AnsiColor::Yellow.on_default().bold();
const QUIET: Style = Style::new().dimmed();

/// How many lines of a finding are named.
const MAX_LINES: usize = 5;

/// How many files an error names.
const MAX_FILES: usize = 5;

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Written,
    Replaced,
    /// It had the same text already.
    Unchanged,
}

impl Change {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Replaced => "replaced",
            Self::Unchanged => "unchanged",
        }
    }
}

pub(super) fn run(path: &Path, args: &TestArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let format = args.output.format();
    if !matches!(format, TestFormat::Full | TestFormat::Concise | TestFormat::JsonLines) {
        let message = "`--import` prints `full`, `concise` or `json-lines`, and no other `--output-format`";
        return Err(Failure::Usage(message.to_owned()));
    }
    let import = import_file(path)?;
    let beside = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let directory = args.import.output_dir.as_deref().unwrap_or(beside);
    let changes = write_all(directory, &import.files, args.import.force)?;
    let text = match format {
        TestFormat::JsonLines => json_lines(&import, directory, &changes),
        _ => people(&import, directory, &changes, format == TestFormat::Concise, quiet),
    };
    output::print_lines(&text)?;
    Ok(if import.is_complete() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Writes the files. Unless the user wants to replace files, nothing is written if one of them exists with another text.
fn write_all(directory: &Path, files: &[ImportedFile], force: bool) -> Result<Vec<Change>, Failure> {
    let mut changes = Vec::new();
    let mut existing = Vec::new();
    for file in files {
        let path = path_of(directory, file);
        let change = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Change::Written,
            Ok(metadata) if metadata.is_file() && has_text(&path, &metadata, &file.text) => Change::Unchanged,
            _ => Change::Replaced,
        };
        if change == Change::Replaced {
            existing.push(path);
        }
        changes.push(change);
    }
    if !existing.is_empty() && !force {
        return Err(Failure::Usage(exists(&existing)));
    }
    if !files.is_empty() {
        fs::create_dir_all(directory).map_err(|error| cannot_write(directory, &error))?;
    }
    for (file, change) in files.iter().zip(&changes) {
        let path = path_of(directory, file);
        let written = match change {
            Change::Written => write::create(&path, file.text.as_bytes(), 0o666),
            Change::Replaced => write::put(&path, file.text.as_bytes(), 0o666),
            Change::Unchanged => Ok(()),
        };
        written.map_err(|error| cannot_write(&path, &error))?;
    }
    Ok(changes)
}

fn path_of(directory: &Path, file: &ImportedFile) -> PathBuf {
    // Messages name files without `./`.
    if directory == Path::new(".") { PathBuf::from(&file.name) } else { directory.join(&file.name) }
}

fn has_text(path: &Path, metadata: &fs::Metadata, text: &str) -> bool {
    metadata.len() == text.len() as u64 && fs::read(path).is_ok_and(|bytes| bytes == text.as_bytes())
}

fn exists(existing: &[PathBuf]) -> String {
    let named: Vec<_> = existing.iter().take(MAX_FILES).map(|path| format!("`{}`", path.display())).collect();
    let more = match existing.len().saturating_sub(MAX_FILES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let verb = if existing.len() == 1 { "exists" } else { "exist" };
    format!(
        "{}{more} {verb} already, and nothing was written\nhelp: choose another directory with `-o DIRECTORY`, or replace files \
         with `--force`",
        named.join(", ")
    )
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Output(std::io::Error::new(error.kind(), format!("cannot write `{}`: {error}", path.display())))
}

/// Describes the result for people.
fn people(import: &Import, directory: &Path, changes: &[Change], concise: bool, quiet: bool) -> String {
    let mut text = String::new();
    for (file, change) in import.files.iter().zip(changes) {
        let path = visible_line(&path_of(directory, file).display().to_string());
        let _ = writeln!(text, "{} {path}", change.as_str());
    }
    let of_level = |level| import.findings.iter().filter(move |finding: &&ImportFinding| finding.level == level);
    for (level, heading) in [(Level::NotCarried, "Not carried over"), (Level::Note, "Notes")] {
        let count = of_level(level).count();
        if count == 0 || quiet && level == Level::Note {
            continue;
        }
        let separator = if concise { "" } else { "\n" };
        text.push_str(separator);
        if !concise {
            push(&mut text, &format!("{heading} ({count})"), HEADING);
            text.push('\n');
        }
        for finding in of_level(level) {
            push_finding(&mut text, finding, concise);
        }
    }
    if !concise {
        text.push('\n');
    }
    text.push_str(&summary(import));
    text.push('\n');
    text
}

fn push_finding(text: &mut String, finding: &ImportFinding, concise: bool) {
    let style = if finding.level == Level::NotCarried { LOST } else { QUIET };
    let place = visible_line(&format!("{}:{}", finding.file, finding.lines.first().copied().unwrap_or(1)));
    let mut item = visible_line(&finding.item);
    if finding.lines.len() > 1 {
        item.push_str(&format!(" (lines {})", lines(&finding.lines)));
    }
    if concise {
        let level = if finding.level == Level::NotCarried { "not carried over" } else { "note" };
        let _ = writeln!(text, "{place}: {level}: {item}: {}", visible_line(&finding.reason));
        return;
    }
    let _ = write!(text, "  {place}: ");
    push(text, &item, style);
    let _ = writeln!(text, "\n      {}\n      help: {}", visible_line(&finding.reason), visible_line(&finding.help));
}

/// Appends a text, colored if standard output shows colors.
fn push(text: &mut String, part: &str, style: Style) {
    match output::looks().colors {
        true => styled(text, part, style),
        false => text.push_str(part),
    }
}

fn lines(lines: &[usize]) -> String {
    let named: Vec<_> = lines.iter().take(MAX_LINES).map(usize::to_string).collect();
    match lines.len().saturating_sub(MAX_LINES) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

fn summary(import: &Import) -> String {
    let plural = |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    let files = plural(import.files.len(), "file", "files");
    let lost = import.findings.iter().filter(|finding| finding.level == Level::NotCarried).count();
    match lost {
        0 => format!("{files}, everything was carried over"),
        _ => format!("{files}, {} not carried over", plural(lost, "item", "items")),
    }
}

/// Describes the result for programs: a line for each file and finding, and a summary.
fn json_lines(import: &Import, directory: &Path, changes: &[Change]) -> String {
    let files = import.files.iter().zip(changes).map(|(file, change)| {
        json!({ "kind": "file", "path": path_of(directory, file).display().to_string(), "change": change.as_str() })
    });
    let findings = import.findings.iter().map(|finding| {
        json!({
            "kind": "finding", "level": finding.level.as_str(), "item": finding.item, "file": finding.file,
            "lines": finding.lines, "reason": finding.reason, "help": finding.help,
        })
    });
    let count = |level| import.findings.iter().filter(|finding| finding.level == level).count();
    let summary = json!({
        "kind": "summary", "files": import.files.len(), "not_carried": count(Level::NotCarried), "notes": count(Level::Note),
    });
    files.chain(findings).chain([summary]).map(|line| format!("{line}\n")).collect()
}

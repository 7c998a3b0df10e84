//! The baseline file.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tympan::file::{read, write};
use tympan::{Error, Kind};
use tympan_lint::{Baseline, CheckSettings};

use super::{FileReport, Place, Report, usage};
use crate::args::CheckArgs;
use crate::project::{Project, absolute};
use crate::report::Failure;
use crate::{json, output};

/// The maximum size of a baseline file, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// What a baseline did.
pub(super) struct BaselineReport {
    /// The number of findings that are known.
    pub(super) known: usize,
    /// The entries that match no finding any more: file, rule and line.
    pub(super) stale: Vec<(String, String, String)>,
}

/// Returns the path of the baseline file, if there is one.
pub(super) fn path(args: &CheckArgs, project: &Project, settings: &CheckSettings) -> Result<Option<PathBuf>, Failure> {
    if let Some(path) = &args.baseline.baseline {
        return Ok(Some(path.clone()));
    }
    let path = settings.baseline.as_ref().map(|path| project.directory.join(path));
    match &path {
        None if args.baseline.write_baseline => {
            Err(usage("--write-baseline: name the file with `--baseline FILE`, or with `baseline` in tympan.toml"))
        }
        Some(path) if args.baseline.write_baseline && !is_inside(path, &project.directory) => {
            let message = format!("{}: is not a file below the directory of tympan.toml", path.display());
            Err(usage(&format!("--write-baseline: {message}; name it with `--baseline FILE`")))
        }
        _ => Ok(path),
    }
}

/// Returns whether a path leads to a place below a directory, without links. A project must not choose which of the user's
/// files are overwritten.
fn is_inside(path: &Path, directory: &Path) -> bool {
    let real =
        |path: &Path| if path.as_os_str().is_empty() { Path::new(".").canonicalize() } else { path.canonicalize() };
    let folder = path.parent().map(real).and_then(Result::ok);
    !path.is_symlink()
        && folder.zip(real(directory).ok()).is_some_and(|(folder, directory)| folder.starts_with(directory))
}

/// Writes the findings to a baseline file.
pub(super) fn write(path: &Path, report: &Report) -> Result<ExitCode, Failure> {
    let mut baseline = Baseline::default();
    for file in &report.files {
        baseline.add(&file_name(path, file), &file.source, &file.findings);
    }
    let text = json::pretty(&baseline.to_json()) + "\n";
    let written = if path.exists() { write::replace(path, &text) } else { write::create(path, text.as_bytes(), 0o666) };
    written.map_err(|error| Error::new(Kind::UnreadableFile, format_args!("{}: {error}", path.display())))?;
    let count = baseline.len();
    let errors = report.findings().filter(|(_, finding)| finding.is_fatal).count();
    let mut summary = format!("{}: {count} finding{} written\n", path.display(), if count == 1 { "" } else { "s" });
    if errors > 0 {
        summary += &format!("{errors} left out, because they keep a file from loading\n");
    }
    output::print_lines(&summary)?;
    Ok(ExitCode::SUCCESS)
}

/// Removes the findings that are in the baseline.
pub(super) fn apply(path: &Path, report: &mut Report) -> Result<(), Failure> {
    let text = read::open(path).and_then(|file| read::text(file, MAX_BYTES)).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            usage(&format!("{}: the baseline does not exist; `--write-baseline` creates it", path.display()))
        }
        _ => usage(&format!("{}: cannot read the baseline: {error}", path.display())),
    })?;
    let mut baseline =
        Baseline::parse(&text).map_err(|reason| usage(&format!("{}: invalid baseline: {reason}", path.display())))?;
    let mut known = 0;
    let mut checked = HashSet::new();
    for file in &mut report.files {
        let name = file_name(path, file);
        known += baseline.apply(&name, &file.source, &mut file.findings);
        checked.insert(name);
    }
    let directory = absolute(path).parent().map(Path::to_owned).unwrap_or_default();
    // The others may still have findings.
    let is_known_stale = |file: &str| checked.contains(file) || !directory.join(file).exists();
    let stale = baseline.unmatched().filter(|(entry, _)| is_known_stale(&entry.file));
    let stale = stale.map(|(entry, _)| (entry.file.clone(), entry.rule.clone(), entry.line.clone())).collect();
    report.baseline = Some(BaselineReport { known, stale });
    Ok(())
}

/// Returns the name of a file in a baseline: its path from the directory of the baseline, with slashes.
fn file_name(baseline: &Path, file: &FileReport) -> String {
    let path = match &file.place {
        Place::Named(path) | Place::Found(path) => path.as_path(),
        Place::Stdin => Path::new(file.source.name()),
    };
    let (path, baseline) = (absolute(path), absolute(baseline));
    let directory = baseline.parent().unwrap_or(Path::new(""));
    let mut steps = Vec::new();
    let mut from = directory;
    while !path.starts_with(from) {
        steps.push("..".to_owned());
        from = match from.parent() {
            Some(parent) => parent,
            None => break,
        };
    }
    let rest = path.strip_prefix(from).unwrap_or(&path);
    steps.extend(rest.components().map(|component| component.as_os_str().to_string_lossy().into_owned()));
    steps.join("/")
}

//! `tympan lock`: records the prompts of a project and detects changes.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value as Json, json};
use tympan::diagnostic::Severity;
use tympan::file::walk::is_skipped;
use tympan::file::{read, write};
use tympan::format::Format;
use tympan::load::{DEFAULT_MAX_FILE_BYTES, References, directory_of};
use tympan::text::source::SourceFile;
use tympan::{Error, Kind, LoadOptions, Prompt, Runtime};
use tympan_lint::{Group, check_file};

use super::hash::hashes;

use crate::args::LockArgs;
use crate::escape::visible_line;
use crate::excerpt::Finding;
use crate::project::Project;
use crate::report::{self, Failure};
use crate::{json, output, prompt_file};

const LOCK_FILE: &str = "tympan.lock";

/// The maximum size of a lock file, in bytes.
const MAX_LOCK_BYTES: u64 = 64 << 20;

/// A key that lock files of earlier versions do not have.
const SETTINGS: &str = "settings_hashes";

/// The last setting, which covers everything without a hash of its own.
const REST: &str = "other settings";

/// Deeper directories are more likely a cycle than a project.
const MAX_DEPTH: usize = 32;

/// The prompts of a project by path, with `/` as the separator.
type Locked = BTreeMap<String, Json>;

pub(super) fn run(args: &LockArgs) -> Result<ExitCode, Failure> {
    let runtime = prompt_file::runtime_as_written(&args.allowed);
    let mut project = Prompts { runtime, found: Locked::new(), prompts: Vec::new(), broken: Vec::new() };
    project.collect(&args.directory, "", 0)?;
    let mut broken = project.broken.into_iter().rev();
    if let Some(last) = broken.next() {
        // Print all errors for people. A program gets only the one that the command fails with.
        if !args.json {
            broken.rev().for_each(|error| report::show_error(&error));
        }
        return Err(last.into());
    }
    let found = project.found;
    let path = args.directory.join(LOCK_FILE);
    if args.check {
        return check(args, &path, &found);
    }
    if let Some(status) = refuse_errors(args, &project.prompts)? {
        return Ok(status);
    }
    let text = json::pretty(&json!({ "version": 1, "prompts": found })) + "\n";
    write::put(&path, text.as_bytes(), 0o666).map_err(|error| unusable(&path, &error))?;
    let count = found.len();
    let summary = if args.json {
        json::pretty(&json!({ "file": path.display().to_string(), "prompts": count }))
    } else {
        format!("{}: {count} prompt{} locked", path.display(), if count == 1 { "" } else { "s" })
    };
    output::print(&(summary + "\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn check(args: &LockArgs, path: &Path, found: &Locked) -> Result<ExitCode, Failure> {
    let locked = read_lock(args, path)?;
    let changes = changes(&locked, found);
    let is_incomplete = |hashes: &&Json| hashes.get(SETTINGS).is_none();
    let incomplete = locked.values().filter(is_incomplete).count();
    if args.json {
        let list = changes.iter().map(|(file, what)| json!({ "file": file, "change": what })).collect::<Json>();
        let report = json!({ "prompts": found.len(), "without_settings": incomplete, "changes": list });
        output::print(&(json::pretty(&report) + "\n"))?;
    } else if changes.is_empty() {
        output::print(&format!("{}: {} prompts, no changes\n", path.display(), found.len()))?;
    } else {
        let line = |(file, what): &(String, String)| format!("{}: {}\n", visible_line(file), visible_line(what));
        output::print_lines(&changes.iter().map(line).collect::<String>())?;
        output::print_error(&format!("run `tympan lock {}` to accept the changes\n", args.directory.display()));
    }
    if incomplete > 0 && !args.json {
        report::warn_plainly(
            "lock",
            &format!(
                "{incomplete} of {} prompts were locked without model, connection, options and tools, so changes to \
                    these are not reported; run `tympan lock {}` to include them",
                locked.len(),
                args.directory.display(),
            ),
        );
    }
    Ok(if changes.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the changes since the lock file was written, by path.
fn changes(locked: &Locked, found: &Locked) -> Vec<(String, String)> {
    let mut changes = BTreeMap::new();
    for (path, was) in locked {
        let what = match found.get(path) {
            None => "removed".to_owned(),
            Some(now) => difference(was, now),
        };
        if !what.is_empty() {
            changes.insert(path.clone(), what);
        }
    }
    for path in found.keys().filter(|path| !locked.contains_key(*path)) {
        changes.insert(path.clone(), "added".to_owned());
    }
    changes.into_iter().collect()
}

/// Describes which hashes differ. Empty if none do.
fn difference(was: &Json, now: &Json) -> String {
    let empty = serde_json::Map::new();
    let (before, after) = (&was["template_hashes"], &now["template_hashes"]);
    let (before, after) = (before.as_object().unwrap_or(&empty), after.as_object().unwrap_or(&empty));
    let mut parts = Vec::new();
    for (arm, hash) in after {
        match before.get(arm) {
            None => parts.push(format!("variant `{arm}` added")),
            Some(old) if old != hash => parts.push(format!("template of `{arm}` changed")),
            Some(_) => {}
        }
    }
    parts.extend(before.keys().filter(|arm| !after.contains_key(*arm)).map(|arm| format!("variant `{arm}` removed")));
    if was["name"] != now["name"] {
        parts.push("name changed".to_owned());
    }
    if parts.is_empty() && was["definition_hash"] != now["definition_hash"] {
        // The templates are unchanged, so the declarations around them must have changed.
        parts.push("declarations changed".to_owned());
    }
    if let Some((before, after)) = was[SETTINGS].as_object().zip(now[SETTINGS].as_object()) {
        let removed = before.keys().filter(|name| !after.contains_key(*name));
        for name in after.keys().chain(removed).filter(|name| before.get(*name) != after.get(*name)) {
            // The other settings also include the changes that are already listed.
            if name != REST || parts.is_empty() {
                parts.push(format!("{name} changed"));
            }
        }
    }
    parts.join(", ")
}

fn read_lock(args: &LockArgs, path: &Path) -> Result<Locked, Failure> {
    let text = read::open_in(&args.directory, LOCK_FILE).and_then(|file| read::text(file, MAX_LOCK_BYTES));
    let text = text.map_err(|error| unusable(path, &error))?;
    let lock: Json = serde_json::from_str(&text).map_err(|error| unusable(path, &error))?;
    let prompts = lock["prompts"].as_object().filter(|_| lock["version"] == 1);
    let prompts = prompts.ok_or_else(|| unusable(path, &"expected a lock file of version 1"))?;
    Ok(prompts.iter().map(|(path, hashes)| (path.clone(), hashes.clone())).collect())
}

/// Reports the errors that `tympan check` finds. Returns the exit status if there are any.
fn refuse_errors(args: &LockArgs, prompts: &[(PathBuf, SourceFile)]) -> Result<Option<ExitCode>, Failure> {
    let project = Project::find(&args.settings)?;
    let load = LoadOptions { file_roots: args.allowed.allow_dir.clone(), ..LoadOptions::default() };
    let mut refused = Vec::new();
    for (path, source) in prompts {
        let options = project.settings.options(&project.relative(path));
        let mut findings = check_file(source, &mut References::new(directory_of(path), &load), &options).findings;
        // The tests of a prompt are not locked.
        findings.retain(|finding| finding.severity == Severity::Error && finding.rule.group != Group::Tests);
        if !findings.is_empty() {
            refused.push((source, findings));
        }
    }
    let findings = refused.iter().flat_map(|(source, found)| found.iter().map(|one| Finding::of_rule(one, source)));
    let findings: Vec<_> = findings.collect();
    if findings.is_empty() {
        return Ok(None);
    }
    report::refused(&findings, args.json);
    if !args.json {
        let count = refused.len();
        let prompts = if count == 1 { "1 prompt has".to_owned() } else { format!("{count} prompts have") };
        output::print_error(&format!("nothing was locked, because {prompts} errors\n"));
    }
    Ok(Some(ExitCode::FAILURE))
}

/// The prompts found in a directory.
struct Prompts {
    runtime: Runtime,
    found: Locked,
    /// The sources of the prompts that load.
    prompts: Vec<(PathBuf, SourceFile)>,
    /// The errors of prompts that do not load.
    broken: Vec<Error>,
}

impl Prompts {
    /// Collects the prompts in a directory and its subdirectories, sorted by name. Does not follow symbolic links.
    fn collect(&mut self, directory: &Path, prefix: &str, depth: usize) -> Result<(), Failure> {
        if depth > MAX_DEPTH {
            return Err(unusable(directory, &"directories are nested too deeply"));
        }
        let entries = std::fs::read_dir(directory).map_err(|error| unusable(directory, &error))?;
        let mut entries = entries.collect::<std::io::Result<Vec<_>>>().map_err(|error| unusable(directory, &error))?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            let kind = entry.file_type().map_err(|error| unusable(&path, &error))?;
            if kind.is_dir() && !is_skipped(&name) {
                self.collect(&path, &format!("{prefix}{name}/"), depth + 1)?;
            } else if kind.is_file()
                && let Some(loaded) = self.load(directory, &entry.file_name())
            {
                match loaded.and_then(|prompt| Ok((locked(&prompt)?, prompt.source().clone()))) {
                    Ok((hashes, source)) => {
                        self.found.insert(format!("{prefix}{name}"), hashes);
                        self.prompts.push((path, source));
                    }
                    Err(error) => self.broken.push(error),
                }
            }
        }
        Ok(())
    }

    /// Loads a file in a directory. Returns `None` if it is not a prompt.
    fn load(&self, directory: &Path, name: &OsStr) -> Option<Result<Prompt, Error>> {
        let path = directory.join(name);
        let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
        let is_prompty = extension == "prompty";
        if !is_prompty && !may_be_prompt(&path) {
            return None;
        }
        let shown = path.display().to_string();
        let source = |text: &str| SourceFile::new(shown.as_str(), text);
        match read::open_in(directory, name).and_then(|file| read::text(file, DEFAULT_MAX_FILE_BYTES)) {
            Ok(text) if is_prompty || is_prompt(&path, &text) => {
                let loaded = self.runtime.load_str(&text, &shown, directory);
                Some(loaded.map_err(|error| error.in_source(&source(&text), 0)))
            }
            Err(error) if is_prompty => {
                let error = Error::new(Kind::UnreadableFile, format_args!("{shown}: {error}"));
                Some(Err(error.in_source(&source(""), 0)))
            }
            // Most files with these extensions are not prompts, and this one was not named explicitly.
            _ => None,
        }
    }
}

/// Returns the lock file's entry for a prompt.
fn locked(prompt: &Prompt) -> Result<Json, Error> {
    let mut locked = hashes(prompt)?;
    let settings = prompt.settings_hashes().into_iter().map(|(name, hash)| (name.to_owned(), hash.into()));
    locked[SETTINGS] = Json::Object(settings.collect());
    Ok(locked)
}

/// Returns whether a file with this extension can be a prompt. Definitions and directives are recognized by their
/// content.
fn may_be_prompt(path: &Path) -> bool {
    matches!(Format::from_name(path), Some(Format::Definition(_) | Format::Directive))
}

/// Returns whether a text is a prompt: a definition has a role and a body at the top level, and a directive has a
/// `<directive>` or a signature. Most YAML, JSON, TOML and Markdown files of a project are neither.
fn is_prompt(path: &Path, text: &str) -> bool {
    Format::from_name(path).is_some_and(|format| format.matches(text))
}

fn unusable(path: &Path, reason: &dyn std::fmt::Display) -> Failure {
    Failure::Engine(Error::new(Kind::UnreadableFile, format_args!("{}: {reason}", path.display())))
}

//! `tympan lock`: which prompts a project has, and whether they have changed.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value as Json, json};
use tympan::directive::is_directive;
use tympan::format::definition::{Syntax, is_definition};
use tympan::{Error, Kind};
use tympan_runtime::Runtime;

use super::hash::hashes;

use crate::args::LockArgs;
use crate::escape::visible_line;
use crate::report::{self, Failure};
use crate::{json, output, prompt_file};

const LOCK_FILE: &str = "tympan.lock";

/// Directories deeper than this are more likely a cycle than a project.
const MAX_DEPTH: usize = 32;

/// The prompts of a project by their paths, with `/` between the parts.
type Locked = BTreeMap<String, Json>;

pub(super) fn run(args: &LockArgs) -> Result<ExitCode, Failure> {
    let mut project = Project { runtime: prompt_file::runtime_as_written(), found: Locked::new(), broken: Vec::new() };
    project.collect(&args.directory, "", 0)?;
    let mut broken = project.broken.into_iter().rev();
    if let Some(last) = broken.next() {
        // All of them are shown; a program gets the one that the command ends with.
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
    let text = json::pretty(&json!({ "version": 1, "prompts": found })) + "\n";
    std::fs::write(&path, text).map_err(|error| unusable(&path, &error))?;
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
    let changes = changes(&read(path)?, found);
    if args.json {
        let list = changes.iter().map(|(file, what)| json!({ "file": file, "change": what })).collect::<Json>();
        output::print(&(json::pretty(&json!({ "prompts": found.len(), "changes": list })) + "\n"))?;
    } else if changes.is_empty() {
        output::print(&format!("{}: {} prompts, nothing has changed\n", path.display(), found.len()))?;
    } else {
        let lines: Vec<_> = changes.iter().map(|(file, what)| format!("{}: {what}\n", visible_line(file))).collect();
        output::print(&lines.concat())?;
        output::print_error(&format!("run `tympan lock {}` to accept the changes\n", args.directory.display()));
    }
    Ok(if changes.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What has changed since a lock file was written, by path.
fn changes(locked: &Locked, found: &Locked) -> Vec<(String, String)> {
    let mut changes = BTreeMap::new();
    for (path, was) in locked {
        let what = match found.get(path) {
            None => "removed".to_owned(),
            Some(now) if now == was => continue,
            Some(now) => difference(was, now),
        };
        changes.insert(path.clone(), what);
    }
    for path in found.keys().filter(|path| !locked.contains_key(*path)) {
        changes.insert(path.clone(), "added".to_owned());
    }
    changes.into_iter().collect()
}

/// Which of the hashes differ.
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
    if parts.is_empty() {
        // The templates are the same, so that it is what is declared around them.
        parts.push("declarations changed".to_owned());
    }
    parts.join(", ")
}

fn read(path: &Path) -> Result<Locked, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| unusable(path, &error))?;
    let lock: Json = serde_json::from_str(&text).map_err(|error| unusable(path, &error))?;
    let prompts = lock["prompts"].as_object().filter(|_| lock["version"] == 1);
    let prompts = prompts.ok_or_else(|| unusable(path, &"it is not a lock file of version 1"))?;
    Ok(prompts.iter().map(|(path, hashes)| (path.clone(), hashes.clone())).collect())
}

/// What is known of a project.
struct Project {
    runtime: Runtime,
    found: Locked,
    /// What is wrong with prompts that do not load.
    broken: Vec<Error>,
}

impl Project {
    /// Gathers the prompts below a directory, in the order of their names. Links are not followed.
    fn collect(&mut self, directory: &Path, prefix: &str, depth: usize) -> Result<(), Failure> {
        if depth > MAX_DEPTH {
            return Err(unusable(directory, &"directories nest too deeply here"));
        }
        let entries = std::fs::read_dir(directory).map_err(|error| unusable(directory, &error))?;
        let mut entries = entries.collect::<std::io::Result<Vec<_>>>().map_err(|error| unusable(directory, &error))?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            let kind = entry.file_type().map_err(|error| unusable(&path, &error))?;
            if kind.is_dir() && !is_skipped(&name) {
                self.collect(&path, &format!("{prefix}{name}/"), depth + 1)?;
            } else if kind.is_file() && is_prompt(&path) {
                match prompt_file::load(&self.runtime, &path).and_then(|prompt| hashes(&prompt)) {
                    Ok(hashes) => drop(self.found.insert(format!("{prefix}{name}"), hashes)),
                    Err(error) => self.broken.push(error),
                }
            }
        }
        Ok(())
    }
}

/// Directories that hold what tools made or fetched.
fn is_skipped(name: &str) -> bool {
    name.starts_with('.') || matches!(name, "target" | "node_modules" | "__pycache__")
}

/// Whether a file is a prompt: `.prompty` by its name, a definition if it has a role and a body at the top, a directive
/// if it has a `<directive>` or a signature. Most YAML, JSON, TOML and markdown files of a project are something else.
fn is_prompt(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if extension == "prompty" {
        return true;
    }
    let is_one = |text: &str| match Syntax::from_extension(extension) {
        Some(syntax) => is_definition(text, syntax),
        None => is_directive(text),
    };
    let is_candidate = extension.eq_ignore_ascii_case("md") || Syntax::from_extension(extension).is_some();
    is_candidate && std::fs::read_to_string(path).is_ok_and(|text| is_one(&text))
}

fn unusable(path: &Path, reason: &dyn std::fmt::Display) -> Failure {
    Failure::Engine(Error::new(Kind::UnreadableFile, format_args!("{}: {reason}", path.display())))
}

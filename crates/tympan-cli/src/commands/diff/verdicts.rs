//! The tests of two versions of a prompt: which cases have another verdict.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value as Json, json};
use tympan::load::directory_of;
use tympan::{Prompt, Runtime, RuntimeOptions};
use tympan_eval::CaseResult;
use tympan_eval::answer::{AnswerMode, AnswerOptions};
use tympan_eval::baseline::{Comparer, Comparison, VerdictChange};
use tympan_eval::case::LoadedFile;
use tympan_eval::file::TestFile;
use tympan_eval::runner::{Runner, RunnerOptions, jobs};

use super::DiffOptions;
use super::source::Source;
use crate::commands::test::{comparison, cost};
use crate::prompt_file::{self, is_stdin};
use crate::report::warn_plainly;

/// Runs the tests of a prompt with both versions, and compares the verdicts. No model is called. Returns `None` if there are
/// no tests.
pub(super) fn compare(sources: &[Source; 2], versions: [&Prompt; 2], options: &DiffOptions<'_>) -> Option<Comparison> {
    // The tests of the version after the change come first: those before it may expect what was changed on purpose.
    let mut files = sources.iter().rev().map(|source| test_files(&source.path, options.quiet));
    let files = files.find(|files| !files.is_empty())?;
    let runtime = Runtime::new(prompt_file::deferred(options.env.over(RuntimeOptions::default())));
    let mut runner = RunnerOptions::default();
    runner.answers = AnswerOptions::new(AnswerMode::Replay, Some(cost::price(options.project)));
    let runner = Runner::new(runtime, runner);
    let mut comparer = Comparer::default();
    for (index, version) in versions.into_iter().enumerate() {
        let prompt = Arc::new(version.clone());
        let results = run(&runner, &files, &prompt);
        match index {
            0 => comparer = comparison::compare(results),
            _ => results.iter().for_each(|result| comparer.add(result)),
        }
    }
    Some(comparison::finish(comparer))
}

fn run(runner: &Runner, files: &[TestFile], prompt: &Arc<Prompt>) -> Vec<CaseResult> {
    let loaded: Vec<_> = files.iter().map(|file| Arc::new(LoadedFile::new(file.clone(), prompt.clone()))).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut results = Vec::new();
    runner.run(loaded.iter().flat_map(jobs), threads, |result| {
        results.push(result);
        ControlFlow::Continue(())
    });
    results
}

/// Returns the tests of a prompt: those in its file, and those in files in its directory.
fn test_files(prompt: &Path, quiet: bool) -> Vec<TestFile> {
    if is_stdin(prompt) {
        return Vec::new();
    }
    let directory = directory_of(prompt);
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    // Messages name files without `./`.
    let beside = if directory == Path::new(".") { Path::new("") } else { directory };
    let named = entries.map(|entry| beside.join(entry.file_name())).filter(|path| TestFile::is_test_file(path));
    let mut paths: Vec<PathBuf> = named.collect();
    paths.sort_unstable();
    paths.insert(0, prompt.to_owned());
    let is_same = |path: &Path| path.canonicalize().ok().is_some_and(|path| Some(path) == prompt.canonicalize().ok());
    let load = |path: PathBuf| match TestFile::load(&path) {
        Ok(file) => file.filter(|file| is_same(&file.prompt)),
        Err(error) => {
            if !quiet && path.is_file() {
                let (path, reason) = (path.display(), error.message());
                warn_plainly("tests_not_compared", &format!("{path}: the tests are not compared: {reason}"));
            }
            None
        }
    };
    paths.into_iter().filter_map(load).collect()
}

/// Converts the comparison to JSON.
pub(super) fn to_json(verdicts: &Comparison) -> Json {
    let Comparison { pairs, regressed, improved, other, .. } = verdicts;
    let other = other.iter().map(|VerdictChange { id, before, now }| json!({"id": id, "before": before, "now": now}));
    json!({ "cases": pairs, "worse": regressed, "better": improved, "other": other.collect::<Json>() })
}

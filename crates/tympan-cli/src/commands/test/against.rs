//! Runs the same tests with the prompts of a git revision.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tympan_eval::baseline::Comparer;
use tympan_eval::case::LoadedFile;
use tympan_eval::revision::{Checkout, CheckoutLimits, Repository, RevisionError};
use tympan_eval::runner::{Job, Runner, jobs, without_prompt};

use super::{FileOrResult, all_jobs, comparison, select, threads};
use crate::args::TestArgs;
use crate::commands::diff::ChangedPrompt;
use crate::project::absolute;
use crate::report::{Failure, warn_plainly};

/// Runs the tests with the prompts of a revision. The test files, their rows, snapshots and cassettes are the current
/// ones. A file whose prompt the revision does not have is left out.
pub(super) fn run(
    args: &TestArgs,
    revision: &str,
    files: &[FileOrResult],
    runner: &Runner,
) -> Result<Against, Failure> {
    let failed = |error: RevisionError| Failure::Usage(format!("--against: {error}"));
    let repository = Repository::containing(&std::env::current_dir()?).map_err(failed)?;
    let commit = repository.revision(revision).map_err(failed)?;
    let checkout = commit.checkout(Path::new(""), &CheckoutLimits::default()).map_err(failed)?;
    let (mut before, mut results, mut changed) = (Vec::new(), Vec::new(), Vec::<ChangedPrompt>::new());
    for file in files.iter().flatten() {
        let Some(relative) = path_in(&checkout, &repository, &file.file.prompt) else { continue };
        match runner.load_prompt(&checkout.path().join(&relative)) {
            Ok(prompt) => {
                let prompt = LoadedFile::new(file.file.clone(), Arc::new(prompt));
                let is_new = || changed.iter().all(|changed| changed.after != file.file.prompt);
                if prompt.prompt_hash != file.prompt_hash && is_new() {
                    changed.push(changed_prompt(args, revision, &relative, file));
                }
                before.push(Ok(Arc::new(prompt)));
            }
            // The cases failed then: nothing can be expected of a prompt that does not load.
            Err(error) => {
                let cases = jobs(file).filter_map(|job| match select(args, None, job)? {
                    Job::Case(case) => Some(without_prompt(&case, &error)),
                    Job::Finished(_) => None,
                });
                results.extend(cases);
                let (prompt, reason) = (file.file.prompt.display(), error.message());
                warn_plainly("broken_revision", &format!("{prompt} does not load in the revision: {reason}"));
            }
        }
    }
    let selected = all_jobs(&before).filter_map(|job| select(args, None, job));
    runner.run(selected, threads(args), |result| {
        results.push(result);
        ControlFlow::Continue(())
    });
    Ok(Against { comparer: comparison::compare(results), changed })
}

/// The results with the prompts of a revision.
pub(super) struct Against {
    pub(super) comparer: Comparer,
    /// The prompts that are different now.
    pub(super) changed: Vec<ChangedPrompt>,
}

fn changed_prompt(args: &TestArgs, revision: &str, relative: &Path, file: &Arc<LoadedFile>) -> ChangedPrompt {
    // Git writes paths with slashes on all systems.
    let relative: Vec<_> = relative.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    let inputs = jobs(file).filter_map(|job| select(args, None, job)).find_map(|job| match job {
        Job::Case(case) => Some(case.inputs().clone()),
        Job::Finished(_) => None,
    });
    ChangedPrompt {
        before: format!("{revision}:{}", relative.join("/")).into(),
        after: file.file.prompt.clone(),
        inputs: inputs.unwrap_or_default(),
    }
}

/// Returns the path of a file relative to the root of the repository, if the checkout contains it.
fn path_in(checkout: &Checkout, repository: &Repository, path: &Path) -> Option<PathBuf> {
    // Git resolves links, and the path may go through some.
    let real = path.canonicalize().unwrap_or_else(|_| absolute(path));
    let root = repository.root().canonicalize().unwrap_or_else(|_| repository.root().to_owned());
    let relative = real.strip_prefix(root).ok()?;
    checkout.path().join(relative).is_file().then(|| relative.to_owned())
}

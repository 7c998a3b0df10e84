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
use crate::project::absolute;
use crate::report::{Failure, warn_plainly};

/// Runs the tests with the prompts of a revision. The test files, their rows, snapshots and cassettes are the current
/// ones. A file whose prompt the revision does not have is left out.
pub(super) fn run(
    args: &TestArgs,
    revision: &str,
    files: &[FileOrResult],
    runner: &Runner,
) -> Result<Comparer, Failure> {
    let failed = |error: RevisionError| Failure::Usage(format!("--against: {error}"));
    let repository = Repository::containing(&std::env::current_dir()?).map_err(failed)?;
    let revision = repository.revision(revision).map_err(failed)?;
    let checkout = revision.checkout(Path::new(""), &CheckoutLimits::default()).map_err(failed)?;
    let (mut before, mut results) = (Vec::new(), Vec::new());
    for file in files.iter().flatten() {
        let Some(path) = path_in(&checkout, &repository, &file.file.prompt) else { continue };
        match runner.load_prompt(&path) {
            Ok(prompt) => before.push(Ok(Arc::new(LoadedFile::new(file.file.clone(), Arc::new(prompt))))),
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
    Ok(comparison::compare(results))
}

/// Returns the path of a file in a checkout, if it is there.
fn path_in(checkout: &Checkout, repository: &Repository, path: &Path) -> Option<PathBuf> {
    // Git resolves links, and the path may go through some.
    let real = path.canonicalize().unwrap_or_else(|_| absolute(path));
    let root = repository.root().canonicalize().unwrap_or_else(|_| repository.root().to_owned());
    let relative = real.strip_prefix(root).ok()?;
    Some(checkout.path().join(relative)).filter(|path| path.is_file())
}

//! Files of git revisions, in repositories that each test creates.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;
use tympan_eval::revision::{Checkout, CheckoutLimits, Repository, Revision};

/// A repository in a temporary directory.
struct Repo(TempDir);

impl Repo {
    fn new() -> Self {
        let repo = Self(TempDir::new().expect("a directory"));
        repo.git(&["init", "--quiet", "--initial-branch=main"]);
        repo
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.arg("-C").arg(self.path()).args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]);
        command.args(["-c", "commit.gpgsign=false", "-c", "core.autocrlf=false"]).args(arguments);
        command.env("GIT_CONFIG_GLOBAL", "").env("GIT_CONFIG_NOSYSTEM", "1");
        command
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.git_with(arguments, b"")
    }

    fn git_with(&self, arguments: &[&str], input: &[u8]) -> String {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("git runs");
        child.stdin.take().expect("an input").write_all(input).expect("it reads");
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "git {arguments:?}");
        String::from_utf8(output.stdout).expect("text").trim().to_owned()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, text).expect("it is written");
    }

    fn commit(&self) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", "a change"]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn repository(&self) -> Repository {
        Repository::containing(self.path()).expect("a repository")
    }

    fn revision(&self, name: &str) -> Revision {
        self.repository().revision(name).expect("a revision")
    }

    fn checkout(&self, name: &str, directory: &str) -> Checkout {
        self.revision(name).checkout(Path::new(directory), &CheckoutLimits::default()).expect("a checkout")
    }
}

/// Returns the files below a directory with their contents, sorted.
fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    fn walk(root: &Path, directory: &Path, files: &mut Vec<(String, Vec<u8>)>) {
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                walk(root, &path, files);
            } else {
                let name = path.strip_prefix(root).expect("inside").to_string_lossy().into_owned();
                files.push((name, fs::read(&path).expect("a file")));
            }
        }
    }
    let mut found = Vec::new();
    walk(directory, directory, &mut found);
    found.sort();
    found
}

fn error(result: Result<impl std::fmt::Debug, tympan_eval::revision::RevisionError>) -> String {
    result.expect_err("an error").to_string()
}

#[test]
fn files_are_those_of_the_revision() {
    let repo = Repo::new();
    repo.write("prompts/a.prompty", "before");
    repo.write("prompts/parts/b c.txt", "");
    repo.write("other.txt", "elsewhere");
    let first = repo.commit();
    repo.write("prompts/a.prompty", "after");
    repo.commit();
    repo.write("prompts/a.prompty", "not committed");
    repo.write("prompts/new.txt", "not added");
    for (name, text) in [("HEAD", "after"), ("main", "after"), ("HEAD~1", "before"), (&*first, "before")] {
        let checkout = repo.checkout(name, "prompts");
        let expected = [("a.prompty".to_owned(), text.into()), ("parts/b c.txt".to_owned(), Vec::new())];
        assert_eq!(files(checkout.path()), expected, "{name}");
        assert_eq!(checkout.files(), 2);
    }
    assert_eq!(repo.revision("main~1").commit(), first);
    let all = repo.checkout("HEAD", "");
    assert_eq!(files(all.path()).len(), 3);
    let gone = all.path().to_owned();
    drop(all);
    assert!(!gone.exists(), "the directory is removed");
}

#[test]
fn contents_are_exact() {
    let repo = Repo::new();
    let binary: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    fs::write(repo.path().join("binary"), &binary).expect("it is written");
    repo.write("lines.txt", "a\r\nb\n\n");
    repo.write("ünïcode \"quoted\".txt", "x");
    #[cfg(unix)]
    repo.write("line\nbreak\ttab", "y");
    repo.commit();
    let checkout = repo.checkout("HEAD", "");
    assert_eq!(files(checkout.path()), files_without_git(&repo));
}

fn files_without_git(repo: &Repo) -> Vec<(String, Vec<u8>)> {
    files(repo.path()).into_iter().filter(|(name, _)| !name.starts_with(".git")).collect()
}

#[cfg(unix)]
#[test]
fn links_and_submodules_are_left_out() {
    let repo = Repo::new();
    repo.write("p/a.txt", "text");
    let secret = repo.path().join("secret");
    fs::write(&secret, "secret").expect("it is written");
    std::os::unix::fs::symlink(&secret, repo.path().join("p/link")).expect("a link");
    std::os::unix::fs::symlink("/etc", repo.path().join("p/directory")).expect("a link");
    let commit = repo.commit();
    repo.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{commit},p/module")]);
    repo.git(&["commit", "--quiet", "--message", "a submodule"]);
    assert_eq!(files(repo.checkout("HEAD", "p").path()), [("a.txt".to_owned(), b"text".to_vec())]);
}

/// Git refuses to create such trees, but not to read them.
#[test]
fn paths_do_not_lead_out_of_the_directory() {
    let repo = Repo::new();
    let blob = repo.git_with(&["hash-object", "-w", "--stdin"], b"text");
    let raw: Vec<u8> =
        (0..blob.len()).step_by(2).map(|at| u8::from_str_radix(&blob[at..at + 2], 16).expect("a hash")).collect();
    for name in ["..", ".git", ".GIT", "."] {
        let mut tree = format!("100644 {name}\0").into_bytes();
        tree.extend_from_slice(&raw);
        let tree = repo.git_with(&["hash-object", "-t", "tree", "-w", "--stdin", "--literally"], &tree);
        let commit = repo.git(&["commit-tree", &tree, "-m", "hostile"]);
        let found = error(repo.revision(&commit).checkout(Path::new(""), &CheckoutLimits::default()));
        assert!(found.contains("unsafe path"), "{name}: {found}");
        // The same inside of a directory.
        let mut outer = b"40000 p\0".to_vec();
        outer.extend((0..tree.len()).step_by(2).map(|at| u8::from_str_radix(&tree[at..at + 2], 16).expect("a hash")));
        let outer = repo.git_with(&["hash-object", "-t", "tree", "-w", "--stdin", "--literally"], &outer);
        let commit = repo.git(&["commit-tree", &outer, "-m", "hostile"]);
        let found = error(repo.revision(&commit).checkout(Path::new(""), &CheckoutLimits::default()));
        assert!(found.contains("unsafe path"), "p/{name}: {found}");
    }
}

#[test]
fn a_name_is_never_an_option() {
    let repo = Repo::new();
    repo.write("a.txt", "text");
    repo.commit();
    let marker = repo.path().join("marker");
    let repository = repo.repository();
    let output = format!("--output={}", marker.display());
    for name in ["", "-", "--all", "-x", &output, "--git-dir=/", "a\0b", "HEAD\n--all"] {
        let found = error(repository.revision(name));
        assert!(found.contains("is not a revision"), "{name:?}: {found}");
    }
    for name in ["nope", "HEAD~9", "HEAD:a.txt", "HEAD -- a.txt", "HEAD..HEAD~1", "^HEAD", "$(touch marker)", "`id`"] {
        let found = error(repository.revision(name));
        assert!(found.contains("unknown revision"), "{name:?}: {found}");
    }
    assert!(!marker.exists());
}

#[test]
fn directories_that_are_not_there_are_errors() {
    let repo = Repo::new();
    repo.write("a.txt", "text");
    repo.commit();
    let revision = repo.revision("HEAD");
    for directory in ["nope", "a.txt", "nope/deeper"] {
        let found = error(revision.checkout(Path::new(directory), &CheckoutLimits::default()));
        assert!(found.contains("has no directory"), "{directory}: {found}");
    }
    for directory in ["..", "/etc", "a/../.."] {
        let found = error(revision.checkout(Path::new(directory), &CheckoutLimits::default()));
        assert!(found.contains("not a path in the repository"), "{directory}: {found}");
    }
    let outside = TempDir::new().expect("a directory");
    let found = error(Repository::containing(outside.path()));
    assert!(found.contains("is not in a git repository"), "{found}");
}

#[test]
fn the_number_and_the_size_of_files_are_bounded() {
    let repo = Repo::new();
    (0..5).for_each(|number| repo.write(&format!("{number}.txt"), "0123456789"));
    repo.commit();
    let revision = repo.revision("HEAD");
    let checkout = |files, bytes| revision.checkout(Path::new(""), &CheckoutLimits { files, bytes });
    assert_eq!(checkout(5, 50).expect("it fits").files(), 5);
    for (files, bytes) in [(4, 50), (5, 49)] {
        let found = error(checkout(files, bytes));
        assert!(found.contains("too large"), "{found}");
    }
}

#[test]
fn paths_are_known_from_a_subdirectory() {
    let repo = Repo::new();
    repo.write("p/q/a.txt", "text");
    repo.commit();
    let repository = Repository::containing(&repo.path().join("p/q")).expect("a repository");
    assert_eq!(repository.prefix(), Path::new("p/q/"));
    assert_eq!(fs::canonicalize(repository.root()).ok(), fs::canonicalize(repo.path()).ok());
}

/// The settings of a repository can name a program that git would run to fetch what is missing.
#[cfg(unix)]
#[test]
fn nothing_is_fetched() {
    let repo = Repo::new();
    repo.write("a.txt", "text that is missing");
    repo.commit();
    let blob = repo.git(&["rev-parse", "HEAD:a.txt"]);
    fs::remove_file(repo.path().join(".git/objects").join(&blob[..2]).join(&blob[2..])).expect("the object");
    let marker = repo.path().join("marker");
    let url = format!("ext::sh -c touch% {}", marker.display());
    for (key, value) in [
        ("core.repositoryformatversion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", &url),
        ("protocol.ext.allow", "always"),
    ] {
        repo.git(&["config", key, value]);
    }
    let revision = repo.revision("HEAD");
    let found = error(revision.checkout(Path::new(""), &CheckoutLimits::default()));
    assert!(found.contains("does not have the content"), "{found}");
    assert!(!marker.exists(), "git ran a program");
    // The same command without precautions runs the program, so this test can fail.
    let _ = repo.command(&["cat-file", "blob", &blob]).stderr(Stdio::null()).output();
    assert!(marker.exists());
}

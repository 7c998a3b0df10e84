//! The files of a git revision.
//!
//! They are read with the program `git`, without a shell, and written to a temporary directory. Nothing is fetched from
//! other machines, symbolic links and submodules are left out, and the number and the size of the files are bounded.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use tempfile::TempDir;

/// The maximum size of a list of files, in bytes.
const MAX_LIST: u64 = 16 << 20;

/// The maximum size of an answer that is one line, in bytes.
const MAX_LINE: u64 = 64 << 10;

/// An error of reading a revision.
#[derive(Debug)]
#[non_exhaustive]
pub struct RevisionError {
    /// What was found and what was expected.
    pub message: String,
    /// Advice on how to fix it.
    pub help: Option<String>,
}

impl RevisionError {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None }
    }

    fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for RevisionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.help.as_ref().map_or(Ok(()), |help| write!(f, " ({help})"))
    }
}

impl std::error::Error for RevisionError {}

type Result<T> = std::result::Result<T, RevisionError>;

/// A git repository.
#[derive(Clone, Debug)]
pub struct Repository {
    root: PathBuf,
    prefix: PathBuf,
}

impl Repository {
    /// Finds the repository that contains a directory.
    ///
    /// # Errors
    /// Returns an error if `git` cannot be run, or if the directory is not in the work tree of a repository.
    pub fn containing(directory: &Path) -> Result<Self> {
        let missing = || {
            RevisionError::new(format!("`{}` is not in a git repository", directory.display()))
                .with_help("a revision can be read only in a git repository; `git status` says what is wrong with it")
        };
        let path = |option: &str| match line(git(directory).args(["rev-parse", option]))? {
            Some(line) => Ok(os_string(line)?),
            None => Err(missing()),
        };
        let root = PathBuf::from(path("--show-toplevel")?);
        if root.as_os_str().is_empty() {
            return Err(missing());
        }
        Ok(Self { root, prefix: path("--show-prefix")?.into() })
    }

    /// Returns the directory of the work tree.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path of the directory that the repository was searched from, relative to the work tree.
    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// Finds the commit that a name refers to: a branch, a tag, a hash, or an expression such as `HEAD~2`.
    ///
    /// # Errors
    /// Returns an error if there is no such commit, or if the name starts with a hyphen.
    pub fn revision(&self, name: &str) -> Result<Revision> {
        if name.is_empty() || name.starts_with('-') || name.contains(['\0', '\n']) {
            let message = format!("`{name}` is not a revision: expected a branch, a tag or a commit");
            return Err(RevisionError::new(message));
        }
        let expression = format!("{name}^{{commit}}");
        let found = line(git(&self.root).args(["rev-parse", "--verify", "--quiet", &expression]))?;
        let commit = found.and_then(|line| String::from_utf8(line).ok()).filter(|commit| is_hash(commit));
        match commit {
            Some(commit) => Ok(Revision { root: self.root.clone(), name: name.to_owned(), commit }),
            None => {
                let message = format!("unknown revision `{name}`: expected a branch, a tag or a commit");
                Err(RevisionError::new(message).with_help("`git log --oneline` lists commits"))
            }
        }
    }
}

/// A commit of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    root: PathBuf,
    name: String,
    commit: String,
}

/// The most that a checkout may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckoutLimits {
    /// The number of files.
    pub files: usize,
    /// The size of all files together, in bytes.
    pub bytes: u64,
}

impl Default for CheckoutLimits {
    fn default() -> Self {
        Self { files: 20_000, bytes: 128 << 20 }
    }
}

/// Files of a revision in a temporary directory, which is removed when this is dropped.
#[derive(Debug)]
pub struct Checkout {
    directory: TempDir,
    files: usize,
}

impl Checkout {
    /// Returns the temporary directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the number of files.
    pub fn files(&self) -> usize {
        self.files
    }
}

impl Revision {
    /// Returns the name that was looked up.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the hash of the commit.
    pub fn commit(&self) -> &str {
        &self.commit
    }

    /// Writes all files below a directory to a temporary directory. The path is relative to the work tree of the
    /// repository, and so are those of the files to the temporary directory afterwards, but without this path in front.
    ///
    /// Symbolic links and submodules are left out.
    ///
    /// # Errors
    /// Returns an error if the revision does not have the directory, if it has too many files, or if a file cannot be
    /// written.
    pub fn checkout(&self, directory: &Path, limits: &CheckoutLimits) -> Result<Checkout> {
        let entries = self.list(directory, limits)?;
        let failed = |error: io::Error| RevisionError::new(format!("cannot write files of `{}`: {error}", self.name));
        let target = TempDir::new().map_err(failed)?;
        let mut objects = Objects::open(&self.root)?;
        for entry in &entries {
            let path = target.path().join(&entry.path);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(failed)?;
            }
            // In a temporary directory without links, a new file cannot be anywhere else.
            let mut file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(failed)?;
            objects.copy(entry, &mut file)?;
        }
        Ok(Checkout { directory: target, files: entries.len() })
    }

    /// Returns the text of a file, or `None` if the revision does not have it. The path is relative to the work tree of
    /// the repository.
    ///
    /// # Errors
    /// Returns an error if the file is larger than `most` bytes, if it is not UTF-8, or if git does not have it.
    pub fn text(&self, path: &Path, most: u64) -> Result<Option<String>> {
        let place = slashed(path)?;
        let mut command = git(&self.root);
        command.args(["ls-tree", "-z", "-l", "--full-tree", &self.commit, "--", &place]);
        let list = output(&mut command, MAX_LINE)?.unwrap_or_default();
        let Some(record) = list.split(|byte| *byte == 0).find(|record| !record.is_empty()) else { return Ok(None) };
        let Some(entry) = Entry::parse(record)?.filter(|entry| entry.path == path) else { return Ok(None) };
        if entry.size > most {
            return Err(RevisionError::new(format!("`{place}` is larger than {most} bytes in the revision")));
        }
        let mut bytes = Vec::new();
        Objects::open(&self.root)?.copy(&entry, &mut bytes)?;
        let not_text = |_| RevisionError::new(format!("`{place}` is not UTF-8 in the revision"));
        String::from_utf8(bytes).map(Some).map_err(not_text)
    }

    /// Lists the files below a directory.
    fn list(&self, directory: &Path, limits: &CheckoutLimits) -> Result<Vec<Entry>> {
        let place = slashed(directory)?;
        let tree = format!("{}:{place}", self.commit);
        let shown = if place.is_empty() { "." } else { &place };
        let mut command = git(&self.root);
        command.args(["ls-tree", "-r", "-z", "-l", "--full-tree", &tree]);
        let Some(list) = output(&mut command, MAX_LIST)? else {
            let message = format!("the revision `{}` has no directory `{shown}`", self.name);
            return Err(
                RevisionError::new(message).with_help(format!("`git ls-tree -r {}` lists its files", self.name))
            );
        };
        let mut entries = Vec::new();
        let mut bytes = 0_u64;
        for record in list.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
            let Some(entry) = Entry::parse(record)? else { continue };
            bytes = bytes.saturating_add(entry.size);
            entries.push(entry);
            if entries.len() > limits.files || bytes > limits.bytes {
                let CheckoutLimits { files, bytes } = limits;
                let message = format!(
                    "`{shown}` in the revision `{}` is too large: at most {files} files and {bytes} bytes are read",
                    self.name
                );
                return Err(RevisionError::new(message).with_help("keep prompts in a directory of their own"));
            }
        }
        Ok(entries)
    }
}

/// A file in a tree.
#[derive(Debug)]
struct Entry {
    hash: String,
    size: u64,
    /// A relative path without `..`.
    path: PathBuf,
}

impl Entry {
    /// Parses `<mode> <type> <hash> <size>\t<path>`. Returns `None` if the entry is not a file.
    fn parse(record: &[u8]) -> Result<Option<Self>> {
        let invalid = || RevisionError::new("`git ls-tree` printed a line that is not understood");
        let tab = record.iter().position(|byte| *byte == b'\t').ok_or_else(invalid)?;
        let (about, path) = (std::str::from_utf8(&record[..tab]).map_err(|_| invalid())?, &record[tab + 1..]);
        let [mode, kind, hash, size] = about.split_ascii_whitespace().collect::<Vec<_>>()[..] else {
            return Err(invalid());
        };
        if kind != "blob" || !matches!(mode, "100644" | "100755" | "100664") {
            return Ok(None);
        }
        let path = safe_path(path)?;
        let hash = Some(hash).filter(|hash| is_hash(hash)).ok_or_else(invalid)?.to_owned();
        // The size is not known of a file that was not fetched.
        let size = size.parse().map_err(|_| not_fetched(&path))?;
        Ok(Some(Self { hash, size, path }))
    }
}

/// Converts a path of a tree. Git does not create trees with paths that lead elsewhere, but other programs may.
fn safe_path(path: &[u8]) -> Result<PathBuf> {
    let unsafe_path = || {
        let shown = String::from_utf8_lossy(path).into_owned();
        RevisionError::new(format!("the revision has a file with an unsafe path: `{shown}`"))
    };
    let mut safe = PathBuf::new();
    for part in path.split(|byte| *byte == b'/') {
        let part = os_string(part.to_vec())?;
        let mut components = Path::new(&part).components();
        let is_one =
            matches!((components.next(), components.next()), (Some(Component::Normal(own)), None) if own == part);
        if !is_one || part.eq_ignore_ascii_case(".git") {
            return Err(unsafe_path());
        }
        safe.push(part);
    }
    Ok(safe)
}

/// Returns a relative path with slashes, as git writes it.
fn slashed(path: &Path) -> Result<String> {
    let mut parts = Vec::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::Normal(part) if part.to_str().is_some_and(|part| !part.contains('\0')) => {
                parts.extend(part.to_str());
            }
            _ => {
                let message = format!("`{}` is not a path in the repository", path.display());
                return Err(RevisionError::new(message));
            }
        }
    }
    Ok(parts.join("/"))
}

/// A running `git cat-file`, which prints the objects that it is asked for.
struct Objects {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Objects {
    fn open(root: &Path) -> Result<Self> {
        let mut command = git(root);
        command.args(["cat-file", "--batch"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| not_run(&error))?;
        let (questions, answers) = (child.stdin.take(), child.stdout.take());
        let (Some(questions), Some(answers)) = (questions, answers) else {
            return Err(RevisionError::new("cannot talk to `git cat-file`"));
        };
        Ok(Self { child, questions, answers: BufReader::new(answers) })
    }

    /// Copies the content of a file.
    fn copy(&mut self, entry: &Entry, target: &mut impl Write) -> Result<()> {
        let failed = |error: io::Error| RevisionError::new(format!("cannot read files of the revision: {error}"));
        writeln!(self.questions, "{}", entry.hash).and_then(|()| self.questions.flush()).map_err(failed)?;
        let mut header = Vec::new();
        self.answers.by_ref().take(MAX_LINE).read_until(b'\n', &mut header).map_err(failed)?;
        let expected = format!("{} blob {}\n", entry.hash, entry.size);
        if header != expected.as_bytes() {
            return Err(not_fetched(&entry.path));
        }
        let copied = io::copy(&mut self.answers.by_ref().take(entry.size), target).map_err(failed)?;
        let mut end = [0];
        self.answers.read_exact(&mut end).map_err(failed)?;
        match copied == entry.size && end == *b"\n" {
            true => Ok(()),
            false => Err(RevisionError::new("`git cat-file` printed less than it announced")),
        }
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        // It also ends by itself, because its input ends.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a command that runs git in a directory, and that neither asks nor fetches anything.
fn git(directory: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(directory).args(["--no-pager", "--literal-pathspecs"]);
    for (name, value) in [
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_ALLOW_PROTOCOL", ""),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("LC_ALL", "C"),
    ] {
        command.env(name, value);
    }
    command.stdin(Stdio::null());
    command
}

/// Runs a command that prints one line. Returns `None` if it fails.
fn line(command: &mut Command) -> Result<Option<Vec<u8>>> {
    let output = output(command, MAX_LINE)?;
    Ok(output.map(|mut text| {
        if text.last() == Some(&b'\n') {
            text.pop();
        }
        text
    }))
}

/// Runs a command and returns what it prints, or `None` if it fails.
fn output(command: &mut Command, limit: u64) -> Result<Option<Vec<u8>>> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(|error| not_run(&error))?;
    let mut text = Vec::new();
    let read = child.stdout.take().map_or(Ok(0), |stdout| stdout.take(limit + 1).read_to_end(&mut text));
    if read.is_err() || text.len() as u64 > limit {
        let _ = child.kill();
        let _ = child.wait();
        let reason = read.map_or_else(|error| error.to_string(), |_| format!("more than {limit} bytes"));
        return Err(RevisionError::new(format!("cannot read the output of `git`: {reason}")));
    }
    let status = child.wait().map_err(|error| not_run(&error))?;
    Ok(status.success().then_some(text))
}

fn not_run(error: &io::Error) -> RevisionError {
    RevisionError::new(format!("cannot run `git`: {error}")).with_help("revisions are read with git; install it")
}

fn not_fetched(path: &Path) -> RevisionError {
    RevisionError::new(format!("git does not have the content of `{}`", path.display()))
        .with_help("nothing is fetched from other machines; in a partial clone, run `git fetch --refetch` first")
}

fn is_hash(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(unix)]
fn os_string(bytes: Vec<u8>) -> Result<OsString> {
    Ok(std::os::unix::ffi::OsStringExt::from_vec(bytes))
}

#[cfg(not(unix))]
fn os_string(bytes: Vec<u8>) -> Result<OsString> {
    let invalid = |_| RevisionError::new("the revision has a path that is not UTF-8");
    String::from_utf8(bytes).map(OsString::from).map_err(invalid)
}

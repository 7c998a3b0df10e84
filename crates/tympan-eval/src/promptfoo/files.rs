//! Files that a configuration refers to.
//!
//! A configuration may come from anyone, so the caller decides which files it may name, and the number of files and bytes
//! is bounded.

use tympan_core::format::Resolve;
use tympan_core::format::definition::Syntax;
use tympan_core::text::source::SourceFile;

use super::node::Node;

/// The maximum number of files that a configuration can refer to. A file counts each time it is read.
const MAX_FILES: usize = 1_000;

/// The maximum number of bytes of all these files.
const MAX_BYTES: usize = 32 << 20;

/// What a reference to a file starts with.
pub(super) const SCHEME: &str = "file://";

/// Reads the files that a configuration refers to.
pub(super) struct Files<'r> {
    resolve: &'r mut dyn Resolve,
    files: usize,
    bytes: usize,
}

/// Why a file cannot be used.
#[derive(Debug)]
pub(super) struct Unusable {
    pub(super) reason: String,
    pub(super) help: String,
    /// Whether there is no such file.
    pub(super) is_missing: bool,
}

impl Unusable {
    fn new(reason: impl Into<String>, help: &str) -> Self {
        Self { reason: reason.into(), help: help.to_owned(), is_missing: false }
    }
}

impl<'r> Files<'r> {
    pub(super) fn new(resolve: &'r mut dyn Resolve) -> Self {
        Self { resolve, files: 0, bytes: 0 }
    }

    /// Reads a file, whose path is relative to the configuration.
    pub(super) fn read(&mut self, path: &str) -> Result<SourceFile, Unusable> {
        check_pattern(path)?;
        self.files += 1;
        if self.files > MAX_FILES {
            let reason = format!("the configuration refers to more than {MAX_FILES} files");
            return Err(Unusable::new(reason, "split the configuration"));
        }
        let path = path.strip_prefix("./").unwrap_or(path);
        let file = self.resolve.file(path).map_err(|error| Unusable {
            reason: error.message().to_owned(),
            help: "the file must be text, in the directory of the configuration or below".to_owned(),
            is_missing: error.kind() == tympan_core::Kind::ReferencedFileNotFound,
        })?;
        self.bytes += file.text.len();
        if self.bytes > MAX_BYTES {
            let reason = format!("the files of the configuration have more than {} MiB", MAX_BYTES >> 20);
            return Err(Unusable::new(reason, "split the configuration"));
        }
        Ok(SourceFile::new(path, file.text))
    }

    /// Reads and parses a YAML or JSON file.
    pub(super) fn parse(&mut self, path: &str) -> Result<Node, Unusable> {
        check_pattern(path)?;
        let Some(syntax) = syntax_of(path) else {
            return Err(Unusable::new(format!("`{path}` is not a YAML or JSON file"), "name a YAML or JSON file"));
        };
        let source = self.read(path)?;
        Node::parse(&source, syntax).map_err(|error| {
            let reason = format!("{}: {}", source.name(), error.message());
            Unusable::new(reason, "correct the file")
        })
    }
}

/// Checks that a path names one file.
fn check_pattern(path: &str) -> Result<(), Unusable> {
    if !path.contains(['*', '?', '[', '{']) {
        return Ok(());
    }
    let help = "name the files one by one: the import does not search directories";
    Err(Unusable::new(format!("`{path}` is a pattern"), help))
}

/// Returns the lower-case ending of a path, without the dot.
pub(super) fn ending(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.rsplit_once('.').map_or_else(String::new, |(_, ending)| ending.to_ascii_lowercase())
}

/// Returns the syntax of a YAML or JSON file.
pub(super) fn syntax_of(path: &str) -> Option<Syntax> {
    match ending(path).as_str() {
        "yaml" | "yml" => Some(Syntax::Yaml),
        "json" => Some(Syntax::Json),
        _ => None,
    }
}

/// Returns whether a path names a program, perhaps with a function after a colon.
pub(super) fn is_program(path: &str) -> bool {
    const ENDINGS: [&str; 13] = ["js", "cjs", "mjs", "ts", "cts", "mts", "py", "rb", "sh", "bash", "pl", "go", "exe"];
    let file = path.rsplit_once(':').map_or(path, |(file, _)| file);
    [path, file].iter().any(|path| ENDINGS.contains(&ending(path).as_str()))
}

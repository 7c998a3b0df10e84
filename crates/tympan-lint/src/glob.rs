//! Patterns for paths, as ignore files have them.

use std::fmt;
use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

/// A pattern for paths. `*` matches within one name, `**` matches any number of directories.
///
/// A pattern without a slash matches the name of a file or directory anywhere; one with a slash matches the path from
/// the directory of the settings file. What matches a directory also matches everything in it.
#[derive(Clone)]
pub struct Glob {
    pattern: String,
    matcher: GlobMatcher,
    is_name: bool,
}

impl Glob {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// Returns the reason why the pattern is invalid.
    pub fn new(pattern: &str) -> Result<Self, String> {
        let path = pattern.strip_prefix("./").unwrap_or(pattern);
        let path = path.strip_prefix('/').unwrap_or(path).trim_end_matches('/');
        let is_name = !pattern.trim_end_matches('/').contains('/');
        let glob = GlobBuilder::new(path).literal_separator(true).build().map_err(|error| error.kind().to_string())?;
        Ok(Self { pattern: pattern.to_owned(), matcher: glob.compile_matcher(), is_name })
    }

    /// Returns whether the pattern matches a path or one of its directories.
    pub fn matches(&self, path: &Path) -> bool {
        let mut paths = path.ancestors().filter(|path| !path.as_os_str().is_empty());
        paths.any(|path| match path.file_name() {
            Some(name) if self.is_name => self.matcher.is_match(name),
            _ => self.matcher.is_match(path),
        })
    }
}

impl PartialEq for Glob {
    fn eq(&self, other: &Self) -> bool {
        self.pattern == other.pattern
    }
}

impl Eq for Glob {}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Glob({})", self.pattern)
    }
}

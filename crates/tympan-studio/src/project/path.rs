//! Paths of files in the project, as the page writes them.

/// The maximum length of a path, in bytes.
const MAX_BYTES: usize = 1024;

/// A relative path with slashes. No part of it is hidden, leads upwards, or has a meaning on some systems only.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RelativePath(String);

impl RelativePath {
    /// Checks a path. Returns `None` if it is not one that a studio uses.
    pub(crate) fn parse(path: &str) -> Option<Self> {
        let is_valid = path.len() <= MAX_BYTES && path.split('/').all(is_plain);
        is_valid.then(|| Self(path.to_owned()))
    }

    /// Resolves a path that a file of the project refers to. `..` leads to the directory above, but not out of the
    /// project.
    pub(crate) fn resolve(&self, reference: &str) -> Option<Self> {
        let mut parts: Vec<&str> = self.parents().collect();
        for part in reference.split('/') {
            match part {
                "." => {}
                ".." => drop(parts.pop()?),
                part => parts.push(part),
            }
        }
        Self::parse(&parts.join("/"))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name of the file.
    pub(crate) fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the names of the directories that lead to the file.
    pub(crate) fn parents(&self) -> impl Iterator<Item = &str> {
        let parents = self.0.rsplit_once('/').map(|(parents, _)| parents);
        parents.into_iter().flat_map(|parents| parents.split('/'))
    }

    /// Returns the path of another file in a directory.
    pub(crate) fn join(&self, name: &str) -> Option<Self> {
        Self::parse(&format!("{}/{name}", self.0))
    }
}

/// Returns whether a name is the same on every system, and not hidden.
fn is_plain(name: &str) -> bool {
    let is_odd = |char: char| char.is_control() || matches!(char, '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|');
    !name.is_empty() && !name.starts_with('.') && !name.ends_with(['.', ' ']) && !name.contains(is_odd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_paths_are_used() {
        for path in ["a", "a.prompty", "a/b/c d.yaml", "ä/ß.md", "a..b"] {
            assert!(RelativePath::parse(path).is_some(), "{path}");
        }
        let long = "a".repeat(1025);
        for path in [
            "", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/.", "a/./b", ".a", "a/.git/b", "a\\b", "C:a",
            "a\0", "a\nb", "a.", "a ", "a/b./c", "con:", "a?b", "a\u{85}", &long,
        ] {
            assert!(RelativePath::parse(path).is_none(), "{path:?}");
        }
    }

    #[test]
    fn references_stay_in_the_project() {
        let resolve = |from: &str, to: &str| RelativePath::parse(from)?.resolve(to).map(|path| path.0);
        assert_eq!(resolve("a/b.prompty", "../c.txt").as_deref(), Some("c.txt"));
        assert_eq!(resolve("a/b.prompty", "./d/e.txt").as_deref(), Some("a/d/e.txt"));
        for reference in ["../../x", "/etc/passwd", ".env", "../.env", "d/../../../x", "", ".."] {
            assert_eq!(resolve("a/b.prompty", reference), None, "{reference}");
        }
    }
}

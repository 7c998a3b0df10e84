//! The kinds of files that a studio shows.

use serde::Deserialize;
use serde::de::IgnoredAny;
use tympan_core::format::Format;
use tympan_core::format::definition::Syntax;

use super::path::RelativePath;
use super::{DEFAULT_MAX_FILE_BYTES, MAX_RECORD_BYTES};

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    Prompt,
    Test,
    Cassette,
    Trace,
    Journal,
}

impl FileKind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Test => "test",
            Self::Cassette => "cassette",
            Self::Trace => "trace",
            Self::Journal => "journal",
        }
    }

    /// Returns whether the page may write such files.
    pub(crate) const fn is_written(self) -> bool {
        matches!(self, Self::Prompt | Self::Test | Self::Cassette)
    }

    /// Returns the kind of a file with this text, or `None` if it is not one that is shown. Most files in YAML, JSON, TOML
    /// and Markdown are not prompts.
    pub(crate) fn of(path: &RelativePath, text: &str) -> Option<Self> {
        match Self::by_name(path)? {
            ByName::Certain(kind) => Some(kind),
            ByName::Prompt(format) if format.matches(text) => Some(Self::Prompt),
            ByName::Prompt(Format::Definition(Syntax::Json)) if is_cassette(text) => Some(Self::Cassette),
            ByName::Prompt(_) => None,
        }
    }

    /// Returns whether a file with this name may be of one of the kinds.
    pub(crate) fn may_be(path: &RelativePath) -> bool {
        Self::by_name(path).is_some()
    }

    /// Returns the maximum size of a file with this name, in bytes.
    pub(crate) fn max_bytes(path: &RelativePath) -> u64 {
        match Self::by_name(path) {
            Some(ByName::Certain(Self::Trace | Self::Journal)) => MAX_RECORD_BYTES,
            _ => DEFAULT_MAX_FILE_BYTES,
        }
    }

    fn by_name(path: &RelativePath) -> Option<ByName> {
        let extension = path.name().rsplit_once('.').filter(|(stem, _)| !stem.is_empty())?.1;
        if matches!(Format::from_name(path.name()), Some(Format::Tests(_))) {
            return Some(ByName::Certain(Self::Test));
        }
        Some(match extension {
            "prompty" => ByName::Certain(Self::Prompt),
            "tracy" => ByName::Certain(Self::Trace),
            "journal" => ByName::Certain(Self::Journal),
            "yaml" | "yml" | "json" | "toml" | "md" => ByName::Prompt(Format::from_name(path.name())?),
            _ => return None,
        })
    }
}

/// What the name of a file says.
enum ByName {
    Certain(FileKind),
    /// It is a prompt if its text is in this format.
    Prompt(Format),
}

/// Returns whether a text is a recorded exchange with a provider.
fn is_cassette(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Shape {
        #[serde(rename = "version")]
        _version: u32,
        #[serde(rename = "request")]
        _request: IgnoredAny,
        #[serde(rename = "response")]
        _response: IgnoredAny,
    }
    serde_json::from_str::<Shape>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_files_are_not_shown() {
        let kind = |path: &str, text: &str| FileKind::of(&RelativePath::parse(path).expect("it is valid"), text);
        assert_eq!(kind("a.prompty", ""), Some(FileKind::Prompt));
        assert_eq!(kind("a.test.yaml", ""), Some(FileKind::Test));
        assert_eq!(kind("a.yaml", "role: user\nbody: x"), Some(FileKind::Prompt));
        assert_eq!(kind("a.json", r#"{"version": 1, "request": {}, "response": {}}"#), Some(FileKind::Cassette));
        for (path, text) in
            [("package.json", "{}"), ("README.md", "# Hi"), ("Cargo.toml", "[package]"), ("a", ""), ("a.py", "")]
        {
            assert_eq!(kind(path, text), None, "{path}");
        }
    }
}

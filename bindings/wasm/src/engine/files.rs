//! The files that a prompt refers to.

use std::collections::BTreeMap;

use tympan_core::format::{ReferencedFile, Resolve};
use tympan_core::{Error, Kind, Result};

/// Texts by path. There is no environment: references to it remain unresolved.
#[derive(Clone, Debug, Default)]
pub(super) struct Files(BTreeMap<String, String>);

impl Files {
    /// Reads a JSON map. Anything else has no files.
    pub(super) fn new(json: Option<&str>) -> Self {
        Self(json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default())
    }
}

impl Resolve for Files {
    fn env(&mut self, _name: &str) -> Result<Option<String>> {
        Ok(None)
    }

    fn defers_env(&self) -> bool {
        true
    }

    fn file(&mut self, path: &str) -> Result<ReferencedFile> {
        let found = self.0.get(path).or_else(|| self.0.get(path.strip_prefix("./")?));
        let missing = || Error::new(Kind::ReferencedFileNotFound, path);
        found.map(|text| ReferencedFile { text: text.clone() }).ok_or_else(missing)
    }
}

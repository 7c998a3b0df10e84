//! Lists the files of a project.

use std::ffi::OsStr;

use ignore::WalkBuilder;
use tympan_runtime::file::walk::is_skipped;

use super::{FileKind, Project, RelativePath};

/// The maximum number of files that are listed.
const MAX_FILES: usize = 5_000;

/// The maximum number of entries of directories that are looked at.
const MAX_ENTRIES: usize = 200_000;

/// A file in a list.
#[derive(Debug)]
pub(crate) struct ListedFile {
    pub(crate) path: RelativePath,
    pub(crate) kind: FileKind,
    pub(crate) size: usize,
    pub(crate) hash: String,
}

impl Project {
    /// Lists the files that the studio shows, sorted by name, and whether there are more. Hidden files, generated files, and
    /// what ignore files such as `.gitignore` name are left out.
    pub(crate) fn list(&self) -> (Vec<ListedFile>, bool) {
        let mut builder = WalkBuilder::new(self.root());
        builder.require_git(false).git_global(false).sort_by_file_name(OsStr::cmp).follow_links(false);
        builder.filter_entry(|entry| {
            let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
            entry.depth() == 0 || !is_directory || !is_skipped(&entry.file_name().to_string_lossy())
        });
        let mut files = Vec::new();
        for entry in builder.build().take(MAX_ENTRIES).flatten() {
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                continue;
            }
            let path = entry.path().strip_prefix(self.root()).ok().and_then(std::path::Path::to_str);
            let Some(path) = path.and_then(|path| RelativePath::parse(&path.replace('\\', "/"))) else { continue };
            if !FileKind::may_be(&path) {
                continue;
            }
            if files.len() == MAX_FILES {
                return (files, true);
            }
            files.extend(self.listed(path));
        }
        (files, false)
    }

    /// Returns what a list says about a file, if it is one that is shown.
    fn listed(&self, path: RelativePath) -> Option<ListedFile> {
        let (kind, text) = self.read(&path).ok()?;
        Some(ListedFile { path, kind, size: text.text.len(), hash: text.hash })
    }
}

//! What an import could not carry over.

use std::collections::HashMap;

use super::node::Place;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Level {
    /// Something is missing in the files that were written, or does something else there.
    NotCarried,
    /// Something that changes no verdict was left out, or deserves a look.
    Note,
}

impl Level {
    /// Returns the name of the level in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotCarried => "not_carried",
            Self::Note => "note",
        }
    }
}

/// Something that an import could not carry over, or that the user should know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportFinding {
    /// How much it matters.
    pub level: Level,
    /// What was found, such as "assertion `javascript`".
    pub item: String,
    /// The file that contains it.
    pub file: String,
    /// The lines that contain it, counted from 1, in order.
    pub lines: Vec<usize>,
    /// Why it was not carried over.
    pub reason: String,
    /// What to do.
    pub help: String,
}

/// What is said about something that was found.
#[derive(Clone, Debug)]
pub(super) struct Remark {
    pub(super) item: String,
    pub(super) reason: String,
    pub(super) help: String,
}

impl Remark {
    pub(super) fn new(item: impl Into<String>, reason: impl Into<String>, help: impl Into<String>) -> Self {
        Self { item: item.into(), reason: reason.into(), help: help.into() }
    }
}

/// Collects findings. Findings that say the same about several lines of a file become one.
#[derive(Debug, Default)]
pub(super) struct Findings {
    findings: Vec<ImportFinding>,
    /// The index of each finding, by level, file, item and reason.
    known: HashMap<(Level, String, String, String), usize>,
}

impl Findings {
    /// Reports something that was not carried over.
    pub(super) fn not_carried(&mut self, place: &Place, remark: Remark) {
        self.push(Level::NotCarried, place, remark);
    }

    /// Reports something that changes no verdict.
    pub(super) fn note(&mut self, place: &Place, remark: Remark) {
        self.push(Level::Note, place, remark);
    }

    fn push(&mut self, level: Level, place: &Place, Remark { item, reason, help }: Remark) {
        let key = (level, place.file.to_string(), item, reason);
        if let Some(index) = self.known.get(&key) {
            let lines = &mut self.findings[*index].lines;
            if let Err(at) = lines.binary_search(&place.line) {
                lines.insert(at, place.line);
            }
            return;
        }
        self.known.insert(key.clone(), self.findings.len());
        let (_, file, item, reason) = key;
        self.findings.push(ImportFinding { level, item, file, lines: vec![place.line], reason, help });
    }

    /// Returns the findings: what was not carried over first, then in the order of the files.
    pub(super) fn into_sorted(mut self) -> Vec<ImportFinding> {
        self.findings.sort_by(|a, b| (a.level, &a.file, &a.lines).cmp(&(b.level, &b.file, &b.lines)));
        self.findings
    }
}

//! Baselines: findings that are known and not reported again, so that a project can start with clean checks.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use tympan_core::text::source::SourceFile;

use crate::finding::Finding;

/// The version of the file format.
const VERSION: u64 = 1;

/// The findings that are known. An entry is a file, a rule and the text of a line, so it still matches after lines were
/// added elsewhere.
///
/// ```
/// use tympan_core::format::NoReferences;
/// use tympan_core::text::source::SourceFile;
/// use tympan_lint::{Baseline, Options, check_file};
///
/// let check = |text: &str| {
///     let source = SourceFile::new("a.prompty", text);
///     let findings = check_file(&source, &mut NoReferences, &Options::default()).findings;
///     (source, findings)
/// };
/// let (source, findings) = check("user:\nHi {{ name }}");
/// let mut baseline = Baseline::default();
/// baseline.add("a.prompty", &source, &findings);
///
/// let (source, mut findings) = check("system:\nBe brief.\nuser:\nHi {{ name }}");
/// baseline.apply("a.prompty", &source, &mut findings);
/// assert_eq!(findings, []);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    /// The number of findings of each entry.
    entries: BTreeMap<Entry, usize>,
}

/// What findings are recognized by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Entry {
    /// The path of the file, with slashes.
    pub file: String,
    /// The code of the rule.
    pub rule: String,
    /// The text of the line, without white space around it.
    pub line: String,
}

impl Entry {
    fn new(file: &str, source: &SourceFile, finding: &Finding) -> Self {
        let line = finding.line(source).trim().to_owned();
        Self { file: file.to_owned(), rule: finding.rule.code.to_owned(), line }
    }
}

impl Baseline {
    /// Parses a baseline file.
    ///
    /// # Errors
    /// Returns what is wrong with the file.
    pub fn parse(text: &str) -> Result<Self, String> {
        let json: Json = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let findings = json["findings"].as_array().filter(|_| json["version"] == VERSION);
        let findings = findings.ok_or_else(|| format!("expected a baseline of version {VERSION}"))?;
        let mut entries = BTreeMap::new();
        for (index, finding) in findings.iter().enumerate() {
            let text = |key: &str| {
                let text = finding[key].as_str().map(str::to_owned);
                text.ok_or_else(|| format!("`findings[{index}].{key}`: expected a string"))
            };
            let entry = Entry { file: text("file")?, rule: text("rule")?, line: text("line")? };
            let count = finding.get("count").map_or(Some(1), Json::as_u64);
            let count = count.ok_or_else(|| format!("`findings[{index}].count`: expected a number"))?;
            *entries.entry(entry).or_default() += usize::try_from(count).unwrap_or(usize::MAX);
        }
        Ok(Self { entries })
    }

    /// Adds the findings of a file. Errors that keep a file from loading cannot be in a baseline.
    pub fn add(&mut self, file: &str, source: &SourceFile, findings: &[Finding]) {
        for finding in findings.iter().filter(|finding| !finding.is_fatal) {
            *self.entries.entry(Entry::new(file, source, finding)).or_default() += 1;
        }
    }

    /// Removes known findings of a file, and returns their number. An entry matches as many findings as it counts.
    /// What is left of the baseline afterwards is stale.
    pub fn apply(&mut self, file: &str, source: &SourceFile, findings: &mut Vec<Finding>) -> usize {
        let before = findings.len();
        findings.retain(|finding| {
            let known = self.entries.get_mut(&Entry::new(file, source, finding)).filter(|_| !finding.is_fatal);
            match known {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    false
                }
                _ => true,
            }
        });
        before - findings.len()
    }

    /// Returns the entries that matched fewer findings than they count, and how many are missing.
    pub fn unmatched(&self) -> impl Iterator<Item = (&Entry, usize)> {
        self.entries.iter().filter(|(_, count)| **count > 0).map(|(entry, count)| (entry, *count))
    }

    /// Returns the number of findings.
    pub fn len(&self) -> usize {
        self.entries.values().sum()
    }

    /// Returns whether the baseline has no findings.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the file as JSON, in a fixed order.
    pub fn to_json(&self) -> Json {
        let findings = self.entries.iter().map(|(entry, count)| {
            let Entry { file, rule, line } = entry;
            json!({ "file": file, "rule": rule, "line": line, "count": count })
        });
        json!({ "version": VERSION, "findings": findings.collect::<Json>() })
    }
}

impl Finding {
    /// Returns the line of the source that the finding starts on, or an empty string if its position is not known.
    pub fn line<'s>(&self, source: &'s SourceFile) -> &'s str {
        let Some(span) = self.span else { return "" };
        let text = source.text();
        let at = text.floor_char_boundary(span.start);
        let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let end = text[at..].find('\n').map_or(text.len(), |length| at + length);
        &text[start..end]
    }
}

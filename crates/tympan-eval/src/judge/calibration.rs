//! Calibration: whether a judge agrees with known verdicts.

use std::io::Read as _;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value as Json;
use tympan_core::JsonMap;
use tympan_core::text::hash::sha256_hex;
use tympan_runtime::file::read;

/// The share of known verdicts that a judge must agree with, if the assertion states none.
pub(super) const MIN_AGREEMENT: f64 = 0.9;

/// The maximum size of a file, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// The maximum number of known verdicts.
const MAX_ITEMS: usize = 10_000;

/// An answer whose verdict is known.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Known {
    /// The answer: a text, or a value that becomes JSON.
    pub(super) answer: Json,
    /// Whether it passes.
    pub(super) pass: bool,
    /// Further inputs of the rubric.
    #[serde(default)]
    pub(super) inputs: JsonMap,
}

/// A set of answers whose verdicts are known.
#[derive(Debug)]
pub(super) struct CalibrationSet {
    pub(super) items: Vec<Known>,
    /// The hash of the file.
    pub(super) hash: String,
}

impl CalibrationSet {
    /// Reads a JSON Lines file.
    ///
    /// # Errors
    /// Returns a message if the file cannot be read, if a line is wrong, or if the set does not contain both verdicts:
    /// a judge that says the same about everything would agree with it.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let in_file = |reason: &dyn std::fmt::Display| format!("calibration {}: {reason}", path.display());
        let mut text = String::new();
        let file = read::open(path).map_err(|error| in_file(&error))?;
        file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(|error| in_file(&error))?;
        if text.len() as u64 > MAX_BYTES {
            return Err(in_file(&format_args!("expected at most {MAX_BYTES} bytes")));
        }
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let parse = |(index, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|error| in_file(&format_args!("line {}: {error}", index + 1)))
        };
        let items = lines.take(MAX_ITEMS + 1).map(parse).collect::<Result<Vec<Known>, String>>()?;
        if items.len() > MAX_ITEMS {
            return Err(in_file(&format_args!("expected at most {MAX_ITEMS} lines")));
        }
        for (pass, what) in [(true, "passes"), (false, "fails")] {
            if !items.iter().any(|item| item.pass == pass) {
                return Err(in_file(&format_args!("expected at least one answer that {what}")));
            }
        }
        Ok(Self { items, hash: sha256_hex(text) })
    }
}

/// How a judge's verdicts compare with known ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Answers that pass, and that the judge passed.
    pub passed: usize,
    /// Answers that fail, and that the judge failed.
    pub failed: usize,
    /// Answers that fail, and that the judge passed.
    pub wrongly_passed: usize,
    /// Answers that pass, and that the judge failed.
    pub wrongly_failed: usize,
    /// Answers about which the judge wrote no verdict.
    pub invalid: usize,
}

impl Agreement {
    /// Adds a verdict of the judge, or `None` if it wrote none.
    pub(super) fn add(&mut self, known: bool, found: Option<bool>) {
        let count = match (known, found) {
            (true, Some(true)) => &mut self.passed,
            (false, Some(false)) => &mut self.failed,
            (false, Some(true)) => &mut self.wrongly_passed,
            (true, Some(false)) => &mut self.wrongly_failed,
            (_, None) => &mut self.invalid,
        };
        *count += 1;
    }

    /// Returns the number of answers.
    pub fn total(&self) -> usize {
        self.agreed() + self.wrongly_passed + self.wrongly_failed + self.invalid
    }

    fn agreed(&self) -> usize {
        self.passed + self.failed
    }

    /// Returns the share of the answers about which the judge is right.
    #[expect(clippy::cast_precision_loss, reason = "there are at most 10,000 answers")]
    pub fn share(&self) -> f64 {
        if self.total() == 0 { 0.0 } else { self.agreed() as f64 / self.total() as f64 }
    }

    /// Says that the judge does not count.
    pub(super) fn shortfall(&self, min: f64) -> String {
        let Self { wrongly_passed, wrongly_failed, invalid, .. } = self;
        format!(
            "the judge agrees with {} of {} known verdicts ({:.1} %), expected at least {:.1} %: it passed \
            {wrongly_passed} that fail, failed {wrongly_failed} that pass, and wrote no verdict about {invalid}",
            self.agreed(),
            self.total(),
            self.share() * 100.0,
            min * 100.0,
        )
    }
}

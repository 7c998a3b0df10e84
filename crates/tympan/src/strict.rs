//! Strict mode: text of an input that looks like a role marker is an error.
//!
//! Prevention does not need it (see [`crate::chat`]); it is for those who would rather know.

use crate::chat::for_each_marker;
use crate::error::{Error, Kind, Result};
use crate::marker;
use crate::rendered::Rendered;

impl Rendered {
    /// The same text with strict mode on or off.
    ///
    /// # Errors
    /// Strict mode is on, and an input holds a role marker.
    pub fn with_strict(mut self, strict: bool) -> Result<Self> {
        self.strict = strict;
        self.check_strict()?;
        Ok(self)
    }

    /// Fails if strict mode is on and an input holds a role marker, or completes one.
    pub(crate) fn check_strict(&self) -> Result<()> {
        if !self.strict && !self.inputs.has_strict() {
            return Ok(());
        }
        let is_suspect = |origin| {
            let untrusted = !self.inputs.is_trusted(origin);
            untrusted && (self.strict || self.inputs.is_strict(origin))
        };
        let suspects: Vec<_> = self
            .traced
            .ranges()
            .filter(|(range, origin)| !range.is_empty() && is_suspect(*origin))
            .map(|(range, _)| range)
            .collect();
        if suspects.is_empty() {
            return Ok(());
        }
        let mut written = Vec::new();
        for_each_marker(self, |line, _| written.push(line));
        let mut start = 0;
        for line in self.text().split(is_line_end) {
            let range = start..start + line.len();
            start = range.end + self.text()[range.end..].chars().next().map_or(0, char::len_utf8);
            let touches = suspects.iter().any(|suspect| suspect.start < range.end && range.start < suspect.end);
            if touches && marker::match_line(line).is_some() && !written.contains(&range) {
                return Err(Error::new(Kind::NonceMismatch, "").with_help(
                    "an input holds a line that reads like a role marker; without strict it would be text",
                ));
            }
        }
        Ok(())
    }
}

/// Everything that some program takes for the end of a line.
fn is_line_end(char: char) -> bool {
    matches!(char, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

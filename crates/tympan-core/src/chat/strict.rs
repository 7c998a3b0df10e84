//! Strict mode: text from an input that looks like a role marker is an error.
//!
//! Messages cannot be forged without it either (see [`crate::chat`]). Strict mode is for callers that want to detect
//! attempts.

use crate::chat::marker;
use crate::chat::rendered::Rendered;
use crate::chat::scan::for_each_marker;
use crate::error::{Error, Kind, Result};
use crate::text::origin::Origin;

impl Rendered {
    /// Turns strict mode on or off.
    ///
    /// # Errors
    /// Returns an error if an untrusted input contains or completes a role marker, and strict mode is on or the input
    /// is declared `strict`.
    pub fn with_strict(mut self, strict: bool) -> Result<Self> {
        self.strict = strict;
        self.check_strict()?;
        Ok(self)
    }

    /// Returns an error if an input in strict mode contains or completes a role marker.
    pub(crate) fn check_strict(&self) -> Result<()> {
        if !self.strict && !self.inputs.has_strict() {
            return Ok(());
        }
        let is_suspect = |origin| {
            let untrusted = !self.inputs.is_trusted(origin);
            untrusted && (self.strict || self.inputs.is_strict(origin))
        };
        let suspects = self.traced.ranges().filter(|(range, origin)| !range.is_empty() && is_suspect(*origin));
        let suspects: Vec<_> = suspects.collect();
        if suspects.is_empty() {
            return Ok(());
        }
        let mut written = Vec::new();
        for_each_marker(self, |line, _| written.push(line));
        let mut start = 0;
        let mut first = 0;
        for line in self.text().split(is_line_end) {
            let range = start..start + line.len();
            start = range.end + self.text()[range.end..].chars().next().map_or(0, char::len_utf8);
            // Lines and suspects are both in order, so one pass over each is enough.
            while suspects.get(first).is_some_and(|(part, _)| part.end <= range.start) {
                first += 1;
            }
            let touching = suspects.get(first).filter(|(part, _)| part.start < range.end);
            let is_written = || written.binary_search_by_key(&range.start, |line| line.start);
            if let Some((_, origin)) = touching
                && marker::match_line(line).is_some()
                && is_written().map_or(true, |at| written[at] != range)
            {
                return Err(self.forged(*origin));
            }
        }
        Ok(())
    }

    /// Builds the error of strict mode. It names the input but does not quote its text.
    fn forged(&self, origin: Origin) -> Error {
        let names: Vec<_> = self.inputs.names(origin).map(|name| format!("`{name}`")).collect();
        let help = format!(
            "strict mode rejects input {}, because one of its lines looks like a role marker; without strict mode, the line \
                would be text",
            names.join(" or ")
        );
        Error::new(Kind::NonceMismatch, "").with_help(help)
    }
}

/// Returns whether any common program treats the character as the end of a line.
fn is_line_end(char: char) -> bool {
    matches!(char, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

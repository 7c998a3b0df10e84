//! Strict mode: text of an input that looks like a role marker is an error.
//!
//! Prevention does not need it (see [`crate::chat`]); it is for those who would rather know.

use crate::chat::marker;
use crate::chat::rendered::Rendered;
use crate::chat::scan::for_each_marker;
use crate::error::{Error, Kind, Result};
use crate::text::origin::Origin;

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
            // Both are in order, so that many lines with many inputs in them take no longer than they must.
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

    /// The error that strict mode is for. It names the input, and quotes nothing of what it holds.
    fn forged(&self, origin: Origin) -> Error {
        let names: Vec<_> = self.inputs.names(origin).map(|name| format!("`{name}`")).collect();
        let help = format!(
            "the input {} holds a line that reads like a role marker; without strict it would be text",
            names.join(" or ")
        );
        Error::new(Kind::NonceMismatch, "").with_help(help)
    }
}

/// Everything that some program takes for the end of a line.
fn is_line_end(char: char) -> bool {
    matches!(char, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

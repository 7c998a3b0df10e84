//! Strict mode: text from an input that looks like a role marker is an error.
//!
//! Messages cannot be forged without it either (see [`crate::chat`]). Strict mode is for callers that want to detect
//! attempts.

use std::ops::Range;

use crate::chat::marker::{self, Lead};
use crate::chat::rendered::Rendered;
use crate::chat::scan::for_each_marker;
use crate::error::{Error, Kind, Result};
use crate::text::origin::Origin;

impl Rendered {
    /// Turns strict mode on or off.
    ///
    /// # Errors
    /// Returns an error if an untrusted input contains or completes a role marker, also one with text behind it such as
    /// `system: you are…`, and strict mode is on or the input is declared `strict`.
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
        // A nonce never looks like a marker, and separates the texts on both sides of it.
        let is_nonce =
            |range: &Range<usize>| self.rich_places().binary_search_by_key(&range.start, |at| at.range.start).is_ok();
        let suspects = { self.traced.ranges() }
            .filter(|(range, origin)| !range.is_empty() && is_suspect(*origin) && !is_nonce(range));
        let suspects: Suspects = suspects.collect();
        if suspects.is_empty() {
            return Ok(());
        }
        let mut written = Vec::new();
        for_each_marker(self, |line, _| written.push(line));
        let forged = self.find_marker(&suspects, &written).or_else(|| self.find_begun(&suspects, &written));
        forged.map_or(Ok(()), |origin| Err(self.forged(origin)))
    }

    /// Finds a line that looks like a role marker and that an input contributed to. The line may end after the colon,
    /// or text may follow it.
    fn find_marker(&self, suspects: &Suspects, written: &[Range<usize>]) -> Option<Origin> {
        let mut start = 0;
        let mut first = 0;
        for line in self.text().split(is_line_end) {
            let range = start..start + line.len();
            start = range.end + self.text()[range.end..].chars().next().map_or(0, char::len_utf8);
            // Lines and suspects are both in order, so one pass over each is enough.
            while suspects.get(first).is_some_and(|(part, _)| part.end <= range.start) {
                first += 1;
            }
            let Some((_, origin)) = suspects.get(first).filter(|(part, _)| part.start < range.end) else { continue };
            let is_written = || written.binary_search_by_key(&range.start, |line| line.start);
            if marker::match_line(line).is_some() {
                if is_written().map_or(true, |at| written[at] != range) {
                    return Some(*origin);
                }
            } else if let Some(lead) = lead_with_text(line) {
                // The author may write such a line, with an input in an attribute or in the text behind the colon.
                let role = range.start + lead.role.start..range.start + lead.role.end;
                let colon = range.start + lead.end - 1;
                let forges =
                    |part: &Range<usize>| part.start < role.end && part.end > role.start || part.contains(&colon);
                let before = suspects[first..].iter().take_while(|(part, _)| part.start <= colon);
                if let Some((_, origin)) = { before }.find(|(part, _)| forges(part)) {
                    return Some(*origin);
                }
            }
        }
        None
    }

    /// Finds an input whose first line looks like a role marker, on a line that the author has begun.
    fn find_begun(&self, suspects: &Suspects, written: &[Range<usize>]) -> Option<Origin> {
        let mut before = usize::MAX;
        for (index, (part, origin)) in suspects.iter().enumerate() {
            let is_start = std::mem::replace(&mut before, part.end) != part.start;
            let marker = written.partition_point(|line| line.end < part.start);
            let in_marker = written.get(marker).is_some_and(|line| line.start <= part.start);
            if !is_start || in_marker {
                continue;
            }
            // Filters may have cut the input into pieces.
            let mut last = part;
            for (next, _) in &suspects[index + 1..] {
                if next.start != last.end || self.text()[last.clone()].contains(is_line_end) {
                    break;
                }
                last = next;
            }
            let text = &self.text()[part.start..last.end];
            let whole = text.find(is_line_end);
            let line = &text[..whole.unwrap_or(text.len())];
            if lead_with_text(line).is_some() || (whole.is_some() && marker::match_line(line).is_some()) {
                return Some(*origin);
            }
        }
        None
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

/// The text of inputs that may not look like a role marker, in order.
type Suspects = Vec<(Range<usize>, Origin)>;

/// Matches a line that starts like a role marker, with text behind the colon. A character that makes another token of
/// the colon, as in `System::Drawing` or `user://`, is not such a text.
fn lead_with_text(line: &str) -> Option<Lead> {
    let lead = marker::match_lead(line)?;
    let rest = &line[lead.end..];
    (!rest.trim().is_empty() && !rest.starts_with([':', '/', '='])).then_some(lead)
}

/// Returns whether any common program treats the character as the end of a line.
fn is_line_end(char: char) -> bool {
    matches!(char, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

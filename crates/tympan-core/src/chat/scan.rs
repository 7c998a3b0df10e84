//! Finding role markers in rendered text.

use std::ops::Range;

use super::marker::{self, Marker, Part, Parts};
use super::rendered::Rendered;

/// Calls `found` for each role marker, with the byte range of its line.
pub(crate) fn for_each_marker(rendered: &Rendered, mut found: impl FnMut(Range<usize>, Marker)) {
    if let Some(markers) = rendered.guarded.as_ref().and_then(|guarded| guarded.markers.as_ref()) {
        return markers.iter().for_each(|(line, marker)| found(line.clone(), marker.clone()));
    }
    let mut scanner = Scanner { rendered, text: rendered.text(), line: OpenLine::default(), index: 0, at: 0 };
    match &rendered.notable {
        Some(notes) => {
            for note in notes {
                let range = note.range.clone();
                if note.is_line
                    && let Some(marker) = marker::match_line(&scanner.text[range.clone()])
                {
                    found(range, marker);
                } else {
                    scanner.scan(range, &mut found);
                }
            }
        }
        None => scanner.scan(0..scanner.text.len(), &mut found),
    }
}

/// Scans rendered text in order, and skips as much of it as possible.
struct Scanner<'r> {
    rendered: &'r Rendered,
    text: &'r str,
    /// The current line.
    line: OpenLine<'r>,
    /// The index of the current piece, and the position in the text.
    index: usize,
    at: usize,
}

impl<'r> Scanner<'r> {
    /// Scans every line that starts in a range, or that continues into it after nothing but the author's white space.
    fn scan(&mut self, place: Range<usize>, found: &mut impl FnMut(Range<usize>, Marker)) {
        if self.at < place.start {
            self.skip_to(place.start);
        }
        let pieces = self.rendered.traced.piece_ends();
        while self.at < place.end || self.line.is_open() {
            let Some(piece) = pieces.get(self.index) else {
                if let Some(marker) = self.line.close("") {
                    found(self.line.start..self.text.len(), marker);
                }
                return;
            };
            if !self.rendered.inputs.is_trusted(piece.origin) {
                self.line.add_atom(&self.text[self.at..piece.end]);
            } else if !self.scan_lines(piece.end, place.end, found) {
                return;
            }
            self.at = piece.end;
            self.index += 1;
        }
    }

    /// Scans the lines of a piece that ends at `end`. Lines that start at or after `enough` are skipped. Returns
    /// whether the end was reached.
    fn scan_lines(&mut self, end: usize, enough: usize, found: &mut impl FnMut(Range<usize>, Marker)) -> bool {
        let base = self.at;
        for newline in memchr::memchr_iter(b'\n', &self.text.as_bytes()[base..end]) {
            let newline = base + newline;
            if let Some(marker) = self.line.close(&self.text[self.at..newline]) {
                found(self.line.start..newline, marker);
            }
            self.at = newline + 1;
            self.line.start = self.at;
            if self.at >= enough {
                return false;
            }
        }
        if self.at < end {
            self.line.add_author(&self.text[self.at..end]);
        }
        true
    }

    /// Skips to a position and determines how its line starts.
    fn skip_to(&mut self, start: usize) {
        let pieces = self.rendered.traced.piece_ends();
        self.at = start;
        self.index = pieces.partition_point(|piece| piece.end <= start);
        self.line = OpenLine { start: 0, ..OpenLine::default() };
        let (mut index, mut end) = (self.index, start);
        loop {
            let piece_start = if index == 0 { 0 } else { pieces[index - 1].end };
            let has_part = index < self.index || piece_start < end;
            let is_atom = has_part && !self.rendered.inputs.is_trusted(pieces[index].origin);
            let before = &self.text[piece_start..end];
            let before = before.trim_end_matches(|char: char| char != '\n' && char.is_whitespace());
            if is_atom || !(before.is_empty() || before.ends_with('\n')) {
                self.line.is_text = true;
                return;
            }
            if !before.is_empty() || index == 0 {
                self.line.start = piece_start + before.len();
                return;
            }
            (index, end) = (index - 1, piece_start);
        }
    }
}

/// A line that continues in the next piece.
#[derive(Default)]
struct OpenLine<'t> {
    start: usize,
    parts: Parts<'t>,
    /// Whether the line starts in a way that no marker does.
    is_text: bool,
}

impl<'t> OpenLine<'t> {
    /// Returns whether the line may still become a marker and has not ended.
    fn is_open(&self) -> bool {
        !self.is_text && !self.parts.is_empty()
    }

    /// Adds text from an input. A marker never starts with such text.
    fn add_atom(&mut self, text: &'t str) {
        self.is_text |= self.parts.is_empty();
        if !self.is_text {
            self.parts.push(Part::Atom(text));
        }
    }

    fn add_author(&mut self, text: &'t str) {
        self.is_text |= self.parts.is_empty() && !marker::may_be_begun_by(text);
        if !self.is_text {
            self.parts.push(Part::Author(text));
        }
    }

    /// Ends the line with this text of the author's, and returns its marker if it is one.
    fn close(&mut self, rest: &'t str) -> Option<Marker> {
        if std::mem::take(&mut self.is_text) {
            self.parts.clear();
            return None;
        }
        if self.parts.is_empty() {
            return marker::match_line(rest);
        }
        self.parts.push(Part::Author(rest));
        let marker = marker::match_parts(&self.parts);
        self.parts.clear();
        marker
    }
}

//! Scalars of several lines. Their text stays as it is; only their indentation follows what they belong to.

use super::line::{closing_quote, leading_spaces, split_comment};
use super::{Layout, Owner};

impl<'t> Layout<'_, 't> {
    /// Lays a block scalar out: its header, and the lines that are indented further than its owner.
    pub(super) fn block_scalar(&mut self, text: &'t str, owner: Owner) -> Option<()> {
        let (old, _) = owner.block.filter(|block| *block == owner.moved)?;
        let (header, rest) = text.split_at(text.find([' ', '\t']).unwrap_or(text.len()));
        if header[1..].contains(|char: char| !matches!(char, '-' | '+' | '1'..='9')) {
            return None;
        }
        self.out.push_str(header);
        self.end_line(rest)?;
        let explicit = header.chars().find_map(|char| char.to_digit(10)).map(|columns| old + columns as usize);
        let first = self.lines[self.at..].iter().find(|line| !line.is_blank()).map(|line| leading_spaces(line.text));
        let Some(indent) = explicit.or(first.filter(|first| *first > old)) else { return Some(()) };
        let end = self.block_scalar_end(old, indent, header.contains('+'));
        while self.at < end {
            let line = self.lines[self.at];
            let spaces = leading_spaces(line.text);
            if line.is_blank() && line.text.len() <= indent {
                // Whether there is white space here or not makes no difference.
            } else if spaces < indent {
                return None;
            } else {
                self.indent((spaces + owner.moved.1).saturating_sub(owner.moved.0));
                self.out.push_str(&line.text[spaces..]);
            }
            self.next_line();
        }
        Some(())
    }

    /// Returns the index of the line after a block scalar. Blank lines at its end only belong to it if they count.
    fn block_scalar_end(&self, owner: usize, indent: usize, keeps_blank_lines: bool) -> usize {
        let mut end = self.at;
        for (index, line) in self.lines.iter().enumerate().skip(self.at) {
            let is_empty = line.is_blank() && line.text.len() <= indent;
            if !is_empty && leading_spaces(line.text) <= owner {
                break;
            }
            if !is_empty || keeps_blank_lines {
                end = index + 1;
            }
        }
        end
    }

    /// Lays the lines out that continue a plain scalar.
    pub(super) fn plain_continuation(&mut self, owner: Owner) -> Option<()> {
        loop {
            let rest = &self.lines[self.at..];
            let Some(blank) = rest.iter().position(|line| !line.is_blank()) else { return Some(()) };
            let text = rest[blank].text;
            let column = leading_spaces(text);
            let rest = &text[column..];
            if !owner.continues_at(column) || rest.starts_with('#') {
                return Some(());
            }
            if rest.starts_with('\t') {
                return None;
            }
            (0..blank).for_each(|_| self.next_line());
            let (rest, comment) = split_comment(rest);
            self.indent(owner.moved(column));
            self.out.push_str(rest);
            self.end_line(comment)?;
            if !comment.is_empty() {
                return Some(());
            }
        }
    }

    /// Lays a quoted scalar out, which may have several lines.
    pub(super) fn quoted(&mut self, text: &'t str, owner: Owner) -> Option<()> {
        let quote = text.as_bytes()[0];
        let (mut text, mut from) = (text, 1);
        loop {
            if let Some(end) = closing_quote(text, from, quote) {
                self.out.push_str(&text[..end]);
                return self.end_line(&text[end..]);
            }
            self.out.push_str(text);
            self.next_line();
            let line = self.lines.get(self.at)?.text;
            let column = leading_spaces(line);
            if line[column..].starts_with('\t') {
                return None;
            }
            (text, from) = (&line[column..], 0);
            if !text.is_empty() {
                self.indent(owner.moved(column));
            }
        }
    }
}

//! The layout of YAML: indentation, and the white space inside of lines.
//!
//! Every value keeps the line that it is on, and strings keep their quotes, so comments stay with what they are about.
//! What this module does not understand, such as complex keys, it leaves alone: then a text has no layout.
//!
//! The structure of block collections follows from columns, so lines are processed one by one, with a stack of the open
//! collections. The result is not trusted: the caller compares what both texts mean.

mod flow;
mod line;
mod scalar;

use line::{Content, Line, content, leading_spaces, split_comment};

/// The number of columns that a nested collection is indented by.
const INDENT: usize = 2;

/// Lays a YAML text out. Returns `None` if it contains something that cannot be laid out.
pub(super) fn layout(text: &str) -> Option<String> {
    let lines = line::split(text)?;
    let mut layout =
        Layout { lines: &lines, at: 0, out: String::with_capacity(text.len()), open: Vec::new(), held: Vec::new() };
    while layout.at < lines.len() {
        layout.line()?;
    }
    layout.flush(None);
    Some(layout.out)
}

/// A block collection that is open.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Block {
    kind: BlockKind,
    /// The column of its entries, before and after.
    old: usize,
    new: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum BlockKind {
    Map,
    List,
}

/// The collection or the entry that a scalar belongs to: lines that are indented further continue the scalar.
#[derive(Clone, Copy, Debug)]
struct Owner {
    /// The column that a continuation must be right of, before and after. `None` at the top.
    block: Option<(usize, usize)>,
    /// The columns of what the lines of the scalar move with, before and after.
    moved: (usize, usize),
}

/// A comment or a blank line that waits for the next line, which determines its indentation.
#[derive(Clone, Copy)]
struct Held<'t> {
    /// The column and the text of the comment. `None` for a blank line.
    comment: Option<(usize, &'t str)>,
    end: &'t str,
}

struct Layout<'l, 't> {
    lines: &'l [Line<'t>],
    /// The index of the next line.
    at: usize,
    out: String,
    open: Vec<Block>,
    held: Vec<Held<'t>>,
}

impl<'t> Layout<'_, 't> {
    /// Lays the next line out, together with those that continue its value.
    fn line(&mut self) -> Option<()> {
        let line = self.lines[self.at];
        let text = line.text.trim_end_matches([' ', '\t']);
        if text.is_empty() {
            self.held.push(Held { comment: None, end: line.end });
            self.at += 1;
            return Some(());
        }
        let column = leading_spaces(text);
        let rest = &text[column..];
        if rest.starts_with('#') {
            self.held.push(Held { comment: Some((column, rest)), end: line.end });
            self.at += 1;
            return Some(());
        }
        let is_marker = column == 0 && (rest.starts_with("---") || rest.starts_with("...") || rest.starts_with('%'));
        if is_marker || rest.starts_with('\t') {
            return None;
        }
        self.entry(column, rest)
    }

    /// Lays a line out that starts an entry or a value.
    fn entry(&mut self, column: usize, text: &'t str) -> Option<()> {
        let before = if self.held.is_empty() { Vec::new() } else { self.open.clone() };
        let (mut column, mut text) = (column, text);
        let mut list: Option<Block> = None;
        // Several entries can start on one line: `- - name: x`.
        while let Some(rest) = text.strip_prefix('-').filter(|rest| rest.is_empty() || rest.starts_with([' ', '\t'])) {
            let block = self.place(BlockKind::List, column);
            self.start(list.is_none(), block, &before);
            self.out.push('-');
            list = Some(block);
            let next = rest.trim_start_matches(' ');
            if next.starts_with('\t') {
                return None;
            }
            column += 1 + rest.len() - next.len();
            text = next;
            if text.is_empty() || text.starts_with('#') {
                return self.value(text, Owner::of(block));
            }
            self.out.push(' ');
        }
        match content(text)? {
            Content::Entry { key, value } => {
                let block = self.place(BlockKind::Map, column);
                self.start(list.is_none(), block, &before);
                self.out.push_str(key);
                self.out.push(':');
                self.value(value, Owner::of(block))
            }
            Content::Value => {
                let owner = list.map_or_else(|| self.own_line(column), Owner::of);
                if list.is_none() {
                    let (old, new) = owner.moved;
                    self.start(true, Block { kind: BlockKind::Map, old, new }, &before);
                }
                // A value writes the space before it, but here it is the indentation or the space after a dash.
                let length = self.out.len();
                self.value(text, owner)?;
                if self.out[length..].starts_with(' ') {
                    self.out.remove(length);
                }
                Some(())
            }
        }
    }

    /// Starts a line, if the entry is the first on it.
    fn start(&mut self, is_first: bool, block: Block, before: &[Block]) {
        if is_first {
            self.flush(Some((block, before)));
            self.indent(block.new);
        }
    }

    /// Returns the collection that an entry at this column belongs to. Opens and closes collections.
    fn place(&mut self, kind: BlockKind, column: usize) -> Block {
        let is_over = |block: &Block| {
            // A list may have the same column as the key that it is the value of.
            block.old > column || (block.old == column && (block.kind, kind) == (BlockKind::List, BlockKind::Map))
        };
        while self.open.last().is_some_and(is_over) {
            self.open.pop();
        }
        match self.open.last() {
            Some(block) if block.old == column && block.kind == kind => *block,
            outer => {
                let new = outer.map_or(0, |outer| outer.new + INDENT);
                let block = Block { kind, old: column, new };
                self.open.push(block);
                block
            }
        }
    }

    /// Returns the owner of a value that starts on its own line at this column.
    fn own_line(&mut self, column: usize) -> Owner {
        while self.open.last().is_some_and(|block| block.old >= column) {
            self.open.pop();
        }
        let outer = self.open.last();
        let new = outer.map_or(0, |outer| outer.new + INDENT);
        Owner { block: outer.map(|outer| (outer.old, outer.new)), moved: (column, new) }
    }

    /// Writes the comments and blank lines before a line. There is at most one blank line in a row, and none at the
    /// start and at the end.
    fn flush(&mut self, next: Option<(Block, &[Block])>) {
        let held = std::mem::take(&mut self.held);
        let mut blank = None;
        for Held { comment, end } in held {
            let Some((column, text)) = comment else {
                blank = blank.or(Some(end));
                continue;
            };
            self.blank(blank.take());
            let new = self.comment_column(column, next);
            self.indent(new);
            self.out.push_str(text);
            self.out.push_str(end);
        }
        if next.is_some() {
            self.blank(blank);
        }
    }

    fn blank(&mut self, end: Option<&str>) {
        if !self.out.is_empty() {
            self.out.push_str(end.unwrap_or_default());
        }
    }

    /// Returns the new column of a comment: that of the next entry, or of one before it, which it is aligned with.
    fn comment_column(&self, column: usize, next: Option<(Block, &[Block])>) -> usize {
        let (next, before) = next.map_or((None, self.open.as_slice()), |(next, before)| (Some(next), before));
        match next {
            Some(next) if next.old == column => next.new,
            _ => {
                let outer = before.iter().rev().find(|block| block.old <= column);
                outer.or(next.as_ref()).map_or(0, |block| block.new)
            }
        }
    }

    fn indent(&mut self, columns: usize) {
        self.out.extend(std::iter::repeat_n(' ', columns));
    }

    /// Writes what follows a value on its line, which can only be a comment, and ends the line.
    fn end_line(&mut self, rest: &str) -> Option<()> {
        let rest = rest.trim_matches([' ', '\t']);
        if rest.starts_with('#') {
            self.out.push_str("  ");
            self.out.push_str(rest);
        } else if !rest.is_empty() {
            return None;
        }
        self.next_line();
        Some(())
    }

    /// Ends the line in the output, and continues with the next one.
    fn next_line(&mut self) {
        self.out.push_str(self.lines[self.at].end);
        self.at += 1;
    }

    /// Lays the value of an entry out, up to the end of its last line.
    fn value(&mut self, text: &'t str, owner: Owner) -> Option<()> {
        let mut text = text.trim_start_matches([' ', '\t']);
        // Anchors and tags.
        while text.starts_with(['&', '!']) {
            let (word, rest) = text.split_at(text.find([' ', '\t']).unwrap_or(text.len()));
            self.out.push(' ');
            self.out.push_str(word);
            text = rest.trim_start_matches([' ', '\t']);
        }
        if text.is_empty() || text.starts_with('#') {
            return self.end_line(text);
        }
        self.out.push(' ');
        match text.as_bytes()[0] {
            b'|' | b'>' => self.block_scalar(text, owner),
            b'"' | b'\'' => self.quoted(text, owner),
            b'{' | b'[' => self.flow(text, owner),
            b'?' | b'@' | b'`' | b'%' => None,
            _ => self.plain(text, owner),
        }
    }

    /// Lays a plain scalar out, which continues on the lines that are indented further.
    fn plain(&mut self, text: &str, owner: Owner) -> Option<()> {
        let (text, comment) = split_comment(text);
        self.out.push_str(text);
        self.end_line(comment)?;
        if comment.is_empty() { self.plain_continuation(owner) } else { Some(()) }
    }
}

impl Owner {
    fn of(block: Block) -> Self {
        let columns = (block.old, block.new);
        Self { block: Some(columns), moved: columns }
    }

    /// Returns whether a line at this column continues a scalar.
    fn continues_at(self, column: usize) -> bool {
        self.block.is_none_or(|(old, _)| column > old)
    }

    /// Returns the new column of a line that continues a value.
    fn moved(self, column: usize) -> usize {
        let least = self.block.map_or(0, |(_, new)| new + 1);
        (column + self.moved.1).saturating_sub(self.moved.0).max(least)
    }
}

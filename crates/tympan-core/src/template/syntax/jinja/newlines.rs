//! Newlines that white space control must not remove.

use std::ops::Range;

use minijinja::machinery::ast;

/// The newlines before and after protected lines, and which of them have been handled.
///
/// White space control removes text before the parser sees it. Missing newlines are found by comparing their offsets
/// with those of the remaining pieces.
pub(super) struct Newlines<'s> {
    source: &'s str,
    /// Offsets of protected newlines, ascending.
    offsets: Vec<usize>,
    /// How many of them have been handled.
    done: usize,
}

impl<'s> Newlines<'s> {
    pub(super) fn new(source: &'s str, protected: &[Range<usize>]) -> Self {
        let bytes = source.as_bytes();
        let mut offsets = Vec::new();
        for line in protected {
            if let Some(before) = line.start.checked_sub(1).filter(|&at| bytes[at] == b'\n') {
                offsets.push(before);
            }
            if bytes.get(line.end) == Some(&b'\n') {
                offsets.push(line.end);
            }
        }
        offsets.dedup();
        Self { source, offsets, done: 0 }
    }

    /// Returns a piece of literal text with the protected newlines that were trimmed from its ends.
    pub(super) fn restore(&mut self, text: &str) -> String {
        let start = text.as_ptr() as usize - self.source.as_ptr() as usize;
        let end = start + text.len();
        let mut restored = self.before(start);
        restored.push_str(text);
        while self.next().is_some_and(|at| at < end) {
            self.done += 1;
        }
        while let Some(at) = self.next() {
            if !self.source[end..at].chars().all(char::is_whitespace) {
                break;
            }
            restored.push('\n');
            self.done += 1;
        }
        restored
    }

    /// Returns the newlines before an offset that no text contained.
    pub(super) fn before(&mut self, offset: usize) -> String {
        let mut lost = String::new();
        while self.next().is_some_and(|at| at < offset) {
            lost.push('\n');
            self.done += 1;
        }
        lost
    }

    fn next(&self) -> Option<usize> {
        self.offsets.get(self.done).copied()
    }
}

/// Returns the offset at which a statement starts.
pub(super) fn start_of(statement: &ast::Stmt<'_>) -> usize {
    let span = match statement {
        ast::Stmt::Template(node) => node.span(),
        ast::Stmt::EmitExpr(node) => node.span(),
        ast::Stmt::EmitRaw(node) => node.span(),
        ast::Stmt::ForLoop(node) => node.span(),
        ast::Stmt::IfCond(node) => node.span(),
        ast::Stmt::WithBlock(node) => node.span(),
        ast::Stmt::Set(node) => node.span(),
        ast::Stmt::SetBlock(node) => node.span(),
        ast::Stmt::AutoEscape(node) => node.span(),
        ast::Stmt::FilterBlock(node) => node.span(),
        ast::Stmt::Block(node) => node.span(),
        ast::Stmt::Import(node) => node.span(),
        ast::Stmt::FromImport(node) => node.span(),
        ast::Stmt::Extends(node) => node.span(),
        ast::Stmt::Include(node) => node.span(),
        ast::Stmt::Macro(node) => node.span(),
        ast::Stmt::CallBlock(node) => node.span(),
        ast::Stmt::Continue(node) => node.span(),
        ast::Stmt::Break(node) => node.span(),
        ast::Stmt::Do(node) => node.span(),
    };
    span.start_offset as usize
}

//! Parses a template into a syntax tree, and reports every mistake.

use crate::template::syntax::error::{SyntaxError, report};
use crate::template::syntax::mustache::MAX_DEPTH;
use crate::template::syntax::mustache::ast::{Node, NodeKind, Section};
use crate::template::syntax::mustache::build::{
    check_name, excluded, no_section, stray_end, too_deep, unclosed, wrong_end,
};
use crate::template::syntax::mustache::scan::{Scanner, Tag, TagKind};
use crate::template::syntax::token::{Token, TokenKind};
use crate::text::source::Span;

/// Parses a template.
pub(in crate::template::syntax) fn parse(source: &str) -> (Vec<Token>, Vec<Node>, Vec<SyntaxError>) {
    let mut parser =
        Parser { tokens: Vec::new(), end: 0, nodes: Vec::new(), open: Vec::new(), contexts: 0, errors: Vec::new() };
    if u32::try_from(source.len()).is_err() {
        parser.report(SyntaxError::limit(Span::default(), "the template is longer than 4 GiB"));
        return (parser.tokens, parser.nodes, parser.errors);
    }
    let mut scanner = Scanner::new(source);
    loop {
        match scanner.next() {
            Ok((_, None)) => break,
            Ok((_, Some(tag))) => {
                parser.text(tag.span.start);
                parser.tokens_of(&tag);
                if !parser.tag(&tag) {
                    break;
                }
            }
            Err(error) => {
                let (_, tag) = scanner.recover(error.span);
                parser.text(tag.start);
                parser.report(error);
                parser.token(TokenKind::Invalid, tag.end);
                parser.nodes.push(Node { kind: NodeKind::Error, span: tag });
            }
        }
    }
    parser.text(source.len());
    parser.finish()
}

struct Parser<'s> {
    tokens: Vec<Token>,
    /// The end of the last token.
    end: usize,
    /// The nodes of the innermost open section.
    nodes: Vec<Node>,
    open: Vec<Open<'s>>,
    /// The number of open sections with a context.
    contexts: usize,
    errors: Vec<SyntaxError>,
}

/// A section that has not been closed yet.
struct Open<'s> {
    name: &'s str,
    section: Section,
    /// The nodes before the section.
    before: Vec<Node>,
    /// Whether it contains an end tag that does not match anything. It is probably meant for this section.
    has_wrong_end: bool,
}

impl<'s> Parser<'s> {
    fn report(&mut self, error: SyntaxError) {
        report(&mut self.errors, || error);
    }

    /// Adds a token that starts where the last one ends, unless it is empty.
    fn token(&mut self, kind: TokenKind, end: usize) {
        if end > self.end {
            self.tokens.push(Token { kind, start: self.end as u32, end: end as u32 });
            self.end = end;
        }
    }

    fn text(&mut self, end: usize) {
        if end > self.end {
            self.nodes.push(Node { kind: NodeKind::Text, span: Span::new(self.end, end) });
            self.token(TokenKind::Text, end);
        }
    }

    fn tokens_of(&mut self, tag: &Tag<'_>) {
        match tag.kind {
            TagKind::Comment => self.token(TokenKind::Comment, tag.span.end),
            TagKind::Delimiters => self.token(TokenKind::Delimiters, tag.span.end),
            _ => {
                self.token(TokenKind::VariableStart, tag.content.start);
                self.token(TokenKind::Whitespace, tag.name_at);
                self.token(TokenKind::Name, tag.name_at + tag.name.len());
                self.token(TokenKind::Whitespace, tag.content.end);
                self.token(TokenKind::VariableEnd, tag.span.end);
            }
        }
    }

    /// Parses a tag. Returns whether to go on.
    fn tag(&mut self, tag: &Tag<'s>) -> bool {
        let kind = match tag.kind {
            TagKind::Variable | TagKind::Triple => self.variable(tag),
            TagKind::Section | TagKind::Inverted => return self.open(tag),
            TagKind::Close => return self.close(tag),
            TagKind::Comment => NodeKind::Comment,
            TagKind::Delimiters => NodeKind::Delimiters,
            TagKind::Partial => self.excluded("partials", tag),
            TagKind::Parent => self.excluded("parents", tag),
            TagKind::Block => self.excluded("blocks", tag),
        };
        self.nodes.push(Node { kind, span: tag.span });
        true
    }

    fn excluded(&mut self, feature: &str, tag: &Tag<'_>) -> NodeKind {
        self.report(excluded(feature, tag));
        NodeKind::Excluded
    }

    fn variable(&mut self, tag: &Tag<'_>) -> NodeKind {
        if self.check_lookup(tag) { NodeKind::Variable(name_of(tag)) } else { NodeKind::Error }
    }

    /// Reports a name that cannot be looked up.
    fn check_lookup(&mut self, tag: &Tag<'_>) -> bool {
        let error = match check_name(tag) {
            Ok(".") if self.contexts == 0 => no_section(tag.span),
            Ok(_) => return true,
            Err(error) => error,
        };
        self.report(error);
        false
    }

    fn open(&mut self, tag: &Tag<'s>) -> bool {
        self.check_lookup(tag);
        if self.open.len() == MAX_DEPTH {
            self.report(too_deep(tag.span));
            self.open.iter_mut().for_each(|open| open.has_wrong_end = true);
            self.nodes.push(Node { kind: NodeKind::Error, span: tag.span });
            return false;
        }
        let inverted = tag.kind == TagKind::Inverted;
        self.contexts += usize::from(!inverted);
        let section = Section { tag: tag.span, name: name_of(tag), inverted, body: Vec::new(), end: None };
        let before = std::mem::take(&mut self.nodes);
        self.open.push(Open { name: tag.name, section, before, has_wrong_end: false });
        true
    }

    /// Closes the innermost section, or an outer one with the name of the tag, so that those inside it are not closed.
    fn close(&mut self, tag: &Tag<'s>) -> bool {
        let error = match (check_name(tag), self.open.last()) {
            (Err(error), _) => Some(error),
            (Ok(name), None) => Some(stray_end(name, tag.span)),
            (Ok(name), Some(open)) => (open.name != name).then(|| wrong_end(open.name, name, tag.span)),
        };
        if let Some(error) = error {
            self.report(error);
        }
        match self.open.iter().rposition(|open| open.name == tag.name) {
            Some(index) => {
                while self.open.len() > index + 1 {
                    self.pop(None, tag.span.start);
                }
                self.pop(Some(tag.span), tag.span.end);
            }
            None => {
                if let Some(open) = self.open.last_mut() {
                    open.has_wrong_end = true;
                }
                self.nodes.push(Node { kind: NodeKind::Error, span: tag.span });
            }
        }
        true
    }

    /// Ends the innermost section.
    fn pop(&mut self, end_tag: Option<Span>, end: usize) {
        let Some(Open { mut section, before, .. }) = self.open.pop() else { return };
        self.contexts -= usize::from(!section.inverted);
        section.body = std::mem::replace(&mut self.nodes, before);
        section.end = end_tag;
        let span = Span::new(section.tag.start, end);
        self.nodes.push(Node { kind: NodeKind::Section(Box::new(section)), span });
    }

    fn finish(mut self) -> (Vec<Token>, Vec<Node>, Vec<SyntaxError>) {
        while let Some(open) = self.open.last() {
            if !open.has_wrong_end {
                let error = unclosed(open.name, open.section.tag);
                self.report(error);
            }
            self.pop(None, self.end);
        }
        (self.tokens, self.nodes, self.errors)
    }
}

/// Returns the position of a tag's name.
fn name_of(tag: &Tag<'_>) -> Span {
    Span::new(tag.name_at, tag.name_at + tag.name.len())
}

//! Builds a tree from text and tags.

use crate::error::Kind;
use crate::template::syntax::error::SyntaxError;
use crate::template::syntax::jinja::Options;
use crate::template::syntax::leaves::Leaves;
use crate::template::syntax::mustache::scan::{Tag, TagKind};
use crate::template::syntax::mustache::{MAX_DEPTH, Result};
use crate::template::tree::{Block, Expr, ExprKind, Lookup, Node, Place, Section, Tree};
use crate::text::source::Span;

/// Builds a tree. The open sections are on an explicit stack, not on the call stack.
pub(super) struct Builder<'s> {
    leaves: Leaves<'s>,
    /// The enclosing sections, outermost first.
    open: Vec<Open<'s>>,
    /// How many of them have a context. The context of the outermost one is in slot 0, and so on. Consecutive sections
    /// share a slot.
    contexts: usize,
}

/// A section that has not been closed yet.
struct Open<'s> {
    name: &'s str,
    span: Span,
    value: Expr,
    inverted: bool,
    /// The block that contains the section.
    outer: Block,
}

impl<'s> Builder<'s> {
    pub(super) fn new(options: Options<'s>) -> Self {
        Self { leaves: Leaves::new(options), open: Vec::new(), contexts: 0 }
    }

    pub(super) fn text(&mut self, text: &str) {
        self.leaves.text(text);
    }

    pub(super) fn tag(&mut self, tag: &Tag<'s>) -> Result<()> {
        match tag.kind {
            TagKind::Variable | TagKind::Triple => self.variable(tag),
            TagKind::Section | TagKind::Inverted => self.open(tag),
            TagKind::Close => self.close(tag),
            TagKind::Comment | TagKind::Delimiters => Ok(()),
            TagKind::Partial => Err(excluded("partials", tag)),
            TagKind::Parent => Err(excluded("parents", tag)),
            TagKind::Block => Err(excluded("blocks", tag)),
        }
    }

    pub(super) fn finish(mut self) -> Result<Tree> {
        if let Some(open) = self.open.pop() {
            return Err(unclosed(open.name, open.span));
        }
        Ok(self.leaves.finish())
    }

    fn variable(&mut self, tag: &Tag<'s>) -> Result<()> {
        let lookup = self.lookup(tag)?;
        self.leaves.tree.interpolations += 1;
        if let ExprKind::Lookup(lookup) = &lookup.kind
            && let Some(index) = lookup.input.filter(|_| lookup.contexts == 0 && lookup.rest.is_empty())
        {
            self.leaves.tree.plain_inputs.push(index);
        }
        self.leaves.push(Node::Emit(lookup));
        Ok(())
    }

    fn open(&mut self, tag: &Tag<'s>) -> Result<()> {
        let value = self.lookup(tag)?;
        if self.open.len() == MAX_DEPTH {
            return Err(too_deep(tag.span));
        }
        let inverted = tag.kind == TagKind::Inverted;
        let outer = self.leaves.replace_block(Block::new());
        self.open.push(Open { name: tag.name, span: tag.span, value, inverted, outer });
        if !inverted {
            self.contexts += 1;
            self.leaves.tree.frame_size = self.leaves.tree.frame_size.max(self.contexts);
        }
        Ok(())
    }

    fn close(&mut self, tag: &Tag<'s>) -> Result<()> {
        let name = check_name(tag)?;
        let Some(Open { name: expected, value, inverted, outer, .. }) = self.open.pop() else {
            return Err(stray_end(name, tag.span));
        };
        if name != expected {
            return Err(wrong_end(expected, name, tag.span));
        }
        if !inverted {
            self.contexts -= 1;
        }
        let body = self.leaves.replace_block(outer);
        self.leaves.push(Node::Section(Box::new(Section { value, inverted, slot: self.contexts, body })));
        Ok(())
    }

    /// Returns the expression that looks up the name of a tag.
    fn lookup(&mut self, tag: &Tag<'s>) -> Result<Expr> {
        let name = check_name(tag)?;
        let place = Place::from(Span::new(tag.name_at, tag.name_at + name.len()));
        let (first, rest) = match name.strip_prefix('.') {
            Some(rest) if self.contexts > 0 => ("", rest),
            Some("") => {
                return Err(no_section(tag.span));
            }
            // Outside of sections, the innermost context is the set of inputs.
            Some(name) => split_name(name),
            None => split_name(name),
        };
        let input = (!first.is_empty()).then(|| self.leaves.input(first, place));
        let rest = rest.split('.').filter(|part| !part.is_empty()).map(Into::into).collect();
        let lookup = Lookup { contexts: self.contexts, input, first: first.into(), rest };
        Ok(Expr::new(ExprKind::Lookup(Box::new(lookup)), place))
    }
}

/// Splits a name into its first part and the rest.
fn split_name(name: &str) -> (&str, &str) {
    name.split_once('.').unwrap_or((name, ""))
}

/// Returns the tag's name, or an error if it is not valid.
pub(super) fn check_name<'s>(tag: &Tag<'s>) -> Result<&'s str> {
    let name = tag.name;
    if name.is_empty() {
        return Err(SyntaxError::new(tag.span, "tag without a name")
            .with_help("add the name of an input; to write the delimiters as text, change them, as in {{=<% %>=}}"));
    }
    let span = Span::new(tag.name_at, tag.name_at + name.len());
    if name.contains(char::is_whitespace) {
        return Err(SyntaxError::new(span, format!("expected a name, found `{name}`"))
            .with_help("Mustache has no expressions, filters or helpers; use a Jinja template for those"));
    }
    let parts = name.strip_prefix('.').unwrap_or(name);
    if name != "." && parts.split('.').any(str::is_empty) {
        return Err(SyntaxError::new(span, format!("name `{name}` has an empty part"))
            .with_help("write a single dot between parts"));
    }
    Ok(name)
}

/// Returns the error for a tag that prompts do not have.
pub(super) fn excluded(feature: &str, tag: &Tag<'_>) -> SyntaxError {
    let error = SyntaxError::new(tag.span, format!("{feature} (`{}`)", tag.name))
        .with_help("put the text into this file, or pass it as an input that is declared trusted");
    SyntaxError { kind: Kind::ExcludedFeature, ..error }
}

pub(super) fn too_deep(span: Span) -> SyntaxError {
    SyntaxError::limit(span, format!("the template is nested more than {MAX_DEPTH} levels deep"))
        .with_help("use dotted names instead of one section per level")
}

pub(super) fn unclosed(name: &str, span: Span) -> SyntaxError {
    SyntaxError::new(span, format!("section `{name}` is not closed"))
        .with_help(format!("close it with a `/{name}` tag"))
}

pub(super) fn stray_end(name: &str, span: Span) -> SyntaxError {
    SyntaxError::new(span, format!("found the end of section `{name}`, but no section is open"))
        .with_help("remove the tag, or open the section before it")
}

pub(super) fn wrong_end(expected: &str, name: &str, span: Span) -> SyntaxError {
    SyntaxError::new(span, format!("expected the end of section `{expected}`, found the end of `{name}`"))
        .with_help(format!("close `{expected}` first: the section opened last is closed first"))
}

pub(super) fn no_section(span: Span) -> SyntaxError {
    SyntaxError::new(span, "`.` is only defined inside a section")
        .with_help("name an input, or move the tag into a section")
}

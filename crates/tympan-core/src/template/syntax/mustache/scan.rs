//! Splits a source into text and tags.

use memchr::memmem;

use crate::template::syntax::error::SyntaxError;
use crate::template::syntax::mustache::Result;
use crate::text::source::Span;

/// The kind of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TagKind {
    Variable,
    /// `{{{x}}}`
    Triple,
    Section,
    Inverted,
    Close,
    Comment,
    Delimiters,
    Partial,
    Parent,
    Block,
}

impl TagKind {
    /// Returns the kind of a tag that starts with this character, and the length of its mark.
    fn from_mark(mark: u8) -> (Self, usize) {
        let kind = match mark {
            b'&' => Self::Variable,
            b'{' => Self::Triple,
            b'#' => Self::Section,
            b'^' => Self::Inverted,
            b'/' => Self::Close,
            b'!' => Self::Comment,
            b'=' => Self::Delimiters,
            b'>' => Self::Partial,
            b'<' => Self::Parent,
            b'$' => Self::Block,
            _ => return (Self::Variable, 0),
        };
        (kind, 1)
    }

    /// Returns whether the tag removes its whole line if there is nothing else on it.
    fn can_stand_alone(self) -> bool {
        matches!(self, Self::Section | Self::Inverted | Self::Close | Self::Comment | Self::Delimiters)
    }
}

/// A tag: its kind, its name and its position.
#[derive(Debug)]
pub(super) struct Tag<'s> {
    pub(super) kind: TagKind,
    /// The text between the delimiters, without the mark and surrounding white space.
    pub(super) name: &'s str,
    /// The offset of the name.
    pub(super) name_at: usize,
    /// The text between the mark and the closing delimiter.
    pub(super) content: Span,
    pub(super) span: Span,
}

pub(super) struct Scanner<'s> {
    source: &'s str,
    open: &'s str,
    close: &'s str,
    /// The current offset, and whether it is at the start of a line.
    at: usize,
    at_line_start: bool,
    /// Whether the rest of the source has no closing delimiter, and none after a `=`. They are not searched for again.
    is_close_missing: bool,
    is_setter_end_missing: bool,
}

impl<'s> Scanner<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        Self {
            source,
            open: "{{",
            close: "}}",
            at: 0,
            at_line_start: true,
            is_close_missing: false,
            is_setter_end_missing: false,
        }
    }

    /// Returns the text up to the next tag, and the tag. Without a tag, the text is the rest of the source.
    pub(super) fn next(&mut self) -> Result<(&'s str, Option<Tag<'s>>)> {
        let start = self.at;
        let Some(tag_start) = self.find(self.open, start) else {
            self.at = self.source.len();
            return Ok((&self.source[start..], None));
        };
        let tag = self.tag(tag_start)?;
        let text = &self.source[start..tag_start];
        let line = tag.kind.can_stand_alone().then(|| self.own_line(text, tag.span.end)).flatten();
        self.at_line_start = line.is_some();
        let (text, end) = line.unwrap_or((text, tag.span.end));
        self.at = end;
        Ok((text, Some(tag)))
    }

    /// Returns the text before the tag's line and the end of that line, or `None` if the tag is not alone on it.
    fn own_line(&self, before: &'s str, tag_end: usize) -> Option<(&'s str, usize)> {
        let kept = before.trim_end_matches([' ', '\t']);
        let begins_line = kept.ends_with('\n') || (kept.is_empty() && self.at_line_start);
        if !begins_line {
            return None;
        }
        let after = self.source[tag_end..].trim_start_matches([' ', '\t']);
        let next_line = after.strip_prefix('\n').or_else(|| after.strip_prefix("\r\n"));
        let next_line = next_line.or_else(|| after.is_empty().then_some(after))?;
        Some((kept, self.source.len() - next_line.len()))
    }

    /// Parses the tag that starts at `start`.
    fn tag(&mut self, start: usize) -> Result<Tag<'s>> {
        let inside = start + self.open.len();
        let rest = self.source[inside..].trim_start();
        let mark_at = self.source.len() - rest.len();
        // A closing delimiter may start with the same character as a mark.
        let mark = rest.bytes().next().filter(|_| !rest.starts_with(self.close));
        let (kind, mark_len) = TagKind::from_mark(mark.unwrap_or_default());
        let content = mark_at + mark_len;
        // If only white space follows, the error should not point at it.
        let opening = Span::new(start, if rest.is_empty() { inside } else { content });
        let (content_end, end) = match kind {
            TagKind::Delimiters => self.end_of_delimiters(content, opening)?,
            TagKind::Triple => self.end_of_triple(content, opening)?,
            _ => {
                let at = self.find_close(content).ok_or_else(|| self.unclosed("", opening))?;
                (at, at + self.close.len())
            }
        };
        let inner = &self.source[content..content_end];
        let name_at = content_end - inner.trim_start().len();
        let content = Span::new(content, content_end);
        let tag = Tag { kind, name: inner.trim(), name_at, content, span: Span::new(start, end) };
        if kind == TagKind::Delimiters {
            (self.open, self.close) = delimiters(&tag)?;
            (self.is_close_missing, self.is_setter_end_missing) = (false, false);
        }
        Ok(tag)
    }

    /// Returns the ends of the content of `{{=<% %>=}}` and of the tag. The content may contain the closing delimiter.
    fn end_of_delimiters(&mut self, content: usize, opening: Span) -> Result<(usize, usize)> {
        let ending = format!("={}", self.close);
        let found = if self.is_setter_end_missing { None } else { self.find(&ending, content) };
        self.is_setter_end_missing = found.is_none();
        let at = found.ok_or_else(|| self.unclosed("=", opening))?;
        Ok((at, at + ending.len()))
    }

    /// Returns the ends of the content of `{{{x}}}` and of the tag. The first closing delimiter must have the third
    /// brace. Otherwise a missing one would swallow everything up to the next such tag.
    fn end_of_triple(&mut self, content: usize, opening: Span) -> Result<(usize, usize)> {
        let at = self.find_close(content).ok_or_else(|| self.unclosed("}", opening))?;
        if self.source[at..].strip_prefix('}').is_some_and(|rest| rest.starts_with(self.close)) {
            return Ok((at, at + 1 + self.close.len()));
        }
        if self.source[content..at].ends_with('}') {
            return Ok((at - 1, at + self.close.len()));
        }
        Err(self.unclosed("}", Span::new(opening.start, at + self.close.len())))
    }

    fn unclosed(&self, mark: &str, span: Span) -> SyntaxError {
        let Self { open, close, .. } = self;
        let details = format!("tag is not closed: missing `{mark}{close}`");
        let help = format!("close the tag; to write `{open}` as text, change the delimiters, as in {{{{=<% %>=}}}}");
        SyntaxError::new(span, details).with_help(help)
    }

    /// Continues after a tag with a mistake: after its closing delimiter, or else at the end of its line or at the next
    /// tag. Returns the text before the tag, and the tag.
    pub(super) fn recover(&mut self, error: Span) -> (Span, Span) {
        let text = Span::new(self.at, error.start);
        let mut end = error.end;
        if !self.source[error.range()].ends_with(self.close) {
            let rest = &self.source[end..];
            let line = &rest[..memchr::memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len())];
            end += memmem::find(line.as_bytes(), self.open.as_bytes()).unwrap_or(line.len());
        }
        self.at = end;
        self.at_line_start = false;
        (text, Span::new(error.start, end))
    }

    fn find_close(&mut self, from: usize) -> Option<usize> {
        let found = if self.is_close_missing { None } else { self.find(self.close, from) };
        self.is_close_missing = found.is_none();
        found
    }

    fn find(&self, needle: &str, from: usize) -> Option<usize> {
        memmem::find(&self.source.as_bytes()[from..], needle.as_bytes()).map(|at| from + at)
    }
}

/// Returns the delimiters that a tag sets.
fn delimiters<'s>(tag: &Tag<'s>) -> Result<(&'s str, &'s str)> {
    let mut words = tag.name.split_whitespace();
    if let (Some(open), Some(close), None) = (words.next(), words.next(), words.next())
        && !tag.name.contains('=')
    {
        return Ok((open, close));
    }
    let details = "expected an opening and a closing delimiter, separated by a space and without `=`";
    Err(SyntaxError::new(tag.span, details).with_help("write it as {{=<% %>=}}"))
}

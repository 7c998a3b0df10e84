//! White space control: which part of a text is left.

use crate::template::syntax::token::{Token, TokenKind};
use crate::text::source::Span;

/// Returns the part of the text token at `index` that the tags around it leave.
pub(super) fn trimmed(source: &str, tokens: &[Token], index: usize) -> Span {
    let span = tokens[index].span();
    let mut kept = &source[span.range()];
    let mut start = span.start;
    if index.checked_sub(1).is_some_and(|before| trims_after(source, tokens[before])) {
        kept = kept.trim_start();
        start = span.end - kept.len();
    }
    if tokens.get(index + 1).is_some_and(|after| trims_before(source, *after)) {
        kept = kept.trim_end();
    }
    Span::new(start, start + kept.len())
}

/// Returns whether a tag removes the white space before it.
fn trims_before(source: &str, tag: Token) -> bool {
    let starts = matches!(
        tag.kind,
        TokenKind::VariableStart | TokenKind::BlockStart | TokenKind::Comment | TokenKind::RawStart | TokenKind::RawEnd
    );
    starts && source.as_bytes().get(tag.start as usize + 2) == Some(&b'-')
}

/// Returns whether a tag removes the white space after it.
fn trims_after(source: &str, tag: Token) -> bool {
    let text = &source.as_bytes()[tag.span().range()];
    match tag.kind {
        TokenKind::VariableEnd | TokenKind::BlockEnd => text.first() == Some(&b'-'),
        TokenKind::RawStart | TokenKind::RawEnd => text.ends_with(b"-%}"),
        // The sign of the opening delimiter is not one of the closing delimiter.
        TokenKind::Comment => text.ends_with(b"-#}") && text != b"{#-#}",
        _ => false,
    }
}

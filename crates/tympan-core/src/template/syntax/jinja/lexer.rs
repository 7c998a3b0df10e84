//! Splits a source into tokens that cover every byte.
//!
//! A mistake never stops the lexer. A tag that is not closed ends at its first line end or at the next tag, and an
//! unclosed string or comment at the end of its line, so that the rest of the template is still understood.

use memchr::memmem;

use crate::template::syntax::jinja::number;
use crate::template::syntax::token::{Token, TokenKind};

/// Splits a source into tokens. The source must be shorter than 4 GiB.
pub(super) fn tokenize(source: &str) -> Vec<Token> {
    let mut lexer = Lexer {
        source: source.as_bytes(),
        at: 0,
        tokens: Vec::with_capacity(16 + source.len() / 16),
        brackets: Vec::new(),
        limited_until: 0,
        missing: Missing::default(),
    };
    lexer.template();
    lexer.tokens
}

struct Lexer<'s> {
    source: &'s [u8],
    /// The current offset. All bytes before it are covered by tokens.
    at: usize,
    tokens: Vec<Token>,
    /// The open brackets of the current tag.
    brackets: Vec<u8>,
    /// The offset up to which a tag was searched for its end in vain. Tags that start before it end at the next `{{` at
    /// the latest, so that no byte is searched again and again.
    limited_until: usize,
    missing: Missing,
}

/// What does not occur in the rest of the source, so that it is not searched for again.
#[derive(Default)]
struct Missing {
    comment_end: bool,
    double_quote: bool,
    single_quote: bool,
}

/// A tag that is being split.
struct Tag {
    start: usize,
    end_kind: TokenKind,
    /// The first line end or `{{` in the tag. If the tag is not closed, it ends there.
    first_break: Option<usize>,
}

impl Tag {
    fn note_break(&mut self, at: usize) {
        self.first_break.get_or_insert(at);
    }

    fn closing_byte(&self) -> u8 {
        if self.end_kind == TokenKind::BlockEnd { b'%' } else { b'}' }
    }
}

impl Lexer<'_> {
    fn template(&mut self) {
        while self.at < self.source.len() {
            let Some((start, marker)) = self.next_marker() else {
                self.push(TokenKind::Text, self.source.len());
                return;
            };
            if start > self.at {
                self.push(TokenKind::Text, start);
            }
            match marker {
                b'#' => self.comment(),
                b'%' => self.block(),
                _ => self.tag(TokenKind::VariableStart, TokenKind::VariableEnd),
            }
        }
    }

    /// Returns the next `{{`, `{%` or `{#`, and its second byte.
    fn next_marker(&self) -> Option<(usize, u8)> {
        let mut from = self.at;
        loop {
            let start = from + memchr::memchr(b'{', &self.source[from..])?;
            match self.source.get(start + 1) {
                Some(&marker @ (b'{' | b'%' | b'#')) => return Some((start, marker)),
                _ => from = start + 1,
            }
        }
    }

    fn push(&mut self, kind: TokenKind, end: usize) {
        self.tokens.push(Token { kind, start: self.at as u32, end: end as u32 });
        self.at = end;
    }

    /// Returns the offset after an opening delimiter and its white space control sign.
    fn end_of_opening(&self) -> usize {
        self.at + 2 + usize::from(matches!(self.source.get(self.at + 2), Some(b'-' | b'+')))
    }

    fn comment(&mut self) {
        let content = self.end_of_opening();
        let found = if self.missing.comment_end { None } else { memmem::find(&self.source[content..], b"#}") };
        match found {
            Some(length) => self.push(TokenKind::Comment, content + length + 2),
            None => {
                self.missing.comment_end = true;
                self.push(TokenKind::UnclosedComment, self.line_end(self.at));
            }
        }
    }

    fn line_end(&self, from: usize) -> usize {
        memchr::memchr(b'\n', &self.source[from..]).map_or(self.source.len(), |length| from + length)
    }

    fn block(&mut self) {
        match self.basic_tag(self.end_of_opening(), b"raw") {
            Some(end) => {
                self.push(TokenKind::RawStart, end);
                self.raw();
            }
            None => self.tag(TokenKind::BlockStart, TokenKind::BlockEnd),
        }
    }

    /// Splits the content of a raw block, and its end if there is one.
    fn raw(&mut self) {
        let mut from = self.at;
        while let Some(length) = memmem::find(&self.source[from..], b"{%") {
            let start = from + length;
            let sign = usize::from(matches!(self.source.get(start + 2), Some(b'-' | b'+')));
            if let Some(end) = self.basic_tag(start + 2 + sign, b"endraw") {
                self.push_nonempty(TokenKind::RawText, start);
                self.push(TokenKind::RawEnd, end);
                return;
            }
            from = start + 2;
        }
        self.push_nonempty(TokenKind::RawText, self.source.len());
    }

    fn push_nonempty(&mut self, kind: TokenKind, end: usize) {
        if end > self.at {
            self.push(kind, end);
        }
    }

    /// Returns the end of a block tag whose only content, starting at `from`, is a word.
    fn basic_tag(&self, from: usize, word: &[u8]) -> Option<usize> {
        let rest = self.source[from..].trim_ascii_start().strip_prefix(word)?.trim_ascii_start();
        let rest = rest.strip_prefix(b"-").or_else(|| rest.strip_prefix(b"+")).unwrap_or(rest);
        let rest = rest.strip_prefix(b"%}")?;
        Some(self.source.len() - rest.len())
    }

    fn tag(&mut self, start_kind: TokenKind, end_kind: TokenKind) {
        let mut tag = Tag { start: self.at, end_kind, first_break: None };
        let first_token = self.tokens.len();
        self.brackets.clear();
        self.push(start_kind, self.end_of_opening());
        while let Some(&byte) = self.source.get(self.at) {
            if byte == b'{' && self.is_next_tag(&mut tag) {
                break;
            }
            if let Some(end) = self.tag_end(byte, &tag) {
                self.push(end_kind, end);
                return;
            }
            self.tag_token(byte, &mut tag);
        }
        self.limited_until = self.limited_until.max(self.at);
        if let Some(end) = tag.first_break {
            self.cut(first_token, end);
        }
    }

    /// Returns whether a brace starts another tag, so that the current one is not closed. `{%` and `{#` cannot occur in
    /// an expression. `{{` can, as in `{{1: 2}: 3}`.
    fn is_next_tag(&self, tag: &mut Tag) -> bool {
        match self.source.get(self.at + 1) {
            Some(b'%' | b'#') => true,
            Some(b'{') => {
                tag.note_break(self.at);
                tag.start < self.limited_until
            }
            _ => false,
        }
    }

    /// Returns the end of the closing delimiter that starts here, if one does. `}}` can also close two braces of an
    /// expression.
    fn tag_end(&self, byte: u8, tag: &Tag) -> Option<usize> {
        let sign = usize::from(matches!(byte, b'-' | b'+'));
        let closing = tag.closing_byte();
        if self.source.get(self.at + sign) != Some(&closing) || self.source.get(self.at + sign + 1) != Some(&b'}') {
            return None;
        }
        let is_expression = closing == b'}' && self.brackets.last() == Some(&b'{');
        (!is_expression).then_some(self.at + sign + 2)
    }

    /// Drops the tokens of a tag after an offset, and continues there.
    fn cut(&mut self, first_token: usize, end: usize) {
        while self.tokens.len() > first_token && self.tokens.last().is_some_and(|token| token.start as usize >= end) {
            self.tokens.pop();
        }
        if let Some(last) = self.tokens.last_mut().filter(|last| last.end as usize > end) {
            last.end = end as u32;
            if last.kind == TokenKind::String {
                last.kind = TokenKind::UnclosedString;
            }
        }
        self.at = end;
    }

    fn tag_token(&mut self, byte: u8, tag: &mut Tag) {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' | b'\x0c' => self.whitespace(tag),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.name(),
            b'0'..=b'9' => {
                let (kind, length) = number::scan(self.source, self.at);
                self.push(kind, self.at + length);
            }
            b'"' | b'\'' => self.string(byte, tag),
            _ => self.operator(byte),
        }
    }

    fn whitespace(&mut self, tag: &mut Tag) {
        let rest = &self.source[self.at..];
        let length = rest.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(rest.len());
        if tag.first_break.is_none() {
            tag.first_break = memchr::memchr(b'\n', &rest[..length]).map(|length| self.at + length);
        }
        self.push(TokenKind::Whitespace, self.at + length);
    }

    fn name(&mut self) {
        let rest = &self.source[self.at..];
        let length = rest.iter().position(|byte| !is_name_byte(*byte)).unwrap_or(rest.len());
        self.push(TokenKind::Name, self.at + length);
    }

    fn string(&mut self, quote: u8, tag: &mut Tag) {
        let end = if self.is_missing(quote) { None } else { self.string_end(quote) };
        let end = match end {
            Some(end) => {
                self.note_line_end(end, tag);
                self.push(TokenKind::String, end);
                return;
            }
            None => self.unclosed_string_end(tag),
        };
        *if quote == b'"' { &mut self.missing.double_quote } else { &mut self.missing.single_quote } = true;
        self.push(TokenKind::UnclosedString, end);
    }

    fn is_missing(&self, quote: u8) -> bool {
        if quote == b'"' { self.missing.double_quote } else { self.missing.single_quote }
    }

    /// Returns the offset after the string that starts here, or `None` if the source ends before it.
    fn string_end(&self, quote: u8) -> Option<usize> {
        let mut from = self.at + 1;
        loop {
            let found = from + memchr::memchr2(quote, b'\\', self.source.get(from..)?)?;
            if self.source[found] == quote {
                return Some(found + 1);
            }
            from = found + 2;
        }
    }

    /// Notes the first line end in a string.
    fn note_line_end(&self, end: usize, tag: &mut Tag) {
        if tag.first_break.is_none() {
            tag.first_break = memchr::memchr(b'\n', &self.source[self.at..end]).map(|length| self.at + length);
        }
    }

    /// Returns the end of a string without a closing quote: the end of its tag, or of its line.
    fn unclosed_string_end(&self, tag: &Tag) -> usize {
        let line = &self.source[self.at..self.line_end(self.at)];
        let closing = [tag.closing_byte(), b'}'];
        let length = memmem::find(line, &closing).unwrap_or(line.len());
        let sign = usize::from(length > 1 && length < line.len() && matches!(line[length - 1], b'-' | b'+'));
        self.at + length - sign
    }

    fn operator(&mut self, byte: u8) {
        let (kind, length) = match (byte, self.source.get(self.at + 1)) {
            (b'/', Some(b'/')) => (TokenKind::SlashSlash, 2),
            (b'*', Some(b'*')) => (TokenKind::StarStar, 2),
            (b'=', Some(b'=')) => (TokenKind::Equal, 2),
            (b'!', Some(b'=')) => (TokenKind::NotEqual, 2),
            (b'>', Some(b'=')) => (TokenKind::GreaterEqual, 2),
            (b'<', Some(b'=')) => (TokenKind::LessEqual, 2),
            (b'+', _) => (TokenKind::Plus, 1),
            (b'-', _) => (TokenKind::Minus, 1),
            (b'*', _) => (TokenKind::Star, 1),
            (b'/', _) => (TokenKind::Slash, 1),
            (b'%', _) => (TokenKind::Percent, 1),
            (b'.', _) => (TokenKind::Dot, 1),
            (b',', _) => (TokenKind::Comma, 1),
            (b':', _) => (TokenKind::Colon, 1),
            (b'~', _) => (TokenKind::Tilde, 1),
            (b'|', _) => (TokenKind::Pipe, 1),
            (b'=', _) => (TokenKind::Assign, 1),
            (b'>', _) => (TokenKind::Greater, 1),
            (b'<', _) => (TokenKind::Less, 1),
            (b'(' | b'[' | b'{', _) => (self.open_bracket(byte), 1),
            (b')' | b']' | b'}', _) => (self.close_bracket(byte), 1),
            _ => (TokenKind::Invalid, char_len(byte)),
        };
        self.push(kind, self.at + length);
    }

    fn open_bracket(&mut self, byte: u8) -> TokenKind {
        self.brackets.push(byte);
        match byte {
            b'(' => TokenKind::ParenOpen,
            b'[' => TokenKind::BracketOpen,
            _ => TokenKind::BraceOpen,
        }
    }

    /// Closes the innermost bracket if it has the same shape. Any other bracket is a mistake that the parser reports.
    fn close_bracket(&mut self, byte: u8) -> TokenKind {
        let (opening, kind) = match byte {
            b')' => (b'(', TokenKind::ParenClose),
            b']' => (b'[', TokenKind::BracketClose),
            _ => (b'{', TokenKind::BraceClose),
        };
        if self.brackets.last() == Some(&opening) {
            self.brackets.pop();
        }
        kind
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns the length of a character by its first byte.
fn char_len(first: u8) -> usize {
    match first {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    }
}

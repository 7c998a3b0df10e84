//! White space and quotes inside the tags of Jinja templates.
//!
//! Text outside of tags is what a model reads, so it is never touched. A tag keeps its line breaks, because prompts are
//! reviewed line by line and suppressions apply to lines.

use tympan_core::template::syntax::{Token, TokenKind, parse_jinja};
use tympan_core::text::source::Span;

use super::Edit;

/// Returns the tags of a template that change, and their new text. `quotes` says whether the quotes of strings may
/// change.
pub(super) fn edits(source: &str, quotes: bool) -> Vec<Edit> {
    let tokens = parse_jinja(source).tokens;
    let mut edits = Vec::new();
    let (mut index, mut quoted) = (0, false);
    while let Some(token) = tokens.get(index) {
        let end = tag_end(&tokens, index);
        let span = Span::new(token.start as usize, tokens[end - 1].end as usize);
        let text = &source[span.range()];
        let formatted = match token.kind {
            TokenKind::Text | TokenKind::RawText => {
                quoted = is_quoted(text, quoted);
                None
            }
            TokenKind::Comment => comment(text),
            TokenKind::RawStart => Some(basic_tag(text, "raw")),
            TokenKind::RawEnd => Some(basic_tag(text, "endraw")),
            _ => tag(source, &tokens[index..end], quotes && !quoted),
        };
        edits.extend(formatted.filter(|formatted| formatted != text).map(|formatted| (span, formatted)));
        index = end;
    }
    edits
}

/// Returns the index after the last token of the tag that starts at `index`.
fn tag_end(tokens: &[Token], index: usize) -> usize {
    if !matches!(tokens[index].kind, TokenKind::VariableStart | TokenKind::BlockStart) {
        return index + 1;
    }
    let length = tokens[index..].iter().position(|token| token.kind.is_tag_end());
    length.map_or(tokens.len(), |length| index + length + 1)
}

/// Returns whether the end of a text is inside double quotes, as in `href="`. There, a string keeps its single quotes.
fn is_quoted(text: &str, before: bool) -> bool {
    let (line, before) = text.rsplit_once('\n').map_or((text, before), |(_, line)| (line, false));
    before ^ (line.matches('"').count() % 2 == 1)
}

/// Formats a comment on a single line. Others are laid out by hand, and so are those that draw a line of `#`.
fn comment(text: &str) -> Option<String> {
    let inner = text.strip_prefix("{#")?.strip_suffix("#}")?;
    let (open, inner) = inner.strip_prefix(['-', '+']).map_or(("", inner), |rest| (&inner[..1], rest));
    let (close, inner) = inner.strip_suffix(['-', '+']).map_or(("", inner), |rest| (&inner[inner.len() - 1..], rest));
    let inner = inner.trim_matches([' ', '\t']);
    let is_drawn = inner.starts_with('#') || inner.ends_with('#');
    (!inner.is_empty() && !is_drawn && !inner.contains(['\n', '\r'])).then(|| format!("{{#{open} {inner} {close}#}}"))
}

/// Formats a tag that consists of one word.
fn basic_tag(text: &str, word: &str) -> String {
    let sign = |char: Option<char>| char.filter(|char| matches!(char, '-' | '+')).map(String::from).unwrap_or_default();
    let (open, close) = (sign(text.chars().nth(2)), sign(text.chars().rev().nth(2)));
    format!("{{%{open} {word} {close}%}}")
}

/// Formats a tag. Returns `None` if the result would not have the same tokens, or if there are delimiters in a string,
/// because what looks for tags in a line may see others.
fn tag(source: &str, tokens: &[Token], quotes: bool) -> Option<String> {
    let has_delimiters = |token: &Token| {
        let text = &source[token.span().range()];
        token.kind == TokenKind::String && ["{{", "}}", "{%", "%}", "{#", "#}"].iter().any(|mark| text.contains(mark))
    };
    if tokens.iter().any(has_delimiters) {
        return None;
    }
    let mut spacing = Spacing { brackets: Vec::new(), previous: Class::Start, is_head: false, expects_test: false };
    let (mut out, mut white_space) = (String::new(), "");
    for token in tokens {
        let text = &source[token.span().range()];
        match token.kind {
            TokenKind::VariableStart | TokenKind::BlockStart => {
                spacing.is_head = token.kind == TokenKind::BlockStart;
                out.push_str(text);
            }
            TokenKind::Whitespace => white_space = text,
            kind => {
                let gap = spacing.gap(kind, text);
                write_gap(&mut out, gap, white_space);
                white_space = "";
                match kind {
                    TokenKind::String if quotes => write_string(&mut out, text),
                    _ => out.push_str(text),
                }
            }
        }
    }
    has_same_tokens(&out, source, tokens).then_some(out)
}

fn write_gap(out: &mut String, gap: Gap, white_space: &str) {
    if white_space.contains(['\n', '\r']) {
        let mut lines = white_space.split('\n').peekable();
        while let Some(line) = lines.next() {
            // The last line is the indentation of what follows. White space at the end of the others is invisible.
            match lines.peek() {
                None => out.push_str(line),
                Some(_) if line.ends_with('\r') => out.push_str("\r\n"),
                Some(_) => out.push('\n'),
            }
        }
        return;
    }
    let has_space = match gap {
        Gap::None => false,
        Gap::One => true,
        Gap::Keep => !white_space.is_empty(),
    };
    out.push_str(if has_space { " " } else { "" });
}

/// Writes a string with double quotes, if there are no quotes in it.
fn write_string(out: &mut String, text: &str) {
    match text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) {
        Some(inner) if !inner.contains(['\'', '"']) => {
            out.push('"');
            out.push_str(inner);
            out.push('"');
        }
        _ => out.push_str(text),
    }
}

/// Returns whether a formatted tag has the same tokens as before, apart from white space and quotes.
fn has_same_tokens(formatted: &str, source: &str, tokens: &[Token]) -> bool {
    let after = parse_jinja(formatted).tokens;
    let significant = |token: &&Token| token.kind != TokenKind::Whitespace;
    let unquoted = |kind, text: &str| match kind {
        TokenKind::String => text.get(1..text.len() - 1).unwrap_or_default().to_owned(),
        _ => text.to_owned(),
    };
    let before = tokens.iter().filter(significant);
    let before = before.map(|token| (token.kind, unquoted(token.kind, &source[token.span().range()])));
    let after = after.iter().filter(significant);
    let after = after.map(|token| (token.kind, unquoted(token.kind, &formatted[token.span().range()])));
    before.eq(after)
}

/// The white space between two tokens of a line.
#[derive(Clone, Copy)]
enum Gap {
    None,
    One,
    /// One space if there is white space already.
    Keep,
}

/// What a token is in its expression, as far as white space depends on it.
#[derive(Clone, Copy, PartialEq)]
enum Class {
    Start,
    End,
    /// A name or a string.
    Operand,
    Number,
    /// A word that is an operator, or the first word of a statement.
    Keyword,
    /// The name of a test, which may be followed by an argument without parentheses; or `call`.
    Test,
    Binary,
    /// `-` or `*` before an operand.
    Prefix,
    Paren,
    Bracket,
    Brace,
    Close,
    CloseBrace,
    Comma,
    Colon,
    Dot,
    /// Without white space on either side: `=` of an argument, and `:` of a slice.
    Tight,
}

impl Class {
    /// Returns whether an operand ends here, so that an operator follows.
    fn ends_operand(self) -> bool {
        matches!(self, Self::Operand | Self::Number | Self::Test | Self::Close | Self::CloseBrace)
    }

    fn opens(self) -> bool {
        matches!(self, Self::Paren | Self::Bracket | Self::Brace)
    }
}

/// Decides about white space, token by token.
struct Spacing {
    /// The open brackets.
    brackets: Vec<Class>,
    previous: Class,
    /// Whether the next word is the first of a statement.
    is_head: bool,
    /// Whether the next word is the name of a test.
    expects_test: bool,
}

impl Spacing {
    /// Returns the white space before a token.
    fn gap(&mut self, kind: TokenKind, text: &str) -> Gap {
        let class = self.class(kind, text);
        let gap = gap(self.previous, class);
        match class {
            Class::Paren | Class::Bracket | Class::Brace => self.brackets.push(class),
            Class::Close | Class::CloseBrace => drop(self.brackets.pop()),
            _ => {}
        }
        self.previous = class;
        gap
    }

    fn class(&mut self, kind: TokenKind, text: &str) -> Class {
        use TokenKind as K;
        match kind {
            K::Name => self.word(text),
            K::Integer | K::Float => Class::Number,
            K::VariableEnd | K::BlockEnd => Class::End,
            K::Plus | K::Minus | K::Star | K::StarStar if !self.previous.ends_operand() => Class::Prefix,
            K::Assign if !self.brackets.is_empty() => Class::Tight,
            K::Plus | K::Minus | K::Star | K::StarStar | K::Slash | K::SlashSlash | K::Percent | K::Tilde => {
                Class::Binary
            }
            K::Pipe | K::Assign | K::Equal | K::NotEqual => Class::Binary,
            K::Greater | K::GreaterEqual | K::Less | K::LessEqual => Class::Binary,
            K::Dot => Class::Dot,
            K::Comma => Class::Comma,
            K::Colon if self.brackets.last() == Some(&Class::Bracket) => Class::Tight,
            K::Colon => Class::Colon,
            K::ParenOpen => Class::Paren,
            K::BracketOpen => Class::Bracket,
            K::BraceOpen => Class::Brace,
            K::ParenClose | K::BracketClose => Class::Close,
            K::BraceClose => Class::CloseBrace,
            _ => Class::Operand,
        }
    }

    fn word(&mut self, text: &str) -> Class {
        let is_head = std::mem::take(&mut self.is_head);
        let expects_test = std::mem::take(&mut self.expects_test);
        match text {
            _ if self.previous == Class::Dot => Class::Operand,
            // Its parameters follow like those of a macro: `{% call(item) list() %}`.
            "call" if is_head => Class::Test,
            _ if is_head => Class::Keyword,
            "not" => {
                self.expects_test = expects_test;
                Class::Keyword
            }
            _ if expects_test => Class::Test,
            "is" => {
                self.expects_test = true;
                Class::Keyword
            }
            "in" | "and" | "or" | "if" | "else" => Class::Keyword,
            _ => Class::Operand,
        }
    }
}

fn gap(before: Class, after: Class) -> Gap {
    use Class as C;
    match (before, after) {
        (C::Start, _) | (_, C::End) => Gap::One,
        // Together, they would look like delimiters.
        (C::Brace, C::Brace) | (C::CloseBrace, C::CloseBrace) => Gap::Keep,
        // `1.x` would be a number and a name.
        (C::Number, C::Dot) => Gap::Keep,
        (_, C::Close | C::CloseBrace | C::Comma | C::Colon | C::Dot | C::Tight) => Gap::None,
        (C::Dot | C::Tight | C::Prefix, _) => Gap::None,
        (before, _) if before.opens() => Gap::None,
        (C::Test, C::Paren) => Gap::None,
        (C::Operand | C::Number | C::Close | C::CloseBrace, C::Paren | C::Bracket) => Gap::None,
        _ => Gap::One,
    }
}

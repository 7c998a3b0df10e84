//! The tokens of a template.

use crate::text::source::Span;

/// A token: its kind and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The kind.
    pub kind: TokenKind,
    /// The offset of the first byte.
    pub start: u32,
    /// The offset one past the last byte.
    pub end: u32,
}

impl Token {
    /// Returns the position of the token.
    pub const fn span(self) -> Span {
        Span::new(self.start as usize, self.end as usize)
    }
}

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TokenKind {
    /// Text outside of tags, before white space control.
    Text,
    /// `{{` with its white space control sign. In Mustache, any opening delimiter with its mark, such as `{{#`.
    VariableStart,
    /// `}}` with its white space control sign. In Mustache, any closing delimiter, such as `}}}`.
    VariableEnd,
    /// `{%` with its white space control sign.
    BlockStart,
    /// `%}` with its white space control sign.
    BlockEnd,
    /// A whole comment with its delimiters.
    Comment,
    /// A comment that is not closed.
    UnclosedComment,
    /// A whole `{% raw %}` tag.
    RawStart,
    /// The text between `{% raw %}` and `{% endraw %}`.
    RawText,
    /// A whole `{% endraw %}` tag.
    RawEnd,
    /// A whole Mustache tag that sets delimiters, such as `{{=<% %>=}}`.
    Delimiters,
    /// White space inside a tag.
    Whitespace,
    /// A name or a keyword. In Mustache, a dotted name.
    Name,
    /// An integer.
    Integer,
    /// A number with a fraction or an exponent.
    Float,
    /// A string with its quotes.
    String,
    /// A string without its closing quote.
    UnclosedString,
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`
    Star,
    /// `/`
    Slash,
    /// `//`
    SlashSlash,
    /// `**`
    StarStar,
    /// `%`
    Percent,
    /// `.`
    Dot,
    /// `,`
    Comma,
    /// `:`
    Colon,
    /// `~`
    Tilde,
    /// `=`
    Assign,
    /// `|`
    Pipe,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `[`
    BracketOpen,
    /// `]`
    BracketClose,
    /// `(`
    ParenOpen,
    /// `)`
    ParenClose,
    /// `{`
    BraceOpen,
    /// `}`
    BraceClose,
    /// A part of a tag that is not a token of the syntax.
    Invalid,
}

impl TokenKind {
    /// Returns the name of the kind for messages.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Text | Self::RawText => "text",
            Self::VariableStart => "start of variable block",
            Self::VariableEnd => "end of variable block",
            Self::BlockStart => "start of block",
            Self::BlockEnd => "end of block",
            Self::Comment | Self::UnclosedComment => "comment",
            Self::RawStart | Self::RawEnd => "raw block",
            Self::Delimiters => "delimiters",
            Self::Whitespace => "white space",
            Self::Name => "identifier",
            Self::Integer => "integer",
            Self::Float => "float",
            Self::String | Self::UnclosedString => "string",
            Self::Plus => "`+`",
            Self::Minus => "`-`",
            Self::Star => "`*`",
            Self::Slash => "`/`",
            Self::SlashSlash => "`//`",
            Self::StarStar => "`**`",
            Self::Percent => "`%`",
            Self::Dot => "`.`",
            Self::Comma => "`,`",
            Self::Colon => "`:`",
            Self::Tilde => "`~`",
            Self::Assign => "`=`",
            Self::Pipe => "`|`",
            Self::Equal => "`==`",
            Self::NotEqual => "`!=`",
            Self::Greater => "`>`",
            Self::GreaterEqual => "`>=`",
            Self::Less => "`<`",
            Self::LessEqual => "`<=`",
            Self::BracketOpen => "`[`",
            Self::BracketClose => "`]`",
            Self::ParenOpen => "`(`",
            Self::ParenClose => "`)`",
            Self::BraceOpen => "`{`",
            Self::BraceClose => "`}`",
            Self::Invalid => "character",
        }
    }

    /// Returns whether the token can only be outside of a tag or at its start, so that no tag continues past it.
    pub const fn is_outside(self) -> bool {
        matches!(
            self,
            Self::Text
                | Self::VariableStart
                | Self::BlockStart
                | Self::Comment
                | Self::UnclosedComment
                | Self::RawStart
                | Self::RawText
                | Self::RawEnd
                | Self::Delimiters
        )
    }

    /// Returns whether the token ends a tag.
    pub const fn is_tag_end(self) -> bool {
        matches!(self, Self::VariableEnd | Self::BlockEnd)
    }
}

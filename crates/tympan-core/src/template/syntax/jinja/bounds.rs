//! Rejects templates that are nested too deeply before they reach the parser.
//!
//! minijinja's parser, and everything that walks its tree, is recursive. Long chains of operators, filters or `elif`
//! count as nesting, because they become deep trees. Templates that pass fit into a stack of 512 KiB with room to
//! spare.

use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;

use crate::error::{Error, Kind, Result};
use crate::template::syntax::jinja::syntax_error;
use crate::text::source::Span;

/// The maximum nesting depth of statements and the expressions in them, combined.
pub(super) const MAX_DEPTH: usize = 100;

/// Returns an error if the template nests too deeply or cannot be tokenized.
///
/// If the template is clearly shallow, it is not tokenized here, and the parser reports lexical errors instead.
pub(super) fn check(source: &str, syntax: &SyntaxConfig) -> Result<()> {
    if is_surely_shallow(source.as_bytes()) {
        return Ok(());
    }
    let mut depth = Depth::default();
    for token in tokenize(source, false, syntax.clone()) {
        let (token, span) = token.map_err(|error| syntax_error(&error, source))?;
        depth.feed(&token);
        if depth.total() > MAX_DEPTH {
            let span = Span::new(span.start_offset as usize, span.end_offset as usize);
            return Err(too_deep().at(span));
        }
    }
    Ok(())
}

/// Returns whether there are too few operators and brackets to exceed the depth, even if all of the text were one
/// expression. This takes a fraction of the time of tokenizing, and is enough for most prompts.
fn is_surely_shallow(source: &[u8]) -> bool {
    most_depth(source) <= MAX_DEPTH
}

/// Returns an upper bound of the depth, or a number above the maximum.
fn most_depth(source: &[u8]) -> usize {
    let mut most = 2;
    // Every tag starts with a brace.
    let mut rest = memchr::memchr(b'{', source).map_or(&[][..], |first| &source[first..]);
    while let [first, behind @ ..] = rest {
        if most > MAX_DEPTH {
            break;
        }
        let cost = COSTS[usize::from(*first)];
        if cost == WORD {
            let end = rest.iter().position(|byte| COSTS[usize::from(*byte)] != WORD).unwrap_or(rest.len());
            most += usize::from(is_operator(&rest[..end]));
            rest = &rest[end..];
        } else {
            most += usize::from(cost);
            rest = behind;
        }
    }
    most
}

/// Marks a byte of a word. Words are checked as a whole.
const WORD: u8 = u8::MAX;

/// The maximum depth that each byte can add.
const COSTS: [u8; 256] = {
    let mut costs = [1; 256];
    let mut byte = 0;
    while byte < costs.len() {
        costs[byte] = match byte as u8 {
            b'(' | b'[' | b'{' => 2,
            // The lexer does not turn these into operators. Any other sign costs 1, whatever token it becomes.
            b' ' | b'\t' | b'\n' | b'\r' | b'"' | b'\'' | b',' | b':' | b')' | b']' | b'}' | b'#' => 0,
            b'_' | 0x80.. => WORD,
            letter if letter.is_ascii_alphanumeric() => WORD,
            _ => 1,
        };
        byte += 1;
    }
    costs
};

/// Returns whether a word is an operator, or may end in one: a number ends at the first letter that cannot belong to
/// it.
fn is_operator(word: &[u8]) -> bool {
    word[0].is_ascii_digit() || matches!(word, b"and" | b"or" | b"not" | b"is" | b"if" | b"else" | b"in")
}

fn too_deep() -> Error {
    let details = format!("the template is nested more than {MAX_DEPTH} levels deep");
    Error::new(Kind::LimitExceeded, details)
        .with_help("split long chains of operators, filters or elif with {% set %}, or use a dict or a list")
}

/// The depth that the parser would reach, judged by the tokens so far.
#[derive(Default)]
struct Depth {
    /// The open statements, each with the number of its `elif` branches so far.
    statements: Vec<usize>,
    statement_depth: usize,
    /// The open brackets of the current tag, each with the number of operators since the last comma.
    brackets: Vec<usize>,
    bracket_depth: usize,
    /// The statement that the current tag opens.
    tag: Tag,
}

#[derive(Default, PartialEq)]
enum Tag {
    #[default]
    None,
    /// The tag's keyword comes next.
    Keyword,
    /// `{% set x … %}`, which opens a block unless a `=` follows.
    Set,
    Other,
}

impl Depth {
    fn total(&self) -> usize {
        self.statement_depth + self.bracket_depth
    }

    fn feed(&mut self, token: &Token<'_>) {
        match token {
            Token::VariableStart => self.start_tag(Tag::Other),
            Token::BlockStart => self.start_tag(Tag::Keyword),
            Token::BlockEnd | Token::VariableEnd => self.end_tag(),
            Token::Ident(name) if self.tag == Tag::Keyword => self.keyword(name),
            Token::Assign if self.tag == Tag::Set && self.brackets.len() == 1 => self.tag = Tag::Other,
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => {
                self.operator();
                self.brackets.push(0);
                self.bracket_depth += 1;
            }
            Token::ParenClose | Token::BracketClose | Token::BraceClose => self.close_bracket(),
            Token::Comma | Token::Colon => {
                if let Some(operators) = self.brackets.last_mut() {
                    self.bracket_depth -= std::mem::take(operators);
                }
            }
            Token::Ident("and" | "or" | "not" | "is" | "if" | "else" | "in") => self.operator(),
            Token::TemplateData(_)
            | Token::Ident(_)
            | Token::Str(_)
            | Token::String(_)
            | Token::Int(_)
            | Token::Int128(_)
            | Token::Float(_)
            | Token::Assign => {}
            _ => self.operator(),
        }
    }

    fn start_tag(&mut self, tag: Tag) {
        self.tag = tag;
        self.brackets.clear();
        self.brackets.push(0);
        self.bracket_depth = 1;
    }

    fn end_tag(&mut self) {
        if self.tag == Tag::Set {
            self.open_statement();
        }
        self.tag = Tag::None;
        self.brackets.clear();
        self.bracket_depth = 0;
    }

    fn keyword(&mut self, name: &str) {
        self.tag = if name == "set" { Tag::Set } else { Tag::Other };
        match name {
            "for" | "if" | "with" | "filter" | "macro" | "call" | "autoescape" | "block" => self.open_statement(),
            "elif" => {
                if let Some(branches) = self.statements.last_mut() {
                    *branches += 1;
                    self.statement_depth += 1;
                }
            }
            _ if name.starts_with("end") => {
                if let Some(branches) = self.statements.pop() {
                    self.statement_depth -= 1 + branches;
                }
            }
            _ => {}
        }
    }

    fn open_statement(&mut self) {
        self.statements.push(0);
        self.statement_depth += 1;
    }

    fn operator(&mut self) {
        if let Some(operators) = self.brackets.last_mut() {
            *operators += 1;
            self.bracket_depth += 1;
        }
    }

    fn close_bracket(&mut self) {
        if self.brackets.len() > 1
            && let Some(operators) = self.brackets.pop()
        {
            self.bracket_depth -= 1 + operators;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SCRAPS: &[&str] = &[
        "{{",
        "}}",
        "{%",
        "%}",
        "{#",
        "#}",
        " ",
        "\n",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "a",
        "1",
        "1e5and",
        "0x1for",
        " and ",
        " not ",
        " in ",
        " is ",
        " if ",
        " else ",
        "elif",
        "for ",
        "set ",
        "endfor",
        "-",
        "+",
        "*",
        "**",
        "//",
        "~",
        "|",
        ".",
        "==",
        "!=",
        "<=",
        "=",
        ",",
        ":",
        "\"",
        "'",
        "%",
        "\\",
        "é",
        "x.y|z(a)",
        "{% if a %}",
        "{% set x %}",
        "1not",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        /// Templates that skip the full check could not have failed it.
        #[test]
        fn nothing_deep_is_taken_for_shallow(parts in prop::collection::vec(prop::sample::select(SCRAPS), 0..80)) {
            let source = parts.concat();
            let most = most_depth(source.as_bytes());
            let mut depth = Depth::default();
            for token in tokenize(&source, false, SyntaxConfig::default()) {
                let Ok((token, _)) = token else { break };
                depth.feed(&token);
                prop_assert!(depth.total() <= most || most > MAX_DEPTH, "{}", source);
            }
        }
    }
}

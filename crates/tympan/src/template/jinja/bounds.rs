//! Keeps templates that are too deep away from the parser.
//!
//! minijinja's parser, and everything that walks its tree, recurses. Long chains of operators,
//! filters or `elif` count like nesting, because they become deep trees. What passes here fits a
//! stack of 512 KiB with room to spare.

use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;

use super::syntax_error;
use crate::error::{Error, Kind, Result};
use crate::source::Span;

/// How deep statements and the expressions in them may nest, together.
pub(super) const MAX_DEPTH: usize = 100;

/// Fails if the template nests too deeply, or if it does not even consist of tokens.
pub(super) fn check(source: &str, syntax: &SyntaxConfig) -> Result<()> {
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

fn too_deep() -> Error {
    let details = format!("the template nests deeper than {MAX_DEPTH} levels here");
    Error::new(Kind::LimitExceeded, details)
        .with_help("split long chains of operators, filters or elif with {% set %}, or use a dict or a list")
}

/// How deep the parser would be, judged by the tokens so far.
#[derive(Default)]
struct Depth {
    /// Open statements; for each one how many `elif` it has had.
    statements: Vec<usize>,
    statement_depth: usize,
    /// Open brackets of the current tag; for each one how many operators there have been since
    /// the last comma.
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

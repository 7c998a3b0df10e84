//! The Jinja syntax, by way of minijinja's parser.
//!
//! Nothing outside this module touches minijinja's syntax tree, which is not a stable interface.

mod bounds;
mod lower;
mod newlines;
mod scope;

use std::ops::Range;

use minijinja::machinery;
use minijinja::syntax::SyntaxConfig;

use crate::error::{Error, Kind, Result};
use crate::template::Notable;
use crate::template::tree::Tree;
use crate::text::source::Span;

/// What the compiler has to know besides the source.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Options<'a> {
    /// Names that the caller declares: they come first in the list of inputs, and they hide
    /// built-in functions of the same name.
    pub(crate) declared: &'a [&'a str],
    /// Lines of the source whose line ends white space control must leave alone.
    pub(crate) protected: &'a [Range<usize>],
    /// Whether one newline at the very end is dropped.
    pub(crate) drop_last_newline: bool,
    /// Which text of the author's is to be remembered.
    pub(crate) notable: Option<Notable>,
}

/// Compiles a template.
pub(crate) fn compile(source: &str, options: Options<'_>) -> Result<Tree> {
    if !has_long_line(source) {
        return parse(source, options);
    }
    // minijinja counts columns in 16 bits. Where arithmetic is checked, reporting an error beyond
    // them panics; everything up to there is pure, so nothing is left half done.
    std::panic::catch_unwind(|| parse(source, options)).unwrap_or_else(|_| {
        let details = "the template does not parse, in a line of more than 65,534 characters";
        Err(Error::new(Kind::TemplateSyntax, details).with_help("break the line up to see where"))
    })
}

fn has_long_line(source: &str) -> bool {
    let mut start = 0;
    memchr::memchr_iter(b'\n', source.as_bytes()).chain([source.len()]).any(|end| {
        let length = end - std::mem::replace(&mut start, end);
        length >= usize::from(u16::MAX)
    })
}

fn parse(source: &str, options: Options<'_>) -> Result<Tree> {
    let syntax = syntax_config(options)?;
    bounds::check(source, &syntax)?;
    let template = machinery::parse(source, "template", syntax).map_err(|error| syntax_error(&error, source))?;
    lower::lower(&template, source, options)
}

fn syntax_config(options: Options<'_>) -> Result<SyntaxConfig> {
    SyntaxConfig::builder()
        .keep_trailing_newline(!options.drop_last_newline)
        .build()
        .map_err(|error| Error::new(Kind::TemplateSyntax, error))
}

/// A syntax error in our words. minijinja's own texts quote the template only, never a value.
fn syntax_error(error: &minijinja::Error, source: &str) -> Error {
    let details = error.detail().unwrap_or("the template does not parse");
    let range = error.range().unwrap_or(0..0);
    // The lexer takes what it does not know for one byte.
    let (start, mut end) = (source.floor_char_boundary(range.start), range.end.min(source.len()));
    while !source.is_char_boundary(end) {
        end += 1;
    }
    let span = Span::new(start, end);
    Error::new(Kind::TemplateSyntax, details).at(span)
}

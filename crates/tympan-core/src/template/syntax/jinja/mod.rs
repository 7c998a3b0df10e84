//! The Jinja syntax, parsed by minijinja.
//!
//! Only this module uses minijinja's syntax tree, which is not a stable interface.

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

/// Options for compiling a template.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Options<'a> {
    /// The names that the caller declares. They come first in the list of inputs, and they shadow built-in functions of
    /// the same name.
    pub(crate) declared: &'a [&'a str],
    /// Lines of the source whose line ends must not be removed by white space control.
    pub(crate) protected: &'a [Range<usize>],
    /// Whether a single newline at the end is dropped.
    pub(crate) drop_last_newline: bool,
    /// Describes which parts of the author's text to record.
    pub(crate) notable: Option<Notable>,
}

/// Compiles a template.
pub(crate) fn compile(source: &str, options: Options<'_>) -> Result<Tree> {
    if !has_long_line(source) {
        return parse(source, options);
    }
    // minijinja counts columns in 16 bits. With overflow checks, reporting an error beyond that panics. The code is
    // pure up to that point, so catching the panic leaves no partial state behind.
    std::panic::catch_unwind(|| parse(source, options)).unwrap_or_else(|_| {
        let details = "cannot parse a line of more than 65,534 characters";
        Err(Error::new(Kind::TemplateSyntax, details).with_help("break up the line to see the position of the error"))
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

/// Converts a syntax error of minijinja. Its messages only quote the template, never a value.
fn syntax_error(error: &minijinja::Error, source: &str) -> Error {
    let details = error.detail().unwrap_or("cannot parse the template");
    let range = error.range().unwrap_or(0..0);
    // The lexer treats an unknown character as one byte, so the range may end inside a character.
    let (start, mut end) = (source.floor_char_boundary(range.start), range.end.min(source.len()));
    while !source.is_char_boundary(end) {
        end += 1;
    }
    let span = Span::new(start, end);
    Error::new(Kind::TemplateSyntax, details).at(span)
}
